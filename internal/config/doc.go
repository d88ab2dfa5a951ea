// Package config turns the bytes of a canary.yaml into a [Config] or into
// findings, all of them at once, each with its place, its rule and a hint
// (DESIGN section 3).
//
//	cfg, list := config.Parse("canary.yaml", src)
//	if list.HasErrors() { ... }                // cfg is nil then
//	plan := cfg.Plan()                         // what the ladder and the breaker run on
//	list = append(list, cfg.Lint()...)         // warnings: a plan that runs but will not serve
//
// One table, keys.go, says which keys there are, of what type, in which range,
// with which default. The parser, the JSON Schema ([Schema]) and the reference
// in docs/reference/canary-yaml.md are read off it.
//
// Decimals are read exactly as written, never through a float. It reads no
// file and no environment: that is for the command line.
package config
