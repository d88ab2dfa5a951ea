package calibrate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// What a baseline must have, and what it should have.
const (
	MinSpan     = 24 * time.Hour     // refused below, unless AllowShort
	MinWindows  = 20                 // whole windows; refused below, unless AllowShort
	GoodSpan    = 5 * 24 * time.Hour // a warning below
	DefaultSpan = 10 * time.Minute   // of a calibration window
)

// Options says how to measure. The zero value of a field is its default.
type Options struct {
	// TolerableDropPP is the drop of the solve rate, in percentage points, that
	// the business can live with: the threshold is never below it. Default 5.
	TolerableDropPP release.Ratio
	// Span is the length of a calibration window; it divides a day. Default 10 minutes.
	Span time.Duration
	// SpanName is what the report calls that span, as the user wrote it. Default
	// its minutes: "10m".
	SpanName string
	// AllowShort turns the refusals for too little data into warnings.
	AllowShort bool
	// Records says that the windows were counted from single requests: a minute
	// without any may then be a quiet one. First and Last are the times of the
	// first and the last request; the zero times stand for the windows' ends.
	Records     bool
	First, Last time.Time
	// P99MS is the exact 99th percentile over all requests, where whoever read
	// them knows it; nil falls back on the windows' own.
	P99MS *float64
}

func (o Options) withDefaults() Options {
	if o.TolerableDropPP.IsZero() {
		o.TolerableDropPP = release.NewRatio(5, 1)
	}
	if o.Span == 0 {
		o.Span = DefaultSpan
	}
	if o.SpanName == "" {
		o.SpanName = spanName(o.Span)
	}
	return o
}
