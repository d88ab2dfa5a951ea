package ladder_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// streaming gives a step the published limits of streaming; set changes them.
func streaming(set ...func(*breaker.Limits)) func(*ladder.Step) {
	return limits(func(l *breaker.Limits) {
		l.Streaming = [release.Streaming]breaker.StreamLimit{
			{Limit: release.NewRatio(3000*breaker.PerMS, 1)},
			{Span: minutes(5), Limit: release.MustRatio("0.03"), MinOf: 100},
			{Span: minutes(1), Limit: release.NewRatio(150*breaker.PerMS, 1), MinOf: 10},
			{Span: minutes(5), Limit: release.MustRatio("0.005"), MinSum: 3},
			{Span: minutes(1), Limit: release.MustRatio("0.01"), MinSum: 3},
			{Span: minutes(5), Limit: release.MustRatio("0.01"), MinSum: 3},
			{Span: minutes(1), Limit: release.NewRatio(9*breaker.PerWhole/10, 1), MinOf: 1},
		}
		l.Rules[release.ITL].OnFail, l.Rules[release.KVCache].OnFail = release.HoldStep, release.Throttle
		for _, f := range set {
			f(l)
		}
	})
}

func mode(s release.Signal, m release.Mode) func(*breaker.Limits) {
	return func(l *breaker.Limits) { l.Rules[s].Mode = m }
}

// smooth gives a window good figures of streaming.
func smooth(w *release.Window) {
	w.TTFTOf, w.ITLOf, w.Streams, w.StatusOf = w.Total, w.Total, w.Total, w.Total
	w.TTFTP99MS, w.ITLMS, w.KVCache = 700, 20, 0.5
	w.Known |= release.StreamingFigures
}

// TestASignalOfStreamingIsNeededWhereItIsSupplied, or enforced; and not where
// nobody supplies it.
func TestASignalOfStreamingIsNeededWhereItIsSupplied(t *testing.T) {
	for name, tc := range map[string]struct {
		set    func(*breaker.Limits)
		change func(minute int, w *release.Window)
		weight int64
		why    ladder.Why
		reason string
	}{
		"nothing supplied": {func(*breaker.Limits) {}, func(int, *release.Window) {}, 5, ladder.WhyTime, ""},
		"all good":         {func(*breaker.Limits) {}, func(_ int, w *release.Window) { smooth(w) }, 5, ladder.WhyTime, ""},
		"no stream at all is not supplied": {func(*breaker.Limits) {}, func(_ int, w *release.Window) {
			w.Known |= release.HasAborts | release.HasTTFTSlow
		}, 5, ladder.WhyTime, ""},
		"supplied once, then missing": {func(*breaker.Limits) {}, func(minute int, w *release.Window) {
			if minute == 0 {
				w.TTFTOf, w.Known = 30, w.Known|release.HasTTFTSlow
			}
		}, 1, ladder.WhyInsufficient, "30 of 100 streams with ttft_slow"},
		"supplied once and observed": {mode(release.TTFTSlow, release.Observe), func(minute int, w *release.Window) {
			if minute == 0 {
				w.TTFTOf, w.Known = 30, w.Known|release.HasTTFTSlow
			}
		}, 5, ladder.WhyTime, ""},
		"enforced and never supplied": {mode(release.KVCache, release.Required), func(int, *release.Window) {}, 1, ladder.WhyNoData, "no data for kv_cache at this step"},
		"min_samples_slow holds where there is no min_count": {func(*breaker.Limits) {}, func(minute int, w *release.Window) {
			if minute < 6 {
				w.StatusOf, w.Known = 30, w.Known|release.HasErrors
			}
		}, 1, ladder.WhyInsufficient, "180 of 200 requests with errors"},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan(streaming(tc.set)))
			for m := range 10 {
				d.pass(1, 30, func(w *release.Window) { tc.change(m, w) })
			}
			d.wantWeight(tc.weight)
			if tc.weight == 1 {
				d.wantHold(tc.why)
				if got := d.decision.Reason(); !strings.HasPrefix(got, tc.reason) {
					t.Errorf("got %q, want %q", got, tc.reason)
				}
			}
		})
	}
}

// TestAStepsStreamingIsJudgedAsAWhole: what no window is bad enough for.
func TestAStepsStreamingIsJudgedAsAWhole(t *testing.T) {
	slow := func(w *release.Window) {
		smooth(w)
		if w.T.Minute()%2 == 0 { // 2 of 60 in the span, and 5 % of the streams of the step
			w.TTFTSlow = 3
		}
	}
	d := start(t, plan(streaming(func(l *breaker.Limits) { l.StreamLimitOf(release.TTFTSlow).MinOf = 200 })))
	d.pass(10, 30, slow)
	if d.decision.Why != ladder.WhyFailed || d.rolledBack.Signal != release.TTFTSlow || d.rolledBack.Count != 15 || d.rolledBack.Of != 300 {
		t.Errorf("%s, by %s", d.decision.Reason(), d.rolledBack)
	}
}

// TestASignalThatHoldsLatchesAndOneThatThrottlesDoesNot: after slow tokens no
// step is taken in this attempt, after a full cache it is, once there is room.
func TestASignalThatHoldsLatchesAndOneThatThrottlesDoesNot(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*release.Window)
		holds  bool
	}{
		"500 ms a token":   {func(w *release.Window) { w.ITLMS = 500 }, true},
		"97 % of KV cache": {func(w *release.Window) { w.KVCache = 0.97 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan(streaming()))
			d.pass(2, 30, smooth)
			d.pass(1, 30, smooth, tc.change)
			d.pass(20, 30, smooth)
			d.wantPhase(release.Closed)
			if held := d.weight.Same(pct(1)); held != tc.holds {
				t.Errorf("at %s: %s", d.weight, d.decision.Reason())
			}
			if tc.holds {
				d.wantHold(ladder.WhyFailing)
			}
		})
	}
}

// TestStreamingGoesOnAfterAStateIsReadBack: gate, breaker and what was supplied.
func TestStreamingGoesOnAfterAStateIsReadBack(t *testing.T) {
	run := func(read bool) (string, ladder.Decision) {
		d := start(t, plan(streaming()))
		for m := range 40 {
			if read {
				b, err := json.Marshal(&d.st)
				if err != nil {
					t.Fatal(err)
				}
				d.st = ladder.State{}
				if err := json.Unmarshal(b, &d.st); err != nil {
					t.Fatal(err)
				}
			}
			d.pass(1, 30, smooth, func(w *release.Window) {
				w.KVCache = 0.5 + float64(m)/80
				if m == 35 {
					w.Aborted = 2
				}
			})
		}
		b, err := json.Marshal(&d.st)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), d.decision
	}
	want, _ := run(false)
	if got, _ := run(true); got != want {
		t.Errorf("read back at every minute\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(want, `"streaming":{"errors":[0,`) {
		t.Errorf("no counts of streaming in\n%s", want)
	}
}

// TestAStateWithoutStreamingSaysNothingOfIt: digests of states in journals from
// before stay what they are.
func TestAStateWithoutStreamingSaysNothingOfIt(t *testing.T) {
	d := start(t, plan(streaming()))
	d.pass(5, 30)
	b, err := json.Marshal(&d.st)
	if err != nil || strings.Contains(string(b), "streaming") {
		t.Errorf("%s, %v", b, err)
	}
}
