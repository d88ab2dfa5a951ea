package calibrate

import "math"

// Setting is one value for canary.yaml.
type Setting struct {
	// Key is the path below metrics (InMetrics) or below canary.
	Key       []string
	InMetrics bool
	Value     string // as written in YAML
}

// Settings returns the values that the baseline supplies, in the order of
// canary.yaml. A figure that is missing or is no use as a limit has none: the
// file keeps its own.
func (r *Report) Settings() []Setting {
	var all []Setting
	metric := func(layer, key string, value *float64) {
		if value != nil {
			all = append(all, Setting{Key: []string{layer, key}, InMetrics: true, Value: number(*value)})
		}
	}
	if r.RequestsPerMin != nil && *r.RequestsPerMin > 0 {
		all = append(all, Setting{Key: []string{"requests_per_min"}, Value: number(*r.RequestsPerMin)})
	}
	if r.Cost.MeanUSD != nil && *r.Cost.MeanUSD > 0 {
		all = append(all, Setting{Key: []string{"cost_baseline_usd"}, Value: number(*r.Cost.MeanUSD)})
	}
	metric("fast_layer", "baseline_violation_rate", r.Violations.baseline())
	if p99 := r.P99.ValueMS; p99 != nil && *p99 > 0 {
		metric("fast_layer", "p99_baseline_ms", p99)
	}
	metric("fast_layer", "baseline_transfer_rate", r.Transfers.baseline())
	metric("slow_layer", "solve_baseline", &r.Slow.SolveBaseline)
	metric("slow_layer", "solve_rate_drop_pp", new(math.Min(r.Slow.ThresholdPP, 100)))
	if n := r.Slow.MinSamples; n != nil {
		metric("slow_layer", "min_samples_slow", new(float64(*n)))
	}
	return all
}

// baseline is the rate to compare with: where none was seen, the most that
// may have been missed.
func (rate Rate) baseline() *float64 {
	if rate.Upper95 != nil {
		return rate.Upper95
	}
	return rate.Rate
}
