// Package scenarios holds the built-in scenarios: each is a plan, a feed and
// what must come of it, explained in its own text. `canaryctl simulate NAME`
// runs one, and `make check` all of them.
package scenarios

import "embed"

// FS has every built-in scenario as NAME.yaml at its root.
//
//go:embed *.yaml
var FS embed.FS
