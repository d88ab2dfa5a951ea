package stats

import (
	"math"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// NoiseSamples returns how many samples it takes until z standard deviations of
// the noise are within the threshold, by the normal distribution: p0 q0/((T/z)^2
// - tau^2). It is not ok where z tau alone reaches the threshold: no traffic
// helps then. For tau 0, [MinSamples] is exact and larger.
func NoiseSamples(p0, threshold, z, tau float64) (n int64, ok bool) {
	return samplesWithin(p0, threshold/z, tau)
}

// PowerSamples returns how many samples it takes until one look sees a true
// fall of drop past the threshold with this power (above 0.5), by the normal
// distribution: p1 q1/(((drop-T)/z_b)^2 - tau^2) with p1 = p0-drop. It is not ok
// where no number does.
func PowerSamples(p0, threshold, drop, power, tau float64) (n int64, ok bool) {
	return samplesWithin(max(0, p0-drop), (drop-threshold)/Sigmas(1-power), tau)
}

// samplesWithin returns the smallest n with p q/n + tau^2 <= sigma^2.
func samplesWithin(p, sigma, tau float64) (n int64, ok bool) {
	room := float64(sigma*sigma) - float64(tau*tau)
	if !(sigma > 0) || room <= 0 {
		return 0, false
	}
	n = ceilSamples(p * (1 - p) / room)
	return n, n < tooMany
}

// tooMany is a number of samples that nobody waits for.
const tooMany = 1 << 53

// ceilSamples rounds a number of samples up, at least to 1. What rounding in
// floats has lifted over a whole number, such as 0.09/(0.1/3)^2 = 81.00000000000001,
// is that whole number.
func ceilSamples(x float64) int64 {
	return int64(min(tooMany, max(1, math.Ceil(x*(1-1e-12)))))
}

// ExactPowerSamples returns the smallest N such that for every n >= N a service
// that truly solves p0-drop is seen at or below p0-threshold, where the breaker
// trips, with this power: P(Bin(n, p0-drop) <= (p0-threshold) n) >= power. Like
// [MinSamples] it does not stop at the first tooth of the sawtooth; above a
// million it is Chernoff's bound. The error is [ErrNotBeyond], [ErrNeverTrips]
// or [ErrTooSmall].
func ExactPowerSamples(p0, threshold, drop release.Ratio, power float64) (int64, error) {
	return exactPowerSamples(p0, threshold, drop, power, release.Ratio.FloorOf)
}

func exactPowerSamples(p0, threshold, drop release.Ratio, power float64, last func(release.Ratio, int64) int64) (int64, error) {
	trip, err := tripRate(p0, threshold)
	if err != nil {
		return 0, err
	}
	beyond, ok := new(big.Rat).Sub(drop.Rat(), threshold.Rat()), drop.Float64() < p0.Float64()
	switch {
	case beyond.Sign() <= 0:
		return 0, ErrNotBeyond
	case !ok:
		return 1, nil // nothing is solved any more
	case beyond.Cmp(big.NewRat(1, 100_000)) < 0:
		return 0, ErrTooSmall
	}
	p1, _ := new(big.Rat).Sub(p0.Rat(), drop.Rat()).Float64()
	return afterLastBad(1-power, divergence(trip.Float64(), p1), func(n int64) bool {
		return BinomialTail(last(trip, n)+1, n, p1) > 1-power
	}), nil
}

// Power returns the chance that one look at n samples sees a true fall of drop
// past the threshold, by the normal distribution with the noise of [NoiseSigma].
func Power(p0, threshold, drop float64, n int64, tau float64) float64 {
	return OneSided((threshold - drop) / NoiseSigma(max(0, p0-drop), n, tau, 0))
}

// SmallestDrop returns the smallest true fall that one look at n samples sees
// past the threshold with this power (above 0.5): the drop d = T + z_b sigma(p0-d,
// n). A fall of just the threshold is seen in half of the looks only. It is NaN
// if even a service that solves nothing is not seen so often.
func SmallestDrop(p0, threshold, power float64, n int64, tau float64) float64 {
	z := Sigmas(1 - power)
	missed := func(drop float64) bool {
		return drop < threshold+float64(z*NoiseSigma(max(0, p0-drop), n, tau, 0))
	}
	if n < 1 || threshold > p0 || missed(p0) {
		return math.NaN()
	}
	return bisect(missed, threshold, p0)
}

// DetectSamples returns the smallest n at which a threshold z standard
// deviations below p0 is passed with this power by a true fall of drop: z
// sigma0(n) + z_b sigma1(n) <= drop, both sigma by [NoiseSigma]. Without tau it is
// ((z sqrt(p0 q0) + z_b sqrt(p1 q1))/drop)^2 (Fleiss, Levin and Paik, Statistical
// Methods for Rates and Proportions, 2.4; NIST/SEMATECH e-Handbook 7.2.4.2). It is
// not ok where (z + z_b) tau alone reaches the drop.
func DetectSamples(p0, drop, z, power, tau float64) (n int64, ok bool) {
	zb, p1 := Sigmas(1-power), max(0, p0-drop)
	if !((z+zb)*tau < drop) {
		return 0, false
	}
	n = smallest(func(n int64) bool {
		return n > 0 && float64(z*NoiseSigma(p0, n, tau, 0))+float64(zb*NoiseSigma(p1, n, tau, 0)) <= drop*(1+1e-12)
	}, ceilSamples(oneSample(p0, p1, z, zb)))
	return n, n < tooMany
}

// oneSample is the unrounded size of one sample that tells p1 from p0.
func oneSample(p0, p1, z, zb float64) float64 {
	x := (float64(z*math.Sqrt(p0*(1-p0))) + float64(zb*math.Sqrt(p1*(1-p1)))) / (p0 - p1)
	return x * x
}

// TwoSampleSamples returns how many requests the canary needs until a fall of
// drop against stable, which has ratio times as many in the same time, passes z
// standard deviations of the difference with this power: ((z sqrt(p q (1+1/ratio))
// + z_b sqrt(p1 q1 + p0 q0/ratio))/drop)^2, p the rate of both together (Fleiss,
// Levin and Paik, 4.2; R's power.prop.test for ratio 1).
func TwoSampleSamples(p0, drop, z, power, ratio float64) int64 {
	return ceilSamples(twoSamples(p0, max(0, p0-drop), z, Sigmas(1-power), ratio))
}

func twoSamples(p0, p1, z, zb, ratio float64) float64 {
	null, other := twoSampleSDs(p0, p1, ratio)
	x := (float64(z*null) + float64(zb*other)) / (p0 - p1)
	return x * x
}

// twoSampleSDs returns the standard deviation of the difference, times sqrt(n),
// if both arms have the pooled rate and if they have their own.
func twoSampleSDs(p0, p1, ratio float64) (null, other float64) {
	p := (p1 + float64(ratio*p0)) / (1 + ratio)
	return math.Sqrt(p * (1 - p) * (1 + 1/ratio)), math.Sqrt(float64(p1*(1-p1)) + p0*(1-p0)/ratio)
}

// TwoSamplePower is the power of the comparison of [TwoSampleSamples] at n
// requests of the canary.
func TwoSamplePower(p0, drop, z float64, n int64, ratio float64) float64 {
	null, other := twoSampleSDs(p0, p0-drop, ratio)
	return OneSided((float64(z*null) - float64(drop*math.Sqrt(float64(n)))) / other)
}
