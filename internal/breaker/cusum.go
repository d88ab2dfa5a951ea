package breaker

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// cusum is a cumulative sum of log likelihood ratios over the canary's windows
// (Page 1954): max(0, S + solved x ln(p1/p0) + unsolved x ln(q1/q0)) with p1 the
// baseline less the drop to detect. While another judge is at work it is off.
type cusum struct {
	cusumSum
	on      bool
	next    int64   // sequence number of the next window to fold
	weights weights // of the limits last folded under
}

// cusumSum is the part of it that is written.
type cusumSum struct {
	Sum    float64 `json:"sum"`
	Judged int64   `json:"judged"` // since the sum was last 0
	Solved int64   `json:"solved"`
	First  int64   `json:"first"` // start of the first window since then, unix nanoseconds
	Last   int64   `json:"last"`  // start of the last window that was folded
}

// weights are what one request adds. They cost two logarithms, so they are
// formed once for the limits that they belong to.
type weights struct {
	baseline, drop   release.Ratio
	solved, unsolved float64
}

// turn switches the sum on or off as the limits say. Switched on it begins at
// 0 with the window of that sequence number.
func (c *cusum) turn(l *Limits, next int64) {
	on := l.Judge == CusumJudge && l.Rules[release.SolveRate].Mode != release.Off
	if on == c.on {
		return
	}
	*c = cusum{on: on, next: next}
}

// restart begins anew at 0 with the window of that sequence number.
func (c *cusum) restart(next int64) { c.cusumSum, c.next = cusumSum{}, next }

// nearly is how near to 0 and 1 a rate may come: of 0 and 1 there is no
// logarithm.
const nearly = 1e-9

func (c *cusum) weigh(l *Limits) {
	if c.weights.baseline == l.SolveBaseline && c.weights.drop == l.Cusum.Drop {
		return
	}
	p0 := min(l.SolveBaseline.Float64(), 1-nearly)
	p1 := max(l.SolveBaseline.Float64()-l.Cusum.Drop.Float64(), nearly)
	c.weights = weights{baseline: l.SolveBaseline, drop: l.Cusum.Drop}
	c.weights.solved, c.weights.unsolved = stats.CusumWeights(p0, p1)
}

// add folds a window that began at t.
func (c *cusum) add(t, judged, solved int64) {
	c.Last = t
	good, bad := float64(solved)*c.weights.solved, float64(judged-solved)*c.weights.unsolved
	c.Sum += float64(good) + float64(bad)
	if c.Sum <= 0 {
		c.cusumSum = cusumSum{Last: t}
		return
	}
	if c.Judged == 0 {
		c.First = t
	}
	c.Judged += judged
	c.Solved += solved
}

// fold takes the windows whose labels are in by now into the cumulative sum and
// reports whether it is, or was in between, above its limit. With stop it ends
// there: the windows after a trip are none of its evidence.
func (s *spans) fold(l *Limits, now int64, stop bool) bool {
	c := &s.cusum
	c.weigh(l)
	over := false
	for !(over && stop) && c.next < s.hi && s.at(c.next).T <= now-int64(l.LabelLag) {
		x, next := s.at(c.next), &s.at(c.next+1).before
		c.add(x.T, next.judged-x.before.judged, next.solved-x.before.solved)
		c.next++
		over = over || c.Sum > l.Cusum.Limit
	}
	return over || c.Sum > l.Cusum.Limit
}

// finding holds the sum against its limit, with the counts since it was last 0.
func (c *cusum) finding(l *Limits, window time.Duration) release.Finding {
	return release.Finding{
		Signal: release.SolveRate, Form: release.CumulativeSum, Value: c.Sum, Limit: l.Cusum.Limit,
		Count: c.Solved, Of: c.Judged, Span: time.Duration(c.Last-c.First) + window,
	}
}
