package ladder_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// check is the share check as a configuration has it by default.
func check(set ...func(*ladder.ShareCheck)) ladder.ShareCheck {
	c := ladder.ShareCheck{On: true, DesignEffect: 10, Tolerance: 0.5}
	for _, f := range set {
		f(&c)
	}
	return c
}

// gateway is a release held at one weight for ever, and the traffic of both
// arms as a gateway splits it.
type gateway struct {
	st   ladder.State
	plan ladder.Plan
	now  time.Time
	last ladder.Decision
}

// behind starts a release whose first step has this weight.
func behind(weight release.Weight, c ladder.ShareCheck) *gateway {
	p := plan(hold(1 << 20))
	p.Steps[0].Weight = weight
	if weight.Same(pct(100)) {
		p.Steps = p.Steps[:1]
	}
	p.Share = c
	g := &gateway{plan: *p, now: t0}
	g.decide(ladder.Evidence{Observed: ladder.Observed{Weight: pct(0), At: t0, Known: true}})
	g.decide(ladder.Evidence{Observed: ladder.Observed{Weight: weight, At: t0, Known: true}})
	return g
}

func (g *gateway) decide(ev ladder.Evidence) { g.last = ladder.Decide(&g.plan, &g.st, ev, g.now) }

// minute shows a minute with so many requests of both arms.
func (g *gateway) minute(canary, stable int64, change ...func(canary, stable *release.Window)) ladder.Decision {
	at := g.now
	g.now = g.now.Add(time.Minute)
	c := release.Window{T: at, Span: time.Minute, Arm: release.Canary, Total: canary, Judged: canary, Solved: canary, Known: release.HasSolved | release.HasViolations | release.HasTransfers}
	s := release.Window{T: at, Span: time.Minute, Arm: release.Stable, Total: stable}
	for _, f := range change {
		f(&c, &s)
	}
	g.decide(ladder.Evidence{Windows: []release.Window{c}, Stable: []release.Window{s}, Observed: ladder.Observed{Weight: g.st.Weight, At: g.now, Known: true}})
	return g.last
}

// minutesToFind shows the same minute until a mismatch is seen, and returns how
// many minutes after the read-back that was; 0: not within an hour.
func (g *gateway) minutesToFind(canary, stable int64, change ...func(canary, stable *release.Window)) int {
	for n := 1; n <= 60; n++ {
		if g.minute(canary, stable, change...).Off {
			return n
		}
	}
	return 0
}

// users sets how many users both arms had.
func users(canary, stable int64) func(c, s *release.Window) {
	return func(c, s *release.Window) {
		c.Users, s.Users = canary, stable
		c.Known, s.Known = c.Known|release.HasUsers, s.Known|release.HasUsers
	}
}

// TestAGatewayThatDoesNotFollowIsFound, after the two minutes that a gateway
// has for following.
func TestAGatewayThatDoesNotFollowIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		weight         int64
		check          ladder.ShareCheck
		canary, stable int64
		change         []func(c, s *release.Window)
		want           int // minutes after the read-back; 0: it is none
	}{
		"half of 600 requests instead of 1 %":           {1, check(), 300, 300, nil, 3},
		"half of 60":                                    {1, check(), 30, 30, nil, 4},
		"half of 6":                                     {1, check(), 3, 3, nil, 15},
		"all of 600 instead of 1 %":                     {1, check(), 600, 0, nil, 3},
		"nothing of 600 instead of 1 %":                 {1, check(), 0, 600, nil, 23},
		"nothing of 600 instead of 10 %":                {10, check(), 0, 600, nil, 4},
		"1 % instead of 50 %":                           {50, check(), 6, 594, nil, 3},
		"the step before, 1 % instead of 5 %":           {5, check(), 6, 594, nil, 11},
		"none of 600 at 100 %":                          {100, check(), 0, 600, nil, 3},
		"a tenth elsewhere at 100 %":                    {100, check(), 540, 60, nil, 3},
		"exactly the weight":                            {1, check(), 6, 594, nil, 0},
		"a third more, within the tolerance":            {1, check(), 8, 592, nil, 0},
		"a few stragglers at 100 %":                     {100, check(), 599, 1, nil, 0},
		"the check is off":                              {1, ladder.ShareCheck{DesignEffect: 10, Tolerance: 0.5}, 300, 300, nil, 0},
		"always-on users, and more than the weight":     {1, check(func(c *ladder.ShareCheck) { c.Included = true }), 300, 300, nil, 0},
		"always-on users, and less":                     {10, check(func(c *ladder.ShareCheck) { c.Included = true }), 0, 600, nil, 4},
		"never-on users, and less":                      {10, check(func(c *ladder.ShareCheck) { c.Excluded = true }), 0, 600, nil, 0},
		"never-on users, and more":                      {1, check(func(c *ladder.ShareCheck) { c.Excluded = true }), 300, 300, nil, 3},
		"both lists, and anything":                      {1, check(func(c *ladder.ShareCheck) { c.Included, c.Excluded = true, true }), 300, 300, nil, 0},
		"never-on users at 100 %":                       {100, check(func(c *ladder.ShareCheck) { c.Excluded = true }), 540, 60, nil, 0},
		"one user with half of the requests":            {1, check(), 300, 300, []func(c, s *release.Window){users(1, 99)}, 0},
		"half of the users with 1 % of the requests":    {1, check(), 6, 594, []func(c, s *release.Window){users(50, 50)}, 3},
		"users of one arm alone: requests count":        {1, check(), 300, 300, []func(c, s *release.Window){func(c, s *release.Window) { c.Users, c.Known = 1, c.Known|release.HasUsers }}, 3},
		"stable's minutes are others: nothing to tell":  {1, check(), 300, 300, []func(c, s *release.Window){func(c, s *release.Window) { s.T = s.T.Add(time.Second) }}, 0},
		"stable's minutes are longer: nothing to tell":  {1, check(), 300, 300, []func(c, s *release.Window){func(c, s *release.Window) { s.Span = time.Hour }}, 0},
		"no traffic at all":                             {1, check(), 0, 0, nil, 0},
		"a design effect below 1 counts as independent": {1, check(func(c *ladder.ShareCheck) { c.DesignEffect = 0 }), 300, 300, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := behind(pct(tc.weight), tc.check)
			if got := g.minutesToFind(tc.canary, tc.stable, tc.change...); got != tc.want {
				t.Fatalf("found after %d minutes, want %d (%s)", got, tc.want, g.st.Share)
			}
			if tc.want == 0 {
				return
			}
			if g.last.Why != ladder.WhyMismatch || g.last.Move != release.Hold || g.last.Write {
				t.Errorf("%s for %s", g.last.Move, g.last.Why)
			}
			reason := g.last.Reason()
			if !strings.Contains(reason, pct(tc.weight).String()) || !strings.Contains(reason, g.st.Share.String()) || !strings.Contains(reason, "does not follow") {
				t.Error(reason)
			}
		})
	}
}

// TestTheShareInWords.
func TestTheShareInWords(t *testing.T) {
	for want, s := range map[string]ladder.Share{
		"50 % of 600 requests":                 {Canary: 300, Stable: 300},
		"0.995 % of 603 requests":              {Canary: 6, Stable: 597},
		"33.3 % of 9 users a window":           {Canary: 3, Stable: 6, Users: true},
		"0 % of 0 requests":                    {},
		"100 % of 9000000000000000 requests":   {Canary: 9e15},
		"0.00111 % of 90000000 users a window": {Canary: 1000, Stable: 89_999_000, Users: true},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAfterARollbackTheCanaryServesNothing, or somebody is told.
func TestAfterARollbackTheCanaryServesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		canary int64
		off    bool
	}{"nothing": {0, false}, "a straggler a minute": {1, false}, "as much as before": {60, true}, "half": {300, true}} {
		t.Run(name, func(t *testing.T) {
			g := behind(pct(10), check())
			if g.minutesToFind(60, 540) != 0 {
				t.Fatal("off before the rollback")
			}
			if _, err := ladder.RollBack(&g.plan, &g.st, g.now); err != nil {
				t.Fatal(err)
			}
			g.decide(ladder.Evidence{Observed: ladder.Observed{Weight: pct(0), At: g.now, Known: true}})
			if g.last.Off || g.last.Share.Of() != 0 {
				t.Fatalf("the share of the step before is held against the weight 0: %s", g.st.Share)
			}
			got := g.minutesToFind(tc.canary, 600-tc.canary)
			if got > 0 != tc.off {
				t.Errorf("found after %d minutes: %s", got, g.st.Share)
			}
			if g.last.Why != ladder.WhyFailed || g.last.Write {
				t.Errorf("%s for %s", g.last.Move, g.last.Why)
			}
		})
	}
}

// TestAMismatchHoldsAndNothingElse: a bad canary is rolled back all the same,
// and the hold ends when the gateway follows.
func TestAMismatchHoldsAndNothingElse(t *testing.T) {
	p := plan(hold(10))
	p.Share = check()
	half := func(d *driver) {
		d.stable = []release.Window{{T: d.now, Span: time.Minute, Arm: release.Stable, Total: 30}}
		d.pass(1, 30)
	}
	d := start(t, p)
	for range 60 {
		half(d)
	}
	d.wantHold(ladder.WhyMismatch)
	d.wantWeight(1)
	d.stable = []release.Window{{T: d.now, Span: time.Minute, Arm: release.Stable, Total: 30}}
	d.trip()
	d.wantWeight(0)
	if d.decision.Move == release.Hold && d.decision.Why == ladder.WhyMismatch {
		t.Error("held")
	}

	d = start(t, p)
	for range 60 {
		half(d)
	}
	for range 40 * 60 { // 30 of 3000: the share seen falls to the weight's
		d.stable = []release.Window{{T: d.now, Span: time.Minute, Arm: release.Stable, Total: 2970}}
		d.pass(1, 30)
		if !d.weight.Same(pct(1)) {
			return
		}
	}
	t.Errorf("still held: %s", d.decision.Reason())
}

// binomial draws the successes of n trials by the gaps between them.
func binomial(rng *rand.Rand, n int64, p float64) int64 {
	if p > 0.5 {
		return n - binomial(rng, n, 1-p)
	}
	count, log := int64(0), math.Log1p(-p)
	for at := int64(0); ; count++ {
		at += 1 + int64(math.Log(1-rng.Float64())/log)
		if at > n {
			return count
		}
	}
}

// TestHealthyTrafficIsNeverAMismatch: 10,000 hours, in steps of ten hours, of
// users who send 1, 3 or 10 requests each in a minute, on a gateway that hashes
// them as it should. One alarm is one too many.
func TestHealthyTrafficIsNeverAMismatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(2019, 1))
	hours, alarms := 0, 0
	for hours < 10_000 {
		for _, weight := range []int64{1, 5, 10, 30, 50} {
			for _, each := range []int64{1, 3, 10} {
				for _, perMinute := range []int64{10, 30, 100, 600} {
					g := behind(pct(weight), check())
					for range 600 {
						n := perMinute / each
						on := binomial(rng, n, float64(weight)/100)
						if g.minute(on*each, (n-on)*each).Off {
							alarms++
							t.Errorf("%d %%, %d requests a user, %d a minute: %s at %s", weight, each, perMinute, g.st.Share, g.now.Sub(t0))
							break
						}
					}
					hours += 10
				}
			}
		}
	}
	t.Logf("%d hours, %d alarms", hours, alarms)
}

// TestAFewUsersByChanceAreNoMismatch: at 1 % and ten requests a user, so many of
// the first users are on the canary once in hundreds or thousands of steps. A
// normal approximation takes that for a mismatch.
func TestAFewUsersByChanceAreNoMismatch(t *testing.T) {
	for _, tc := range []struct{ canary, of int64 }{{10, 10}, {10, 30}, {20, 60}, {20, 100}, {30, 200}, {60, 1000}} {
		g := behind(pct(1), check())
		g.minute(0, 0)
		g.minute(0, 0)
		if g.minute(tc.canary, tc.of-tc.canary).Off {
			t.Errorf("%d of %d requests are a mismatch", tc.canary, tc.of)
		}
	}
}

// TestAFewUsersForHoursAreNoMismatch: a step's users stay on their side however
// many requests they send, so their share is not the weight's and never comes
// closer to it.
func TestAFewUsersForHoursAreNoMismatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(2019, 2))
	const users, perMinute = 1000, 600
	for _, weight := range []int64{1, 5} {
		for range 100 {
			g := behind(pct(weight), check())
			on := binomial(rng, users, float64(weight)/100)
			for range 240 {
				if c := binomial(rng, perMinute, float64(on)/users); g.minute(c, perMinute-c).Off {
					t.Fatalf("%d of %d users at %d %%: %s after %s", on, users, weight, g.st.Share, g.now.Sub(t0))
				}
			}
		}
	}
}

// TestTheShareIsTheSameInAnyUnits: ten times as many requests with ten times
// the design effect say the same, and the two arms are alike.
func TestTheShareIsTheSameInAnyUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.Int64Range(1, 99).Draw(t, "weight")
		canary, stable := rapid.Int64Range(0, 500).Draw(t, "canary"), rapid.Int64Range(0, 5000).Draw(t, "stable")
		at := func(weight, canary, stable int64, c ladder.ShareCheck) bool {
			g := behind(pct(weight), c)
			g.minute(0, 0)
			g.minute(0, 0)
			return g.minute(canary, stable).Off
		}
		once := check(func(c *ladder.ShareCheck) { c.DesignEffect = 3 })
		tenfold := check(func(c *ladder.ShareCheck) { c.DesignEffect = 30 })
		want := at(weight, canary, stable, once)
		if got := at(weight, 10*canary, 10*stable, tenfold); got != want {
			t.Errorf("%v, tenfold %v", want, got)
		}
		if got := at(100-weight, stable, canary, once); got != want {
			t.Errorf("%v, with the arms exchanged %v", want, got)
		}
	})
}

// TestAMismatchIsForgottenWhenTheGatewayFollows, within the hour however long it
// did not.
func TestAMismatchIsForgottenWhenTheGatewayFollows(t *testing.T) {
	for name, tc := range map[string]struct {
		weight, was, is, of int64
		hours               int
		most                int // minutes
	}{
		"half instead of 1 %, 600 a minute, for an hour":    {1, 300, 6, 600, 1, 41},
		"half instead of 1 %, 600 a minute, for two days":   {1, 300, 6, 600, 48, 41},
		"half instead of 1 %, 100 a minute":                 {1, 50, 1, 100, 10, 60},
		"half instead of 10 %, 10 a minute":                 {10, 5, 1, 10, 10, 60},
		"nothing instead of 10 %, 100 a minute":             {10, 0, 10, 100, 5, 60},
		"nothing instead of 1 %, 600 a minute":              {1, 0, 6, 600, 5, 41},
		"everything instead of half":                        {50, 600, 300, 600, 5, 41},
		"a tenth elsewhere at 100 %":                        {100, 540, 600, 600, 5, 41},
		"twice as much as 1 %, a little over the tolerance": {1, 24, 6, 600, 5, 60},
	} {
		t.Run(name, func(t *testing.T) {
			g := behind(pct(tc.weight), check())
			for range tc.hours * 60 {
				g.minute(tc.was, tc.of-tc.was)
			}
			if !g.last.Off {
				t.Fatalf("not found: %s", g.st.Share)
			}
			n := 0
			for g.last.Off && n < 1000 {
				g.minute(tc.is, tc.of-tc.is)
				n++
			}
			if n > tc.most {
				t.Errorf("over after %d minutes, want %d at most", n, tc.most)
			}
			for range 600 {
				if g.minute(tc.is, tc.of-tc.is).Off {
					t.Fatalf("off again: %s", g.st.Share)
				}
			}
		})
	}
}

// TestAGatewayThatFollowsNoLongerIsFound, after a day in which it did.
func TestAGatewayThatFollowsNoLongerIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		weight, becomes, of int64
		most                int // minutes
	}{
		"half instead of 1 %":              {1, 300, 600, 3},
		"nothing instead of 1 %":           {1, 0, 600, 60},
		"nothing instead of 10 %":          {10, 0, 600, 40},
		"a tenth elsewhere at 100 %":       {100, 540, 600, 15},
		"half instead of 1 %, 60":          {1, 30, 60, 30},
		"half instead of 10 %, 6 a minute": {10, 3, 6, 600},
	} {
		t.Run(name, func(t *testing.T) {
			g := behind(pct(tc.weight), check())
			rng := rand.New(rand.NewPCG(2019, 3))
			for range 24 * 60 {
				on := binomial(rng, tc.of, float64(tc.weight)/100)
				if tc.weight == 100 {
					on = tc.of
				}
				g.minute(on, tc.of-on)
			}
			n := 0
			for !g.last.Off && n < 2000 {
				g.minute(tc.becomes, tc.of-tc.becomes)
				n++
			}
			if n > tc.most {
				t.Errorf("found after %d minutes, want %d at most (%s)", n, tc.most, g.st.Share)
			}
		})
	}
}

// TestTheShareIsKeptShort however long a step lasts.
func TestTheShareIsKeptShort(t *testing.T) {
	for _, perMinute := range []int64{1, 7, 100, 10_000} {
		g := behind(pct(10), check())
		for range 3 * 24 * 60 {
			g.minute(perMinute/10, perMinute-perMinute/10)
		}
		if n := len(g.st.Share.Slots); n > 22 {
			t.Errorf("%d a minute: %d slots", perMinute, n)
		}
		if of := g.last.Share.Of(); of < min(20_000, 3*24*60*perMinute-3*perMinute) {
			t.Errorf("%d a minute: only %d requests are looked at", perMinute, of)
		}
	}
}
