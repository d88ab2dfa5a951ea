package watch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// sight is a look at a release at step 2 of 2.
func sight(t *testing.T) *Seen {
	t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(normal))
	if cfg == nil {
		t.Fatalf("configuration: %v", findings)
	}
	r := &driver.Release{
		Candidate: "3f1c2ab90d11aa7788", Newest: nine.Add(-time.Minute), Held: journal.Observed{Weight: pct(5), At: nine, Known: true},
		Ladder:   ladder.State{Stage: ladder.Climbing, Step: 1, Weight: pct(5), At: nine.Add(-5 * time.Minute)},
		Exposure: driver.Exposure{Requests: 1421}, Record: &journal.Rollback{Key: "1"},
	}
	return &Seen{
		At: nine, Service: "order-service", Config: cfg, Plan: cfg.Plan(), TargetName: "gateway", SourceName: "prometheus", Settle: 15 * time.Second, Span: time.Minute,
		Result:  &driver.Result{Release: r, Outcome: journal.Outcome{Stage: ladder.Climbing, Step: 2, Steps: 2, Attempt: 1, Why: ladder.WhyTime}},
		Canary:  []release.Window{window(release.Canary, -2, time.Minute, 10, nil)},
		Events:  []Event{{Text: "start"}},
		Decider: Decider{At: nine, Who: "ci"}, Notes: []string{"odd"},
	}
}

func TestASnapshotIsWhatWasSeen(t *testing.T) {
	s := sight(t)
	got := Build(s)
	got.Signals = nil // of signals_test.go
	r := s.Result.Release
	want := Snapshot{
		At: nine, Service: "order-service", Release: r.ID(), Candidate: r.Candidate, Outcome: s.Result.Outcome,
		Next:  "complete when all gates of the last step have passed",
		Rungs: []Rung{{Weight: s.Plan.Steps[0].Weight, Hold: 10 * time.Minute, Gates: s.Plan.Steps[0].Gates}, {Weight: s.Plan.Steps[1].Weight, Hold: 10 * time.Minute, Gates: s.Plan.Steps[1].Gates}},
		Step:  2, Stage: ladder.Climbing, Weight: pct(5), Since: nine.Add(-5 * time.Minute),
		Target: Target{Name: "gateway", Weight: pct(5), At: nine}, Source: Source{Name: "prometheus", Newest: nine.Add(-time.Minute), Canary: nine.Add(-time.Minute), Settle: 15 * time.Second},
		Decider: s.Decider, Served: 1421, Record: r.Record, Events: s.Events, Notes: s.Notes, Trips: true, Locks: true,
		Times: Times{From: nine.Add(-2 * time.Minute).Add(-(Points - 1) * time.Minute), Span: time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCouldNotBeReadIsSaidInALine(t *testing.T) {
	for _, c := range []struct {
		name           string
		source, target error
		wantS, wantT   string
	}{
		{"both answered", nil, nil, "", ""},
		{"their names are left out", errors.New("prometheus: refused"), errors.New("gateway: 503"), "refused", "503"},
		{"in a line", errors.New("prometheus: a\n\tb  c"), fmt.Errorf("other: %w", errors.New("x\ny")), "a b c", "other: x y"},
		{"nobody asked the target", nil, fmt.Errorf("so: %w", driver.ErrUnread), "", ""},
	} {
		s := sight(t)
		s.Result.SourceErr, s.Result.TargetErr = c.source, c.target
		if got := Build(s); got.Source.Err != c.wantS || got.Target.Err != c.wantT {
			t.Errorf("%s: source %q, target %q", c.name, got.Source.Err, got.Target.Err)
		}
	}
	s := sight(t)
	s.Result.Release.Held = journal.Observed{Weight: pct(30)}
	if got := Build(s); !got.Target.At.IsZero() || !got.Target.Weight.IsZero() {
		t.Errorf("a target that was never read holds %v", got.Target.Weight)
	}
}

func TestAReleaseThatWasNotStartedIsAtNoStep(t *testing.T) {
	s := sight(t)
	s.Result.Release = &driver.Release{}
	s.Result.Outcome = journal.Outcome{Move: release.Start, Step: 1, Steps: 2}
	s.Canary, s.Events = nil, nil
	got := Build(s)
	if got.Step != 0 || got.Stage != ladder.NotStarted || !got.Weight.IsZero() {
		t.Errorf("step %d, %v, %v", got.Step, got.Stage, got.Weight)
	}
	if k := SituationOf(&got, nine); k.Word != "NOT STARTED" {
		t.Errorf("situation %+v", k)
	}
}

// A changed configuration may have fewer steps than the release has climbed; until
// a person accepts it the last one stands in (ladder.Plan).
func TestALadderThatHasBecomeShorterIsDrawn(t *testing.T) {
	for _, move := range []release.Move{release.Hold, release.Advance} {
		s := sight(t)
		s.Result.Release.Ladder.Step, s.Result.Outcome.Step = 4, 5
		s.Result.Outcome.Why, s.Result.Outcome.Move = ladder.WhyConfigChanged, move
		got := Build(s)
		func() {
			defer func() {
				if broken := recover(); broken != nil {
					t.Errorf("%v: step %d of %d: %v", move, got.Step, len(got.Rungs), broken)
				}
			}()
			k := SituationOf(&got, nine)
			if got.Hold(); k.Next == "" {
				t.Errorf("%v: %+v", move, k)
			}
		}()
	}
}
