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
	parts := make([]mergePart, len(s.rows))
	for i := range s.rows {
		key, err := s.target(&s.rows[i])
		if err != nil {
			return err
		}
		parts[i] = mergePart{key, i}
	}
	slices.SortFunc(parts, mergePart.compare)
	s.data.Windows = slices.Grow(s.data.Windows, len(parts))
	var rows []*windowRow
	for len(parts) > 0 {
		key := parts[0].mergeKey
		rows = rows[:0]
		for len(parts) > 0 && parts[0].mergeKey == key {
			rows, parts = append(rows, &s.rows[parts[0].row]), parts[1:]
		}
		w := mergeRows(rows)
		w.T, w.Span, w.Arm = instantOf(key.t), key.span, key.arm
		s.data.Windows = append(s.data.Windows, w)
		if covered := coveredBy(rows); covered < w.Span {
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

// mergePart is a row and the window that it goes into.
type mergePart struct {
	mergeKey
	row int
}

func (a mergePart) compare(b mergePart) int {
	return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.arm, b.arm), cmp.Compare(a.span, b.span), cmp.Compare(a.row, b.row))
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
// any requests. Of KV-cache use the most counts.
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
		mostKVCache(&sum, rows)
		return sum
	case 1:
		sum = *only
		mostKVCache(&sum, rows)
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
	var ok bool
	if sum.CostMean, ok = weightedMean(rows, release.HasCostMean, func(w *release.Window) (float64, int64) { return w.CostMean, w.Total }); ok {
		sum.Known |= release.HasCostMean
	}
	mergeStreams(&sum, rows)
	mergeStatuses(&sum, rows)
	mostKVCache(&sum, rows)
	return sum
}

// mergeStreams adds up what is counted of streams. Each share is a pair of its
// own, and adds up over the parts that know it. The mean time between tokens is
// weighted by streams.
func mergeStreams(sum *release.Window, rows []*windowRow) {
	for _, row := range rows {
		w := &row.w
		if w.Total == 0 {
			continue
		}
		if w.Has(release.HasTTFTSlow) {
			sum.TTFTOf, sum.TTFTSlow = sum.TTFTOf+w.TTFTOf, sum.TTFTSlow+w.TTFTSlow
			sum.Known |= release.HasTTFTSlow
		}
		if w.Has(release.HasAborts) {
			sum.Streams, sum.Aborted = sum.Streams+w.Streams, sum.Aborted+w.Aborted
			sum.Known |= release.HasAborts
		}
	}
	mean, ok := weightedMean(rows, release.HasITL, func(w *release.Window) (float64, int64) { return w.ITLMS, w.ITLOf })
	if !ok {
		return
	}
	sum.ITLMS, sum.Known = mean, sum.Known|release.HasITL
	for _, row := range rows {
		if row.w.Total > 0 && row.w.Has(release.HasITL) {
			sum.ITLOf += row.w.ITLOf
		}
	}
}

// mergeStatuses adds up the counts of statuses. Errors and server errors are
// of the same requests: where some part knows errors, only such parts count,
// and server errors are known if each of them knows those.
func mergeStatuses(sum *release.Window, rows []*windowRow) {
	need, known := release.HasServerErrors, release.HasErrors|release.HasServerErrors
	some := false
	for _, row := range rows {
		if row.w.Total > 0 && row.w.Has(release.HasErrors) {
			need = release.HasErrors
		}
	}
	for _, row := range rows {
		w := &row.w
		if w.Total > 0 && w.Has(need) {
			sum.StatusOf, sum.Errors, sum.ServerErrors = sum.StatusOf+w.StatusOf, sum.Errors+w.Errors, sum.ServerErrors+w.ServerErrors
			known, some = known&w.Known, true
		}
	}
	if !some {
		return
	}
	if sum.Known |= known; known&release.HasServerErrors == 0 {
		sum.ServerErrors = 0
	}
}

// mostKVCache is the most that any part had in use, whether it served or not.
func mostKVCache(sum *release.Window, rows []*windowRow) {
	for _, row := range rows {
		if row.w.Has(release.HasKVCache) {
			sum.KVCache, sum.Known = max(sum.KVCache, row.w.KVCache), sum.Known|release.HasKVCache
		}
	}
}

// weightedMean is the mean of a figure over the parts that know it, weighted by what
// it is a mean of, exact until the last rounding.
func weightedMean(rows []*windowRow, has release.Figures, read func(*release.Window) (mean float64, of int64)) (float64, bool) {
	sum, weights := new(big.Rat), new(big.Rat)
	for _, row := range rows {
		value, of := read(&row.w)
		mean := new(big.Rat).SetFloat64(value)
		if !row.w.Has(has) || row.w.Total == 0 || of == 0 || mean == nil {
			continue
		}
		n := new(big.Rat).SetInt64(of)
		sum.Add(sum, mean.Mul(mean, n))
		weights.Add(weights, n)
	}
	if weights.Sign() == 0 {
		return 0, false
	}
	f, _ := sum.Quo(sum, weights).Float64()
	return f, true
}

// coveredBy is the time that at least one of the rows covers.
func coveredBy(rows []*windowRow) time.Duration {
	if len(rows) == 1 {
		return rows[0].w.Span
	}
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
