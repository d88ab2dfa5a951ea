package trace

import (
	"bytes"
	"slices"
)

// llmperfColumns are the columns of LLMPerf's individual responses
// (ray-project/llmperf, src/llmperf/common_metrics.py) and what they are here.
var llmperfColumns = []struct {
	field Field
	name  string
	unit  Unit
}{
	{FieldStatus, "error_code", NoUnit},
	{FieldTTFT, "ttft_s", Seconds},
	{FieldLatency, "end_to_end_latency_s", Seconds},
	{FieldITL, "inter_token_latency_s", Seconds},
	{FieldOutputTokens, "number_output_tokens", NoUnit},
}

// isLLMPerf reports whether rows with these names are LLMPerf's.
func isLLMPerf(names []string) bool {
	return slices.Contains(names, "error_code") && slices.Contains(names, "ttft_s")
}

// asLLMPerf maps LLMPerf's columns, but for fields that the user has mapped or
// that the rows have by their own names.
func (p *plan) asLLMPerf(file string, mapped map[Field]Mapping, names []string) {
	for _, c := range llmperfColumns {
		if _, ok := mapped[c.field]; !ok && slices.Contains(names, c.name) && !slices.Contains(names, c.field.String()) {
			mapped[c.field] = Mapping{Field: c.field, Path: Path{c.name}, Unit: c.unit}
		}
	}
	if m, ok := mapped[FieldStatus]; !ok || m.Path.String() != "error_code" {
		return
	}
	_, violations := mapped[FieldViolation]
	violations = violations || slices.Contains(names, FieldViolation.String())
	p.adjust = func(r *row) { llmperfRow(r, !violations) }
	p.notes = append(p.notes, file+": the rows are LLMPerf's: error_code null is ok, -100 (too few tokens) a violation, and what was measured of calls that failed is left out")
}

// llmperfRow reads a row by LLMPerf's rules. A call that failed has zeros for
// its latencies, or those of an answer that broke off: neither says how fast a
// good answer is.
func llmperfRow(r *row, violations bool) {
	code := &r.cells[FieldStatus]
	if code.kind == absent {
		return
	}
	short := false
	if isMissing(code.text) {
		*code = cell{kind: scalar, text: okText}
	} else {
		short = bytes.Equal(code.text, tooShort)
		for _, f := range [...]Field{FieldLatency, FieldTTFT, FieldITL, FieldOutputTokens} {
			r.cells[f] = cell{kind: null}
		}
	}
	if violations {
		r.cells[FieldViolation] = cell{kind: scalar, text: falseText}
		if short {
			r.cells[FieldViolation].text = trueText
		}
	}
}

var (
	okText, trueText, falseText = []byte("ok"), []byte("true"), []byte("false")
	tooShort                    = []byte("-100")
)
