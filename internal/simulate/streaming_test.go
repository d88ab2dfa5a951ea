package simulate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// flowing has every figure of streaming.
func flowing() simulate.Streaming {
	return simulate.Streaming{
		Share: 0.5, TTFTP99MS: 700, TTFTSlow: simulate.Rate(0.01), ITLMS: 20, Aborts: simulate.Rate(0.002),
		ServerErrors: simulate.Rate(0.005), Refusals: simulate.Rate(0.01), KVCache: 0.4,
	}
}

func TestExactStreamingIsAsTheFeedSays(t *testing.T) {
	spec := simulate.Spec{Start: t0, Minutes: 100, PerMin: 60, StablePerMin: 600, Base: full()}
	spec.Base.Streaming = flowing()
	spec.Faults = []simulate.Fault{
		{Target: simulate.InterToken, Change: simulate.ToMS, Value: 500, Arm: release.Canary, From: 50},
		{Target: simulate.TTFT, Change: simulate.Times, Value: 6, Arm: release.Canary, From: 50},
		{Target: simulate.KVCacheLevel, Change: simulate.FillPP, Value: 120, Arm: release.Canary, From: 50},
		{Target: simulate.RefusalLevel, Change: simulate.ToCount, Value: 6, Arm: release.Canary, From: 50},
	}
	canary, stable := ticks(t, spec, tenth)
	var sum [2]release.Window
	for m := range canary {
		for i, w := range []*release.Window{canary[m], stable[m]} {
			if !w.Has(release.StreamingFigures) || w.StatusOf != w.Total || w.TTFTOf != w.Total/2 || w.Streams != w.TTFTOf || w.ITLOf != w.TTFTOf || w.ServerErrors > w.Errors || w.Errors > w.StatusOf {
				t.Fatalf("impossible window %+v", *w)
			}
			sum[i].TTFTSlow, sum[i].Aborted = sum[i].TTFTSlow+w.TTFTSlow, sum[i].Aborted+w.Aborted
			sum[i].ServerErrors = sum[i].ServerErrors + w.ServerErrors
			if m < 50 {
				sum[i].Errors += w.Errors
			}
		}
		want := [3]float64{700, 20, 0.4}
		if m >= 50 {
			want = [3]float64{4200, 500, min(0.4+0.02*float64(m-50), 1)}
			if canary[m].Errors-canary[m].ServerErrors != 6 {
				t.Fatalf("minute %d: %d refusals, want 6", m, canary[m].Errors-canary[m].ServerErrors)
			}
		}
		if got := [3]float64{canary[m].TTFTP99MS, canary[m].ITLMS, canary[m].KVCache}; math.Abs(got[2]-want[2]) > 1e-9 || got[0] != want[0] || got[1] != want[1] {
			t.Fatalf("minute %d: %v, want %v", m, got, want)
		}
		if stable[m].TTFTP99MS != 700 || stable[m].ITLMS != 20 || stable[m].KVCache != 0.4 {
			t.Fatalf("minute %d: stable %+v", m, *stable[m])
		}
	}
	for i, want := range [2][4]int64{{30, 6, 30, 45}, {300, 60, 300, 450}} {
		if got := [4]int64{sum[i].TTFTSlow, sum[i].Aborted, sum[i].ServerErrors, sum[i].Errors}; got != want {
			t.Errorf("arm %d: slow, broken, 5xx, errors of 50 minutes %v, want %v", i, got, want)
		}
	}
}

// TestStreamingLeavesTheLuckOfTheOthersAlone: a drawn feed with its figures has
// the same requests, outcomes, latencies and costs as without.
func TestStreamingLeavesTheLuckOfTheOthersAlone(t *testing.T) {
	spec := simulate.Spec{Start: t0, Minutes: 60, PerMin: 600, Closed: true, Drawn: true, Seed: 7, Base: full()}
	without, _ := ticks(t, spec, tenth)
	spec.Base.Streaming = flowing()
	with, _ := ticks(t, spec, tenth)
	differ := false
	for m := range with {
		bare := *with[m]
		differ = differ || bare.TTFTP99MS != 700 && bare.ITLMS != 20
		bare.Known &^= release.StreamingFigures
		bare.TTFTOf, bare.TTFTP99MS, bare.TTFTSlow, bare.ITLOf, bare.ITLMS, bare.Streams, bare.Aborted, bare.StatusOf, bare.Errors, bare.ServerErrors, bare.KVCache = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
		if diff := cmp.Diff(*without[m], bare); diff != "" {
			t.Fatalf("minute %d:\n%s", m, diff)
		}
	}
	if !differ {
		t.Error("nothing is drawn")
	}
}

func TestStreamingThatCannotBeIsRefused(t *testing.T) {
	for want, change := range map[string]func(*simulate.Spec){
		"a share is between 0 and 1, not 1.5":           func(s *simulate.Spec) { s.Base.Streaming.KVCache = 1.5 },
		"-1 is no latency":                              func(s *simulate.Spec) { s.Base.Streaming.ITLMS = -1 },
		"a share of requests is between 0 and 1, not 2": func(s *simulate.Spec) { s.Base.Streaming.Aborts = simulate.Rate(2) },
		"40 broken streams a minute of 30":              func(s *simulate.Spec) { s.Base.Streaming.Aborts = simulate.CountPerMin(40) },
		"the base has no KV cache for it to change": func(s *simulate.Spec) {
			s.Base.Streaming.KVCache = 0
			s.Faults = []simulate.Fault{{Target: simulate.KVCacheLevel, Arm: release.Canary}}
		},
		"KV cache cannot change like that": func(s *simulate.Spec) {
			s.Faults = []simulate.Fault{{Target: simulate.KVCacheLevel, Change: simulate.Times, Arm: release.Canary}}
		},
		"requests that take no time or cost nothing are no requests": func(s *simulate.Spec) {
			s.Faults = []simulate.Fault{{Target: simulate.TTFT, Change: simulate.Times, Arm: release.Canary}}
		},
	} {
		spec := simulate.Spec{Start: t0, Minutes: 5, PerMin: 60}
		spec.Base.Streaming = flowing()
		change(&spec)
		if _, err := simulate.NewSynthetic(spec); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
