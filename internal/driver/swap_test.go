package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// with is [world.driver] of a process that has another target, or another
// directory.
func (w *world) with(t driver.Target, dir string) *driver.Driver {
	w.t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(w.text))
	if cfg == nil {
		w.t.Fatalf("configuration: %v", findings)
	}
	d, err := state.Open(dir, cfg.TargetService)
	if err != nil {
		w.t.Fatal(err)
	}
	return driver.New(w.options(cfg, t, d))
}

// versioned is a gateway whose document has two versions beside the weights.
type versioned struct {
	*fakeTarget
	stable, canary string
	swaps          int
	// onSwap is asked at each exchange instead of making it; it may call exchange.
	onSwap func(was target.Versions) error
}

func (v *versioned) Versions(ctx context.Context) (target.Versions, error) {
	r, err := v.Read(ctx)
	if err == nil && v.stable == v.canary {
		err = &target.RefusedError{Target: "fake", Err: errors.New("they differ in nothing")}
	}
	return target.Versions{Reading: r, Stable: v.stable, Canary: v.canary}, err
}

func (v *versioned) Swap(_ context.Context, was target.Versions, c target.Change) error {
	v.swaps++
	if v.onSwap != nil {
		return v.onSwap(was)
	}
	return v.exchange(was, c)
}

func (v *versioned) exchange(was target.Versions, c target.Change) error {
	if was.Stable != v.stable || was.Canary != v.canary || !was.Weight.Same(v.weight) {
		return &target.ConflictError{Target: "fake"}
	}
	v.stable, v.canary = v.canary, v.stable
	c.To = weight(0)
	v.set(c)
	return nil
}

// quick makes every step last two minutes.
func (w *world) quick() {
	w.text = strings.ReplaceAll(w.text, "min_hold_min: 10", "min_hold_min: 2")
	w.source.perMin = 60000
}

// swapWorld is a release that has completed, to be swapped.
func swapWorld(t *testing.T) (*world, *versioned) {
	w := newWorld(t)
	w.text = strings.Replace(w.text, "target: { file: { path: weights.json } }", "target: { file: { path: weights.json } }\non_complete: swap", 1)
	w.quick()
	v := &versioned{fakeTarget: w.target, stable: "old", canary: "new"}
	w.promoteWith(v)
	for range 200 {
		if w.tickWith(v).Outcome.Move == release.Complete {
			return w, v
		}
	}
	t.Fatal("it never completed")
	return nil, nil
}

func (w *world) promoteWith(t driver.Target) *driver.Result {
	w.t.Helper()
	res, err := w.with(t, w.dir).Promote(w.t.Context())
	if err != nil {
		w.t.Fatalf("at %s: %v", w.now.Format("15:04:05"), err)
	}
	w.res = res
	return res
}

// tickWith promotes at the next minute.
func (w *world) tickWith(t driver.Target) *driver.Result {
	w.t.Helper()
	w.now = w.now.Add(time.Minute).Truncate(time.Minute)
	return w.promoteWith(t)
}

func (w *world) swap(t driver.Target) error {
	w.t.Helper()
	return w.with(t, w.dir).Swap(w.t.Context())
}

func TestASwapMakesTheCanaryStableAndTheReleaseStaysComplete(t *testing.T) {
	w, v := swapWorld(t)
	writes := len(v.writes)
	for range 2 { // the second has nothing to do
		if err := w.swap(v); err != nil {
			t.Fatal(err)
		}
	}
	if v.stable != "new" || v.canary != "old" || v.swaps != 1 {
		t.Fatalf("stable %s, canary %s after %d exchanges", v.stable, v.canary, v.swaps)
	}
	w.wantWeight(0)
	for range 30 {
		w.tickWith(v)
		w.wantStatus(driver.Done)
		if w.res.Outcome.Why != ladder.WhyCompleted {
			t.Fatalf("%s: %s", w.res.Outcome.Why, w.res.Outcome.Reason)
		}
	}
	if len(v.writes) != writes || strings.Contains(strings.Join(w.events(), " "), "drift") {
		t.Errorf("%d writes more; told %v", len(v.writes)-writes, w.events())
	}
	w.verify()

	w.text = strings.Replace(w.text, `prompt_version: "42"`, `prompt_version: "43"`, 1)
	w.text = strings.Replace(w.text, `prompt_version: "41"`, `prompt_version: "42"`, 1)
	w.tickWith(v)
	w.wantWeight(1)
	w.wantStatus(driver.Done)
	if w.res.Outcome.Move != release.Start || w.res.Release.Exchange != nil {
		t.Errorf("%s with %+v", w.res.Outcome.Move, w.res.Release.Exchange)
	}
	w.verify()
}

// TestASwapThatIsBrokenOffIsGoneOnWith: a kill behind the line in the journal,
// before and after the exchange.
func TestASwapThatIsBrokenOffIsGoneOnWith(t *testing.T) {
	for name, made := range map[string]bool{"before the exchange": false, "after the exchange": true} {
		for resumed, resume := range map[string]func(d *driver.Driver) error{
			"promote": func(d *driver.Driver) error { _, err := d.Promote(t.Context()); return err },
			"finish":  func(d *driver.Driver) error { _, err := d.Finish(t.Context()); return err },
			"swap":    func(d *driver.Driver) error { return d.Swap(t.Context()) },
		} {
			t.Run(name+" by "+resumed, func(t *testing.T) {
				w, v := swapWorld(t)
				killed := memory(t)
				v.onSwap = func(was target.Versions) error {
					if err := os.CopyFS(killed, os.DirFS(w.dir)); err != nil {
						t.Fatal(err)
					}
					if made {
						_ = v.exchange(was, target.Change{})
					}
					return &target.RefusedError{Target: "fake", Err: errors.New("killed")}
				}
				_ = w.swap(v)
				v.onSwap, w.dir = nil, killed
				w.res = &driver.Result{}
				if err := resume(w.with(v, w.dir)); err != nil {
					t.Fatal(err)
				}
				w.wantWeight(0)
				if v.stable != "new" {
					t.Errorf("stable is %s", v.stable)
				}
				w.tickWith(v)
				w.wantStatus(driver.Done)
				if got := strings.Join(w.events(), " "); strings.Contains(got, "drift") {
					t.Errorf("told %q", got)
				}
				w.verify()
			})
		}
	}
}

func TestASwapThatGoesWrongIsNeverSaidToBeDone(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(v *versioned)
		fails bool
		after string // stable, once the fault is over and two minutes later
	}{
		{"500 after committing", func(v *versioned) {
			v.onSwap = func(was target.Versions) error {
				_ = v.exchange(was, target.Change{})
				return unreachable(errors.New("500"))
			}
		}, false, "new"},
		{"500 without committing", func(v *versioned) {
			v.onSwap = func(target.Versions) error { return unreachable(errors.New("500")) }
		}, true, "new"},
		{"200 but unchanged", func(v *versioned) { v.onSwap = func(target.Versions) error { return nil } }, true, "new"},
		{"refused", func(v *versioned) {
			v.onSwap = func(target.Versions) error { return &target.RefusedError{Target: "fake", Err: errors.New("403")} }
		}, true, "new"},
		{"a lost race that changed nothing of ours", func(v *versioned) {
			v.onSwap = func(target.Versions) error { v.onSwap = nil; return &target.ConflictError{Target: "fake"} }
		}, false, "new"},
		{"somebody takes the weight to 0 meanwhile", func(v *versioned) {
			v.onSwap = func(target.Versions) error { v.weight = weight(0); return &target.ConflictError{Target: "fake"} }
		}, true, "old"},
		{"somebody puts another version there meanwhile", func(v *versioned) {
			v.onSwap = func(target.Versions) error { v.canary = "third"; return &target.ConflictError{Target: "fake"} }
		}, true, "old"},
		{"stale readings for a while", func(v *versioned) {
			n := 0
			v.shown = func() (release.Weight, bool) { n++; return weight(100), v.swaps > 0 && n < 8 }
		}, false, "new"},
		{"unreachable", func(v *versioned) {
			v.onSwap = func(target.Versions) error { v.readErr = unreachable(errors.New("refused")); return v.readErr }
		}, true, "new"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, v := swapWorld(t)
			test.fault(v)
			if err := w.swap(v); (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			v.onSwap, v.shown, v.readErr = nil, nil, nil
			w.tickWith(v)
			w.tickWith(v)
			if v.stable != test.after {
				t.Errorf("stable is %s, want %s (%s, %v)", v.stable, test.after, w.res.Outcome.Reason, w.res.Err)
			}
			if test.after == "new" {
				w.wantStatus(driver.Done)
				w.wantWeight(0)
			} else if w.wantStatus(driver.Conflict); w.res.Err == nil {
				t.Error("nothing says why")
			}
			w.verify()
		})
	}
}

func TestASwapThatCannotBeIsRefusedBeforeAnythingIsWrittenDown(t *testing.T) {
	w, v := swapWorld(t)
	v.canary = "old"
	if err := w.swap(v); err == nil || !strings.Contains(err.Error(), "differ in nothing") {
		t.Fatalf("error %v", err)
	}
	if err := w.swap(w.target); err == nil {
		t.Fatal("a target without versions swapped them")
	}
	w.tickWith(v)
	w.wantStatus(driver.Done)
	w.wantWeight(100)
	if w.res.Release.Exchange != nil {
		t.Errorf("%+v", w.res.Release.Exchange)
	}
}

func digests(t *testing.T, text string) (stable, canary string) {
	t.Helper()
	cfg, _ := config.Parse("canary.yaml", []byte(text))
	return cfg.Versions.Stable.Digest(), cfg.Versions.Canary.Digest()
}

func TestARollbackToAReleaseReturnsToItAndToNoOther(t *testing.T) {
	for name, swaps := range map[string]bool{"without a swap": false, "after a swap": true} {
		t.Run(name, func(t *testing.T) {
			w, v := swapWorld(t)
			if swaps {
				if err := w.swap(v); err != nil {
					t.Fatal(err)
				}
				w.tickWith(v)
			}
			old, candidate := digests(t, w.text)
			writes, swapped := len(v.writes), v.swaps
			for _, other := range []string{candidate, old[:5], "0123456789ab", ""} {
				err := w.with(v, w.dir).ReturnTo(t.Context(), other)
				if u, ok := errors.AsType[*driver.UnknownVersionError](err); !ok || u.Returns != old {
					t.Errorf("to %q: %v", other, err)
				}
			}
			if len(v.writes) != writes || v.swaps != swapped {
				t.Error("something was written")
			}
			if err := w.with(v, w.dir).ReturnTo(t.Context(), old[:12]); err != nil {
				t.Fatal(err)
			}
			res, err := w.with(v, w.dir).RollBack(t.Context(), "totals are wrong")
			if err != nil {
				t.Fatal(err)
			}
			w.res = res
			w.wantStatus(driver.RolledBack)
			w.wantWeight(0)
			if v.stable != "old" || v.canary != "new" {
				t.Errorf("stable %s, canary %s", v.stable, v.canary)
			}
			if rec := res.Release.Record; rec.Stable != old || rec.Why != "totals are wrong" || rec.ReadBack.IsZero() {
				t.Errorf("record %+v", rec)
			}
			if _, err := w.with(v, w.dir).RollBack(t.Context(), ""); !errors.Is(err, driver.ErrNothing) || v.stable != "old" {
				t.Errorf("again: %v, stable %s", err, v.stable)
			}
			for range 10 {
				w.tickWith(v)
				w.wantStatus(driver.RolledBack)
			}
			w.wantWeight(0)
			w.verify()

			if _, err := w.with(v, w.dir).Command(t.Context(), ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"}); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				if w.tickWith(v).Outcome.Move == release.Complete {
					break
				}
			}
			if err := w.swap(v); err != nil || v.stable != "new" {
				t.Errorf("a second time: %v, stable %s", err, v.stable)
			}
			w.verify()
		})
	}
}

// TestAReturnThatIsBrokenOffIsGoneOnWith: the weight is 0 before and after, so
// that it tells nothing.
func TestAReturnThatIsBrokenOffIsGoneOnWith(t *testing.T) {
	for name, resume := range map[string]func(d *driver.Driver) (*driver.Result, error){
		"promote":  func(d *driver.Driver) (*driver.Result, error) { return d.Promote(t.Context()) },
		"finish":   func(d *driver.Driver) (*driver.Result, error) { return d.Finish(t.Context()) },
		"rollback": func(d *driver.Driver) (*driver.Result, error) { return d.RollBack(t.Context(), "again") },
	} {
		t.Run(name, func(t *testing.T) {
			w, v := swapWorld(t)
			if err := w.swap(v); err != nil {
				t.Fatal(err)
			}
			v.onSwap = func(target.Versions) error { return unreachable(errors.New("connection refused")) }
			res, err := w.with(v, w.dir).RollBack(t.Context(), "bad")
			if err != nil {
				t.Fatal(err)
			}
			w.res = res
			w.wantStatus(driver.Incomplete)
			if v.stable != "new" {
				t.Fatal("it was made after all")
			}
			w.tickWith(v)
			w.wantStatus(driver.Incomplete)
			v.onSwap = nil
			if w.res, err = resume(w.with(v, w.dir)); err != nil {
				t.Fatal(err)
			}
			w.wantStatus(driver.RolledBack)
			if w.wantWeight(0); v.stable != "old" {
				t.Errorf("stable is %s", v.stable)
			}
			w.verify()
		})
	}
}

func TestARollbackDuringASwapThatWasNotMadeKeepsTheOldVersion(t *testing.T) {
	w, v := swapWorld(t)
	v.onSwap = func(target.Versions) error { return unreachable(errors.New("connection refused")) }
	if err := w.swap(v); err == nil {
		t.Fatal("no error")
	}
	res, err := w.with(v, w.dir).RollBack(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	w.res = res
	w.wantStatus(driver.RolledBack)
	if w.wantWeight(0); v.stable != "old" {
		t.Errorf("stable is %s", v.stable)
	}
	w.verify()
}

// TestTheConfigurationItselfIsSwapped: canary.yaml is the versions document.
// Its canary is then the version that was replaced, which nobody wants released.
func TestTheConfigurationItselfIsSwapped(t *testing.T) {
	w := newWorld(t)
	w.quick()
	path := filepath.Join(memory(t), "canary.yaml")
	w.text = strings.NewReplacer(
		"{ file: { path: weights.json } }", "{ file: { path: "+path+" } }\non_complete: swap # at the end",
		`prompt_version: "41" }`, `prompt_version: "41", weight: 1 } # now`, `prompt_version: "42" }`, `prompt_version: "42", weight: 0 }`,
	).Replace(w.text)
	before := w.text
	if err := os.WriteFile(path, []byte(w.text), 0o600); err != nil {
		t.Fatal(err)
	}
	real := func() driver.Target {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w.text = string(b)
		f, err := target.New(&config.Target{Kind: "file", File: &config.FileTarget{Path: path}}, target.Options{Ring: 100})
		if err != nil {
			t.Fatal(err)
		}
		return &mirrored{f, w}
	}
	old, candidate := digests(t, w.text)
	w.promoteWith(real())
	for range 60 {
		if w.tickWith(real()).Outcome.Move == release.Complete {
			break
		}
	}
	if err := w.swap(real()); err != nil {
		t.Fatal(err)
	}
	real()
	if s, c := digests(t, w.text); s != candidate || c != old {
		t.Fatalf("canary.yaml:\n%s", w.text)
	}
	for range 5 {
		w.tickWith(real())
		w.wantStatus(driver.Done)
		w.wantWeight(0)
	}
	if w.res.Release.Candidate != candidate {
		t.Errorf("the release is %s", w.res.Release.Candidate)
	}
	w.verify()
	if err := w.with(real(), w.dir).ReturnTo(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	res, err := w.with(real(), w.dir).RollBack(t.Context(), "bad")
	if err != nil || res.Status != driver.RolledBack {
		t.Fatalf("%+v, %v", res, err)
	}
	if real(); w.text != strings.Replace(before, "weight: 0 }", "weight: 0 }", 1) {
		t.Errorf("not as it was:\n%s", w.text)
	}
	w.verify()
}

// mirrored is a real target whose weight the traffic follows.
type mirrored struct {
	target.Target
	w *world
}

func (m *mirrored) Read(ctx context.Context) (target.Reading, error) {
	r, err := m.Target.Read(ctx)
	if err == nil {
		m.w.target.weight = r.Weight
	}
	return r, err
}

func (m *mirrored) Versions(ctx context.Context) (target.Versions, error) {
	v, err := m.Target.(driver.Swapper).Versions(ctx)
	if err == nil {
		m.w.target.weight = v.Weight
	}
	return v, err
}

func (m *mirrored) Swap(ctx context.Context, was target.Versions, c target.Change) error {
	return m.Target.(driver.Swapper).Swap(ctx, was, c)
}

func TestTheJournalHoldsBothVersionsWithoutTheirKeys(t *testing.T) {
	w := newWorld(t)
	w.text = strings.Replace(w.text, `prompt_version: "42" }`, `prompt_version: "42", params: { api_key: "hunter2-secret", top_k: 7 } }`, 1)
	w.promote()
	w.pass(3)
	old, candidate := digests(t, w.text)
	b, err := os.ReadFile(filepath.Join(w.dir, "order-service", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{old, candidate, `"prompt_version":"41"`, `"prompt_version":"42"`, `"top_k":7`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in the journal", want)
		}
	}
	if strings.Contains(string(b), "hunter2") {
		t.Error("the journal holds a key")
	}
}

// options are those of every process of the world.
func (w *world) options(cfg *config.Config, t driver.Target, dir *state.Dir) driver.Options {
	return driver.Options{
		Config: cfg, Target: t, Source: w.source, Dir: dir, Channels: []notify.Channel{fakeChannel{w}}, Hooks: w.hooks,
		Now: func() time.Time { return w.now }, Wait: w.wait, Who: state.Holder{PID: 7, Who: "ops@host", Command: "promote"},
		Say: func(format string, args ...any) { w.said = append(w.said, fmt.Sprintf(format, args...)) },
	}
}
