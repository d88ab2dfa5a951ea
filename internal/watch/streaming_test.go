package watch

import (
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/release"
)

// flowing gives the windows of both arms figures of streaming, and the step
// limits of them.
func flowing(t *testing.T) (*look, *breaker.Limits) {
	k, l := judging(t)
	*l.StreamLimitOf(release.TTFTP99) = breaker.StreamLimit{Limit: release.NewRatio(3000*breaker.PerMS, 1)}
	*l.StreamLimitOf(release.ITL) = breaker.StreamLimit{Span: 2 * time.Minute, Limit: release.NewRatio(150*breaker.PerMS, 1)}
	*l.StreamLimitOf(release.Errors) = breaker.StreamLimit{Span: 3 * time.Minute, Limit: release.MustRatio("0.01")}
	*l.StreamLimitOf(release.KVCache) = breaker.StreamLimit{Span: time.Minute, Limit: release.NewRatio(900_000, 1)}
	for i := range k.canary {
		w := &k.canary[i]
		w.TTFTOf, w.TTFTP99MS, w.ITLOf, w.ITLMS, w.KVCache = 40, 900, int64(10*i), 20+float64(i), 0.45
		w.StatusOf, w.Errors = 100, int64(i%2)
		w.Known |= release.HasTTFT | release.HasITL | release.HasErrors | release.HasKVCache
	}
	for i := range k.stable {
		w := &k.stable[i]
		w.ITLOf, w.ITLMS, w.Known = 100, 18, w.Known|release.HasITL
	}
	return k, l
}

// TestSignalsOfStreamingAreShownAsTheBreakerReadsThem: in milliseconds and
// shares, over their own spans, beside stable or the configured baseline.
func TestSignalsOfStreamingAreShownAsTheBreakerReadsThem(t *testing.T) {
	k, _ := flowing(t)
	rows := k.rows()
	for s, want := range map[release.Signal]map[string]Figure{
		release.TTFTP99: {"value": Known(900), "limit": Known(3000), "beside": Known(800), "room": Known(0.7)},
		// 30 streams at 23 ms and 40 at 24
		release.ITL:     {"value": Known((30*23 + 40*24) / 70.0), "limit": Known(150), "beside": Known(18)},
		release.Errors:  {"value": Known(1.0 / 300), "limit": Known(0.01), "room": Known(2.0 / 3)},
		release.KVCache: {"value": Known(0.45), "limit": Known(0.9), "room": Known(0.5)},
	} {
		row := &rows[s]
		if row.Signal != s || row.State != NotJudged || row.Low {
			t.Errorf("row %v: %+v", s, row)
		}
		checkFigures(t, row, want)
		if unit := map[bool]Unit{true: Millis, false: Share}[s == release.TTFTP99 || s == release.ITL]; row.Unit != unit {
			t.Errorf("%v is in %v", s, row.Unit)
		}
	}
	if !rows[release.TTFTP99].Baseline || rows[release.ITL].Baseline {
		t.Error("the configured baseline of ttft_p99 is not marked, or stable's figure is")
	}
	if row := &rows[release.ITL]; row.Canary[Points-5].Known || !row.Canary[Points-4].Known {
		t.Error("a window whose streams have no tokens has a point")
	}
}

// TestSignalsThatNobodySuppliesHaveNoRow, unless a verdict speaks of them.
func TestSignalsThatNobodySuppliesHaveNoRow(t *testing.T) {
	has := func(k *look, s release.Signal) bool {
		for _, row := range k.signals(timesOf(k.canary, k.stable, time.Minute)) {
			if row.Signal == s {
				return true
			}
		}
		return false
	}
	k, _ := flowing(t)
	if !has(k, release.ITL) || has(k, release.StreamAborts) {
		t.Error("what is supplied has a row, what is not has none")
	}
	k, _ = judging(t)
	if has(k, release.ITL) || !has(k, release.P99) {
		t.Error("a service without streaming has rows of it")
	}
	k.outcome.Verdicts = []journal.Verdict{verdict(release.KVCache, release.NoData, 0, 0.9, 0, 1)}
	if !has(k, release.KVCache) {
		t.Error("what is waited for is not shown")
	}
}
