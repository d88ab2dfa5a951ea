package driver_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/target"
)

// told is an event as `simulate -o json` prints it.
type told struct {
	T, From, To, Signal, Reason string
	Pct                         float64
	Escalated, Locked           bool
}

func (w *world) journal() string { return filepath.Join(w.dir, "order-service", "journal.jsonl") }

// lines reads the world's journal.
func (w *world) lines() (all []*journal.Entry) {
	w.t.Helper()
	err := journal.Read(w.t.Context(), w.journal(), journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// lived are the events that the journal's outcomes hold, each with the weight
// that was read before it.
func (w *world) lived() (events []told) {
	w.t.Helper()
	for _, e := range w.lines() {
		if e.Kind != journal.Decide || e.Decided.Outcome.Event == nil {
			continue
		}
		x := e.Decided.Outcome.Event
		reason, _, _ := strings.Cut(e.Decided.Outcome.Reason, "; locked until")
		reason, _, _ = strings.Cut(reason, ": attempt ")
		events = append(events, told{
			T: x.T.UTC().Format(time.RFC3339), From: x.From.String(), To: x.To.String(), Signal: x.Finding.Signal.String(), Reason: reason,
			Pct: e.Decided.Observed.Weight.Share(), Escalated: x.Escalated, Locked: x.Locked,
		})
	}
	return events
}

// replay replays the world's journal and returns it with its events as printed.
func (w *world) replay() (*simulate.Outcome, []told) {
	w.t.Helper()
	past := driver.NewPast(w.journal())
	out, err := simulate.Replay(past.Calls(w.t.Context()), past.Check)
	if err != nil {
		w.t.Fatal(err)
	}
	s := report.Simulation{Name: "journal", Plan: past.Plan, Outcome: out}
	b, err := json.Marshal(s.JSON())
	if err != nil {
		w.t.Fatal(err)
	}
	var doc struct{ Events []told }
	if err := json.Unmarshal(b, &doc); err != nil {
		w.t.Fatal(err)
	}
	var text strings.Builder
	if err := s.Text(&text, report.Style{}); err != nil {
		w.t.Fatal(err)
	}
	return out, doc.Events
}

// again promotes at each of the next minutes, whatever comes of it.
func (w *world) again(minutes int) {
	for range minutes {
		w.now = w.now.Add(time.Minute).Truncate(time.Minute)
		if res, err := w.driver().Promote(w.t.Context()); err == nil {
			w.res = res
		}
	}
}

func isMove(m release.Move) func(*driver.Result) bool {
	return func(r *driver.Result) bool { return r.Outcome.Move == m }
}

func atWhy(why ladder.Why) func(*driver.Result) bool {
	return func(r *driver.Result) bool { return r.Outcome.Why == why }
}

// TestALiveJournalReplayedHasTheSameEvents is the promise that a journal is
// evidence: replayed, it leads to the events that were lived through.
func TestALiveJournalReplayedHasTheSameEvents(t *testing.T) {
	for _, test := range []struct {
		name   string
		live   func(w *world)
		events int
		moves  string
	}{
		{"a climb to the end", func(w *world) {
			w.promote()
			w.until("complete", isMove(release.Complete))
			w.pass(5)
		}, 0, "start advance advance complete"},
		{"a trip, probes and recovery", func(w *world) {
			w.promote()
			w.until("at 10 %", isMove(release.Advance))
			w.pass(3)
			w.source.violations = 4
			w.pass(1)
			w.source.violations = 0
			w.until("recovered", atWhy(ladder.WhyRecovered))
			w.until("complete", isMove(release.Complete))
		}, 3, "start advance roll_back probe start advance advance complete"},
		{"probes that fail lock it", func(w *world) {
			w.promote()
			w.pass(3)
			w.source.violations = 4
			w.pass(1)
			w.source.violations = 0
			w.until("probing", isMove(release.Probe))
			w.source.solved = 0.5
			w.until("locked", isMove(release.Lock))
			w.pass(3)
		}, 3, "start roll_back probe lock"},
		{"a lock that a person clears", func(w *world) {
			w.promote()
			w.pass(3)
			w.source.violations = 4
			w.pass(1)
			w.until("probing", isMove(release.Probe))
			w.until("locked", isMove(release.Lock))
			w.source.violations = 0
			w.command(ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
			w.pass(5)
		}, 3, "start roll_back probe lock start"},
		{"a gate that fails", func(w *world) {
			// below the breaker's limit over its span, and above it over the step
			w.text = strings.Replace(w.text, "slow_layer: {", "slow_layer: { slow_window_min: 3,", 1)
			w.source.perMin, w.source.solved = 1000, 0.79
			w.promote()
			w.until("failed", func(r *driver.Result) bool { return r.Outcome.Stage == ladder.Failed })
			w.pass(3)
		}, 0, "start lock"},
		{"a rollback by hand", func(w *world) {
			w.promote()
			w.pass(15)
			w.rollBack("customers complain")
			w.pass(3)
			w.command(ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
			w.pass(12)
		}, 0, "start advance roll_back start advance"},
		{"a pause and an approval", func(w *world) {
			w.text = strings.Replace(w.text, "{ pct: 0.01, min_hold_min: 10 }", "{ pct: 0.01, min_hold_min: 10, gate: [time, metric, approval] }", 1)
			w.promote()
			w.pass(4)
			w.command(ladder.Command{Verb: ladder.DoPause})
			w.pass(5)
			w.command(ladder.Command{Verb: ladder.DoResume})
			w.until("waiting", isMove(release.AwaitApproval))
			if _, err := w.driver().Approve(w.t.Context(), driver.Shown{Step: 1}, "read"); err != nil {
				w.t.Fatal(err)
			}
			w.pass(2)
		}, 0, "start await_approval advance"},
		{"windows that come two minutes late", func(w *world) {
			w.source.settle = 2 * time.Minute
			w.promote()
			w.until("at 10 %", isMove(release.Advance))
			w.pass(4)
			w.source.violations = 4
			w.until("back", isMove(release.RollBackMove))
			w.source.violations = 0
			w.until("recovered", atWhy(ladder.WhyRecovered))
			w.pass(5)
		}, 3, "start advance roll_back probe start"},
		{"labels that come five minutes late", func(w *world) {
			w.text = strings.Replace(w.text, "slow_layer: {", "slow_layer: { label_lag_min: 5,", 1)
			w.source.perMin = 6000
			w.promote()
			w.until("at 10 %", isMove(release.Advance))
			w.pass(4)
			w.source.solved = 0.5
			w.until("back", isMove(release.RollBackMove))
			w.source.solved = 0.9
			w.until("recovered", atWhy(ladder.WhyRecovered))
			w.pass(5)
		}, 3, "start advance roll_back probe start"},
		{"a target that refuses a step", func(w *world) {
			w.promote()
			w.target.on = func(target.Change) error { return unreachable(errors.New("500")) }
			w.again(13)
			w.target.on = nil
			w.until("at 10 %", isMove(release.Advance))
		}, 0, "start advance"},
		{"a source that is lost and comes back", func(w *world) {
			w.promote()
			w.pass(3)
			w.source.err = errSource
			w.pass(5)
			w.source.err = nil
			w.source.violations = 4
			w.pass(2)
		}, 1, "start roll_back"},
		{"another candidate after a restart", func(w *world) {
			w.promote()
			w.pass(3)
			w.source.violations = 4
			w.pass(1)
			w.source.violations = 0
			w.text = strings.Replace(w.text, `prompt_version: "42"`, `prompt_version: "43"`, 1)
			w.pass(2)
			w.rollBack("give it up")
			w.command(ladder.Command{Verb: ladder.DoRestart})
			w.promote()
			w.until("at 10 %", isMove(release.Advance))
		}, 1, "start roll_back roll_back start advance"},
		{"a rollback under another candidate's configuration", func(w *world) {
			w.promote()
			w.pass(3)
			w.text = strings.Replace(w.text, `prompt_version: "42"`, `prompt_version: "43"`, 1)
			w.rollBack("not this one")
			w.wantWeight(0) // a rollback starts nothing
			w.pass(1)
			w.wantWeight(1)
		}, 0, "start roll_back start"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.live(w)
			w.verify()
			out, replayed := w.replay()
			if diff := cmp.Diff(w.lived(), replayed, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events (-lived +replayed):\n%s", diff)
			}
			if len(replayed) != test.events {
				t.Errorf("%d events, want %d: %+v", len(replayed), test.events, replayed)
			}
			var moves []string
			for _, m := range out.Moves {
				moves = append(moves, m.Move.String())
			}
			if got := strings.Join(moves, " "); got != test.moves {
				t.Errorf("moves %q, want %q", got, test.moves)
			}
			w.sameRecords(out)
		})
	}
}

// sameRecords holds the records of a replay against those in the journal.
func (w *world) sameRecords(out *simulate.Outcome) {
	w.t.Helper()
	var records []*journal.Rollback
	for _, e := range w.lines() {
		if e.Kind != journal.Record {
			continue
		}
		if n := len(records); n > 0 && records[n-1].Key == e.Record.Key {
			records = records[:n-1]
		}
		records = append(records, e.Record)
	}
	if len(records) != len(out.Rollbacks) {
		w.t.Fatalf("%d records, want %d", len(out.Rollbacks), len(records))
	}
	for i, want := range records {
		got := out.Rollbacks[i]
		if got.Exposure != want.Exposure || !got.T.Equal(want.T) || got.Attempt != want.Attempt || got.Step+1 != want.Step || !got.Share.Same(want.Share) || got.Locked != want.Locked {
			w.t.Errorf("record %d: exposure %+v, at %s, attempt %d, step %d, share %s, locked %v; the journal has %+v, %s, %d, %d, %s, %v", i,
				got.Exposure, got.T, got.Attempt, got.Step+1, got.Share, got.Locked, want.Exposure, want.T, want.Attempt, want.Step, want.Share, want.Locked)
		}
	}
}

func (w *world) command(c ladder.Command) {
	w.t.Helper()
	res, err := w.driver().Command(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.res = res
}

func (w *world) rollBack(reason string) {
	w.t.Helper()
	res, err := w.driver().RollBack(w.t.Context(), reason)
	if err != nil {
		w.t.Fatal(err)
	}
	w.res = res
}

func TestAReplayTellsTheTimesOfTheRelease(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.until("at 10 %", isMove(release.Advance))
	w.source.silent = true
	w.pass(3)
	w.source.silent = false
	w.source.violations = 4
	w.until("back", isMove(release.RollBackMove))
	w.pass(2)
	out, _ := w.replay()
	first := w.lines()[1].Decided.Stable[0].T
	if !out.Start.Equal(first) {
		t.Errorf("start %s, want %s: the first window", out.Start, first)
	}
	if m := out.Moves[0]; m.Minute != int(t0.Sub(first)/time.Minute) || m.Move != release.Start {
		t.Errorf("minute %d: %s", m.Minute, m.Move)
	}
	if got := len(out.Steps); got < 3 || out.Steps[got-1].Phase != release.Open && !out.Steps[got-1].Weight.IsZero() {
		t.Errorf("steps %+v", out.Steps)
	}
	var served int64
	for _, e := range w.lines() {
		if e.Kind == journal.Record {
			served = e.Record.Exposure.Requests
		}
	}
	if out.Exposure.Requests != served || served == 0 {
		t.Errorf("exposure %d, the journal says %d", out.Exposure.Requests, served)
	}
}

// TestAMachineThatTakesOverReplaysFromThere starts from what the other one left.
func TestAMachineThatTakesOverReplaysFromThere(t *testing.T) {
	a := newWorld(t)
	a.target.keeps = true
	a.promote()
	a.until("at 10 %", isMove(release.Advance))
	b := newWorld(t)
	b.target, b.source, b.now = a.target, a.source, a.now
	b.target.w, b.source.w = b, b
	b.pass(2)
	b.source.violations = 4
	b.until("back", isMove(release.RollBackMove))
	b.verify()
	out, events := b.replay()
	if diff := cmp.Diff(b.lived(), events); diff != "" || len(events) != 1 {
		t.Errorf("events (-lived +replayed):\n%s", diff)
	}
	if out.Moves[0].Move != release.RollBackMove || out.Exposure.Requests == 0 {
		t.Errorf("moves %v, exposure %d", out.Moves[0].Move, out.Exposure.Requests)
	}
	past := driver.NewPast(b.journal())
	if _, err := simulate.Replay(past.Calls(t.Context()), past.Check); err != nil || len(past.Adopted) == 0 {
		t.Errorf("adopted at %v, %v", past.Adopted, err)
	}
}

func TestWindowsOfAJournalAreThoseOfEachCandidate(t *testing.T) {
	w := newWorld(t)
	w.text = strings.Replace(w.text, "slow_layer: {", "slow_layer: { label_lag_min: 5,", 1)
	w.promote()
	w.pass(3)
	w.rollBack("")
	w.command(ladder.Command{Verb: ladder.DoRestart})
	w.text = strings.Replace(w.text, `prompt_version: "42"`, `prompt_version: "43"`, 1)
	w.promote()
	w.pass(4)
	all, err := driver.NewPast(w.journal()).Windows(t.Context())
	if err != nil || len(all) != 2 || all[0].ID() == all[1].ID() {
		t.Fatalf("%d candidates, %v", len(all), err)
	}
	for _, l := range all {
		inOrder := slices.IsSortedFunc(l.Canary, func(a, b release.Window) int { return a.T.Compare(b.T) })
		if !inOrder || len(l.Canary) < 3 || len(l.Stable) < 3 || l.Config == nil {
			t.Errorf("%s: %d and %d windows, in order %v", l.ID(), len(l.Canary), len(l.Stable), inOrder)
		}
	}
}

func TestAJournalThatIsNotWhatItWasNamesTheLine(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(5)
	src, err := os.ReadFile(w.journal())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(src), "\n")
	lines[3] = strings.Replace(lines[3], `"total":`, `"total":1`, 1)
	if err := os.WriteFile(w.journal(), []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	past := driver.NewPast(w.journal())
	_, err = simulate.Replay(past.Calls(t.Context()), past.Check)
	if e, ok := errors.AsType[*journal.CorruptError](err); !ok || e.Line != 4 {
		t.Errorf("%v, want line 4", err)
	}
}
