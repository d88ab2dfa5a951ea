package journal_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// drawPlan draws the rules of a short release.
func drawPlan(t *rapid.T) *ladder.Plan {
	p := &ladder.Plan{Service: "s", Digest: "d1", Candidate: "c1", ApprovalTimeout: time.Hour,
		Share: ladder.ShareCheck{On: rapid.Bool().Draw(t, "check"), DesignEffect: 10, Tolerance: 0.5}}
	gates := ladder.TimeGate | ladder.MetricGate
	if rapid.Bool().Draw(t, "approval") {
		gates |= ladder.ApprovalGate
	}
	l := breaker.Limits{
		FastSpan: 5 * time.Minute, ViolationLimit: 3, ViolationRate: release.MustRatio("0.005"), MinTransfers: 3, TransferRate: release.MustRatio("0.3"),
		CostRatio: 2, P99MS: 900, SlowSpan: 25 * time.Minute, SolveFloor: release.MustRatio("0.8"), MinSamples: rapid.Int64Range(1, 100).Draw(t, "min_samples"),
		LabelLag: time.Duration(rapid.IntRange(0, 2).Draw(t, "lag")) * time.Minute, Cooldown: 2 * time.Minute, Trials: 2, SuccessRate: release.MustRatio("0.8"),
	}
	for _, share := range []int64{1, 10, 100} {
		p.Steps = append(p.Steps, ladder.Step{Weight: pct(share), MinHold: 3 * time.Minute, Gates: gates, Limits: l})
	}
	return p
}

// drawEvidence draws what a minute showed.
func drawEvidence(t *rapid.T, now time.Time, weight release.Weight) *journal.Decided {
	d := &journal.Decided{Now: now, SourceFailed: rapid.IntRange(0, 9).Draw(t, "failed") == 9, Unasked: rapid.IntRange(0, 9).Draw(t, "unasked") == 9}
	if rapid.IntRange(0, 9).Draw(t, "unread") < 9 {
		d.Observed = journal.Observed{Weight: weight, At: now, Known: true}
	}
	if d.SourceFailed || rapid.IntRange(0, 9).Draw(t, "gap") == 9 {
		return d
	}
	w := release.Window{T: now.Add(-time.Minute), Span: time.Minute, Arm: release.Canary, Total: rapid.Int64Range(0, 60).Draw(t, "total")}
	w.Known = release.HasSolved | release.HasViolations | release.HasTransfers
	w.Judged = w.Total
	w.Solved = w.Judged - rapid.Int64Range(0, w.Judged/6).Draw(t, "unsolved")
	if rapid.IntRange(0, 20).Draw(t, "fault") == 20 {
		w.Violations = 3
	}
	if rapid.Bool().Draw(t, "cost") {
		w.Cost, w.Known = rapid.Float64Range(0.5, 2.1).Draw(t, "ratio"), w.Known|release.HasCost
	}
	if rapid.Bool().Draw(t, "latency") {
		w.P99MS, w.Known = rapid.Float64Range(100, 1000).Draw(t, "p99"), w.Known|release.HasP99
	}
	s := release.Window{T: w.T, Span: w.Span, Arm: release.Stable, Total: 100 * w.Total, CostMean: 0.1 / 3, Known: release.HasCostMean}
	d.Canary, d.Stable = journal.WindowsOf([]release.Window{w}), journal.WindowsOf([]release.Window{s})
	return d
}

// reread returns what comes back of a value that was written as JSON.
func reread[T any](t *rapid.T, v *T) *T {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDecisionsAndCommandsReplayedFromTheirLinesAreTheSame: a release under way
// in memory, and one that knows nothing but what lines and saved states hold.
func TestDecisionsAndCommandsReplayedFromTheirLinesAreTheSame(t *testing.T) {
	var decisions, commands, refused int
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		live, replayed := new(ladder.State), new(ladder.State)
		var last ladder.Decision
		now, weight := t0, pct(0)
		for range rapid.IntRange(1, 40).Draw(t, "minutes") {
			now = now.Add(time.Minute)
			if rapid.IntRange(0, 4).Draw(t, "person") == 4 {
				c := &ladder.Command{Verb: ladder.Verb(rapid.IntRange(0, int(ladder.DoSwap)).Draw(t, "verb")), At: now, By: "ann",
					Attempt: last.Attempt, Step: last.Step, Digest: p.Digest}
				if rapid.Bool().Draw(t, "read") {
					c.Weight = &weight
				}
				d1, err1 := ladder.Apply(p, live, &last, *c)
				replayed = reread(t, replayed)
				d2, err2 := ladder.Apply(p, replayed, &last, *reread(t, c))
				if err1 != err2 || cmp.Diff(d1, d2) != "" || text(t, live) != text(t, replayed) {
					t.Fatalf("%s: %v and %v\n%s%s", c.Verb, err1, err2, cmp.Diff(d1, d2), cmp.Diff(text(t, live), text(t, replayed)))
				}
				if commands++; err1 != nil {
					refused++
				}
				if d1.Write {
					last = d1
				}
			}
			for range 3 {
				in := drawEvidence(t, now, weight)
				d1 := ladder.Decide(p, live, in.Evidence(), now)
				in.Outcome = journal.OutcomeOf(&d1, live)
				line := reread(t, &journal.Entry{T: now, Kind: journal.Decide, Decided: in})
				replayed = reread(t, replayed)
				d2 := ladder.Decide(p, replayed, line.Decided.Evidence(), line.Decided.Now)
				if a, b := text(t, line.Decided.Outcome), text(t, journal.OutcomeOf(&d2, replayed)); a != b {
					t.Fatalf("the line says another outcome:\n%s", cmp.Diff(a, b))
				}
				if diff := cmp.Diff(d1, d2); diff != "" {
					t.Fatalf("another decision:\n%s", diff)
				}
				if diff := cmp.Diff(text(t, live), text(t, replayed)); diff != "" {
					t.Fatalf("another state:\n%s", diff)
				}
				decisions++
				if last = d1; !d1.Write {
					break
				}
				if rapid.IntRange(0, 5).Draw(t, "deaf") < 5 {
					weight = d1.Weight
				}
			}
		}
	})
	t.Logf("%d decisions, %d commands, %d of them refused", decisions, commands, refused)
}
