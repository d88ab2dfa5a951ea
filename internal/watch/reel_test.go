package watch_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/watch"
	"github.com/canaryctl/canaryctl/scenarios"
)

// replayOf is a built-in scenario as the view replays it, and the film beneath.
func replayOf(t *testing.T, name string) (*watch.Reel, *simulate.Film) {
	t.Helper()
	src, err := scenarios.FS.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	sc, findings := scenario.Parse(name+".yaml", src)
	if sc == nil {
		t.Fatal(findings)
	}
	plan := sc.Config.Plan()
	film, err := simulate.NewFilm(plan, sc.Feed(plan, sc.Seed), sc.Options())
	if err != nil {
		t.Fatal(err)
	}
	return watch.NewReel(name, film, func(*ladder.Plan) *config.Config { return sc.Config }), film
}

// shownAs is all that a snapshot says.
func shownAs(t *testing.T, s *watch.Snapshot) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("a figure that is no number: %v", err)
	}
	return string(text)
}

// replayed are the scenarios of these tests.
var replayed = []string{"scenario-a", "incident-0217", "cost-storm"}

func TestAFrameIsTheSameForwardsAndBackwards(t *testing.T) {
	for _, name := range replayed {
		t.Run(name, func(t *testing.T) {
			r, _ := replayOf(t, name)
			every := max(r.Len()/400, 1) // frames that are compared; all are passed
			first := map[int]string{}
			kept := map[int]watch.Snapshot{}
			for i := range r.Len() {
				s := r.At(i)
				if i%every == 0 || slices.Contains(r.Marks(), i) {
					first[i], kept[i] = shownAs(t, &s), s
				}
			}
			for i := r.Len() - 1; i >= 0; i-- {
				if first[i] == "" {
					continue
				}
				if s := r.At(i); shownAs(t, &s) != first[i] {
					t.Fatalf("frame %d backwards is\n%s\nand was\n%s", i, shownAs(t, &s), first[i])
				}
			}
			again, _ := replayOf(t, name)
			for i, s := range kept {
				if shownAs(t, &s) != first[i] {
					t.Fatalf("the snapshot of frame %d has changed since it was formed", i)
				}
				if other := again.At(i); shownAs(t, &other) != first[i] {
					t.Fatalf("frame %d of another reel of the same replay is another", i)
				}
			}
		})
	}
}

func TestAFrameKnowsNothingOfTheFuture(t *testing.T) {
	for _, name := range replayed {
		t.Run(name, func(t *testing.T) {
			r, film := replayOf(t, name)
			var told int
			for i := range r.Len() {
				s := r.At(i)
				if !s.At.Equal(r.Time(i)) || s.Replay != name {
					t.Fatalf("frame %d is of %v, %q", i, s.At, s.Replay)
				}
				for _, e := range s.Events[min(told, len(s.Events)):] {
					if e.Frame > i || e.At.After(s.At) {
						t.Fatalf("frame %d, at %v, tells of frame %d, at %v: %s", i, s.At, e.Frame, e.At, e.Text)
					}
				}
				if len(s.Events) < told {
					t.Fatalf("frame %d has forgotten an event", i)
				}
				told = len(s.Events)
				if end := s.Times.From.Add(watch.Points * s.Times.Span); !s.Times.From.IsZero() && end.After(s.At) {
					t.Fatalf("frame %d, at %v, has a window that ends at %v", i, s.At, end)
				}
			}
			if last := r.At(r.Len() - 1); len(last.Events) == 0 || len(film.Changes()) == 0 {
				t.Error("nothing happened in this replay")
			}
		})
	}
}

func TestARecordAppearsWhenItTrips(t *testing.T) {
	for name, want := range map[string]release.Signal{"scenario-a": release.Violations, "incident-0217": release.Transfers, "cost-storm": release.Cost} {
		t.Run(name, func(t *testing.T) {
			r, film := replayOf(t, name)
			trip := slices.IndexFunc(film.Changes(), func(c simulate.Happening) bool { return c.Rollback != nil })
			if trip < 0 {
				t.Fatal("this replay has no rollback")
			}
			c := film.Changes()[trip]
			before, at := r.At(c.Frame-1), r.At(c.Frame)
			if before.Record != nil || at.Record == nil {
				t.Fatalf("record before the trip: %v, at it: %v", before.Record, at.Record)
			}
			rec := at.Record
			if rec.Finding == nil || rec.Signal != want || rec.Finding.String() != c.Rollback.Finding.String() || rec.By != "breaker" || !rec.T.Equal(c.Rollback.T) {
				t.Errorf("record: %+v, of %+v", rec, rec.Finding)
			}
			if before.Weight.IsZero() || rec.Share != before.Weight {
				t.Errorf("the share of the record is %v, the weight was %v", rec.Share, before.Weight)
			}
			if row := rowOf(&at, want); row.State != watch.Tripped || !row.Value.Known || row.Room != watch.Known(0) {
				t.Errorf("row of what tripped: %+v", row)
			}
			if s := watch.SituationOf(&at, at.At); s.Why != rec.Reason || len(s.Alarms) > 0 || s.Old {
				t.Errorf("situation: %+v", s)
			}
			bad := at.Events[len(at.Events)-1]
			if bad.Tone != watch.Bad || bad.Frame != c.Frame || len(bad.Detail) == 0 {
				t.Errorf("the newest event is %+v", bad)
			}
			if !slices.Contains(r.Marks(), c.Frame) {
				t.Errorf("no mark at frame %d: %v", c.Frame, r.Marks())
			}
		})
	}
}

func TestAReplayIsNeverOldAndMovesNothing(t *testing.T) {
	r, _ := replayOf(t, "scenario-a")
	s := r.At(r.Len() / 2)
	if k := watch.SituationOf(&s, s.At.Add(1000*time.Hour)); k.Old || len(k.Alarms) > 0 || k.Do != "a replay: nothing is moved by it" {
		t.Errorf("situation of a replay: %+v", k)
	}
}

// rowOf is the row of a signal.
func rowOf(s *watch.Snapshot, signal release.Signal) watch.Signal {
	i := slices.IndexFunc(s.Signals, func(row watch.Signal) bool { return row.Signal == signal })
	return s.Signals[i]
}
