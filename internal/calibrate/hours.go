package calibrate

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	driftZ       = 3.0  // sigmas between the halves from which on the baseline drifts
	trafficDrift = 0.10 // change of a week's requests that is worth a word
)

// part is a part of the baseline: its requests, and the time in which they were
// seen.
type part struct {
	requests int64
	outcome  stats.Proportion
	watched  time.Duration
}

// take adds a window; the outcomes of one in an incident are no part of the
// time's usual course.
func (p *part) take(w *release.Window, incidents []Gap) {
	p.requests += w.Total
	if w.Has(release.HasSolved) && !overlaps(incidents, w.T, w.End()) {
		p.outcome.X += w.Solved
		p.outcome.N += w.Judged
	}
}

func (p *part) rate() *float64 {
	if p.outcome.N == 0 {
		return nil
	}
	return figure(p.outcome.Rate(), 6)
}

func (p *part) perMin() *float64 { return perMinute(p.requests, p.watched) }

// structure fills in hours, weekdays, weeks and halves.
func (m *measurement) structure() {
	hours, days := m.byClock()
	m.hours(hours)
	for i := range 7 {
		day := time.Weekday((i + 1) % 7)
		if d := &days[day]; d.watched > 0 {
			m.r.Time.Weekdays = append(m.r.Time.Weekdays, Day{Day: strings.ToLower(day.String()[:3]), Judged: d.outcome.N, Rate: d.rate(), RequestsPerMin: d.perMin()})
		}
	}
	m.weeks()
	m.halves()
}

// byClock parts the baseline by hour of the day and by day of the week, both of
// the zone that labels them.
func (m *measurement) byClock() (hours [24]part, days [7]part) {
	incidents := m.flaggedSpans()
	for i := range m.kept {
		w := &m.kept[i]
		at := w.T.In(m.o.Zone)
		hours[at.Hour()].take(w, incidents)
		days[at.Weekday()].take(w, incidents)
	}
	for _, s := range m.grid.watched {
		for from := s.From; from.Before(s.To); {
			to := from.Truncate(15 * time.Minute).Add(15 * time.Minute) // zones are whole quarters off
			if s.To.Before(to) {
				to = s.To
			}
			at := from.In(m.o.Zone)
			hours[at.Hour()].watched += to.Sub(from)
			days[at.Weekday()].watched += to.Sub(from)
			from = to
		}
	}
	return hours, days
}

// hours fills in the day's course, and whether it is more than noise.
func (m *measurement) hours(hours [24]part) {
	sp, judged := m.spread[m.live.span]
	low, high, q, df := math.Inf(1), math.Inf(-1), 0.0, -1
	for h := range hours {
		p := &hours[h]
		row := Hour{Hour: h, Judged: p.outcome.N, Rate: p.rate(), RequestsPerMin: p.perMin()}
		if judged && p.outcome.N > 0 {
			variance := m.variance(&sp, p)
			rate := p.outcome.Rate()
			row.SE = figure(math.Sqrt(variance), 6)
			low, high = math.Min(low, rate), math.Max(high, rate)
			if d := rate - sp.p0; variance > 0 {
				q += float64(d*d) / variance
				df++
			}
		}
		m.r.Time.Hours = append(m.r.Time.Hours, row)
	}
	if df > 0 {
		m.r.Time.Swing = figure(high-low, 6)
		m.r.Time.SwingP = figureSig(distuv.ChiSquared{K: float64(df)}.Survival(q), 3)
	}
}

// variance of a part's rate: chance, and the noise averaged over as many live
// windows as the part has.
func (m *measurement) variance(sp *spread, p *part) float64 {
	blocks := math.Max(float64(p.watched)/float64(m.live.span), 1)
	return sp.p0*(1-sp.p0)/float64(p.outcome.N) + float64(sp.tau*sp.tau)/blocks
}

// weeks fills in the whole weeks from the first window on.
func (m *measurement) weeks() {
	if len(m.kept) == 0 {
		return
	}
	start, end := m.kept[0].T, m.kept[len(m.kept)-1].End()
	var parts []part
	for from := start; !from.Add(week).After(end); from = from.Add(week) {
		parts = append(parts, part{})
	}
	incidents := m.flaggedSpans()
	for i := range m.kept {
		if n := int(m.kept[i].T.Sub(start) / week); n < len(parts) {
			parts[n].take(&m.kept[i], incidents)
		}
	}
	for i := range parts {
		p := &parts[i]
		row := Week{From: start.Add(time.Duration(i) * week).UTC(), Requests: p.requests, Judged: p.outcome.N, Rate: p.rate()}
		if i > 0 && parts[i-1].requests > 0 {
			row.Ratio = figure(float64(p.requests)/float64(parts[i-1].requests), 6)
		}
		m.r.Time.Weeks = append(m.r.Time.Weeks, row)
	}
}

// halves compares the second half of the time with the first.
func (m *measurement) halves() {
	sp, judged := m.spread[m.live.span]
	if !judged || len(m.kept) == 0 {
		return
	}
	start, end := m.kept[0].T, m.kept[len(m.kept)-1].End()
	middle := start.Add(end.Sub(start) / 2)
	var half [2]part
	incidents := m.flaggedSpans()
	for i := range m.kept {
		w := &m.kept[i]
		h := &half[0]
		if !w.T.Before(middle) {
			h = &half[1]
		}
		h.take(w, incidents)
		h.watched += w.Span
	}
	if half[0].outcome.N == 0 || half[1].outcome.N == 0 {
		return
	}
	first, second := half[0].outcome.Rate(), half[1].outcome.Rate()
	sd := math.Sqrt(sp.inflation * (m.variance(&sp, &half[0]) + m.variance(&sp, &half[1])))
	if sd > 0 {
		m.r.Time.Halves = &Contrast{First: round(first, 6), Second: round(second, 6), Z: round((second-first)/sd, 3)}
	}
}

// timeWarnings says what the time structure means for a fixed baseline.
func (m *measurement) timeWarnings() {
	if h := m.r.Time.Halves; h != nil && math.Abs(h.Z) > driftZ {
		m.r.warn("baseline-drifts", fmt.Sprintf("the second half solves %s, the first %s: %.1f sigmas apart", percent(h.Second), percent(h.First), math.Abs(h.Z)), "was something deployed in between? calibrate on the part that is normal: --exclude FROM/TO")
	}
	if s, p := m.r.Time.Swing, m.r.Time.SwingP; s != nil && *p < 0.001 && 100**s > m.o.TolerableDropPP.Float64()/2 {
		m.r.warn("hour-swing", fmt.Sprintf("the solve rate moves by %.1f pp over the hours of a day: more than half of the tolerable drop", 100**s), "compare with stable in the same minutes (slow_layer.against: stable), or live with the noise that the swing is counted as")
	}
	for i, w := range m.r.Time.Weeks {
		if w.Ratio != nil && math.Abs(*w.Ratio-1) > trafficDrift {
			m.r.warn("traffic-drift", fmt.Sprintf("week %d has %.3f times the requests of the week before", i+1, *w.Ratio), "steps are planned on the tenth percentile of the traffic; calibrate again when it has moved further")
		}
	}
}

// traffic fills in how many requests come in the calibration windows that have
// any, both arms together.
func (m *measurement) traffic() {
	t := &m.r.Traffic
	var own int64
	var watched time.Duration
	for i := range m.grid.buckets {
		own += m.grid.buckets[i].total
		watched += m.grid.buckets[i].watched
	}
	if own == 0 || m.r.RequestsPerMin == nil {
		return
	}
	scale := *m.r.RequestsPerMin * watched.Minutes() / float64(own) // of the arm's requests to both arms'
	var rates, judged []float64
	for i := range m.grid.buckets {
		b := &m.grid.buckets[i]
		if b.watched < m.grid.span || b.total == 0 {
			continue // nobody releases into a night without traffic
		}
		rates = append(rates, scale*float64(b.total)/m.grid.span.Minutes())
		if b.covered == m.grid.span && b.outcome.N > 0 {
			judged = append(judged, scale*float64(b.outcome.N)/m.grid.span.Minutes())
		}
	}
	t.P10, t.P50, t.P99 = rankOf(rates, release.NewRatio(1, 10)), rankOf(rates, release.NewRatio(1, 2)), rankOf(rates, p99)
	t.JudgedP10 = rankOf(judged, release.NewRatio(1, 10))
	m.peaks(t)
}

// peaks finds the busiest and the quietest hour.
func (m *measurement) peaks(t *Traffic) {
	for _, h := range m.r.Time.Hours {
		switch {
		case h.RequestsPerMin == nil:
			return // not every hour was seen
		case t.PeakHour == nil:
			t.PeakHour, t.TroughHour = new(h.Hour), new(h.Hour)
		case *h.RequestsPerMin > *m.r.Time.Hours[*t.PeakHour].RequestsPerMin:
			*t.PeakHour = h.Hour
		case *h.RequestsPerMin < *m.r.Time.Hours[*t.TroughHour].RequestsPerMin:
			*t.TroughHour = h.Hour
		}
	}
	if low := *m.r.Time.Hours[*t.TroughHour].RequestsPerMin; low > 0 {
		t.PeakToTrough = figure(*m.r.Time.Hours[*t.PeakHour].RequestsPerMin/low, 4)
	}
}
