package driver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// ladder3 is a short ladder: 1, 10 and 100 %, ten minutes each.
const ladder3 = `
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

var t0 = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func weight(slots int64) release.Weight { return release.Weight{Slots: slots, Ring: 100} }

// world is a service with a gateway, its traffic and a clock.
type world struct {
	t    *testing.T
	text string // of canary.yaml
	dir  string
	now  time.Time
	goes time.Duration // how far the clock goes on each time that it is looked at

	target *fakeTarget
	source *fakeSource
	told   []notify.Message
	deaf   bool // channels do not answer
	hooks  []notify.Hook
	said   []string
	res    *driver.Result
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, text: ladder3, dir: memory(t), now: t0}
	w.target = &fakeTarget{w: w, weight: weight(0)}
	w.source = &fakeSource{w: w, perMin: 600, solved: 0.9}
	return w
}

// driver returns a driver as a new process would have it.
func (w *world) driver() *driver.Driver {
	w.t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(w.text))
	if cfg == nil {
		w.t.Fatalf("configuration: %v", findings)
	}
	dir, err := state.Open(w.dir, cfg.TargetService)
	if err != nil {
		w.t.Fatal(err)
	}
	return driver.New(driver.Options{
		Config: cfg, Target: w.target, Source: w.source, Dir: dir, Channels: []notify.Channel{fakeChannel{w}}, Hooks: w.hooks,
		Now: func() time.Time { w.now = w.now.Add(w.goes); return w.now }, Wait: w.wait, Who: state.Holder{PID: 7, Who: "ops@host", Command: "promote"},
		Say: func(format string, args ...any) { w.said = append(w.said, fmt.Sprintf(format, args...)) },
	})
}

func (w *world) wait(ctx context.Context, d time.Duration) error {
	w.now = w.now.Add(d)
	return ctx.Err()
}

// promote is `canaryctl promote` now.
func (w *world) promote() *driver.Result {
	w.t.Helper()
	res, err := w.driver().Promote(w.t.Context())
	if err != nil {
		w.t.Fatalf("at %s: %v", w.now.Format("15:04:05"), err)
	}
	w.res = res
	return res
}

// pass promotes at each of the next minutes.
func (w *world) pass(minutes int) *driver.Result {
	w.t.Helper()
	for range minutes {
		w.now = w.now.Add(time.Minute).Truncate(time.Minute)
		w.promote()
	}
	return w.res
}

// until promotes every minute until something holds.
func (w *world) until(what string, is func(*driver.Result) bool) *driver.Result {
	w.t.Helper()
	for range 200 {
		if is(w.pass(1)) {
			return w.res
		}
	}
	w.t.Fatalf("never %s: %s", what, w.res.Outcome.Reason)
	return nil
}

func (w *world) wantWeight(slots int64) {
	w.t.Helper()
	if !w.target.weight.Same(weight(slots)) {
		w.t.Fatalf("the target holds %s, want %d %% (%s)", w.target.weight, slots, w.res.Outcome.Reason)
	}
}

func (w *world) wantStatus(want driver.Status) {
	w.t.Helper()
	if w.res.Status != want {
		w.t.Fatalf("status %d, want %d: %s (%v)", w.res.Status, want, w.res.Outcome.Reason, w.res.Err)
	}
}

// events are the messages told so far, by name.
func (w *world) events() (out []string) {
	for _, m := range w.told {
		out = append(out, string(m.Event))
	}
	return out
}

// fakeTarget is a gateway that can go wrong.
type fakeTarget struct {
	w        *world
	weight   release.Weight
	rev      int
	keeps    bool
	name     string // "" is fake
	state    []byte
	writes   []release.Weight
	reads    int
	readErr  error
	readBack time.Duration
	// on is asked at each write instead of taking it; it may call take.
	on func(c target.Change) error
	// shown stands in for the weight at a reading.
	shown func() (release.Weight, bool)
}

func (f *fakeTarget) Read(ctx context.Context) (target.Reading, error) {
	f.reads++
	if f.readErr != nil {
		return target.Reading{}, f.readErr
	}
	if f.shown != nil {
		if x, ok := f.shown(); ok {
			return target.Reading{Weight: x, Revision: "stale"}, nil
		}
	}
	return target.Reading{Weight: f.weight, Revision: fmt.Sprint(f.rev), State: f.state, By: "someone"}, ctx.Err()
}

func (f *fakeTarget) Write(_ context.Context, was target.Reading, c target.Change) error {
	f.writes = append(f.writes, c.To)
	if f.on != nil {
		return f.on(c)
	}
	return f.take(was, c)
}

// take is compare-and-swap.
func (f *fakeTarget) take(was target.Reading, c target.Change) error {
	if !c.Overwrite && was.Revision != fmt.Sprint(f.rev) {
		held := f.weight
		return &target.ConflictError{Target: "fake", Held: &held}
	}
	f.set(c)
	return nil
}

func (f *fakeTarget) set(c target.Change) {
	f.weight, f.rev = c.To, f.rev+1
	if c.State != nil {
		f.state = c.State
	}
}

func (f *fakeTarget) KeepsState() bool        { return f.keeps }
func (f *fakeTarget) ReadBack() time.Duration { return f.readBack }

func (f *fakeTarget) String() string {
	if f.name != "" {
		return f.name
	}
	return "fake"
}

// fakeSource tells windows of traffic that follows the weight.
type fakeSource struct {
	w          *world
	perMin     int64
	solved     float64
	violations int64         // of the canary, a minute
	settle     time.Duration // and windows come so late
	err        error
	silent     bool // no windows at all
	ignores    bool // the gateway splits half and half
	change     func(canary *release.Window)
	reads      int
	from       []time.Time
}

func (f *fakeSource) Read(_ context.Context, from, now time.Time) (source.Batch, error) {
	f.reads++
	f.from = append(f.from, from)
	if f.err != nil {
		return source.Batch{}, f.err
	}
	until := now.Add(-f.settle).Truncate(time.Minute)
	b := source.Batch{Until: until}
	if f.silent {
		return b, nil
	}
	for t := from.Truncate(time.Minute); t.Before(until); t = t.Add(time.Minute) {
		if t.Before(from) {
			continue
		}
		slots := f.w.target.weight.Slots
		if f.ignores {
			slots = 50
		}
		canary := f.perMin * slots / 100
		w := f.window(t, release.Canary, canary, f.violations)
		if f.change != nil {
			f.change(&w)
		}
		b.Windows = append(b.Windows, w, f.window(t, release.Stable, f.perMin-canary, 0))
		b.Newest = t.Add(time.Minute)
	}
	return b, nil
}

func (f *fakeSource) window(t time.Time, arm release.Arm, total, violations int64) release.Window {
	return release.Window{
		T: t, Span: time.Minute, Arm: arm, Total: total, Judged: total, Solved: int64(float64(total) * f.solved), Violations: min(violations, total),
		Known: release.HasSolved | release.HasViolations | release.HasTransfers,
	}
}

func (f *fakeSource) Span() time.Duration   { return time.Minute }
func (f *fakeSource) Settle() time.Duration { return f.settle }
func (f *fakeSource) String() string        { return "fake traffic" }

// fakeChannel keeps what it is told.
type fakeChannel struct{ w *world }

func (f fakeChannel) Send(_ context.Context, m notify.Message) error {
	if f.w.deaf {
		return &notify.DeliveryError{To: "fake", Err: errors.New("no answer"), Retry: true}
	}
	f.w.told = append(f.w.told, m)
	return nil
}

func (fakeChannel) Wants(notify.Event) bool { return true }
func (fakeChannel) String() string          { return "fake (notify[0])" }
