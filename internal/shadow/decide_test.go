package shadow_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

// good is an answer that parses, with one tool call, after so many
// milliseconds.
func good(ms float64) shadow.Answer {
	return shadow.Answer{Parsed: true, Tools: []string{"search"}, LatencyMS: ms, Timed: true}
}

func broken() shadow.Answer { return shadow.Answer{LatencyMS: 100, Timed: true} }

// windowOf returns the standing of pairs of one canary: total of them, the last
// ones being these.
func windowOf(t *testing.T, total int, last ...shadow.Pair) shadow.Standing {
	t.Helper()
	w := shadow.NewWindows(shadow.DefaultPolicy())
	for range total - len(last) {
		w.Add(shadow.Pair{Stable: good(100), Canary: good(100)})
	}
	for _, p := range last {
		w.Add(p)
	}
	s := w.Standings()
	if len(s) != 1 {
		t.Fatalf("%d standings, want 1", len(s))
	}
	return s[0]
}

func repeat(n int, p shadow.Pair) (out []shadow.Pair) {
	for range n {
		out = append(out, p)
	}
	return out
}

// The published policy: last 50, from 20 on, parse gap above 3 %, other tools
// above 8 %, p95 above 2000 ms.
func TestActionsAtTheirBoundaries(t *testing.T) {
	unparsed := shadow.Pair{Stable: good(100), Canary: broken()}
	neither := shadow.Pair{Stable: broken(), Canary: broken()}
	other := shadow.Pair{Stable: good(100), Canary: shadow.Answer{Parsed: true, Tools: []string{"fetch"}, LatencyMS: 100, Timed: true}}
	slow := func(ms float64) shadow.Pair { return shadow.Pair{Stable: good(100), Canary: good(ms)} }
	for _, tt := range []struct {
		name  string
		total int
		last  []shadow.Pair
		want  shadow.Action
	}{
		{"19 good pairs are too few", 19, nil, shadow.Observe},
		{"20 good pairs are ready", 20, nil, shadow.PromoteReady},
		{"19 bad pairs are too few to roll back", 19, repeat(19, unparsed), shadow.Observe},
		{"1 of 50 unparsed is 2 %", 50, repeat(1, unparsed), shadow.PromoteReady},
		{"2 of 50 unparsed is 4 %", 50, repeat(2, unparsed), shadow.RollBack},
		{"1 of 33 unparsed is 3.03 %", 33, repeat(1, unparsed), shadow.RollBack},
		{"1 of 34 unparsed is 2.94 %", 34, repeat(1, unparsed), shadow.PromoteReady},
		{"answers that stable does not parse either are no gap", 50, repeat(10, neither), shadow.PromoteReady},
		{"4 of 50 other tools is exactly 8 %", 50, repeat(4, other), shadow.PromoteReady},
		{"5 of 50 other tools is 10 %", 50, repeat(5, other), shadow.RollBack},
		{"4 of 49 that parse is above 8 %", 50, append(repeat(4, other), neither), shadow.RollBack},
		{"2 of 25 is exactly 8 %", 25, repeat(2, other), shadow.PromoteReady},
		{"2 of 50 slow are beyond p95", 50, repeat(2, slow(2400)), shadow.PromoteReady},
		{"3 of 50 slow are p95", 50, repeat(3, slow(2001)), shadow.Throttle},
		{"a p95 of exactly 2000 ms is within", 50, repeat(3, slow(2000)), shadow.PromoteReady},
		{"exactly at the time-out is slow, not failed", 50, repeat(3, slow(2500)), shadow.Throttle},
		{"past the time-out is failed, not slow", 50, repeat(2, slow(2501)), shadow.RollBack},
		{"one time-out of 50 is neither", 50, repeat(1, slow(9000)), shadow.PromoteReady},
		{"roll back comes before throttle", 50, append(repeat(4, slow(2400)), repeat(2, unparsed)...), shadow.RollBack},
		{"the 51st pair pushes the first out", 100, nil, shadow.PromoteReady},
		{"nothing to compare is nothing to be ready for", 20, repeat(20, neither), shadow.Observe},
		{"latencies that nobody logged pass nothing", 20, repeat(20, shadow.Pair{Stable: good(1), Canary: shadow.Answer{Parsed: true, Tools: []string{"search"}}}), shadow.Observe},
		{"a failed call is not parsed and not slow", 50, repeat(2, shadow.Pair{Stable: good(100), Canary: shadow.Answer{Failed: true, LatencyMS: 2500, Timed: true}}), shadow.RollBack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := windowOf(t, tt.total, tt.last...); got.Action != tt.want {
				t.Errorf("action %s (%s), want %s; %+v", got.Action, got.Reason, tt.want, got)
			}
		})
	}
}

func TestTheWindowHoldsTheLastFifty(t *testing.T) {
	bad := shadow.Pair{Stable: good(100), Canary: broken()}
	fine := shadow.Pair{Stable: good(100), Canary: good(100)}
	for _, tt := range []struct {
		after int // good pairs behind two bad ones
		want  shadow.Action
		pairs int64
	}{
		{47, shadow.RollBack, 49}, {48, shadow.RollBack, 50}, {49, shadow.PromoteReady, 50}, {50, shadow.PromoteReady, 50},
	} {
		got := windowOf(t, 2+tt.after, append(repeat(2, bad), repeat(tt.after, fine)...)...)
		if got.Action != tt.want || got.Pairs != tt.pairs || got.Seen != int64(2+tt.after) {
			t.Errorf("%d good pairs after two bad ones: %s over %d of %d, want %s over %d", tt.after, got.Action, got.Pairs, got.Seen, tt.want, tt.pairs)
		}
	}
}

func TestFiguresOfAStanding(t *testing.T) {
	other := shadow.Pair{Stable: good(100), Canary: shadow.Answer{Parsed: true, Tools: []string{"search", "search"}, LatencyMS: 300, Timed: true}}
	got := windowOf(t, 40, append(repeat(2, other), shadow.Pair{Stable: good(1), Canary: shadow.Answer{Failed: true}})...)
	p95 := 100.0
	gap, mismatch := 1.0/40, 2.0/39
	want := shadow.Standing{
		Action: shadow.PromoteReady, Reason: "every check passed",
		Seen: 40, Pairs: 40, StableParsed: 40, CanaryParsed: 39, CanaryFailed: 1, BothParsed: 39, ToolsKnown: 39, Mismatched: 2, Timed: 39, P95MS: &p95,
		Checks: []shadow.Check{
			{Name: "parse_gap", Verdict: release.Pass, Value: &gap, Limit: 0.03, Samples: 40},
			{Name: "tool_mismatch", Verdict: release.Pass, Value: &mismatch, Limit: 0.08, Samples: 39},
			{Name: "p95", Verdict: release.Pass, Value: &p95, Limit: 2000, Samples: 39},
		},
	}
	// Rank ceil(0.95 x 39) = 38 of 39: of the two at 300 ms the lower one.
	p95 = 300
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDifferentVersionsNeverMeet(t *testing.T) {
	stable := shadow.Version{Model: "a", PromptVersion: "p1", ToolsVersion: "t1", Temperature: "0"}
	canary := stable
	canary.Model = "b"
	tweaked := canary
	tweaked.PromptVersion = "p2"
	w := shadow.NewWindows(shadow.DefaultPolicy())
	for i := range 40 {
		p := shadow.Pair{Stable: good(1), Canary: good(1)}
		p.Align(stable, canary, shadow.Model)
		if i%2 == 1 {
			p.Align(stable, tweaked, shadow.Model)
		}
		w.Add(p)
	}
	s := w.Standings()
	if len(s) != 1 || s[0].Pairs != 20 || s[0].Fingerprint != canary.Fingerprint() || s[0].Against != stable.Fingerprint() {
		t.Errorf("standings %+v, want one of 20 pairs", s)
	}
	if w.Unaligned() != 20 {
		t.Errorf("%d pairs unaligned, want 20", w.Unaligned())
	}
}

func TestAPromptThatIsMeantToChangeIsAligned(t *testing.T) {
	stable := shadow.Version{Model: "a", PromptVersion: "p1"}
	canary := shadow.Version{Model: "a", PromptVersion: "p2"}
	var p shadow.Pair
	p.Align(stable, canary, shadow.PromptVersion)
	if p.Unaligned {
		t.Error("a change of the prompt is not aligned though it is the change")
	}
	p.Align(stable, canary, shadow.Model)
	if !p.Unaligned {
		t.Error("a change of the prompt is aligned though it is not the change")
	}
}

func TestWindowsAreBounded(t *testing.T) {
	w := shadow.NewWindows(shadow.DefaultPolicy())
	for i := range 1500 {
		w.Add(shadow.Pair{Stable: good(1), Canary: good(1), CanaryFingerprint: fmt.Sprint(i % 1200)})
	}
	if n := len(w.Standings()); n != 1000 || w.Dropped() != 500 {
		t.Errorf("%d windows, %d dropped; want 1000 and 500", n, w.Dropped())
	}
}

// Published: sha-256 over model, prompt version, tools version and temperature,
// first 16 hexadecimal digits. The bytes are those of four netstrings:
//
//	printf '3:gpt,2:p1,0:,3:0.7,' | sha256sum | cut -c1-16
func TestFingerprint(t *testing.T) {
	v := shadow.Version{Model: "gpt", PromptVersion: "p1", Temperature: "0.7"}
	if got, want := v.Fingerprint(), "4422c3abd6fd956f"; got != want {
		t.Errorf("fingerprint %q, want %s", got, want)
	}
	same := v
	same.Temperature = "0.70"
	if v.Fingerprint() != same.Fingerprint() {
		t.Error("0.7 and 0.70 are two temperatures")
	}
}

func TestFingerprintsAreUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[0-9:,a]{0,3}`)
		draw := func(name string) shadow.Version {
			return shadow.Version{Model: part.Draw(t, name+".model"), PromptVersion: part.Draw(t, name+".prompt"), ToolsVersion: part.Draw(t, name+".tools")}
		}
		a, b := draw("a"), draw("b")
		if (a == b) != (a.Fingerprint() == b.Fingerprint()) {
			t.Fatalf("%+v and %+v: %s and %s", a, b, a.Fingerprint(), b.Fingerprint())
		}
	})
}

// Least holds for each check: ready is what was seen often enough. What fails is
// not waited for.
func TestThinEvidenceIsNotReady(t *testing.T) {
	unknown := shadow.Answer{Parsed: true, ToolsUnknown: true, LatencyMS: 100, Timed: true}
	untimed := shadow.Answer{Parsed: true, Tools: []string{"search"}}
	other := shadow.Answer{Parsed: true, Tools: []string{"fetch"}, LatencyMS: 100, Timed: true}
	for _, tt := range []struct {
		name       string
		many, few  shadow.Answer // the canary's
		stable     shadow.Answer
		n          int // of few
		want       shadow.Action
		toolsKnown int64
		ready      bool
	}{
		{"no tools are known", unknown, good(100), good(100), 0, shadow.Observe, 0, false},
		{"nor stable's", good(100), good(100), unknown, 0, shadow.Observe, 0, false},
		{"tools are known of 19", unknown, good(100), good(100), 19, shadow.Observe, 19, false},
		{"tools are known of 20", unknown, good(100), good(100), 20, shadow.PromoteReady, 20, true},
		{"one latency", untimed, good(100), good(100), 1, shadow.Observe, 50, false},
		{"20 latencies", untimed, good(100), good(100), 20, shadow.PromoteReady, 50, true},
		{"other tools in 2 of 2 that are known", unknown, other, good(100), 2, shadow.RollBack, 2, false},
		{"one latency, and it is slow", untimed, good(2100), good(100), 1, shadow.Throttle, 50, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := shadow.NewWindows(shadow.DefaultPolicy())
			for i := range 50 {
				canary := tt.many
				if i < tt.n {
					canary = tt.few
				}
				w.Add(shadow.Pair{Stable: tt.stable, Canary: canary})
			}
			s := w.Standings()[0]
			if s.Action != tt.want || s.ToolsKnown != tt.toolsKnown || (s.Reason == "every check passed") != tt.ready {
				t.Errorf("%s (%s), tools of %d known", s.Action, s.Reason, s.ToolsKnown)
			}
		})
	}
}

// A window that is given up takes its roll-back with it no further than the
// next twenty pairs of the same versions.
func TestARollBackOutlivesItsWindow(t *testing.T) {
	w := shadow.NewWindows(shadow.DefaultPolicy())
	add := func(n int, canary string, a shadow.Answer) {
		for range n {
			w.Add(shadow.Pair{Stable: good(100), Canary: a, CanaryFingerprint: canary})
		}
	}
	action := func(canary string) (out []string) {
		for _, s := range w.Standings() {
			if s.Fingerprint == canary {
				out = append(out, fmt.Sprint(s.Action, s.Seen))
			}
		}
		return out
	}
	add(50, "bad", broken())
	for i := range 1500 {
		add(1, fmt.Sprint("other", i), good(100))
	}
	if diff := cmp.Diff([]string{"roll_back 50"}, action("bad")); diff != "" || w.Dropped() != 501 {
		t.Errorf("given up: %s, dropped %d", diff, w.Dropped())
	}
	add(19, "bad", good(100))
	if diff := cmp.Diff([]string{"roll_back 69"}, action("bad")); diff != "" {
		t.Errorf("after 19 pairs: %s", diff)
	}
	add(1, "bad", good(100))
	if diff := cmp.Diff([]string{"promote_ready 20"}, action("bad")); diff != "" {
		t.Errorf("after 20 pairs: %s", diff)
	}
}
