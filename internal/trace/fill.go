package trace

import (
	"math"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Counts are the counts of one window by the names of their fields. One that is
// not there is not known.
type Counts map[string]int64

// Fill sets the figures of w that are counts, or rest on one. asked says whether
// a field was looked for: a denominator that nobody looked for is that of the
// next wider kind (ttft_of and itl_of are streams; streams, status_of and judged
// are total), and one that was looked for and is not there leaves its figures
// unknown. TTFTP99MS and ITLMS must be set, with their bits, by the caller.
//
// Counters count a request at different moments: its first token in one window,
// its end in the next. A denominator of streams or statuses is therefore at most
// total. Any other part that is larger than its whole leaves its figure unknown;
// Fill returns these fields.
func (c Counts) Fill(w *release.Window, asked func(field string) bool) (beyond []string) {
	w.Total = c[FieldTotal.String()]
	f := &filling{Counts: c, w: w, asked: asked}
	f.outcomes()
	f.streams()
	f.statuses()
	return f.beyond
}

// filling is a window while its counts are filled in.
type filling struct {
	Counts
	w      *release.Window
	asked  func(field string) bool
	beyond []string
}

// whole is what a count is a part of.
type whole struct {
	n     int64
	cut   int64 // how much more there were than requests
	known bool
}

// of is the first of several fields that was looked for, else the total.
func (f *filling) of(fields ...Field) whole {
	for _, field := range fields {
		if n, ok := f.Counts[field.String()]; ok || f.asked(field.String()) {
			return whole{min(n, f.w.Total), max(n-f.w.Total, 0), ok}
		}
	}
	return whole{f.w.Total, 0, true}
}

// set sets a count that is a part of something.
func (f *filling) set(dst *int64, field Field, has release.Figures, of whole) {
	n, ok := f.Counts[field.String()]
	switch {
	case !ok || !of.known:
	case n > of.n+of.cut:
		f.beyond = append(f.beyond, field.String())
	default:
		*dst = min(n, of.n)
		f.w.Known |= has
	}
}

func (f *filling) outcomes() {
	w, any := f.w, whole{n: math.MaxInt64, known: true}
	f.set(&w.Violations, FieldViolations, release.HasViolations, any)
	f.set(&w.Transfers, FieldTransfers, release.HasTransfers, any)
	f.set(&w.Slow, FieldSlow, release.HasSlow, whole{n: w.Total, known: true})
	judged := f.of(FieldJudged)
	if judged.cut > 0 {
		f.beyond, judged.known = append(f.beyond, FieldJudged.String()), false
	}
	if f.set(&w.Solved, FieldSolved, release.HasSolved, judged); w.Has(release.HasSolved) {
		w.Judged = judged.n
	}
}

func (f *filling) streams() {
	w := f.w
	streams := f.of(FieldStreams)
	if f.set(&w.Aborted, FieldAborted, release.HasAborts, streams); w.Has(release.HasAborts) {
		w.Streams = streams.n
	}
	first := f.of(FieldTTFTOf, FieldStreams)
	f.set(&w.TTFTSlow, FieldTTFTSlow, release.HasTTFTSlow, first)
	switch {
	case !first.known:
		w.TTFTP99MS, w.Known = 0, w.Known&^release.HasTTFT
	case w.Known&(release.HasTTFT|release.HasTTFTSlow) != 0:
		w.TTFTOf = first.n
	}
	switch paced := f.of(FieldITLOf, FieldStreams); {
	case !paced.known:
		w.ITLMS, w.Known = 0, w.Known&^release.HasITL
	case w.Has(release.HasITL):
		w.ITLOf = paced.n
	}
}

func (f *filling) statuses() {
	w, answers := f.w, f.of(FieldStatusOf)
	f.set(&w.Errors, FieldErrors, release.HasErrors, answers)
	worst := answers
	if w.Has(release.HasErrors) {
		worst = whole{n: w.Errors, known: true}
	}
	f.set(&w.ServerErrors, FieldServerErrors, release.HasServerErrors, worst)
	if w.Known&(release.HasErrors|release.HasServerErrors) != 0 {
		w.StatusOf = answers.n
	}
}

// SetMeasure sets the figure of a window that is no count, by the name of its
// field, and reports whether v can be it. Not known is no value at all: NaN and
// infinity must not come here.
func SetMeasure(w *release.Window, field string, v float64) bool {
	set := func(dst *float64, has release.Figures) bool {
		*dst, w.Known = v, w.Known|has
		return true
	}
	switch {
	case v < 0:
	case field == FieldCost.String():
		return set(&w.Cost, release.HasCost)
	case field == FieldCostMean.String():
		return set(&w.CostMean, release.HasCostMean)
	case field == FieldP99.String():
		return set(&w.P99MS, release.HasP99)
	case field == FieldTTFTP99.String():
		return set(&w.TTFTP99MS, release.HasTTFT)
	case field == FieldITL.String():
		return set(&w.ITLMS, release.HasITL)
	case field == FieldKVCache.String() && v <= 1:
		return set(&w.KVCache, release.HasKVCache)
	}
	return false
}
