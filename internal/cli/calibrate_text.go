package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// calibrateText prints a report on one screen: numbers with units, then what
// to think of them, then what goes into the configuration.
type calibrateText struct {
	w   io.Writer
	err error
}

func printCalibration(w io.Writer, r *calibrate.Report) error {
	t := &calibrateText{w: w}
	t.line("baseline", "%s to %s, %s hours: %s requests, arm %s, %s a minute", r.Span.From.Format(time.RFC3339), r.Span.To.Format(time.RFC3339),
		short(r.Span.Hours, 3), grouped(r.Totals.Total), r.Arm, optional(r.RequestsPerMin, 1, 4, ""))
	t.windows(&r.Windows)
	t.line("solve rate", "%s of %s judged requests solved; whole windows: pooled %s, mean %s, median %s", grouped(r.Totals.Solved), grouped(r.Totals.Judged),
		optional(r.Centre.P0, 100, 6, " %"), optional(r.Centre.Mean, 100, 6, " %"), optional(r.Centre.Median, 100, 6, " %"))
	d := r.Dispersion[r.Windows.Span]
	t.line("noise", "sigma %s a window, of which chance alone %s; phi %s (1: chance alone)", optional(r.Slow.SigmaPP, 1, 3, " pp"),
		optional(r.Slow.ChancePP, 1, 3, " pp"), optional(d.Phi, 1, 3, ""))
	t.line("", "sigma is that of the whole traffic; a canary's few requests vary more")
	t.slow(&r.Slow)
	t.rate("violations", r.Violations)
	t.rate("transfers", r.Transfers)
	t.line("p99", "%s", orMissing(r.P99.ValueMS, func(v float64) string { return short(v, 6) + " ms, " + r.P99.Method }))
	t.line("cost", "%s", orMissing(r.Cost.MeanUSD, func(v float64) string {
		return fmt.Sprintf("%s USD a request, mean of %s", short(v, 4), grouped(r.Cost.Requests))
	}))
	t.warnings(r.Warnings)
	t.settings(r.Settings())
	return t.err
}

// line prints a labelled line.
func (t *calibrateText) line(label, format string, args ...any) {
	t.printf("%-11s %s\n", label, fmt.Sprintf(format, args...))
}

func (t *calibrateText) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// windows names the first partial windows; JSON has all of them.
func (t *calibrateText) windows(w *calibrate.Windows) {
	t.line("windows", "%d whole of %s; %d partial, %d empty, left out of sigma", w.Whole, w.Span, len(w.Partial), w.Empty)
	const shown = 3
	for _, p := range w.Partial[:min(shown, len(w.Partial))] {
		t.line("", "partial: %s, %s of %s covered, %s requests", p.T.Format(time.RFC3339), short(p.CoveredMin, 3)+" min", w.Span, grouped(p.Total))
	}
	if rest := len(w.Partial) - shown; rest > 0 {
		t.line("", "and %d more", rest)
	}
}

func (t *calibrateText) slow(s *calibrate.Slow) {
	t.line("threshold", "a drop of %s pp from %s %%: the larger of tolerable drop %s pp and three sigma %s", short(s.ThresholdPP, 4),
		short(100*s.SolveBaseline, 6), short(s.TolerableDropPP, 4), optional(s.ThreeSigmaPP, 1, 4, " pp"))
	if s.MinSamples != nil {
		t.line("samples", "from %s judged requests on, chance alone trips with at most %s %% a look", grouped(*s.MinSamples), short(100*s.Alpha, 3))
	}
}

func (t *calibrateText) rate(label string, r calibrate.Rate) {
	t.line(label, "%s", orMissing(r.Rate, func(v float64) string {
		if r.Upper95 != nil {
			return fmt.Sprintf("none in %s requests: at most %s %%", grouped(r.Requests), short(100**r.Upper95, 3))
		}
		return fmt.Sprintf("%s %% of requests (%s of %s)", short(100*v, 4), grouped(*r.Count), grouped(r.Requests))
	}))
}

func (t *calibrateText) warnings(ws []calibrate.Warning) {
	for _, w := range ws {
		t.printf("\nwarning: %s [%s]\n", w.Text, w.Code)
		if w.Hint != "" {
			t.printf("  hint: %s\n", w.Hint)
		}
	}
}

// settings prints what --write would set, with the paths of canary.yaml.
func (t *calibrateText) settings(all []calibrate.Setting) {
	t.printf("\nfor canary.yaml (--write puts it in):\n")
	for _, s := range all {
		at := "canary"
		if s.InMetrics {
			at = "metrics"
		}
		t.printf("  %s.%s: %s\n", at, strings.Join(s.Key, "."), s.Value)
	}
}

// optional prints a figure times factor with so many significant digits, or
// that there is none.
func optional(p *float64, factor float64, digits int, unit string) string {
	if p == nil {
		return "unknown"
	}
	return short(*p*factor, digits) + unit
}

func orMissing(p *float64, show func(float64) string) string {
	if p == nil {
		return "not in the input"
	}
	return show(*p)
}

// short prints so many significant digits without an exponent.
func short(f float64, digits int) string {
	g, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', digits, 64), 64)
	return strconv.FormatFloat(g, 'f', -1, 64)
}

// grouped prints a count with commas: 406,226.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
