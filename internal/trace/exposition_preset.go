package trace

import "slices"

// Preset says how the metrics of a kind of server give the figures of a window.
// docs/reference/source.md explains each, and what none of them can tell.
type Preset struct {
	Name string
	// part says that its metrics are those of another preset, some of them: a
	// snapshot is not looked through for them.
	part bool
	// model is the label that names the model, or the upstream, for --arm.
	model   string
	figures []presetFigure
}

type presetFigure struct {
	field Field
	from  expr
}

// Queries returns the preset as PromQL, by the names of fields. {} stands where
// the matchers of an arm go, or, after a comma, the end of the braces; $span for
// the window's length; $ttft_le for the limit above which a first token is slow,
// as a regular expression of the label le in seconds.
func (p Preset) Queries() map[string]string {
	out := make(map[string]string, len(p.figures))
	for _, f := range p.figures {
		out[f.field.String()] = f.from.promQL()
	}
	return out
}

// Presets lists the presets, those of one kind of server before those that
// several kinds speak. The list is the caller's own.
func Presets() []Preset { return slices.Clone(presets) }

var presets = []Preset{
	{Name: "vllm", model: "model_name", figures: vllm()},
	{Name: "sglang", model: "model_name", figures: sglang()},
	{Name: "litellm", model: "requested_model", figures: litellm()},
	{Name: "gen_ai", model: "gen_ai_request_model", figures: genAI(
		firstOf{increase{name: clientDuration + "_count"}, increase{name: serverDuration + "_count"}}, []string{clientDuration, serverDuration},
		[]string{"gen_ai_client_operation_time_to_first_chunk_seconds", "gen_ai_server_time_to_first_token_seconds"},
		[]string{"gen_ai_server_time_per_output_token_seconds", "gen_ai_client_operation_time_per_output_chunk_seconds"})},
	{Name: "envoy_ai_gateway", part: true, model: "gen_ai_request_model", figures: genAI(
		firstOf{increase{name: serverDuration + "_count"}}, []string{serverDuration},
		[]string{"gen_ai_server_time_to_first_token_seconds"}, []string{"gen_ai_server_time_per_output_token_seconds"})},
	{Name: "envoy", model: "envoy_cluster_name", figures: envoy()},
	{Name: "nginx_ingress", model: "service", figures: nginxIngress()},
}

const (
	clientDuration = "gen_ai_client_operation_duration_seconds"
	serverDuration = "gen_ai_server_request_duration_seconds"
)

// histogramP99 is the 99th percentile, in milliseconds, of the first histogram in
// seconds that is there.
func histogramP99(histograms ...string) expr {
	return times{1000, alternatives(histograms, func(h string) expr { return quantile{h} })}
}

// histogramMean is the mean, in milliseconds, of the first histogram in seconds that is
// there.
func histogramMean(histograms ...string) expr {
	return times{1000, alternatives(histograms, func(h string) expr {
		return over{increase{name: h + "_sum"}, increase{name: h + "_count"}}
	})}
}

// alternatives is the first of several names that is there.
func alternatives(names []string, of func(name string) expr) expr {
	if len(names) == 1 {
		return of(names[0])
	}
	var out firstOf
	for _, n := range names {
		out = append(out, of(n))
	}
	return out
}

// ttft is the figures of a histogram of times to first token.
func ttft(histograms ...string) []presetFigure {
	return []presetFigure{
		{FieldTTFTOf, alternatives(histograms, func(h string) expr { return increase{name: h + "_count"} })},
		{FieldTTFTP99, histogramP99(histograms...)},
		{FieldTTFTSlow, alternatives(histograms, func(h string) expr { return above{h} })},
	}
}

// failed counts those of a metric whose label says that they failed; where the
// metric is there and no series of it says so, none did. Without the metric that
// is not known.
func failed(where condition, names ...string) expr {
	var out firstOf
	for _, n := range names {
		out = append(out, increase{n, where}, times{0, increase{name: n}})
	}
	return out
}

// vllm has no counter of errors. Its aborts are mostly clients that hung up, so
// that they are not given as streams that broke off.
func vllm() []presetFigure {
	return append([]presetFigure{
		{FieldTotal, firstOf{increase{name: "vllm:request_success_total"}, increase{name: "vllm:e2e_request_latency_seconds_count"}}},
		{FieldP99, histogramP99("vllm:e2e_request_latency_seconds")},
		// Both names were shown with the same values from 0.11 to 0.12.
		{FieldITL, histogramMean("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")},
		{FieldKVCache, firstOf{gauge{"vllm:kv_cache_usage_perc"}, gauge{"vllm:gpu_cache_usage_perc"}}},
	}, ttft("vllm:time_to_first_token_seconds")...)
}

func sglang() []presetFigure {
	return append([]presetFigure{
		{FieldTotal, firstOf{increase{name: "sglang:e2e_request_latency_seconds_count"}, increase{name: "sglang:num_requests_total"}}},
		{FieldP99, histogramP99("sglang:e2e_request_latency_seconds")},
		{FieldITL, histogramMean("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")},
		{FieldKVCache, gauge{"sglang:token_usage"}},
	}, ttft("sglang:time_to_first_token_seconds")...)
}

// genAI is OpenTelemetry's semantic conventions for generative AI. error.type
// is set where an operation failed and nowhere else.
func genAI(total firstOf, durations, first, itl []string) []presetFigure {
	counts := make([]string, len(durations))
	for i, d := range durations {
		counts[i] = d + "_count"
	}
	var requests expr = total
	if len(total) == 1 {
		requests = total[0]
	}
	return append([]presetFigure{
		{FieldTotal, requests},
		{FieldP99, histogramP99(durations...)},
		{FieldErrors, failed(condition{"error_type", "!=", ""}, counts...)},
		{FieldITL, histogramMean(itl...)},
	}, ttft(first...)...)
}

func litellm() []presetFigure {
	const total, failures = "litellm_proxy_total_requests_metric", "litellm_proxy_failed_requests_metric"
	all := firstOf{increase{name: total + "_total"}, increase{name: total}}
	of := func(where condition) expr {
		return firstOf{
			increase{failures + "_total", where}, increase{failures, where},
			times{0, all},
		}
	}
	return append([]presetFigure{
		{FieldTotal, all},
		{FieldP99, histogramP99("litellm_request_total_latency_metric")},
		{FieldCostMean, over{firstOf{increase{name: "litellm_spend_metric_total"}, increase{name: "litellm_spend_metric"}}, all}},
		{FieldErrors, of(condition{})},
		{FieldServerErrors, of(condition{"exception_status", "=~", "5.."})},
	}, ttft("litellm_llm_api_time_to_first_token_metric")...)
}

// envoy counts what was sent upstream, so that a retry counts again. Its times
// are in milliseconds.
func envoy() []presetFigure {
	const completed, classes, label = "envoy_cluster_upstream_rq_completed", "envoy_cluster_upstream_rq_xx", "envoy_response_code_class"
	of := func(value string) expr { return failed(condition{label, "=~", value}, classes) }
	return []presetFigure{
		{FieldTotal, increase{name: completed}},
		{FieldP99, quantile{"envoy_cluster_upstream_rq_time"}},
		{FieldErrors, of("[45]")},
		{FieldServerErrors, of("5")},
	}
}

// nginxIngress leaves 499 out of the errors: the client hung up.
func nginxIngress() []presetFigure {
	const requests = "nginx_ingress_controller_requests"
	return []presetFigure{
		{FieldTotal, increase{name: requests}},
		{FieldP99, histogramP99("nginx_ingress_controller_request_duration_seconds")},
		{FieldErrors, failed(condition{"status", "=~", "4[0-8].|49[0-8]|5.."}, requests)},
		{FieldServerErrors, failed(condition{"status", "=~", "5.."}, requests)},
	}
}
