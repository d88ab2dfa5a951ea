package trace

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// merge turns the rows into windows of the span and arms asked for.
func (s *windowSet) merge() error {
	parts := make(map[mergeKey][]*windowRow)
	for i := range s.rows {
		row := &s.rows[i]
		key, err := s.target(row)
		if err != nil {
			return err
		}
		parts[key] = append(parts[key], row)
	}
	keys := make([]mergeKey, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b mergeKey) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.arm, b.arm), cmp.Compare(a.span, b.span))
	})
	for _, key := range keys {
		w := mergeRows(parts[key])
		w.T, w.Span, w.Arm = instantOf(key.t), key.span, key.arm
		s.data.Windows = append(s.data.Windows, w)
		if covered := coveredBy(parts[key]); covered < w.Span {
			s.data.Partial = append(s.data.Partial, Partial{T: w.T, Arm: w.Arm, Covered: covered})
		}
	}
	relateMeans(s.data.Windows)
	return nil
}

type mergeKey struct {
	t    int64
	span time.Duration
	arm  release.Arm
}

// target is the window that a row goes into.
func (s *windowSet) target(row *windowRow) (mergeKey, error) {
	key := mergeKey{row.w.T.UnixNano(), row.w.Span, row.w.Arm}
	if s.opt.MergeArms {
		key.arm = release.All
	}
	span := s.opt.Span
	if span == 0 {
		return key, nil
	}
	t := floorTo(key.t, int64(span))
	if key.t+int64(row.w.Span) > t+int64(span) {
		return key, &InputError{File: row.file, Line: row.line,
			Msg:    fmt.Sprintf("the window at %s, %s long, does not fit into windows of %s", row.w.T.Format(time.RFC3339Nano), FormatSpan(row.w.Span), FormatSpan(span)),
			Advice: "ask for a --span that is a whole number of the input's windows, or for none"}
	}
	key.t, key.span = t, span
	return key, nil
}

// mergeRows adds windows up. A figure that is a count of all requests is known
// only if every part knows it; judged and solved are a pair of their own, and
// so add up over the parts that know them. The mean cost is weighted by
// requests. A percentile cannot be merged: it stays only where one part has
// any requests.
func mergeRows(rows []*windowRow) release.Window {
	if len(rows) == 1 {
		return rows[0].w
	}
	const counts = release.HasViolations | release.HasTransfers | release.HasSlow
	sum := release.Window{Known: counts}
	var only *release.Window
	serving := 0
	for _, row := range rows {
		w := &row.w
		if w.Total > 0 {
			serving++
			only = w
			sum.Known &= w.Known | ^counts
		}
		sum.Total += w.Total
		sum.Violations += w.Violations
		sum.Transfers += w.Transfers
		sum.Slow += w.Slow
		if w.Has(release.HasSolved) {
			sum.Judged += w.Judged
			sum.Solved += w.Solved
			sum.Known |= release.HasSolved
		}
	}
	switch serving {
	case 0:
		sum.Known = 0
		return sum
	case 1:
		sum = *only
		return sum
	}
	if !sum.Has(release.HasViolations) {
		sum.Violations = 0
	}
	if !sum.Has(release.HasTransfers) {
		sum.Transfers = 0
	}
	if !sum.Has(release.HasSlow) {
		sum.Slow = 0
	}
	if mean, ok := meanCost(rows); ok {
		sum.CostMean = mean
		sum.Known |= release.HasCostMean
	}
	return sum
}

// meanCost is the mean cost of a request over the parts that know it, weighted
// by their requests, exact until the last rounding.
func meanCost(rows []*windowRow) (float64, bool) {
	cost, requests := new(big.Rat), new(big.Rat)
	for _, row := range rows {
		w := &row.w
		mean := new(big.Rat).SetFloat64(w.CostMean)
		if !w.Has(release.HasCostMean) || w.Total == 0 || mean == nil {
			continue
		}
		n := new(big.Rat).SetInt64(w.Total)
		cost.Add(cost, mean.Mul(mean, n))
		requests.Add(requests, n)
	}
	if requests.Sign() == 0 {
		return 0, false
	}
	f, _ := cost.Quo(cost, requests).Float64()
	return f, true
}

// coveredBy is the time that at least one of the rows covers.
func coveredBy(rows []*windowRow) time.Duration {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b *windowRow) int { return a.w.T.Compare(b.w.T) })
	var covered time.Duration
	var end time.Time
	for _, row := range sorted {
		from := row.w.T
		if from.Before(end) {
			from = end
		}
		if d := row.w.End().Sub(from); d > 0 {
			covered += d
			end = row.w.End()
		}
	}
	return covered
}
