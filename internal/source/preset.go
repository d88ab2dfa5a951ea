package source

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/canaryctl/canaryctl/internal/trace"
)

// queryFields are the fields that a query may give, in the order in which they
// are asked.
var queryFields = []string{
	"total", "judged", "solved", "violations", "transfers", "slow", "cost", "cost_mean", "p99_ms",
	"ttft_of", "ttft_p99_ms", "ttft_slow", "itl_of", "itl_ms", "streams", "aborted", "status_of", "errors", "server_errors", "kv_cache",
}

// preset is the queries of a kind of server, by field, with {} where the arm's
// matchers go, or, after a comma, the end of the braces.
type preset map[string]string

// presets are those of package trace, which reads the same metrics from
// snapshots. docs/reference/source.md explains each.
var presets = sync.OnceValue(func() map[string]preset {
	out := make(map[string]preset)
	for _, p := range trace.Presets() {
		out[p.Name] = p.Queries()
	}
	return out
})

// presetNames lists the presets, for messages.
func presetNames() string {
	var names []string
	for _, p := range trace.Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// with returns the queries for an arm's matchers.
func (p preset) with(matchers string) map[string]string {
	matchers = strings.TrimSpace(matchers)
	if inner, ok := strings.CutPrefix(matchers, "{"); ok {
		matchers = strings.TrimSuffix(inner, "}")
	}
	put := strings.NewReplacer("{}", "{"+matchers+"}", `",}`, `",`+matchers+"}")
	out := make(map[string]string, len(p))
	for _, f := range queryFields {
		if q, ok := p[f]; ok {
			out[f] = put.Replace(q)
		}
	}
	return out
}

func isQueryField(name string) bool { return slices.Contains(queryFields, name) }

// bucketLabel is the regular expression of the label le of the bucket that ends
// at a limit. A client may write 3 or 3.0, and a server rewrites the one into
// the other.
func bucketLabel(limitMS float64) string {
	text := strconv.FormatFloat(limitMS/1000, 'f', -1, 64)
	if strings.Contains(text, ".") {
		return strings.ReplaceAll(text, ".", `\\.`)
	}
	return text + "|" + text + `\\.0`
}
