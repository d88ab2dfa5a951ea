package simulate_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// streamed gives a window of 200 requests 150 streams, 140 of which are timed,
// and 180 requests with a status, or as many of any other number.
func streamed(w *release.Window) {
	n := w.Total / 20
	w.TTFTOf, w.TTFTP99MS, w.TTFTSlow = 14*n, 900, 4*n
	w.ITLOf, w.ITLMS = 13*n, 21.5
	w.Streams, w.Aborted = 15*n, 2*n
	w.StatusOf, w.Errors, w.ServerErrors = 18*n, 6*n, 2*n
	w.KVCache = 0.75
	w.Known |= release.HasTTFT | release.HasTTFTSlow | release.HasITL | release.HasAborts | release.HasErrors | release.HasServerErrors | release.HasKVCache
}

// TestThinKeepsWhatIsKnownOfStreams: each share keeps its own denominator,
// means and KV-cache use stay, and the percentile goes.
func TestThinKeepsWhatIsKnownOfStreams(t *testing.T) {
	const minutes = 4000
	var canary, stable []release.Window
	for m := range minutes {
		c, s := minute(m, 200, 0, 0, 0), minute(m, 800, 0, 0, 0)
		s.Arm = release.Stable
		streamed(&c)
		canary, stable = append(canary, c), append(stable, s)
	}
	feed, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		t.Fatal(err)
	}
	thin, sum := thinned(t, feed, 1), release.Window{}
	for thin.More() {
		tick, err := thin.Next(release.Weight{Slots: 5, Ring: 100})
		if err != nil {
			t.Fatal(err)
		}
		w := tick.Canary[0]
		if w.TTFTOf > w.Total || w.TTFTSlow > w.TTFTOf || w.ITLOf > w.Total || w.Streams > w.Total || w.Aborted > w.Streams ||
			w.StatusOf > w.Total || w.Errors > w.StatusOf || w.ServerErrors > w.Errors {
			t.Fatalf("impossible window %+v", w)
		}
		if w.Has(release.HasTTFT) || w.TTFTP99MS != 0 || w.ITLMS != 21.5 || w.KVCache != 0.75 {
			t.Fatalf("percentile, mean and KV cache of %+v", w)
		}
		if !w.Has(release.HasTTFTSlow | release.HasITL | release.HasAborts | release.HasErrors | release.HasServerErrors | release.HasKVCache) {
			t.Fatalf("figures are gone: %+v", w)
		}
		sum.TTFTOf, sum.TTFTSlow, sum.ITLOf = sum.TTFTOf+w.TTFTOf, sum.TTFTSlow+w.TTFTSlow, sum.ITLOf+w.ITLOf
		sum.Streams, sum.Aborted = sum.Streams+w.Streams, sum.Aborted+w.Aborted
		sum.StatusOf, sum.Errors, sum.ServerErrors = sum.StatusOf+w.StatusOf, sum.Errors+w.Errors, sum.ServerErrors+w.ServerErrors
	}
	for _, f := range []struct {
		name     string
		got, was int64
	}{
		{"timed streams", sum.TTFTOf, 140}, {"slow streams", sum.TTFTSlow, 40}, {"paced streams", sum.ITLOf, 130},
		{"streams", sum.Streams, 150}, {"aborts", sum.Aborted, 20},
		{"statuses", sum.StatusOf, 180}, {"errors", sum.Errors, 60}, {"server errors", sum.ServerErrors, 20},
	} {
		n := float64(f.was * minutes)
		if math.Abs(float64(f.got)-n/4) > 5*math.Sqrt(n*3/16) {
			t.Errorf("%d %s of %g, want a quarter", f.got, f.name, n)
		}
	}
}

// recorded is a feed of a canary at a share of 1,000 requests a minute.
func recorded(t *testing.T, minutes int, share int64) *simulate.Recorded {
	t.Helper()
	var canary, stable []release.Window
	for m := range minutes {
		c := minute(m, 10*share, 8*share, share, 2*share)
		c.Judged = 9 * share
		c.Cost, c.CostMean, c.P99MS = 1.1, 0.0044, 310
		c.Slow, c.ControlJudged, c.ControlSolved = 3*share, 500, 450
		c.Known |= release.HasCost | release.HasCostMean | release.HasP99 | release.HasSlow | release.HasControl
		s := minute(m, 1000-10*share, 0, 0, 0)
		s.Arm = release.Stable
		canary, stable = append(canary, c), append(stable, s)
	}
	feed, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		t.Fatal(err)
	}
	return feed
}

func thinned(t *testing.T, feed *simulate.Recorded, seed uint64) *simulate.Thinned {
	t.Helper()
	thin, err := simulate.Thin(feed, seed)
	if err != nil {
		t.Fatal(err)
	}
	return thin
}

func TestThinKeepsTheLaddersShare(t *testing.T) {
	const minutes = 4000
	thin := thinned(t, recorded(t, minutes, 20), 1) // recorded at 20 %
	var sum release.Window
	for thin.More() {
		tick, err := thin.Next(release.Weight{Slots: 5, Ring: 100})
		if err != nil {
			t.Fatal(err)
		}
		w := tick.Canary[0]
		if w.Judged > w.Total || w.Solved > w.Judged || w.Violations > w.Total || w.Transfers > w.Total || w.Slow > w.Total {
			t.Fatalf("impossible window %+v", w)
		}
		if w.Has(release.HasP99) || w.P99MS != 0 || w.Cost != 1.1 || w.CostMean != 0.0044 {
			t.Fatalf("p99 and cost of %+v", w)
		}
		if !w.Has(release.HasSlow|release.HasControl) || w.ControlJudged != 500 || w.ControlSolved != 450 {
			t.Fatalf("stable's part of %+v is not as recorded", w)
		}
		if tick.Stable[0].Total != 800 {
			t.Fatalf("stable has %d requests, want the recorded 800", tick.Stable[0].Total)
		}
		sum.Total, sum.Judged, sum.Solved = sum.Total+w.Total, sum.Judged+w.Judged, sum.Solved+w.Solved
		sum.Violations, sum.Transfers = sum.Violations+w.Violations, sum.Transfers+w.Transfers
		sum.Slow += w.Slow
	}
	for _, f := range []struct {
		name     string
		got, was int64
	}{
		{"requests", sum.Total, 200}, {"judged", sum.Judged, 180}, {"solved", sum.Solved, 160},
		{"violations", sum.Violations, 20}, {"hand-offs", sum.Transfers, 40}, {"slow", sum.Slow, 60},
	} {
		n := float64(f.was * minutes)
		if math.Abs(float64(f.got)-n/4) > 5*math.Sqrt(n*3/16) {
			t.Errorf("%d %s of %g, want a quarter", f.got, f.name, n)
		}
	}
}

func TestThinAtTheRecordedShareKeepsEveryRequest(t *testing.T) {
	tick, err := thinned(t, recorded(t, 1, 20), 1).Next(release.Weight{Slots: 1, Ring: 5})
	if err != nil {
		t.Fatal(err)
	}
	if w := tick.Canary[0]; w.Total != 200 || w.Judged != 180 || w.Solved != 160 || w.Violations != 20 || w.Transfers != 40 || w.Slow != 60 {
		t.Errorf("got %+v", w)
	}
}

func TestThinRefusesMoreThanWasRecorded(t *testing.T) {
	thin := thinned(t, recorded(t, 60, 20), 1)
	if _, err := thin.Next(release.Weight{Slots: 20, Ring: 100}); err != nil {
		t.Fatal(err)
	}
	_, err := thin.Next(release.Weight{Slots: 21, Ring: 100})
	got, typed := errors.AsType[*simulate.ShareError](err)
	if !typed {
		t.Fatalf("got %v", err)
	}
	want := simulate.ShareError{T: t0.Add(time.Minute), Want: release.Weight{Slots: 21, Ring: 100}, Canary: 6400, Requests: 32000}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), "at 21 %, but only 6400 of the 32000 requests around it (20 %)") {
		t.Errorf("says %q", err)
	}
}

// TestThinJudgesTheShareOverAnHour: one tick whose own share is low by chance
// is no reason to refuse, and at about the recorded share everything is kept.
func TestThinJudgesTheShareOverAnHour(t *testing.T) {
	var canary, stable []release.Window
	for m := range 120 {
		n := int64(8 + 4*(m%2)) // 8 or 12 of 100
		s := minute(m, 100-n, 0, 0, 0)
		s.Arm = release.Stable
		canary, stable = append(canary, minute(m, n, n, 0, 0)), append(stable, s)
	}
	feed, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		t.Fatal(err)
	}
	thin, kept := thinned(t, feed, 1), int64(0)
	for thin.More() {
		tick, err := thin.Next(release.Weight{Slots: 10, Ring: 100})
		if err != nil {
			t.Fatal(err)
		}
		kept += tick.Canary[0].Total
	}
	if kept < 1180 || kept > 1200 {
		t.Errorf("kept %d of 1200 requests recorded at the ladder's own share", kept)
	}
}

func TestThinAtWeightZeroShowsNothing(t *testing.T) {
	tick, err := thinned(t, recorded(t, 1, 20), 1).Next(release.Weight{})
	if err != nil || len(tick.Canary) != 0 || len(tick.Stable) != 1 {
		t.Errorf("got %+v, %v", tick, err)
	}
}

func TestThinWithoutStableIsRefusedOrAGap(t *testing.T) {
	alone, err := simulate.NewRecorded([]release.Window{minute(0, 10, 9, 0, 0)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.Thin(alone, 1); !errors.Is(err, simulate.ErrShareUnknown) {
		t.Errorf("got %v", err)
	}
	s := minute(1, 90, 80, 0, 0)
	s.Arm = release.Stable
	gap, err := simulate.NewRecorded([]release.Window{minute(0, 10, 9, 0, 0), minute(1, 10, 9, 0, 0)}, []release.Window{s})
	if err != nil {
		t.Fatal(err)
	}
	thin := thinned(t, gap, 1)
	for m, want := range []int{0, 1} {
		tick, err := thin.Next(release.Weight{Slots: 10, Ring: 100})
		if err != nil || len(tick.Canary) != want {
			t.Errorf("minute %d: %d windows, want %d; %v", m, len(tick.Canary), want, err)
		}
	}
	if thin.Span() != time.Minute || !thin.Start().Equal(t0) {
		t.Errorf("span %s, start %s", thin.Span(), thin.Start())
	}
}

func TestThinIsRepeatable(t *testing.T) {
	all := func(seed uint64) (ws []release.Window) {
		thin := thinned(t, recorded(t, 50, 30), seed)
		for thin.More() {
			tick, err := thin.Next(release.Weight{Slots: 7, Ring: 100})
			if err != nil {
				t.Fatal(err)
			}
			ws = append(ws, tick.Canary...)
		}
		return ws
	}
	if diff := cmp.Diff(all(5), all(5)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(all(5), all(6)) {
		t.Error("seeds 5 and 6 are alike")
	}
}
