package source

import (
	"slices"
	"strings"
)

// queryFields are the fields that a query may give, in the order in which they
// are asked.
var queryFields = []string{"total", "judged", "solved", "violations", "transfers", "slow", "cost", "cost_mean", "p99_ms"}

// preset is the queries of a kind of server, by field, with {} where the arm's
// matchers go and $span for the window's length. Where a metric has had two
// names, or two metrics can tell, `or` takes the first that is there: they are
// never added up. docs/reference/source.md explains each.
type preset map[string]string

var presets = map[string]preset{
	// OpenTelemetry semantic conventions for generative AI: the client's
	// histogram, else the server's (a gateway such as Envoy AI Gateway).
	"gen_ai": {
		"total": firstOf(
			"sum(increase(gen_ai_client_operation_duration_seconds_count{}[$span]))",
			"sum(increase(gen_ai_server_request_duration_seconds_count{}[$span]))"),
		"p99_ms": "1000 * " + firstOf(
			quantile99("gen_ai_client_operation_duration_seconds_bucket"),
			quantile99("gen_ai_server_request_duration_seconds_bucket")),
	},
	// vLLM counts finished requests, the aborted ones among them, and has no
	// counter of errors.
	"vllm": {
		"total": firstOf(
			"sum(increase(vllm:request_success_total{}[$span]))",
			"sum(increase(vllm:e2e_request_latency_seconds_count{}[$span]))"),
		"p99_ms": "1000 * " + quantile99("vllm:e2e_request_latency_seconds_bucket"),
	},
	"litellm": {
		"total":     litellmTotal,
		"p99_ms":    "1000 * " + quantile99("litellm_request_total_latency_metric_bucket"),
		"cost_mean": firstOf("sum(increase(litellm_spend_metric_total{}[$span]))", "sum(increase(litellm_spend_metric{}[$span]))") + " / " + litellmTotal,
	},
}

var litellmTotal = firstOf(
	"sum(increase(litellm_proxy_total_requests_metric_total{}[$span]))",
	"sum(increase(litellm_proxy_total_requests_metric{}[$span]))")

func firstOf(a, b string) string { return "(" + a + " or " + b + ")" }

func quantile99(bucket string) string {
	return "histogram_quantile(0.99, sum by (le) (increase(" + bucket + "{}[$span])))"
}

// with returns the queries for an arm's matchers.
func (p preset) with(matchers string) map[string]string {
	matchers = strings.TrimSpace(matchers)
	if inner, ok := strings.CutPrefix(matchers, "{"); ok {
		matchers = strings.TrimSuffix(inner, "}")
	}
	out := make(map[string]string, len(p))
	for _, f := range queryFields {
		if q, ok := p[f]; ok {
			out[f] = strings.ReplaceAll(q, "{}", "{"+matchers+"}")
		}
	}
	return out
}

func isQueryField(name string) bool { return slices.Contains(queryFields, name) }
