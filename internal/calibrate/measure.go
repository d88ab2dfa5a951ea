package calibrate

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Measure learns what a baseline says. Windows of any span that divides the
// calibration window will do, of one arm or of both, in any order. The error
// is a [*Refusal] with every reason why no threshold can be learnt.
func Measure(windows []release.Window, o Options) (*Report, error) {
	o = o.withDefaults()
	refusal := &Refusal{}
	if len(windows) == 0 {
		refusal.add("empty", "there are no windows", "is the right file named?")
		return nil, refusal
	}
	arm := chooseArm(windows, refusal)
	if arm == "" {
		all, _ := span(windows, o)
		tooShort(all, refusal)
		return nil, refusal
	}
	own, leftOut := split(windows, arm)
	r := newReport(arm, own, o)
	g := gather(own, o, refusal)
	whole := sampleOf(g.whole(&r.Windows))
	r.Span.CoveredMin = g.covered.Minutes()
	r.refuse(own, o, refusal)
	if err := refusal.orNil(); err != nil {
		return nil, err
	}
	if leftOut > 0 {
		r.warn("other-arms", fmt.Sprintf("%d requests of other arms than %s are left out", leftOut, arm), "")
	}
	r.centre(whole)
	r.slow(whole, o)
	r.figures(own, o)
	r.RequestsPerMin = perMinute(g.traffic(windows, arm))
	r.remarks()
	return r, nil
}

// newReport adds up the totals.
func newReport(arm release.Arm, own []release.Window, o Options) *Report {
	r := &Report{
		Schema: 1, Arm: string(arm), Dispersion: map[string]Dispersion{}, Warnings: []Warning{},
		Windows: Windows{Span: o.SpanName, Partial: []Partial{}, Gaps: []Gap{}},
	}
	_, r.Span = span(own, o)
	for i := range own {
		w := &own[i]
		r.Totals.Total += w.Total
		if w.Has(release.HasSolved) {
			r.Totals.Judged += w.Judged
			r.Totals.Solved += w.Solved
		}
		if w.Has(release.HasViolations) {
			r.Totals.Violations = plus(r.Totals.Violations, w.Violations)
		}
		if w.Has(release.HasTransfers) {
			r.Totals.Transfers = plus(r.Totals.Transfers, w.Transfers)
		}
	}
	return r
}

func plus(sum *int64, n int64) *int64 {
	if sum == nil {
		return new(n)
	}
	*sum += n
	return sum
}

// span returns the time that the windows span, and how it is shown: single
// requests have their own first and last times.
func span(windows []release.Window, o Options) (time.Duration, Span) {
	from, to := windows[0].T, windows[0].End()
	for i := range windows {
		if w := &windows[i]; w.T.Before(from) {
			from = w.T
		}
		if end := windows[i].End(); end.After(to) {
			to = end
		}
	}
	extent := to.Sub(from)
	if o.Records && !o.First.IsZero() && !o.Last.IsZero() {
		from, to = o.First, o.Last
	}
	return extent, Span{From: from.UTC(), To: to.UTC(), Hours: round(to.Sub(from).Hours(), 6)}
}

// sample is the whole windows' outcomes, and the mean and sample standard
// deviation of their rates: NaN where they do not exist.
type sample struct {
	outcomes []stats.Proportion
	rates    []float64
	pool     stats.Proportion
	mean, sd float64
}

func sampleOf(outcomes []stats.Proportion) *sample {
	s := &sample{outcomes: outcomes, pool: stats.Pool(outcomes)}
	for _, p := range outcomes {
		s.rates = append(s.rates, p.Rate())
	}
	s.mean, s.sd = stats.MeanSD(s.rates)
	return s
}

// medianJudged returns how many requests were judged in the middle window.
func (s *sample) medianJudged() int64 {
	ns := make([]float64, len(s.outcomes))
	for i, p := range s.outcomes {
		ns[i] = float64(p.N)
	}
	return int64(stats.Median(ns))
}

// centre fills in the middle and the spread of the whole windows' rates.
func (r *Report) centre(s *sample) {
	r.Centre = Centre{Mean: figure(s.mean, 6), P0: figure(s.pool.Rate(), 6), Median: figure(stats.Median(s.rates), 6)}
	d := stats.Disperse(s.outcomes)
	r.Dispersion[r.Windows.Span] = Dispersion{K: len(s.rates), Mean: r.Centre.Mean, SD: figure(s.sd, 6), Q: figure(d.Q, 6), Phi: figure(d.Phi, 6)}
	switch below, _ := d.PValues(); {
	case s.sd == 0:
		r.warn("zero-variance", fmt.Sprintf("all %d windows have the same solve rate: sigma is 0 and the tolerable drop alone is the threshold", len(s.rates)), "a service under real traffic varies; is the outcome really measured?")
	case below < 0.01:
		r.warn("underdispersed", fmt.Sprintf("the windows vary less than chance would (phi %.2f): sigma is too small to be true", d.Phi), "are outcomes copied, averaged or filled in on the way?")
	}
}

func perMinute(requests int64, d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	return new(sig(float64(requests)/d.Minutes(), 6))
}
