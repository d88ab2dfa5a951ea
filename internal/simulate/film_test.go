package simulate_test

import (
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// reel is a way to make the same film again, and what it shows frame by frame.
type reel struct {
	film    func() (*simulate.Film, error)
	outcome func() (*simulate.Outcome, error)
	shown   [][2][]release.Window // by frame: of canary and stable
}

// logged notes what a feed shows.
type logged struct {
	simulate.Feed
	shown [][2][]release.Window
}

func (l *logged) Next(w release.Weight) (simulate.Tick, error) {
	tick, err := l.Feed.Next(w)
	l.shown = append(l.shown, [2][]release.Window{slices.Clone(tick.Canary), slices.Clone(tick.Stable)})
	return tick, err
}

func reelOf(t testing.TB, p *ladder.Plan, o simulate.Options, feed func() simulate.Feed) reel {
	t.Helper()
	log := logged{Feed: feed(), shown: make([][2][]release.Window, 1)}
	if _, err := simulate.Run(p, &log, o); err != nil {
		t.Fatal(err)
	}
	return reel{
		film:    func() (*simulate.Film, error) { return simulate.NewFilm(p, feed(), o) },
		outcome: func() (*simulate.Outcome, error) { return simulate.Run(p, feed(), o) },
		shown:   log.shown,
	}
}

func synthetic(t testing.TB, spec simulate.Spec) func() simulate.Feed {
	t.Helper()
	return func() simulate.Feed {
		feed, err := simulate.NewSynthetic(spec)
		if err != nil {
			t.Fatal(err)
		}
		return feed
	}
}

func recording(t testing.TB, canary, stable []release.Window) func() simulate.Feed {
	t.Helper()
	return func() simulate.Feed {
		feed, err := simulate.NewRecorded(canary, stable)
		if err != nil {
			t.Fatal(err)
		}
		return feed
	}
}

// short makes a plan whose steps take minutes, with these limits and gates.
func short(l breaker.Limits, gates ladder.Gates) *ladder.Plan {
	p := plan(l)
	for i := range p.Steps {
		p.Steps[i].MinHold = time.Duration(20+20*i) * time.Minute
		p.Steps[i].Gates |= gates
		p.Steps[i].Limits.MinSamples = 100
	}
	return p
}

// lagged are the published limits for a source whose labels take a while.
func lagged() breaker.Limits {
	l := published()
	l.LabelLag, l.SlowSpanMax, l.Keep = 10*time.Minute, 2*time.Hour, 3*time.Hour
	return l
}

// broken is a drawn day of both arms with a fault in the morning and one later on.
func broken(minutes int) simulate.Spec {
	spec := week(7)
	spec.Minutes = minutes
	spec.Faults = append(spec.Faults,
		simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.ToCount, Value: 3, Arm: release.Canary, From: 45, Until: 47},
		simulate.Fault{Target: simulate.Solve, Change: simulate.DropPP, Value: 15, Arm: release.Canary, From: 700, Until: 1000},
	)
	return spec
}

// leaksAt trips at a minute.
func leaksAt(m, minutes int) []release.Window {
	ws := scenarioA(minutes)
	for i := range ws {
		ws[i].Violations = 0
	}
	ws[m-1].Violations, ws[m].Violations = 2, 2
	return ws
}

// withGaps leaves minutes out and empties others.
func withGaps(ws []release.Window) (out []release.Window) {
	for i, w := range ws {
		switch {
		case i%17 == 3 || i > 300 && i < 340:
			continue
		case i%23 == 5:
			w.Total, w.Judged, w.Solved, w.Violations, w.Transfers = 0, 0, 0, 0, 0
		}
		out = append(out, w)
	}
	return out
}

// relabel is a feed that shows every window three times, each time with more of
// its labels, and one of them late.
type relabel struct {
	minutes, at int
}

func (f *relabel) More() bool          { return f.at < f.minutes }
func (f *relabel) Span() time.Duration { return time.Minute }
func (f *relabel) Start() time.Time    { return t0 }

func (f *relabel) Next(release.Weight) (simulate.Tick, error) {
	tick := simulate.Tick{T: t0.Add(time.Duration(f.at) * time.Minute)}
	for _, age := range []int{7, 3, 0} {
		if m := f.at - age; m >= 0 && (age > 0 || m%11 != 4) {
			w := minute(m, 40, 0, 0, 0)
			w.Judged = int64(20 + 2*age)
			w.Solved = w.Judged - int64(age/2)
			if m > 400 && m < 460 {
				w.Solved = w.Judged / 2
			}
			tick.Canary = append(tick.Canary, w)
		}
	}
	f.at++
	return tick, nil
}

// reels are feeds and journals in which all that there is happens.
func reels(t testing.TB) map[string]reel {
	day := 24 * 60
	watched := lagged()
	watched.AgainstStable, watched.SolveBaseline = true, release.MustRatio("0.9")
	summed := published()
	summed.Judge, summed.SolveBaseline = breaker.CusumJudge, release.MustRatio("0.9")
	summed.Cusum = breaker.Cusum{Drop: release.MustRatio("0.08"), Limit: 5}
	many, halves := scenarioA(700), shifted(t0.Add(-30*time.Second), 5*time.Minute, 140)
	return map[string]reel{
		"drawn, tripped and recovered": reelOf(t, short(published(), 0), simulate.Options{}, synthetic(t, broken(day))),
		"drawn, with a lag of labels":  reelOf(t, short(lagged(), 0), simulate.Options{}, synthetic(t, broken(day))),
		"drawn, against stable":        reelOf(t, short(watched, 0), simulate.Options{}, synthetic(t, broken(day))),
		"drawn, as a sum":              reelOf(t, short(summed, 0), simulate.Options{}, synthetic(t, broken(day))),
		"waits for an approval":        reelOf(t, short(published(), ladder.ApprovalGate), simulate.Options{}, synthetic(t, broken(700))),
		"approved":                     reelOf(t, short(published(), ladder.ApprovalGate), simulate.Options{Approve: true}, synthetic(t, broken(day))),
		"locked":                       reelOf(t, plan(published()), simulate.Options{}, recording(t, scenarioB(600), nil)),
		"ends before a probe":          reelOf(t, plan(published()), simulate.Options{}, recording(t, scenarioA(28), nil)),
		"ends so at a checkpoint":      reelOf(t, plan(published()), simulate.Options{}, recording(t, leaksAt(250, 256), nil)),
		"one tick":                     reelOf(t, plan(published()), simulate.Options{}, recording(t, scenarioA(1), nil)),
		"recorded, with gaps":          reelOf(t, short(published(), 0), simulate.Options{}, recording(t, withGaps(many), halves)),
		"labels come in":               reelOf(t, short(lagged(), 0), simulate.Options{}, func() simulate.Feed { return &relabel{minutes: 900} }),
		"thinned": reelOf(t, firstSteps(short(published(), 0)), simulate.Options{}, func() simulate.Feed {
			canary, stable := recordedArms(600)
			feed, err := simulate.NewRecorded(canary, stable)
			if err != nil {
				t.Fatal(err)
			}
			thin, err := simulate.Thin(feed, 3)
			if err != nil {
				t.Fatal(err)
			}
			return thin
		}),
		"calls":                      calledReel(t, callsOf(short(published(), 0), each(scenarioA(700)))),
		"calls of an eventful month": calledReel(t, eventful(short(lagged(), ladder.ApprovalGate), 1, 900)),
		"approved at a checkpoint":   calledReel(t, approvedAt(256, callsOf(short(published(), ladder.ApprovalGate), each(leaksAt(290, 300))))),
		"calls of another one":       calledReel(t, eventful(short(lagged(), 0), 2, 900)),
	}
}

// firstSteps leaves out the steps above the share that recordedArms were
// recorded at.
func firstSteps(p *ladder.Plan) *ladder.Plan {
	p.Steps = p.Steps[:3]
	return p
}

func recordedArms(minutes int) (canary, stable []release.Window) {
	for m := range minutes {
		w := minute(m, 60, 54, int64(m%200/199)*3, 1)
		canary = append(canary, w)
		w.Total, w.Judged, w.Solved, w.Arm = 140, 140, 126, release.Stable
		stable = append(stable, w)
	}
	return canary, stable
}

// calledReel makes a film of calls.
func calledReel(t testing.TB, calls iter.Seq2[*simulate.Call, error]) reel {
	t.Helper()
	r := reel{
		film:    func() (*simulate.Film, error) { return simulate.FilmOf(calls, nil) },
		outcome: func() (*simulate.Outcome, error) { return simulate.Replay(calls, nil) },
	}
	for c := range calls {
		if c.Adopted == nil && !c.Abandoned {
			r.shown = append(r.shown, [2][]release.Window{slices.Clone(c.Evidence.Windows), slices.Clone(c.Evidence.Stable)})
		}
	}
	return r
}

// eventful makes the calls of a driver whose target sometimes does not answer or
// forgets what it was told, whose source shows windows again with more labels,
// whose people give commands, and which is taken over by another machine.
func eventful(p *ladder.Plan, seed uint64, minutes int) iter.Seq2[*simulate.Call, error] {
	return func(yield func(*simulate.Call, error) bool) {
		d := &driver{p: p, rng: rand.New(rand.NewPCG(seed, 0)), yield: yield}
		for m := range minutes {
			now := t0.Add(time.Duration(m) * time.Minute)
			if !d.person(now) || !d.look(m, now) || m == minutes/2 && !d.takeOver(now) {
				return
			}
		}
		d.st.Attempt++ // there, on the other machine
		d.takeOver(t0.Add(time.Duration(minutes) * time.Minute))
	}
}

// approvedAt gives a person's word for the first step in place of a call.
func approvedAt(n int, calls iter.Seq2[*simulate.Call, error]) iter.Seq2[*simulate.Call, error] {
	return func(yield func(*simulate.Call, error) bool) {
		i := 0
		for c, err := range calls {
			if i == n {
				c = &simulate.Call{Plan: c.Plan, Now: c.Now, Command: &ladder.Command{
					Verb: ladder.DoApprove, At: c.Now, By: "ann", Attempt: 1, Digest: c.Plan.Digest,
				}}
			}
			if !yield(c, err) {
				return
			}
			i++
		}
	}
}

type driver struct {
	p      *ladder.Plan
	rng    *rand.Rand
	yield  func(*simulate.Call, error) bool
	st     ladder.State
	last   ladder.Decision
	weight release.Weight
}

func (d *driver) rare(one int) bool { return d.rng.IntN(one) == 0 }

// look shows what there is, three times at most.
func (d *driver) look(m int, now time.Time) bool {
	known := !d.rare(9)
	for range 3 {
		ev := ladder.Evidence{Observed: ladder.Observed{Weight: d.weight, At: now, Known: known}, SourceFailed: d.rare(50)}
		if !ev.SourceFailed {
			ev.Windows, ev.Stable = d.windows(m, release.Canary), d.windows(m, release.Stable)
		}
		if !d.yield(&simulate.Call{Plan: d.p, Now: now, Evidence: ev, Until: now}, nil) {
			return false
		}
		d.last = ladder.Decide(d.p, &d.st, ev, now)
		switch {
		case !d.last.Write:
			return true
		case d.rare(6):
			ladder.Abandon(&d.st)
			if !d.yield(&simulate.Call{Now: now, Abandoned: true}, nil) {
				return false
			}
		case !d.rare(6):
			d.weight = d.last.Weight
		}
	}
	return true
}

// windows are the last minutes before m, with the labels that are known by then.
func (d *driver) windows(m int, arm release.Arm) (ws []release.Window) {
	for age := 12; age >= 1; age-- {
		if m < age || age > 1 && (m+age)%3 == 0 || age == 1 && m%13 == 2 {
			continue
		}
		w := minute(m-age, 30, 0, 0, 0)
		w.Arm, w.Judged = arm, int64(min(30, 5+3*age))
		w.Solved = w.Judged - 1
		if at := m - age; arm == release.Canary && at%220 > 160 && at%220 < 164 {
			w.Violations = 4
		}
		if d.weight.IsZero() && arm == release.Canary {
			w.Total, w.Judged, w.Solved, w.Violations = 0, 0, 0, 0
		}
		ws = append(ws, w)
	}
	return ws
}

// person gives a command now and then, if it is possible.
func (d *driver) person(now time.Time) bool {
	c := ladder.Command{At: now, By: "ann", Reason: "because"}
	switch {
	case d.last.Move == release.AwaitApproval:
		c.Verb, c.Attempt, c.Step, c.Digest = ladder.DoApprove, d.st.Attempt, d.st.Step, d.p.Digest
	case d.st.Locked():
		c.Verb = ladder.DoClearLock
	case d.st.Paused:
		c.Verb = ladder.DoResume
	case d.rare(40):
		c.Verb = ladder.DoPause
	case d.rare(120):
		c.Verb = ladder.DoRollBack
	case d.rare(200):
		c.Verb = ladder.DoRestart
	default:
		return true
	}
	if c.Verb != ladder.DoApprove && c.Verb != ladder.DoRollBack && !d.rare(3) {
		return true
	}
	st := copied(d.st)
	said, err := ladder.Apply(d.p, &st, &d.last, c)
	if err != nil {
		return true
	}
	d.st = st
	if c.Verb == ladder.DoRollBack {
		d.last = said
	}
	if c.Verb == ladder.DoApprove || c.Verb == ladder.DoClearLock {
		d.last.Move = release.Hold
	}
	return d.yield(&simulate.Call{Plan: d.p, Now: now, Command: &c}, nil)
}

func (d *driver) takeOver(now time.Time) bool {
	d.last = ladder.Decision{Move: d.last.Move, Verdict: d.last.Verdict}
	return d.yield(&simulate.Call{Now: now, Adopted: &simulate.Adopted{
		State: copied(d.st), Move: d.last.Move, Verdict: d.last.Verdict, From: t0, Served: 1234,
	}}, nil)
}

func copied(st ladder.State) (out ladder.State) {
	b, err := json.Marshal(&st)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// seen is a frame as plain data.
type seen struct {
	Frame simulate.Frame
	State string
}

func look(t interface{ Fatal(...any) }, f *simulate.Film, i int) seen {
	frame := f.At(i)
	state, err := json.Marshal(&frame.State)
	if err != nil {
		t.Fatal(err)
	}
	frame.State = ladder.State{}
	return seen{frame, string(state)}
}

func (s seen) diff(o seen) string {
	if s.State == o.State && reflect.DeepEqual(s.Frame, o.Frame) {
		return ""
	}
	return cmp.Diff(s.State, o.State) + cmp.Diff(s.Frame.Decision, o.Frame.Decision) + cmp.Diff(s.Frame, o.Frame)
}

func filmed(t testing.TB, r reel) *simulate.Film {
	t.Helper()
	f, err := r.film()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// straight looks at all frames of a film that was just made, one after the other.
func straight(t testing.TB, r reel) (frames []seen) {
	t.Helper()
	f := filmed(t, r)
	for i := range f.Len() {
		frames = append(frames, look(t, f, i))
	}
	return frames
}

func TestAFrameIsTheSameFromWhereverItIsReached(t *testing.T) {
	for name, r := range reels(t) {
		t.Run(name, func(t *testing.T) {
			want, f := straight(t, r), filmed(t, r)
			at := 0
			rapid.Check(t, func(t *rapid.T) {
				for range rapid.IntRange(1, 7).Draw(t, "steps") {
					switch rapid.IntRange(0, 4).Draw(t, "how") {
					case 0:
						at++
					case 1:
						at--
					case 2:
						at += rapid.IntRange(-300, 300).Draw(t, "by")
					case 3:
						at = rapid.IntRange(0, f.Len()-1).Draw(t, "to")
					case 4:
						at = 256*rapid.IntRange(0, f.Len()/256).Draw(t, "checkpoint") + rapid.IntRange(-1, 1).Draw(t, "beside")
					}
					at = min(max(at, 0), f.Len()-1)
					if diff := want[at].diff(look(t, f, at)); diff != "" {
						t.Fatalf("frame %d (-straight +walked):\n%s", at, diff)
					}
				}
			})
		})
	}
}

func TestAFilmEndsWhereTheReplayDoes(t *testing.T) {
	happened := map[release.Move]int{}
	for name, r := range reels(t) {
		t.Run(name, func(t *testing.T) {
			want, err := r.outcome()
			if err != nil {
				t.Fatal(err)
			}
			f := filmed(t, r)
			got := f.Outcome()
			ignored := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "State" }, cmp.Ignore())
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			end := look(t, f, f.Len()-1)
			for what, st := range map[string]*ladder.State{"film's": &got.State, "replay's": &want.State} {
				state, err := json.Marshal(st)
				if err != nil || string(state) != end.State {
					t.Errorf("the %s state is not the last frame's (%v): %s", what, err, cmp.Diff(string(state), end.State))
				}
			}
			if f.Len() != len(r.shown) || f.Span() != want.Span || f.Span() == 0 {
				t.Errorf("%d frames, want %d; span %s", f.Len(), len(r.shown), f.Span())
			}
			for _, m := range want.Moves {
				happened[m.Move]++
			}
			t.Logf("%d frames, %d moves, %d events, %d rollbacks, %d marks", f.Len(), len(got.Moves), len(got.Events), len(got.Rollbacks), len(f.Marks()))
		})
	}
	// Nothing is shown by films in which nothing happens.
	for _, m := range []release.Move{release.Start, release.Advance, release.AwaitApproval, release.Complete, release.RollBackMove, release.Probe, release.Lock} {
		if happened[m] == 0 {
			t.Errorf("no film has a %s", m)
		}
	}
}

// A frame is marked where the decisions in it have brought the release further,
// which shows in the state as well: nothing but evidence and clocks changes there
// otherwise.
func TestMarksAreTheFramesInWhichSomethingHappened(t *testing.T) {
	undone := 0
	for name, r := range reels(t) {
		t.Run(name, func(t *testing.T) {
			f := filmed(t, r)
			in := map[int]bool{}
			count := struct{ events, moves, rollbacks int }{}
			for _, c := range f.Changes() {
				in[c.Frame] = true
				frame := f.At(c.Frame)
				switch {
				case c.Event != nil:
					count.events++
					if !frame.Decision.Happened {
						t.Errorf("frame %d has the event %+v and tells %+v", c.Frame, c.Event, frame.Decision)
					}
				case c.Move != nil:
					count.moves++
					if c.Move.Step > frame.Decision.Step && c.Move.Attempt == frame.Decision.Attempt {
						t.Errorf("frame %d has the move %s and tells %s", c.Frame, c.Move.Move, frame.Decision.Move)
					}
				case c.Rollback != nil:
					count.rollbacks++
				case c.Command != frame.Command || c.Command == nil:
					t.Errorf("frame %d has the command %v, shows %v", c.Frame, c.Command, frame.Command)
				}
			}
			if got := slices.Collect(keys(in, f.Len())); !slices.Equal(got, f.Marks()) {
				t.Errorf("marks %v, want %v", f.Marks(), got)
			}
			out := f.Outcome()
			if count.events != len(out.Events) || count.rollbacks != len(out.Rollbacks) || count.moves < len(out.Moves) {
				t.Errorf("%+v in %d events, %d moves, %d rollbacks", count, len(out.Events), len(out.Moves), len(out.Rollbacks))
			}
			undone += count.moves - len(out.Moves)
			before := simulate.Frame{}
			for i := range f.Len() {
				now := f.At(i)
				d := &now.Decision
				told := d.Happened || d.Move != release.Hold && d.Move != release.AwaitApproval && !d.Again
				if told && *d != before.Decision && !in[i] {
					t.Errorf("frame %d tells %+v, and is not marked", i, d)
				}
				if in[i] && !told && d.Move != release.AwaitApproval && now.Command == nil && before.Decision.Move != release.AwaitApproval {
					t.Errorf("frame %d is marked, and tells %+v", i, d)
				}
				if !now.Now.Equal(f.Time(i)) || i > 0 && now.Now.Before(before.Now) {
					t.Errorf("frame %d is at %s, the one before at %s", i, now.Now, before.Now)
				}
				before = now
				before.State = ladder.State{}
			}
		})
	}
	if undone == 0 {
		t.Error("no film has a step that was asked for and never made")
	}
}

// keys yields the frames of a set, rising.
func keys(in map[int]bool, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if in[i] && !yield(i) {
				return
			}
		}
	}
}

// by lists what had been shown of an arm by a frame, as plainly as possible.
func (r *reel) by(frame, arm int) (ws []release.Window) {
	for i := range frame + 1 {
		for _, w := range r.shown[i][arm] {
			at, found := slices.BinarySearchFunc(ws, w.T, func(o release.Window, t time.Time) int { return o.T.Compare(t) })
			if found {
				ws[at] = w
			} else {
				ws = slices.Insert(ws, at, w)
			}
		}
	}
	return ws
}

func TestNoWindowOfTheFutureIsShown(t *testing.T) {
	for name, r := range reels(t) {
		t.Run(name, func(t *testing.T) {
			f := filmed(t, r)
			rapid.Check(t, func(t *rapid.T) {
				i := rapid.IntRange(0, f.Len()-1).Draw(t, "frame")
				n := rapid.IntRange(0, 90).Draw(t, "n")
				since := f.Time(i).Add(-time.Duration(rapid.IntRange(-5, 120).Draw(t, "since")) * time.Minute)
				canary, stable := f.Windows(i, time.Time{}, n)
				lateCanary, lateStable := f.Windows(i, since, n)
				for arm, got := range [][2][]release.Window{{canary, lateCanary}, {stable, lateStable}} {
					want := r.by(i, arm)
					want = want[max(0, len(want)-n):]
					if !slices.Equal(want, got[0]) {
						t.Fatalf("arm %d at frame %d (-want +got):\n%s", arm, i, cmp.Diff(want, got[0]))
					}
					for len(want) > 0 && want[0].T.Before(since) {
						want = want[1:]
					}
					if !slices.Equal(want, got[1]) {
						t.Fatalf("arm %d at frame %d since %s (-want +got):\n%s", arm, i, since, cmp.Diff(want, got[1]))
					}
				}
			})
		})
	}
}

// Served goes on while the canary serves, and begins anew with every attempt.
func TestServedIsWhatTheAttemptHasServed(t *testing.T) {
	feed := recording(t, scenarioA(60), nil)
	f, err := simulate.NewFilm(plan(published()), feed(), simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Tripped at 22, probed from 28 on, recovered at 32.
	for i, want := range map[int]int64{0: 0, 1: 26, 23: 23 * 26, 28: 23 * 26, 29: 24 * 26, 33: 0, 34: 26} {
		if got := f.At(i).Served; got != want {
			t.Errorf("frame %d: %d served, want %d", i, got, want)
		}
	}
	called := filmed(t, calledReel(t, eventful(short(lagged(), 0), 1, 100)))
	if got := called.At(called.Len() - 1).Served; got != 1234 {
		t.Errorf("taken over at the end: %d served, want the 1234 of the other machine", got)
	}
	if d := f.At(23).Decision; d.Move != release.RollBackMove || !f.At(23).Weight.IsZero() {
		t.Errorf("frame 23: %s, weight %s", d.Move, f.At(23).Weight)
	}
}

func TestAFilmIsRefusedAsTheReplayIs(t *testing.T) {
	torn := errors.New("line 7 is torn")
	for name, calls := range map[string]iter.Seq2[*simulate.Call, error]{
		"nothing": func(func(*simulate.Call, error) bool) {},
		"torn":    func(yield func(*simulate.Call, error) bool) { yield(nil, torn) },
		"impossible": func(yield func(*simulate.Call, error) bool) {
			yield(&simulate.Call{Plan: plan(published()), Now: t0, Command: &ladder.Command{Verb: ladder.DoResume, At: t0}}, nil)
		},
	} {
		_, want := simulate.Replay(calls, nil)
		if _, err := simulate.FilmOf(calls, nil); err == nil || err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	n := 0
	check := func(*simulate.Call, *ladder.Decision, *ladder.State) error {
		if n++; n == 9 {
			return torn
		}
		return nil
	}
	if _, err := simulate.FilmOf(callsOf(plan(published()), each(scenarioA(60))), check); !errors.Is(err, torn) || n != 9 {
		t.Errorf("not what the line says: %v after %d", err, n)
	}
	canary, stable := recordedArms(300)
	feed, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		t.Fatal(err)
	}
	thin := thinned(t, feed, 1)
	p := short(published(), 0)
	p.Steps = p.Steps[4:] // 100 %, and 30 % were recorded
	if _, err := simulate.NewFilm(p, thin, simulate.Options{}); err == nil {
		t.Error("more than was recorded is filmed")
	} else if _, typed := errors.AsType[*simulate.ShareError](err); !typed {
		t.Errorf("got %v", err)
	}
}

// long is a film of drawn minutes of both arms whose states hold the windows of
// 31 hours, as those of a label lag of a day do.
func long(t testing.TB, days int) *simulate.Film {
	t.Helper()
	spec := week(1)
	spec.Minutes = days * 24 * 60
	l := lagged()
	l.LabelLag, l.SlowSpanMax, l.Keep = 24*time.Hour, 6*time.Hour, 31*time.Hour
	f, err := simulate.NewFilm(plan(l), synthetic(t, spec)(), simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// weigh returns a film and the memory that it takes, in bytes.
func weigh(t testing.TB, days int) (*simulate.Film, int64) {
	t.Helper()
	var begin, end runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&begin)
	f := long(t, days)
	runtime.GC()
	runtime.ReadMemStats(&end)
	return f, int64(end.HeapAlloc) - int64(begin.HeapAlloc)
}

// A month of both arms has 86,400 windows of 152 bytes, and checkpoints.
func TestAMonthOfMinutesFitsIntoMemory(t *testing.T) {
	const most = 60 << 20
	f, size := weigh(t, 30)
	t.Logf("%d frames in %.1f MB", f.Len(), float64(size)/(1<<20))
	if size > most {
		t.Errorf("%d bytes, at most %d", size, most)
	}
	runtime.KeepAlive(f)
}

// BenchmarkFilmYear films 525,600 minutes.
func BenchmarkFilmYear(b *testing.B) {
	for b.Loop() {
		f, size := weigh(b, 365)
		if size > 450<<20 {
			b.Errorf("%d bytes", size)
		}
		b.ReportMetric(float64(size)/(1<<20), "MB")
		runtime.KeepAlive(f)
	}
}

// BenchmarkFilmAt looks at frames of a year.
func BenchmarkFilmAt(b *testing.B) {
	f := long(b, 365)
	rng := rand.New(rand.NewPCG(1, 1))
	at := 0
	for _, way := range []struct {
		name string
		next func() int
	}{
		{"forward", func() int { return (at + 1) % f.Len() }},
		{"backward", func() int { return (at + f.Len() - 1) % f.Len() }},
		{"random", func() int { return rng.IntN(f.Len()) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				at = way.next()
				f.At(at)
			}
		})
	}
	b.Run("windows", func(b *testing.B) {
		for b.Loop() {
			f.Windows(rng.IntN(f.Len()), time.Time{}, 60)
		}
	})
}
