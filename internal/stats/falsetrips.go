package stats

import "math"

// FalseTripRate returns how often per sample a healthy service trips a
// threshold of b standard deviations, on one side, on the mean of the last w
// samples looked at after every sample: (b phi(b)/w) nu(b sqrt(2/w)). Windows
// that overlap are neither one look each, nor one per w samples (Pickands 1969
// for the maximum of such a process, Siegmund 1985 for the correction nu of the
// discrete looks). Per week of minutes it is 10080 times as much: 3.2 for 3
// sigma of 25 minutes. It holds for b above 2 or so; w need not be whole.
func FalseTripRate(b, w float64) float64 {
	density := math.Exp(-b*b/2) / math.Sqrt(2*math.Pi)
	return b * density / w * discreteLooks(b*math.Sqrt(2/w))
}

// discreteLooks is Siegmund's nu(x), about exp(-0.583 x): what a process looked
// at in steps misses between them (Siegmund, Sequential Analysis, 1985, 4.38,
// in the approximation of Siegmund and Yakir 2007).
func discreteLooks(x float64) float64 {
	h := x / 2
	if h < 1e-6 {
		return 1
	}
	density := math.Exp(-h*h/2) / math.Sqrt(2*math.Pi)
	return math.Erf(h/math.Sqrt2) / 2 / h / (float64(h*(1-OneSided(h))) + density)
}

// Multiplier is the inverse of [FalseTripRate]: how many standard deviations
// keep the false trips to this rate per sample. It is at least 1, where the
// formula has lost its meaning, and +Inf for a rate of 0.
func Multiplier(rate, w float64) float64 {
	switch {
	case math.IsNaN(rate):
		return rate
	case rate <= 0:
		return math.Inf(1)
	}
	return bisect(func(b float64) bool { return FalseTripRate(b, w) > rate }, 1, 40)
}
