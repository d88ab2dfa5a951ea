package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/target"
)

// fakeHook keeps the keys that it was run with.
type fakeHook struct {
	w     *world
	name  string
	tries int
	keys  []string
	held  []string // by the target, at each run
	told  []int    // messages sent before each run
	// run is what it does; nil is success.
	run func(ctx context.Context, n int) error
}

func hooks(all ...*fakeHook) (out []notify.Hook) {
	for _, h := range all {
		out = append(out, h)
	}
	return out
}

func (h *fakeHook) Run(ctx context.Context, m notify.Message) error {
	h.keys = append(h.keys, m.Key)
	h.held, h.told = append(h.held, h.w.target.weight.String()), append(h.told, len(h.w.told))
	if len(m.Rollback) == 0 {
		return &notify.DeliveryError{To: h.name, Err: errors.New("no record")}
	}
	if h.run == nil {
		return nil
	}
	return h.run(ctx, len(h.keys))
}

func (h *fakeHook) Tries() int     { return h.tries }
func (h *fakeHook) String() string { return h.name }

func again(text string) error {
	return &notify.DeliveryError{To: "hook", Err: errors.New(text), Retry: true}
}

// tripped is a world at 1 % whose next tick rolls back.
func tripped(t *testing.T, all ...*fakeHook) *world {
	w := newWorld(t)
	for _, h := range all {
		h.w = w
	}
	w.hooks = hooks(all...)
	w.promote()
	w.pass(3)
	w.source.violations = 4
	return w
}

// lines are those of the journal, in order.
func (w *world) written() (out []journal.Entry) {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "order-service", "journal.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e journal.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestHooksRunOnceForARollbackBehindTheRecord(t *testing.T) {
	purge, reset := &fakeHook{name: "purge", tries: 5}, &fakeHook{name: "reset", tries: 5}
	w := tripped(t, purge, reset)
	w.pass(1)
	w.wantWeight(0)
	w.pass(3)
	for _, h := range []*fakeHook{purge, reset} {
		if len(h.keys) != 1 || h.held[0] != "0 %" || h.told[0] != 1 { // started, and not yet rolled_back
			t.Errorf("%s ran with %v at %v behind %v messages", h.name, h.keys, h.held, h.told)
		}
	}
	rec := w.res.Release.Record
	if !rec.Final || len(rec.Hooks) != 2 || !rec.Hooks[0].OK || rec.Hooks[0].Try != 1 || rec.Key != purge.keys[0] {
		t.Errorf("record %+v", rec)
	}
	var order []string
	for _, e := range w.written() {
		switch {
		case e.Kind == journal.Write && e.Wrote.Move.String() == "roll_back" && e.Wrote.ReadBack:
			order = append(order, "write")
		case e.Kind == journal.Record, e.Kind == journal.Hook, e.Kind == journal.Tell && strings.Contains(e.Told.Key, "rolled_back"):
			order = append(order, string(e.Kind))
		}
	}
	if got := strings.Join(slices.Compact(order), " "); got != "write record hook tell record" {
		t.Errorf("in the order %s", got)
	}
	w.verify()
}

func TestAHookThatFailsIsRetriedByTheTicksThatFollow(t *testing.T) {
	purge := &fakeHook{name: "purge", tries: 3, run: func(_ context.Context, n int) error {
		if n < 3 {
			return again("503")
		}
		return nil
	}}
	w := tripped(t, purge)
	for i := range 3 {
		w.pass(1)
		w.wantWeight(0)
		if len(purge.keys) != i+1 {
			t.Fatalf("%d runs after %d ticks", len(purge.keys), i+1)
		}
	}
	w.pass(2)
	if k := slices.Compact(slices.Clone(purge.keys)); len(purge.keys) != 3 || len(k) != 1 {
		t.Errorf("ran with %v", purge.keys)
	}
	if h := w.res.Release.Record.Hooks; len(h) != 1 || !h[0].OK || h[0].Try != 3 || h[0].Error != "" {
		t.Errorf("record %+v", h)
	}
	if slices.Contains(w.events(), "hook_failed") {
		t.Errorf("told %v", w.events())
	}
	w.verify()
}

func TestAHookThatWillNotDoIsGivenUpAndTold(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		runs int
	}{
		"after its tries":                    {again("503"), 3},
		"at once where no later try will do": {&notify.DeliveryError{To: "hook", Err: errors.New("401")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			purge := &fakeHook{name: "purge", tries: 3, run: func(context.Context, int) error { return test.err }}
			w := tripped(t, purge)
			w.pass(1)
			w.wantStatus(driver.RolledBack)
			w.pass(5)
			if len(purge.keys) != test.runs {
				t.Errorf("%d runs, want %d", len(purge.keys), test.runs)
			}
			n := 0
			for _, m := range w.told {
				if m.Event == notify.HookFailed {
					if n++; !strings.Contains(m.Reason, "purge: ") {
						t.Errorf("reason %q", m.Reason)
					}
				}
			}
			if n != 1 {
				t.Errorf("told %v", w.events())
			}
			if rec := w.res.Release.Record; !rec.Final || !rec.Hooks[0].GivenUp || rec.Hooks[0].Error == "" {
				t.Errorf("record %+v", rec)
			}
			w.source.violations = 0
			w.until("recovered", func(r *driver.Result) bool { return r.Release.Ladder.Attempt == 2 })
			w.verify()
		})
	}
}

// TestASettledCommandRetriesItsHooks: a promote that ends has no next tick.
func TestASettledCommandRetriesItsHooks(t *testing.T) {
	purge := &fakeHook{name: "purge", tries: 5, run: func(_ context.Context, n int) error {
		if n < 3 {
			return again("503")
		}
		return nil
	}}
	w := tripped(t, purge)
	w.now = w.now.Add(time.Minute)
	d := w.driver()
	if _, err := d.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(purge.keys) != 3 {
		t.Errorf("%d runs", len(purge.keys))
	}
	w.verify()
}

// TestAKillBetweenAHookAndItsLineRunsItAgain, under the same key.
func TestAKillBetweenAHookAndItsLineRunsItAgain(t *testing.T) {
	killed := memory(t)
	purge := &fakeHook{name: "purge", tries: 3}
	w := tripped(t, purge)
	purge.run = func(context.Context, int) error {
		purge.run = nil
		return os.CopyFS(killed, os.DirFS(w.dir))
	}
	w.pass(1)
	w.dir = killed
	w.pass(1)
	w.wantWeight(0)
	w.pass(2)
	if len(purge.keys) != 2 || purge.keys[0] != purge.keys[1] {
		t.Errorf("ran with %v", purge.keys)
	}
	w.verify()
}

func TestAHookOfARollbackThatWasNotReadBackWaits(t *testing.T) {
	purge := &fakeHook{name: "purge", tries: 3}
	w := tripped(t, purge)
	w.target.on = func(target.Change) error { return unreachable(errors.New("connection refused")) }
	w.pass(1)
	w.wantStatus(driver.Incomplete)
	if len(purge.keys) != 0 {
		t.Error("it ran while the canary still serves")
	}
	w.target.on = nil
	w.pass(1)
	if len(purge.keys) != 1 {
		t.Errorf("%d runs", len(purge.keys))
	}
	w.verify()
}

// TestAHookThatHangsIsCutOffAndTriedAgain: it holds up neither the weight nor
// the release, and being cut off is no answer.
func TestAHookThatHangsIsCutOffAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := &fakeHook{name: "hang", tries: 2, run: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return &notify.DeliveryError{To: "hang", Err: ctx.Err()} // as a command's is that was killed
		}}
		quick := &fakeHook{name: "quick", tries: 2}
		w := tripped(t, hang, quick)
		begun := time.Now()
		w.pass(1)
		if took := time.Since(begun); took > 90*time.Second {
			t.Errorf("it took %s", took)
		}
		w.wantWeight(0)
		w.wantStatus(driver.RolledBack)
		if hang.held[0] != "0 %" || len(quick.keys) != 1 {
			t.Errorf("weight %v, the other ran %d times", hang.held, len(quick.keys))
		}
		if !slices.Contains(w.events(), "rolled_back") || slices.Contains(w.events(), "hook_failed") {
			t.Errorf("told %v", w.events())
		}
		w.pass(1)
		if !slices.Contains(w.events(), "hook_failed") || len(hang.keys) != 2 {
			t.Errorf("after %d runs told %v", len(hang.keys), w.events())
		}
	})
}

// TestAChannelThatHangsKeepsNothingFromTheOthers.
func TestAChannelThatHangsKeepsNothingFromTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.quick()
		cfg, _ := config.Parse("canary.yaml", []byte(w.text))
		dead := &deadChannel{}
		for i := range 30 {
			o := w.options(cfg, w.target, openDir(t, w.dir))
			o.Channels = append([]notify.Channel{dead}, o.Channels...)
			w.now = w.now.Add(time.Minute).Truncate(time.Minute)
			begun := time.Now()
			if _, err := driver.New(o).Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("tick %d took %s", i, took)
			}
			if dead.tries > i+1 {
				t.Errorf("%d tries in %d ticks: what there was no time for counts as tried", dead.tries, i+1)
			}
			if i == 4 && len(w.told) < 2 {
				t.Errorf("told %v: it waits for the other channel", w.events())
			}
		}
		if got := strings.Join(w.events(), " "); got != "started advanced advanced completed" {
			t.Errorf("told %q", got)
		}
		if dead.tries < 10 {
			t.Errorf("given up after %d tries: being cut off is no answer", dead.tries)
		}
	})
}

type deadChannel struct{ tries int }

func (c *deadChannel) Send(ctx context.Context, _ notify.Message) error {
	c.tries++
	<-ctx.Done()
	return &notify.DeliveryError{To: "dead", Err: ctx.Err()}
}

func (*deadChannel) Wants(notify.Event) bool { return true }
func (*deadChannel) String() string          { return "dead (notify[1])" }
