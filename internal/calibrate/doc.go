// Package calibrate learns a service's own noise from a baseline: windows of
// what stable normally does in, centre, spread and thresholds out.
//
//	rep, err := calibrate.Measure(windows, calibrate.Options{TolerableDropPP: release.MustRatio("5")})
//	if refusal, ok := errors.AsType[*calibrate.Refusal](err); ok { ... } // what is missing, all at once
//	for _, s := range rep.Settings() { ... }                             // what to put into canary.yaml
//
// The rule of this form is the plain one: requests are gathered into
// 10-minute windows on the clock, sigma is the sample standard deviation of
// the whole windows' solve rates, and the threshold is the tolerable drop or
// three sigma, whichever is more. Sigma is that of the whole traffic: a canary
// of 1 % has more noise, against which min_samples guards as far as chance
// goes, but not as far as the service's own swings go.
//
// It is pure: no files, no clock, the same windows give the same report. It
// never invents a figure: what the input does not carry is nil in the report
// and null in JSON.
package calibrate
