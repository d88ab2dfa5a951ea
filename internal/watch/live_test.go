package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	aim "github.com/canaryctl/canaryctl/internal/target"
)

// liveLadder is a short ladder: 1, 10 and 100 %, ten minutes each.
const liveLadder = `
canary:
  target_service: order-service
  steps:
    - { pct: 0.01, min_hold_min: 10 }
    - { pct: 0.10, min_hold_min: 10 }
    - { pct: 1.00, min_hold_min: 10 }
  metrics:
    slow_layer: { min_samples_slow: 50 }
versions:
  stable: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "41" }
  canary: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "42" }
source: { windows: { path: "windows.jsonl" } }
target: { file: { path: weights.json } }
`

// liveWorld is a release that is driven by one canaryctl and seen by others, in the
// time of a synctest bubble.
type liveWorld struct {
	t    *testing.T
	dir  string
	cfg  *config.Config
	gate *gateway
}

func newWorld(t *testing.T) *liveWorld {
	t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(liveLadder))
	if cfg == nil {
		t.Fatalf("configuration: %v", findings)
	}
	return &liveWorld{t: t, dir: t.TempDir(), cfg: cfg, gate: &gateway{}}
}

// bubble runs a test with a release in fake time, half a minute past a full one.
func bubble(t *testing.T, test func(t *testing.T, w *liveWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(30 * time.Second)
		test(t, w)
	})
}

// options are those of a driver over target and source of its own.
func (w *liveWorld) options(tg driver.Target, s driver.Source, dir *state.Dir) driver.Options {
	return driver.Options{
		Config: w.cfg, Target: tg, Source: s, Dir: dir, Now: time.Now, Wait: driver.Sleep, Who: state.Holder{PID: 7, Who: "ops@host", Command: "run"},
	}
}

// driver is one that moves the release.
func (w *liveWorld) driver() *driver.Driver {
	w.t.Helper()
	dir, err := state.Open(w.dir, w.cfg.TargetService)
	if err != nil {
		w.t.Fatal(err)
	}
	return driver.New(w.options(&fakeTarget{gate: w.gate}, &fakeSource{gate: w.gate}, dir))
}

func (w *liveWorld) promote() *driver.Result {
	w.t.Helper()
	res, err := w.driver().Promote(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// pass promotes at each of the next full minutes.
func (w *liveWorld) pass(minutes int) {
	w.t.Helper()
	for range minutes {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		w.promote()
	}
}

func (w *liveWorld) path(name string) string { return filepath.Join(w.dir, w.cfg.TargetService, name) }

// liveView is a live view and what it reads.
type liveView struct {
	*Live
	t      *testing.T
	target *fakeTarget
	source *fakeSource
}

func (w *liveWorld) live() *liveView {
	v := &liveView{t: w.t, target: &fakeTarget{gate: w.gate}, source: &fakeSource{gate: w.gate}}
	wide := NewWide(v.source, w.cfg.LivePlan())
	dir := state.At(w.dir, w.cfg.TargetService)
	v.Live = NewLive(LiveOptions{
		Driver: driver.New(w.options(v.target, wide, dir)), Source: wide, Target: v.target.String(), Dir: dir, Config: w.cfg, Now: time.Now, Wait: driver.Sleep,
	})
	return v
}

// next is the next snapshot, and how long it took.
func (v *liveView) next() (Snapshot, time.Duration) {
	v.t.Helper()
	begun := time.Now()
	s, err := v.Next(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	return s, time.Since(begun)
}

func (v *liveView) looks() int64 { return v.target.reads.Load() }

// gateway is what the drivers' targets and sources are of.
type gateway struct {
	mu     sync.Mutex
	weight release.Weight
	rev    int
	keeps  bool   // the state of the release
	state  []byte // that it keeps
}

func (g *gateway) get() (release.Weight, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.weight.Ring == 0 {
		g.weight.Ring = 100
	}
	return g.weight, fmt.Sprint(g.rev)
}

// hang is closed or absent where readings answer.
type hang struct{ until atomic.Pointer[chan struct{}] }

func (h *hang) up() { h.until.Store(new(make(chan struct{}))) }

func (h *hang) off() { close(*h.until.Swap(nil)) }

func (h *hang) wait(ctx context.Context) error {
	c := h.until.Load()
	if c == nil {
		return nil
	}
	select {
	case <-*c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type fakeTarget struct {
	hang
	gate  *gateway
	reads atomic.Int64
	at    []string // seconds of the readings
	err   error
}

func (f *fakeTarget) Read(ctx context.Context) (aim.Reading, error) {
	f.reads.Add(1)
	f.at = append(f.at, time.Now().Format("05"))
	if err := errors.Join(f.wait(ctx), f.err); err != nil {
		return aim.Reading{}, err
	}
	weight, rev := f.gate.get()
	return aim.Reading{Weight: weight, Revision: rev, State: f.gate.state}, nil
}

func (f *fakeTarget) Write(_ context.Context, _ aim.Reading, c aim.Change) error {
	f.gate.mu.Lock()
	defer f.gate.mu.Unlock()
	f.gate.weight, f.gate.rev = c.To, f.gate.rev+1
	if c.State != nil {
		f.gate.state = c.State
	}
	return nil
}

func (f *fakeTarget) KeepsState() bool        { return f.gate.keeps }
func (f *fakeTarget) ReadBack() time.Duration { return 0 }
func (f *fakeTarget) String() string          { return "fake gateway" }

// fakeSource tells 600 requests a minute, split by the weight.
type fakeSource struct {
	hang
	gate   *gateway
	err    error
	settle time.Duration
	asked  []time.Time
}

func (f *fakeSource) Read(ctx context.Context, from, now time.Time) (source.Batch, error) {
	f.asked = append(f.asked, from)
	if err := errors.Join(f.wait(ctx), f.err); err != nil {
		return source.Batch{}, err
	}
	weight, _ := f.gate.get()
	b := source.Batch{Until: now.Add(-f.settle).Truncate(time.Minute)}
	for t := from.Truncate(time.Minute); t.Before(b.Until); t = t.Add(time.Minute) {
		if t.Before(from) {
			continue
		}
		canary := 6 * weight.Slots
		b.Windows = append(b.Windows, minuteOf(t, release.Canary, canary), minuteOf(t, release.Stable, 600-canary))
		b.Newest = t.Add(time.Minute)
	}
	return b, nil
}

func minuteOf(t time.Time, arm release.Arm, total int64) release.Window {
	return release.Window{
		T: t, Span: time.Minute, Arm: arm, Total: total, Judged: total, Solved: total * 9 / 10, Known: release.HasSolved | release.HasViolations | release.HasTransfers,
	}
}

func (f *fakeSource) Span() time.Duration   { return time.Minute }
func (f *fakeSource) Settle() time.Duration { return f.settle }
func (f *fakeSource) String() string        { return "fake traffic" }

// TestTheFirstSnapshotComesAtOnce, and shows the release.
func TestTheFirstSnapshotComesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		w.pass(3)
		s, took := w.live().next()
		if took != 0 {
			t.Errorf("it took %s", took)
		}
		if s.Weight.Slots != 1 || s.Step != 1 || s.Target.Name != "fake gateway" || s.Source.Name != "fake traffic" || s.Decider.Who != "ops@host" {
			t.Errorf("%+v", s)
		}
		if got := len(s.Events); got < 2 || s.Events[got-1].Line == 0 {
			t.Errorf("events %+v", s.Events)
		}
		row := s.Signals[len(s.Signals)-1]
		if len(s.Signals) != release.Judged-release.Streaming || row.Signal != release.SolveRate || len(row.Stable) != Points || !row.Stable[0].Known {
			t.Errorf("the history of the solve rate is not that of %d windows: %+v", Points, row)
		}
	})
}

// TestNothingIsLookedAtWhileNothingChanges, but for every quarter of a minute
// and each window; a snapshot comes every five seconds all the same.
func TestNothingIsLookedAtWhileNothingChanges(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		v := w.live()
		v.source.settle = 20 * time.Second // windows come at :20
		begun := time.Now()                // at :30
		for time.Since(begun) < 65*time.Second {
			s, took := v.next()
			if took > oldest {
				t.Errorf("a snapshot took %s", took)
			}
			if !s.At.Equal(time.Now()) {
				t.Errorf("a snapshot of %s at %s", s.At, time.Now())
			}
		}
		synctest.Wait()
		if got := strings.Join(v.target.at, " "); got != "30 45 00 15 20 35" {
			t.Errorf("looked at seconds %s", got)
		}
	})
}

// TestTimeGoesOnBetweenLooks: what is left of a hold is of the snapshot's time.
func TestTimeGoesOnBetweenLooks(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		w.pass(2)
		v := w.live()
		first, _ := v.next()
		second, _ := v.next()
		if first.Outcome.LeftS == nil || *first.Outcome.LeftS-*second.Outcome.LeftS != 5 || v.looks() != 1 {
			t.Errorf("left %v, then %v", first.Outcome.LeftS, second.Outcome.LeftS)
		}
	})
}

// TestAChangeOfTheJournalIsSeenWithinASecond.
func TestAChangeOfTheJournalIsSeenWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		v := w.live()
		if s, _ := v.next(); s.Stage.String() != "not_started" || s.Events != nil || !s.Decider.At.IsZero() {
			t.Errorf("before a release: %+v", s)
		}
		v.next()
		time.Sleep(200 * time.Millisecond)
		w.promote()
		s, took := v.next()
		if took > Glance || s.Weight.Slots != 1 || len(s.Events) == 0 || !s.Decider.At.Equal(time.Now().Add(-took)) {
			t.Errorf("after %s: weight %s, %d events, decided %s", took, s.Weight, len(s.Events), s.Decider.At)
		}
	})
}

// TestAPokeLooksAtOnce, also one that comes while a look is out.
func TestAPokeLooksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		v := w.live()
		v.next()
		v.Poke()
		v.Poke()
		if _, took := v.next(); took != 0 || v.looks() != 2 {
			t.Errorf("%s, %d looks", took, v.looks())
		}
		v.source.up()
		v.Poke()
		time.AfterFunc(time.Second, v.Poke)
		time.AfterFunc(2*time.Second, v.source.off)
		// The look of the poke in between begins as this one is shown.
		if _, took := v.next(); took != 2*time.Second || v.looks() < 3 || v.looks() > 4 {
			t.Errorf("%s, %d looks", took, v.looks())
		}
		if _, took := v.next(); took != 0 || v.looks() != 4 {
			t.Errorf("%s, %d looks", took, v.looks())
		}
	})
}

// TestASourceThatHangsFreezesNothing: the view goes on, says for how long there
// was no answer, shows what the journal tells meanwhile, and takes the answer
// when it comes. There is one look at a time.
func TestASourceThatHangsFreezesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		w.pass(2)
		v := w.live()
		good, _ := v.next()
		v.source.up()
		v.Poke()
		hung := time.Now()
		for range 20 {
			s, took := v.next()
			if took > oldest {
				t.Fatalf("the view stood for %s", took)
			}
			if want := "it has not answered for " + Clock(time.Since(hung)); s.Source.Err != want || s.Target.Err != "" {
				t.Errorf("after %s: source %q, want %q; target %q", time.Since(hung), s.Source.Err, want, s.Target.Err)
			}
			if !s.Source.Newest.Equal(good.Source.Newest) || !s.Target.At.Equal(good.Target.At) {
				t.Errorf("ages changed: %s, %s", s.Source.Newest, s.Target.At)
			}
		}
		if v.looks() != 2 {
			t.Errorf("%d looks", v.looks())
		}
		w.promote()
		if s, _ := v.next(); !s.Decider.At.After(good.Decider.At) {
			t.Errorf("what the journal tells is not shown: %s", s.Decider.At)
		}
		v.source.off()
		if s, took := v.next(); took != 0 || s.Source.Err != "" {
			t.Errorf("after %s: %+v", took, s.Source)
		}
		if s, took := v.next(); took != 0 || !s.Source.Newest.After(good.Source.Newest) { // what changed meanwhile
			t.Errorf("after %s: %+v", took, s.Source)
		}
	})
}

// TestATargetThatHangsIsNamed, and the first look need not come back for what
// the journal says.
func TestATargetThatHangsIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		v := w.live()
		v.target.up()
		if _, err := v.Next(t.Context()); !errors.Is(err, errSilent) {
			t.Errorf("no release and no answer: %v", err)
		}
		w.promote()
		s, took := v.next()
		if took > oldest || s.Weight.Slots != 1 || s.Outcome.Step != 1 || !strings.HasPrefix(s.Target.Err, "it has not answered for") || s.Source.Err != "" {
			t.Errorf("after %s: %s, target %q, source %q", took, s.Weight, s.Target.Err, s.Source.Err)
		}
		v.target.off()
		if s, _ := v.next(); s.Target.Err != "" || !s.Target.At.Equal(time.Now()) {
			t.Errorf("%+v", s.Target)
		}
	})
}

// TestErrorsOfTargetAndSourceAreSaid, and the figures of before stay.
func TestErrorsOfTargetAndSourceAreSaid(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		v := w.live()
		v.next()
		v.source.err, v.target.err = errors.New("fake traffic: connection refused"), errors.New("HTTP 503")
		v.Poke()
		s, _ := v.next()
		if s.Source.Err != "connection refused" || s.Target.Err != "HTTP 503" || len(v.seenStable()) < Points {
			t.Errorf("source %q, target %q, %d windows", s.Source.Err, s.Target.Err, len(v.seenStable()))
		}
	})
}

func (v *liveView) seenStable() []release.Window { return v.last.seen.Stable }

// TestTheEndOfTheContextEndsTheView, a look that is out with it.
func TestTheEndOfTheContextEndsTheView(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		v := w.live()
		v.source.up()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := v.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		v.source.off()
		if _, took := v.next(); took != 0 || v.looks() != 2 {
			t.Errorf("another context: %s, %d looks", took, v.looks())
		}
	})
}

// damage changes a byte of a line of the journal, from 1.
func (w *liveWorld) damage(line int) {
	w.t.Helper()
	b, err := os.ReadFile(w.path("journal.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	at := 0
	for range line - 1 {
		at += strings.IndexByte(string(b[at:]), '\n') + 1
	}
	b[at+10] ^= 1
	if err := os.WriteFile(w.path("journal.jsonl"), b, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// noted reports whether a note says something.
func noted(s *Snapshot, what string) bool { return strings.Contains(strings.Join(s.Notes, "\n"), what) }

// TestAJournalThatWasPutAsideIsSaid, and the new one is followed.
func TestAJournalThatWasPutAsideIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		w.pass(2)
		v := w.live()
		before, _ := v.next()
		time.Sleep(300 * time.Millisecond)
		last := len(journalLines(t, w.path("journal.jsonl")))
		w.damage(last)
		s, took := v.next()
		if took > Glance || !noted(&s, fmt.Sprintf("journal.jsonl:%d: ", last)) || len(s.Events) == 0 || s.Weight.Slots != 1 {
			t.Errorf("after %s: %q, %d events", took, s.Notes, len(s.Events))
		}
		if !s.At.Equal(before.At) {
			t.Errorf("a release that cannot be seen is said to be as at %s", s.At)
		}
		if _, err := w.driver().RollBack(t.Context(), "odd answers"); err != nil {
			t.Fatal(err)
		}
		s, took = v.next()
		if took > Glance || !noted(&s, "it was put aside or cut off") || noted(&s, "jsonl:") || !s.Weight.IsZero() {
			t.Errorf("after %s: %q, weight %s", took, s.Notes, s.Weight)
		}
		newest := s.Events[len(s.Events)-1]
		if newest.Line > int64(len(journalLines(t, w.path("journal.jsonl")))) || newest.Kind != "record" || newest.Tone != Bad || len(newest.Detail) < 8 {
			t.Errorf("the newest event is %+v", newest)
		}
	})
}

func journalLines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
}

// TestADamagedLineAmongOthersIsNamed, and what stands before and behind it is
// shown, also what comes later.
func TestADamagedLineAmongOthersIsNamed(t *testing.T) {
	for _, c := range []struct {
		what   string
		damage func(w *liveWorld)
		gone   int64 // whose event is not shown
	}{
		{"changed", func(w *liveWorld) { w.damage(3) }, 3},
		{"taken out", func(w *liveWorld) {
			all := journalLines(w.t, w.path("journal.jsonl"))
			text := strings.Join(append(all[:2:2], all[3:]...), "") + "\n"
			if err := os.WriteFile(w.path("journal.jsonl"), []byte(text), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, 3},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *liveWorld) {
				w.promote()
				w.pass(12) // to 10 %
				c.damage(w)
				tl := tail{path: w.path("journal.jsonl")}
				if err := tl.read(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				if notes := tl.notes(); len(notes) != 1 || !strings.Contains(notes[0], "journal.jsonl:3: ") {
					t.Errorf("notes %q", notes)
				}
				var kinds []string
				for _, e := range tl.events {
					kinds = append(kinds, e.Kind)
					if e.Line == c.gone {
						t.Errorf("line %d is shown", e.Line)
					}
				}
				if got := strings.Join(kinds, " "); got != "config decide decide write" || !tl.events[2].At.After(tl.events[1].At) {
					t.Errorf("events %s", got)
				}
				j, err := journal.Open(tl.path)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(j.Append(&journal.Entry{T: time.Now(), Kind: journal.Note, Note: "later"}), j.Close()); err != nil {
					t.Fatal(err)
				}
				if err := tl.read(t.Context(), time.Now()); err != nil || len(tl.notes()) != 1 || tl.events[len(tl.events)-1].Text != "later" {
					t.Errorf("%v, %q, %+v", err, tl.notes(), tl.events[len(tl.events)-1])
				}
			})
		})
	}
}

// TestAJournalThatHasGoneIsSaid.
func TestAJournalThatHasGoneIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		v := w.live()
		v.next()
		if err := os.Remove(w.path("journal.jsonl")); err != nil {
			t.Fatal(err)
		}
		if s, took := v.next(); took > Glance || !noted(&s, "has gone") || !strings.Contains(s.LookErr, "lines were taken away") || len(s.Events) != 0 {
			t.Errorf("after %s: %q, %d events", took, s.Notes, len(s.Events))
		}
	})
}

// TestAFirstLookThatFailsIsAnError, and the view goes on.
func TestAFirstLookThatFailsIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		whole := journalLines(t, w.path("journal.jsonl"))
		w.damage(len(whole))
		v := w.live()
		_, err := v.Next(t.Context())
		if !driver.Damaged(err) {
			t.Fatalf("a damaged journal: %v", err)
		}
		begun := time.Now()
		if _, err := v.Next(t.Context()); !driver.Damaged(err) || time.Since(begun) != oldest {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		w.damage(len(whole)) // the same byte back
		if s, took := v.next(); took > Glance || s.Weight.Slots != 1 {
			t.Errorf("after %s: %+v", took, s)
		}
	})
}

// TestAReleaseThatAnotherMachineDrivesIsSeen: the target keeps where it stands.
// That nobody decides is not said, since nobody here can know.
func TestAReleaseThatAnotherMachineDrivesIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.gate.keeps = true
		w.promote()
		s, _ := w.live().next()
		if s.Decider.Who != "ops@host" || noted(&s, "another") {
			t.Errorf("decided here by %+v, %q", s.Decider, s.Notes)
		}
		away := *w
		away.dir = t.TempDir()
		v := away.live()
		s, _ = v.next()
		if s.Weight.Slots != 1 || s.Step != 1 || !s.Decider.Elsewhere || !noted(&s, "another directory or machine") {
			t.Errorf("elsewhere: %s, step %d, decided by %+v, %q", s.Weight, s.Step, s.Decider, s.Notes)
		}
		away.promote()
		if s, _ = v.next(); s.Decider.Elsewhere || s.Decider.At.IsZero() || noted(&s, "another") {
			t.Errorf("taken over: %+v, %q", s.Decider, s.Notes)
		}
	})
}

// TestAJournalThatCannotBeReadIsSaid, and it is tried again.
func TestAJournalThatCannotBeReadIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		w.promote()
		v := w.live()
		v.next()
		path, aside := w.path("journal.jsonl"), w.path("aside")
		if err := errors.Join(os.Rename(path, aside), os.Mkdir(path, 0o755)); err != nil {
			t.Fatal(err)
		}
		if s, took := v.next(); took > Glance || !noted(&s, "the journal cannot be read: ") || len(s.Events) == 0 {
			t.Errorf("after %s: %q, %d events", took, s.Notes, len(s.Events))
		}
		if err := errors.Join(os.Remove(path), os.Rename(aside, path)); err != nil {
			t.Fatal(err)
		}
		if s, took := v.next(); took > Glance || len(s.Notes) != 0 {
			t.Errorf("after %s: %q", took, s.Notes)
		}
	})
}

// TestALookThatBreaksIsForWhoeverOwnsTheTerminal.
func TestALookThatBreaksIsForWhoeverOwnsTheTerminal(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		v := w.live()
		v.target.gate = nil
		defer func() {
			if broken := fmt.Sprint(recover()); !strings.Contains(broken, "nil pointer") || !strings.Contains(broken, "fakeTarget") {
				t.Errorf("%s", broken)
			}
		}()
		v.next()
	})
}

// TestTenThousandLinesLeaveTwoHundredEvents, the newest, however they come.
func TestTenThousandLinesLeaveTwoHundredEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() // written and synced
	follower, want := tail{path: path}, 0
	for _, n := range []int{1, 100, 300, 599, 9000} {
		for range n {
			want++
			if err := j.Append(&journal.Entry{T: time.Unix(int64(want), 0), Kind: journal.Note, Note: fmt.Sprintf("line %d %s", want, strings.Repeat("x", 300))}); err != nil {
				t.Fatal(err)
			}
		}
		fresh := tail{path: path}
		for _, tl := range []*tail{&follower, &fresh} {
			if err := tl.read(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if len(tl.events) != min(want, mostEvents) || cap(tl.events) > 4*mostEvents || tl.notes() != nil {
				t.Fatalf("after %d lines: %d events in a place for %d, %q", want, len(tl.events), cap(tl.events), tl.notes())
			}
			for i, e := range tl.events {
				if line := int64(want - len(tl.events) + i + 1); e.Line != line {
					t.Fatalf("after %d lines: event %d is of line %d, want %d", want, i, e.Line, line)
				}
			}
		}
	}
}

// TestHoldsDoNotHideWhatHappened: where the newest lines are holds, more of them
// are read.
func TestHoldsDoNotHideWhatHappened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() // written and synced
	add := func(e *journal.Entry) {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	add(&journal.Entry{Kind: journal.Note, Note: "long ago"})
	for range 30 {
		add(&journal.Entry{Kind: journal.Decide, By: "ops", Decided: &journal.Decided{SourceError: strings.Repeat("x", 100<<10)}})
	}
	tl := tail{path: path}
	if err := tl.read(t.Context(), time.Now()); err != nil || len(tl.events) != 1 || tl.decider.Who != "ops" {
		t.Errorf("%v, %+v", err, tl.events)
	}
}

// filesBelow is every file below a directory: its bytes, mode and time of change.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			out[path] += string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTwoViewsChangeNothing: not a byte of the release's directory, and none is
// made where there is no release yet.
func TestTwoViewsChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *liveWorld) {
		look := func() {
			var both sync.WaitGroup
			for range 2 {
				v := w.live()
				both.Go(func() {
					for range 30 {
						if _, err := v.Next(t.Context()); err != nil {
							t.Error(err)
						}
						v.Poke()
					}
				})
			}
			both.Wait()
		}
		look()
		if got := filesBelow(t, w.dir); len(got) != 1 {
			t.Errorf("before a release: %v", got)
		}
		w.promote()
		w.pass(12)
		time.Sleep(20 * time.Minute) // there is much to decide
		before := filesBelow(t, w.dir)
		look()
		after := filesBelow(t, w.dir)
		if len(before) != len(after) || len(after) < 4 {
			t.Errorf("%d files, then %d", len(before), len(after))
		}
		for path, was := range before {
			if after[path] != was {
				t.Errorf("%s has changed", path)
			}
		}
		if weight, _ := w.gate.get(); weight.Slots != 10 {
			t.Errorf("the weight is %s", weight)
		}
	})
}
