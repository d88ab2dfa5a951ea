package calibrate

import (
	"math"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// control measures how much the arms' rates differ in the same live windows
// beyond chance, where the baseline has both arms: what is left of the noise
// when a canary is compared with stable in the same minutes. Half of the
// variance of the difference is each arm's own (DerSimonian and Laird 1986 over
// the differences). A baseline of one arm cannot say: thinned in two, its parts
// differ by chance alone.
func (m *measurement) control() {
	if m.r.Arm != string(release.Stable) {
		return
	}
	other, _ := split(m.all, release.Canary)
	other = without(other, m.left)
	if len(other) == 0 {
		return
	}
	refusal := &Refusal{}
	g := gather(other, m.live.span, 0, m.left, m.o, refusal)
	if refusal.orNil() != nil {
		return
	}
	if d, v := differences(m.live, g.whole(&Windows{})); len(d) >= MinWindows {
		m.r.Slow.TauControl = figure(math.Sqrt(stats.DerSimonianLaird(d, v).Tau2/2), 6)
	}
}

// differences pairs the windows of two arms that begin together: the
// difference of their rates, and chance's variance of it.
func differences(stable, canary *series) (d, v []float64) {
	j := 0
	for i, t := range stable.t {
		for j < len(canary.t) && canary.t[j].Before(t) {
			j++
		}
		if j == len(canary.t) || !canary.t[j].Equal(t) {
			continue
		}
		s, c := stable.ps[i], canary.ps[j]
		p := stats.Pool([]stats.Proportion{s, c}).Rate()
		if variance := p * (1 - p) * (1/float64(s.N) + 1/float64(c.N)); variance > 0 {
			d, v = append(d, c.Rate()-s.Rate()), append(v, variance)
		}
	}
	return d, v
}
