package calibrate

import (
	"fmt"
	"math"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// enoughForP99 is how many requests a window's 99th percentile needs to be one
// (95 % sure that it is not above all of them: ln 0.05 / ln 0.99).
const enoughForP99 = 299

var p99 = release.MustRatio("0.99")

// latency fills in the 99th percentile, and how many requests are slower.
func (m *measurement) latency() {
	if len(m.requests.Latency) > 0 {
		m.r.P99 = p99OfRequests(&m.requests)
	} else {
		m.r.P99 = p99OfWindows(m.kept, latencyOf)
	}
	if ttft := p99OfWindows(m.kept, firstTokenOf); ttft.ValueMS != nil {
		m.r.TTFT = &TTFT{ValueMS: *ttft.ValueMS, Method: ttft.Method}
	}
	p := &m.r.P99
	p.Exceed = []Exceed{}
	if p.ValueMS == nil {
		return
	}
	p.Judge = "window"
	p.Slow = m.rate(release.HasSlow, func(w *release.Window) int64 { return w.Slow })
	if p.Slow.Count == nil || *p.Slow.Count == 0 {
		return
	}
	p.Judge = "count"
	if m.slowMS > 0 {
		p.SlowMS = figureSig(m.slowMS, 9)
	}
	f := m.o.FalseTrips
	alpha := f.perTick(m.o.Tick) * float64(m.o.Live) / float64(m.o.Tick)
	for _, n := range []int64{50, 100, 200, 500, 1000} {
		p.Exceed = append(p.Exceed, Exceed{N: n, Count: stats.BinomialCritical(n, *p.Slow.Rate, alpha)})
	}
}

// p99OfRequests is the percentile over all requests by nearest rank, with the
// ranks between which the true one lies (95 %, order statistics): none where
// there are too few requests for one of them.
func p99OfRequests(r *Requests) P99 {
	n := weightOf(r.Latency)
	lo, hi := stats.QuantileRanks(n, p99, 0.95)
	out := P99{Method: "nearest rank over all requests", ValueMS: figureSig(atRank(r.Latency, rankOfP99(n)), 9)}
	if !r.Exact {
		out.Method += ", to 0.1 %"
	}
	if lo >= 1 && hi <= n {
		out.CI = []float64{sig(atRank(r.Latency, lo), 9), sig(atRank(r.Latency, hi), 9)}
	}
	return out
}

// countSlow has the windows count their requests slower than the 99th
// percentile over all, where single latencies are known, and returns the
// latency that they are counted above.
func countSlow(o *Options, r *Requests) float64 {
	if o.CountSlow == nil || len(r.Latency) == 0 {
		return 0
	}
	edge := o.CountSlow(atRank(r.Latency, rankOfP99(weightOf(r.Latency))))
	if math.IsNaN(edge) || math.IsInf(edge, 0) {
		return 0
	}
	return edge
}

func weightOf(values []stats.Weighted) (n int64) {
	for _, v := range values {
		n += v.Weight
	}
	return n
}

// rankOfP99 is ceil(0.99 n) in integers.
func rankOfP99(n int64) int64 {
	rank := p99.FloorOf(n)
	if p99.Compare(rank, n) < 0 {
		rank++
	}
	return rank
}

// atRank returns the rank-th smallest of values that stand for several.
func atRank(sorted []stats.Weighted, rank int64) float64 {
	for _, v := range sorted {
		if rank -= v.Weight; rank <= 0 {
			return v.Value
		}
	}
	return sorted[len(sorted)-1].Value
}

// ofWindow reads a 99th percentile off a window, and of how many requests it is.
type ofWindow func(w *release.Window) (ms float64, of int64)

func latencyOf(w *release.Window) (float64, int64) {
	if !w.Has(release.HasP99) {
		return 0, 0
	}
	return w.P99MS, w.Total
}

func firstTokenOf(w *release.Window) (float64, int64) {
	if !w.Has(release.HasTTFT) {
		return 0, 0
	}
	return w.TTFTP99MS, w.TTFTOf
}

// p99OfWindows makes do with the windows' own. Percentiles of windows cannot be
// averaged, but their request-weighted median is near the true one where
// windows have many requests. Where they have few, a window's p99 is its
// slowest request and the median of those far too low: the level that replaces
// the half is how often such a window's figure lies below the true percentile.
func p99OfWindows(kept []release.Window, read ofWindow) P99 {
	var vs []stats.Weighted
	var requests, few int64
	level := 0.0
	for i := range kept {
		ms, of := read(&kept[i])
		if of <= 0 {
			continue
		}
		vs = append(vs, stats.Weighted{Value: ms, Weight: of})
		requests += of
		if of < enoughForP99 {
			few += of
			level += float64(float64(of) * stats.RankLevel(p99, of))
		} else {
			level += float64(float64(of) * 0.5)
		}
	}
	if requests == 0 {
		return P99{}
	}
	value := stats.WeightedQuantile(vs, level/float64(requests))
	method := fmt.Sprintf("request-weighted median of the %s windows' p99", spanName(kept[0].Span))
	if few > 0 {
		method = fmt.Sprintf("request-weighted quantile %.3f of the %s windows' p99: a p99 of few requests is low", level/float64(requests), spanName(kept[0].Span))
	}
	return P99{ValueMS: new(sig(value, 9)), Method: method}
}
