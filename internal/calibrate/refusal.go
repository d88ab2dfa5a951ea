package calibrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// The codes of too little data.
const (
	tooShortCode   = "too-short"
	fewWindowsCode = "few-windows"
)

// Reason is one thing that makes a baseline unusable, and what to do.
type Reason struct {
	Code string
	Text string
	Hint string
}

// Refusal is the error of a baseline from which no threshold can be learnt. It
// has every reason, not the first.
type Refusal struct {
	Reasons []Reason
}

// Error implements error: the reasons in one line.
func (r *Refusal) Error() string {
	texts := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		texts[i] = reason.Text
	}
	return "not a usable baseline: " + strings.Join(texts, "; ")
}

func (r *Refusal) add(code, text, hint string) {
	r.Reasons = append(r.Reasons, Reason{Code: code, Text: text, Hint: hint})
}

// orNil returns the refusal as an error if it has a reason.
func (r *Refusal) orNil() error {
	if len(r.Reasons) == 0 {
		return nil
	}
	return r
}

// RefuseCountless is the refusal of an input whose rows have times and nothing
// to count, which its reader found: text and hint are the reader's. A span too
// short for a baseline is said as well.
func RefuseCountless(text, hint string, span time.Duration) *Refusal {
	r := &Refusal{}
	r.add("no-counts", text, hint)
	tooShort(span, r)
	return r
}

// refuse collects what is missing. Too little of it is only a warning under
// AllowShort; nothing of it never is.
func (r *Report) refuse(own []release.Window, o *Options, refusal *Refusal) {
	short := &Refusal{}
	extent, _ := span(own, o)
	seen := minutes(r.Span.WatchedMin)
	switch {
	case extent < MinSpan:
		tooShort(r.Span.To.Sub(r.Span.From), short)
	case seen < MinSpan*9/10 && len(refusal.Reasons) == 0:
		short.add(tooShortCode, fmt.Sprintf("%s of data in %s, at least 24 hours are needed", roughly(seen), roughly(extent)), "record for a day at least, better a week, without gaps and exclusions; or --allow-short to see what little there is")
	}
	blocked := len(refusal.Reasons) > 0 // windows that do not fit were not counted
	if !blocked && r.Totals.Judged > 0 && r.Windows.Whole < MinWindows {
		short.add(fewWindowsCode, fmt.Sprintf("%s with a solve rate, at least %d are needed", count(r.Windows.Whole, "whole window of "+release.Minutes(o.Span)), MinWindows), "record for longer, or --allow-short to see what little there is")
	}
	switch {
	case r.Totals.Total == 0:
		refusal.add("no-counts", "no window has a request", "map the column that counts requests: --map total=COLUMN")
	case r.Totals.Judged == 0 && (saysOutcome(own) || len(short.Reasons) > 0 || blocked):
		refusal.add("no-outcome", fmt.Sprintf("none of %d requests says whether it was solved", r.Totals.Total), "map the outcome: --map solved=COLUMN (true or false in records, a count in windows)")
	}
	for _, reason := range short.Reasons {
		if o.AllowShort {
			r.warn(reason.Code, reason.Text, "do not write these figures into a configuration that guards anything")
		} else {
			refusal.Reasons = append(refusal.Reasons, reason)
		}
	}
}

func tooShort(d time.Duration, refusal *Refusal) {
	if d < MinSpan {
		refusal.add(tooShortCode, fmt.Sprintf("%s of data, at least 24 hours are needed", roughly(d)), "record for a day at least, better a week, or --allow-short to see what little there is")
	}
}

// saysOutcome reports whether the windows have a place for how many were
// solved: input that has none is a record of traffic alone.
func saysOutcome(own []release.Window) bool {
	return slices.ContainsFunc(own, func(w release.Window) bool { return w.Has(release.HasSolved) })
}
