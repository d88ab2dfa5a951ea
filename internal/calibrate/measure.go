package calibrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Measure learns what a baseline says. Windows of any span that divides the
// calibration window will do, of one arm or of both, in any order. The error
// is a [*Refusal] with every reason why no threshold can be learnt.
//
// An input that counts requests and says nothing of outcomes has a report of
// its traffic and of the fast layer's figures; its slow layer is unknown.
func Measure(windows []release.Window, o Options) (*Report, error) {
	o = o.withDefaults()
	refusal := &Refusal{}
	if len(windows) == 0 {
		refusal.add("empty", "there are no windows", "is the right file named?")
		return nil, refusal
	}
	arm := chooseArm(windows, refusal)
	if arm == "" {
		all, _ := span(windows, &o)
		tooShort(all, refusal)
		return nil, refusal
	}
	requests := o.Requests[arm]
	slowMS := countSlow(&o, &requests)
	own, leftOut := split(windows, arm)
	m := &measurement{r: newReport(arm, own, &o), o: &o, all: windows, own: own, requests: requests, slowMS: slowMS, refusal: refusal}
	if err := m.gather(); err != nil {
		return nil, err
	}
	if leftOut > 0 {
		m.r.warn("other-arms", fmt.Sprintf("%d requests of other arms than %s are left out", leftOut, arm), "")
	}
	m.learn(arm)
	if err := m.strict(); err != nil {
		return nil, err
	}
	return m.r, nil
}

// measurement is a report in the making.
type measurement struct {
	r        *Report
	o        *Options
	all      []release.Window // of both arms
	own      []release.Window // of the baseline, oldest first
	kept     []release.Window // of them, what is not left out
	left     []Gap            // what is left out
	requests Requests         // the arm's single requests
	slowMS   float64          // latency above which a window's Slow requests are; 0: not known
	grid     *grid
	seen     *series // windows with judged requests, those covered in part included
	calib    *series // whole calibration windows
	live     *series // whole live windows, or the calibration windows where there are none
	spread   map[time.Duration]spread
	flagged  []bool                  // calibration windows that are part of an incident
	more     [release.Judged][]int   // how often the replay raised a signal's limit, by step
	priced   float64                 // share of the requests that carry a cost
	perTick  [release.Judged]float64 // each signal's false trips a live window
	refusal  *Refusal
}

// gather counts the calibration windows, twice where incidents are left out.
func (m *measurement) gather() error {
	m.left = m.o.Exclude
	if lag := m.o.LabelLag; lag > 0 {
		end := m.own[len(m.own)-1].End()
		m.left = append(m.left[:len(m.left):len(m.left)], Gap{From: end.Add(-lag), To: end, Minutes: lag.Minutes()})
	}
	m.count()
	m.r.refuse(m.own, m.o, m.refusal)
	if err := m.refusal.orNil(); err != nil {
		return err
	}
	if m.outcomes() {
		m.incidents()
	}
	if m.o.AutoExclude && len(m.r.Incidents) > 0 {
		if err := m.excludeIncidents(); err != nil {
			return err
		}
	}
	m.r.Excluded = append(m.r.Excluded, m.left...)
	return nil
}

// count fills the grid from what is kept.
func (m *measurement) count() {
	m.kept = without(m.own, m.left)
	m.grid = gather(m.kept, m.o.Span, 0, m.left, m.o, m.refusal)
	m.r.Windows = Windows{Span: m.o.SpanName, Partial: []Partial{}, Gaps: []Gap{}}
	m.calib, m.seen = m.grid.whole(&m.r.Windows), m.grid.seen()
	m.r.Span.CoveredMin, m.r.Span.WatchedMin = m.grid.covered.Minutes(), 0
	for _, s := range m.grid.watched {
		m.r.Span.WatchedMin += s.To.Sub(s.From).Minutes()
	}
	m.r.Meta.Coverage = round(m.r.Span.WatchedMin/m.own[len(m.own)-1].End().Sub(m.own[0].T).Minutes(), 6)
	m.spread = map[time.Duration]spread{}
}

// outcomes reports whether the windows say how many requests were solved.
func (m *measurement) outcomes() bool { return len(m.calib.ps) > 0 }

// learn fills in the report.
func (m *measurement) learn(arm release.Arm) {
	m.r.RequestsPerMin = perMinute(m.grid.traffic(m.all, arm))
	m.chooseLive()
	if m.outcomes() {
		m.centre()
		m.chart()
	}
	m.structure()
	m.traffic()
	m.budget()
	m.figures()
	m.enough()
	m.slow()
	m.steps()
	m.remarks()
	m.judge()
	m.r.raise = m.raise
	m.r.base, m.r.top = m.o.Plan, m.o.Top
	m.r.cusum = m.o.Plan != nil && m.o.Plan.Steps[0].Limits.Judge == breaker.CusumJudge
	m.r.clean = without(m.kept, m.flaggedSpans())
	m.r.replay = ReplayOptions{Tick: m.o.Tick, Zone: m.o.Zone, TolerableDropPP: m.o.TolerableDropPP, ArmShare: m.armShare()}
	if m.r.Cost.CV != nil {
		m.r.replay.CostCV = m.costCV()
	}
}

// armShare is which share of the whole traffic the baseline's arm is.
func (m *measurement) armShare() float64 {
	var own, all int64
	for i := range m.all {
		all += m.all[i].Total
	}
	for i := range m.own {
		own += m.own[i].Total
	}
	if all == 0 {
		return 1
	}
	return float64(own) / float64(all)
}

// newReport adds up the totals.
func newReport(arm release.Arm, own []release.Window, o *Options) *Report {
	r := &Report{
		Schema: 1, Arm: string(arm), Dispersion: map[string]Dispersion{}, Warnings: []Warning{}, Chart: []Point{},
		Incidents: []Incident{}, Excluded: []Gap{}, Steps: []Step{},
		Time: TimeStructure{Hours: []Hour{}, Weekdays: []Day{}, Weeks: []Week{}},
		Meta: Meta{Version: o.Version, Seed: o.Seed, Zone: o.Zone.String(), InputSHA256: digest(own), Judge: string(o.Judge), LiveMin: o.Live.Minutes(), TickMin: o.Tick.Minutes()},
		P99:  P99{Exceed: []Exceed{}},
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

// digest names what was measured: the same windows, the same digest, whatever
// files they stood in, and whatever else they say of streaming.
func digest(windows []release.Window) string {
	h := sha256.New()
	for i := range windows {
		w := &windows[i]
		fmt.Fprintf(h, "%d %d %s %d %d %d %d %d %d %x %x %x %d\n", w.T.UnixNano(), w.Span, w.Arm, w.Known&^release.StreamingFigures, w.Total, w.Judged, w.Solved,
			w.Violations, w.Transfers, math.Float64bits(w.Cost), math.Float64bits(w.CostMean), math.Float64bits(w.P99MS), w.Slow)
		if w.Has(release.HasTTFT) {
			fmt.Fprintf(h, "ttft %d %x\n", w.TTFTOf, math.Float64bits(w.TTFTP99MS))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
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
func span(windows []release.Window, o *Options) (time.Duration, Span) {
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

func perMinute(requests int64, d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	return new(sig(float64(requests)/d.Minutes(), 6))
}

// chooseLive finds the windows that noise at the live window is measured on.
// Where the input is too coarse for them, the calibration windows stand in.
func (m *measurement) chooseLive() {
	m.live = m.calib
	if !m.outcomes() {
		return
	}
	for _, w := range []struct {
		name string
		span time.Duration
	}{{m.o.SpanName, m.o.Span}, {spanName(DefaultSpan), DefaultSpan}, {spanName(publishedLive), publishedLive}, {m.nameOf(m.o.Live), m.o.Live}} {
		if _, done := m.r.Dispersion[w.name]; done {
			continue
		}
		if s := m.seriesOf(w.span, 0); s != nil && len(s.ps) > 0 {
			m.disperse(w.name, s)
			if w.span == m.o.Live {
				m.live = s
			}
		}
	}
	if m.live.span == m.o.Live {
		m.overOffsets(m.o.Live)
	}
}

// offsets is at most how many ways of cutting the baseline are looked at.
const offsets = 25

// overOffsets takes the noise at the live window over all the ways to cut the
// baseline into such windows: where they begin is chance, and the breaker's
// begin at every tick. Windows that an incident touches have no weight in it
// where the middle says what is normal (a one-step reweighted estimate,
// Rousseeuw and Leroy 1987): an incident of ten minutes spoils two live windows.
// They stay in everything that the report says of the baseline.
func (m *measurement) overOffsets(span time.Duration) {
	sp := m.spread[span]
	if tau, ok := m.tauAt(span, sp.method); ok {
		sp.tau = tau
	}
	m.spread[span] = sp
	name := m.nameOf(span)
	d := m.r.Dispersion[name]
	d.TauUsed = figure(sp.tau, 8)
	m.r.Dispersion[name] = d
}

// nameOf is what the report calls a span.
func (m *measurement) nameOf(span time.Duration) string {
	if span == m.o.Span {
		return m.o.SpanName
	}
	return spanName(span)
}

// tauAt is the noise between windows of a span, over the ways to cut them.
func (m *measurement) tauAt(span time.Duration, method string) (tau float64, ok bool) {
	sum, n := 0.0, 0.0
	step := m.kept[0].Span * max(1, span/offsets/m.kept[0].Span)
	for offset := time.Duration(0); offset < span; offset += step {
		s := m.seriesOf(span, offset)
		if s == nil {
			continue
		}
		if method == "robust" {
			s = s.without(m.flaggedSpans())
		}
		if len(s.ps) > 1 {
			tau := tauOf(s, method)
			sum += float64(tau * tau)
			n++
		}
	}
	return math.Sqrt(sum / math.Max(n, 1)), n > 0
}

// noiseOver is the noise between windows that last at least d, whole input
// windows each; that of the live windows where the baseline has too few so
// long.
func (m *measurement) noiseOver(d time.Duration) float64 {
	live := m.spread[m.live.span]
	in := m.kept[0].Span
	span := max((d+in-1)/in*in, in)
	s := m.seriesOf(span, 0)
	if s == nil || len(s.ps) < MinWindows {
		return live.tau
	}
	sp := spreadOf(s, 0)
	if tau, ok := m.tauAt(span, sp.method); ok {
		return tau
	}
	return live.tau
}

// seriesOf counts windows of another span, nil if the input is too coarse.
func (m *measurement) seriesOf(span, offset time.Duration) *series {
	if span == m.o.Span && offset == 0 {
		return m.calib
	}
	if len(m.kept) == 0 || m.kept[0].Span <= 0 || span%m.kept[0].Span != 0 {
		return nil
	}
	refusal := &Refusal{}
	g := gather(m.kept, span, offset, m.left, m.o, refusal)
	if refusal.orNil() != nil {
		return nil
	}
	return g.whole(&Windows{})
}

// centre fills in the middle of the calibration windows' rates.
func (m *measurement) centre() {
	mean, sd := stats.MeanSD(m.calib.rates())
	pool := stats.Pool(m.calib.ps)
	m.r.Centre = Centre{Mean: figure(mean, 6), P0: figure(pool.Rate(), 12), Median: figure(stats.Median(m.calib.rates()), 6)}
	below, _ := stats.Disperse(m.calib.ps).PValues()
	d := m.r.Dispersion[m.o.SpanName]
	switch {
	case sd == 0:
		m.r.warn("zero-variance", fmt.Sprintf("all %d windows have the same solve rate: sigma is 0 and the tolerable drop alone is the threshold", len(m.calib.ps)), "a service under real traffic varies; is the outcome really measured?")
	case below < 0.01 && d.Phi != nil:
		m.r.warn("underdispersed", fmt.Sprintf("the windows vary less than chance would (phi %.2f): sigma is too small to be true", *d.Phi), "are outcomes copied, averaged or filled in on the way?")
	}
}
