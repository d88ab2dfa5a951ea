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
// leaves none out.
func (m *measurement) incidents() {
	zs := m.distances()
	m.flagged = make([]bool, len(zs))
	m.r.Incidents = []Incident{}
	for i := 0; i < len(zs); i++ {
		if math.Abs(zs[i]) < incidentZ || m.flagged[i] {
			continue
		}
		from, to := m.extend(zs, i)
		inc := Incident{From: m.calib.t[from].UTC(), To: m.calib.t[to].Add(m.calib.span).UTC(), Above: zs[i] > 0}
		for j := from; j <= to; j++ {
			m.flagged[j] = true
			inc.Windows++
			inc.Judged += m.calib.ps[j].N
			inc.Solved += m.calib.ps[j].X
			if math.Abs(zs[j]) > math.Abs(inc.WorstZ) {
				inc.WorstZ = round(zs[j], 2)
			}
		}
		m.r.Incidents = append(m.r.Incidents, inc)
		i = to
	}
}

// distances returns how many sigmas of chance and noise each calibration
// window lies from the middle.
func (m *measurement) distances() []float64 {
	s := m.calib
	sp := spreadOf(s, 0)
	if sp.method == "robust" {
		sp.tau = stats.TauRobust(s.ps)
	}
	middle := stats.Median(s.rates())
	if middle <= 0 || middle >= 1 {
		middle = sp.p0
	}
	zs := make([]float64, len(s.ps))
	for i, p := range s.ps {
		if sigma := stats.NoiseSigma(middle, p.N, sp.tau, 0); sigma > 0 {
			zs[i] = (p.Rate() - middle) / sigma
		}
	}
	return zs
}

// extend widens an incident to the neighbours that lie far off on the same
// side.
func (m *measurement) extend(zs []float64, i int) (from, to int) {
	side := math.Copysign(1, zs[i])
	from, to = i, i
	for from > 0 && m.calib.adjacent[from] && side*zs[from-1] > neighbourZ {
		from--
	}
	for to+1 < len(zs) && m.calib.adjacent[to+1] && side*zs[to+1] > neighbourZ {
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
	if share := float64(windows) / float64(len(m.calib.ps)); share > maxFlagged {
		m.refusal.add("contaminated", fmt.Sprintf("%d of %d windows are flagged as incidents: %.1f %% are more than --auto-exclude may leave out", windows, len(m.calib.ps), 100*share),
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
