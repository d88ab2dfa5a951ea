package calibrate

import (
	"fmt"
	"math"

	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	incidentZ  = 4.5  // sigmas from which on a window is an incident
	neighbourZ = 2.0  // and its neighbours belong to it
	maxFlagged = 0.05 // share of windows that may be left out by themselves
)

// incidents finds the runs of windows far from the median, and names them. It
// leaves none out. Windows of which a part is not covered are looked at too.
func (m *measurement) incidents() {
	m.r.Incidents = []Incident{}
	zs := m.distances()
	for i := 0; i < len(zs); i++ {
		if math.Abs(zs[i]) < incidentZ || !m.surely(i, zs[i]) {
			continue
		}
		from, to := m.extend(zs, i)
		inc := Incident{From: m.seen.t[from].UTC(), To: m.seen.t[to].Add(m.seen.span).UTC(), Above: zs[i] > 0}
		for j := from; j <= to; j++ {
			inc.Windows++
			inc.Judged += m.seen.ps[j].N
			inc.Solved += m.seen.ps[j].X
			if math.Abs(zs[j]) > math.Abs(inc.WorstZ) {
				inc.WorstZ = round(zs[j], 2)
			}
		}
		m.r.Incidents = append(m.r.Incidents, inc)
		i = to
	}
	spans := m.flaggedSpans()
	m.flagged = make([]bool, len(m.calib.ps))
	for i, t := range m.calib.t {
		m.flagged[i] = overlaps(spans, t, t.Add(m.calib.span))
	}
}

// distances returns how many sigmas of chance and noise each window lies from
// the middle of the whole ones.
func (m *measurement) distances() []float64 {
	middle, tau := m.middle()
	zs := make([]float64, len(m.seen.ps))
	for i, p := range m.seen.ps {
		if sigma := stats.NoiseSigma(middle, p.N, tau, 0); sigma > 0 {
			zs[i] = (p.Rate() - middle) / sigma
		}
	}
	return zs
}

// middle returns the middle of the whole windows' rates and their noise.
func (m *measurement) middle() (rate, tau float64) {
	sp := spreadOf(m.calib, 0)
	tau = sp.tau
	if sp.method == "robust" {
		tau = stats.TauRobust(m.calib.ps)
	}
	rate = stats.Median(m.calib.rates())
	if rate <= 0 || rate >= 1 {
		rate = sp.p0
	}
	return rate, tau
}

// surely reports whether a window so far out is so by more than the chance of
// its few requests: sigmas say little of three.
func (m *measurement) surely(i int, z float64) bool {
	const rare = 1e-5
	middle, _ := m.middle()
	p := m.seen.ps[i]
	if z < 0 {
		return stats.BinomialCDF(p.X, p.N, middle) <= rare
	}
	return stats.BinomialTail(p.X, p.N, middle) <= rare
}

// extend widens an incident to the neighbours that lie far off on the same
// side.
func (m *measurement) extend(zs []float64, i int) (from, to int) {
	side := math.Copysign(1, zs[i])
	from, to = i, i
	for from > 0 && m.seen.adjacent[from] && side*zs[from-1] > neighbourZ {
		from--
	}
	for to+1 < len(zs) && m.seen.adjacent[to+1] && side*zs[to+1] > neighbourZ {
		to++
	}
	return from, to
}

// excludeIncidents leaves the flagged windows out and measures again. More
// than a twentieth is no incident, it is how the service is.
func (m *measurement) excludeIncidents() error {
	windows := 0
	var spans []Gap
	for i := range m.r.Incidents {
		inc := &m.r.Incidents[i]
		inc.Excluded = true
		windows += inc.Windows
		spans = append(spans, Gap{From: inc.From, To: inc.To, Minutes: inc.To.Sub(inc.From).Minutes()})
	}
	if share := float64(windows) / float64(len(m.seen.ps)); share > maxFlagged {
		m.refusal.add("contaminated", fmt.Sprintf("%d of %d windows are flagged as incidents: %.1f %% are more than --auto-exclude may leave out", windows, len(m.seen.ps), 100*share),
			"find a quieter week, or say with --exclude FROM/TO what was not normal")
		return m.refusal
	}
	listed := m.r.Incidents
	m.left = append(m.left[:len(m.left):len(m.left)], spans...)
	m.count()
	m.incidents() // of what is left
	m.r.Incidents = append(listed, m.r.Incidents...)
	return nil
}

// flaggedSpans are the incidents that are still in.
func (m *measurement) flaggedSpans() []Gap {
	var spans []Gap
	for _, inc := range m.r.Incidents {
		if !inc.Excluded {
			spans = append(spans, Gap{From: inc.From, To: inc.To})
		}
	}
	return spans
}

// chart fills in the control chart: every calibration window with the limits
// that hold for its own number of judged requests.
func (m *measurement) chart() {
	sp := m.spread[m.calib.span]
	p0 := stats.Pool(m.calib.ps).Rate()
	for i, p := range m.calib.ps {
		d := 3 * stats.NoiseSigma(p0, p.N, sp.tau, 0)
		m.r.Chart = append(m.r.Chart, Point{
			T: m.calib.t[i].UTC(), Judged: p.N, Solved: p.X, Flagged: m.flagged[i],
			Lower: round(math.Max(0, p0-d), 6), Upper: round(math.Min(1, p0+d), 6),
		})
	}
}

// strict refuses a baseline that is not normal service, where that was asked
// for.
func (m *measurement) strict() error {
	if !m.o.Strict {
		return nil
	}
	for _, code := range []string{"contaminated", "incidents", "baseline-drifts", "slow-drift"} {
		for _, w := range m.r.Warnings {
			if w.Code == code {
				m.refusal.add(code, w.Text, w.Hint)
			}
		}
	}
	return m.refusal.orNil()
}

// incidentWarning names the incidents that are in the baseline still.
func (m *measurement) incidentWarning() {
	open := m.flaggedSpans()
	if len(open) == 0 {
		return
	}
	m.r.warn("incidents", fmt.Sprintf("%s far from the rest, the first from %s: in the baseline still", count(len(open), "incident"), stamp(open[0].From)),
		"leave out what was no normal service: --exclude FROM/TO, or --auto-exclude for all that are listed")
}
