package trace

import (
	"bytes"
	"slices"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// spansKey is the list of an OTLP document in which its spans are.
const spansKey = "resourceSpans"

// otlpShape is OTLP/JSON of traces, with the attributes of OpenTelemetry's
// conventions for generative AI in their three generations (up to 1.26 and as
// vLLM writes them, 1.27 to 1.36, from 1.37 on) or of OpenInference. See
// opentelemetry-proto and opentelemetry-specification, JSON Protobuf encoding.
var otlpShape = &shape{
	name: "otlp", time: "startTimeUnixNano", one: "span of gen_ai", many: "spans of gen_ai",
	is: func(k *keys) bool { return k.has(spansKey) },
}

// otlpRows reads the spans of OTLP/JSON. A line may hold many.
type otlpRows struct {
	from  objects
	outer bag
	spans []otlpSpan
	line  int64
}

// otlpSpan is a span and the attributes of what it came from.
type otlpSpan struct{ span, resource []byte }

func (o *otlpRows) restart() {
	o.spans = nil
	o.from.restart()
}

func (o *otlpRows) cutOff() bool { return o.from.cutOff() }

func (o *otlpRows) next(b *bag, r *row) (bool, error) {
	for len(o.spans) == 0 {
		o.outer.reset()
		if err := o.from.next(&o.outer, r); err != nil {
			return false, err
		}
		o.line = r.line
		c := o.outer.get(spansKey)
		if c.kind == absent && len(o.outer.text(spansKey)) == 0 {
			return false, nil // metrics or logs in the same file
		}
		o.unfold(c.text)
	}
	s := o.spans[0]
	o.spans = o.spans[1:]
	r.line = o.line
	return readCall(s, b, r)
}

// unfold lists the spans in the list of what they came from, or in one element
// of it.
func (o *otlpRows) unfold(list []byte) {
	each := func(v []byte) {
		if v[0] != '{' {
			return
		}
		var resource []byte
		if res, ok := member(v, "resource"); ok && res[0] == '{' {
			resource, _ = member(res, "attributes")
		}
		for _, scopes := range [...]string{"scopeSpans", "instrumentationLibrarySpans"} {
			list, _ := member(v, scopes)
			eachElement(list, func(scope []byte) {
				if scope[0] != '{' {
					return
				}
				spans, _ := member(scope, "spans")
				eachElement(spans, func(span []byte) { o.spans = append(o.spans, otlpSpan{span, resource}) })
			})
		}
	}
	if len(list) > 0 && list[0] == '{' {
		each(list)
		return
	}
	eachElement(list, each)
}

// readCall makes a record of a span that is a call of a model.
func readCall(s otlpSpan, b *bag, r *row) (bool, error) {
	b.reset()
	r.raw = s.span
	if s.span[0] != '{' {
		return false, &badRow{"a span that is not a JSON object"}
	}
	eachAttribute(s.resource, func(key, v []byte) { b.put(append([]byte("resource."), key...), attributeCell(v)) })
	var attributes, events, status []byte
	jsonscan.EachMember(s.span, func(key, v []byte) {
		switch string(key) {
		case "attributes":
			attributes = v
		case "events":
			events = v
		case "status":
			status = v
		default:
			b.put(append([]byte("span."), key...), jsonCell(v))
		}
	})
	eachAttribute(attributes, func(key, v []byte) { b.put(key, attributeCell(v)) })
	if !isCall(b) {
		return false, nil
	}
	if len(status) > 0 && status[0] == '{' {
		jsonscan.EachMember(status, func(key, v []byte) { b.put(append([]byte("span.status."), key...), jsonCell(v)) })
	}
	eachElement(events, func(v []byte) { readEvent(v, b, r) })
	if id := spanID(b); id != nil {
		r.raw, r.named, r.span = id, true, true
	}
	return true, callRecord(b, r)
}

// spanID is what tells a span from all others, nil where it has none. In hex
// the case does not matter, and zeros are no id; other ids, which no OTLP should
// have, are taken as they stand.
func spanID(b *bag) []byte {
	trace, span := b.text("span.traceId"), b.text("span.spanId")
	if isZero(trace) || isZero(span) {
		return nil
	}
	id := slices.Concat(trace, []byte{'/'}, span)
	if isHex(trace) && isHex(span) {
		return bytes.ToLower(id)
	}
	return id
}

func isZero(id []byte) bool { return len(bytes.Trim(id, "0")) == 0 }

func isHex(id []byte) bool { return len(bytes.Trim(id, "0123456789abcdefABCDEF")) == 0 }

// isCall tells a call of a model from the other steps of an application: tools,
// agents, embeddings. An agent's span holds its calls, which would count twice.
func isCall(b *bag) bool {
	if kind := b.text("openinference.span.kind"); kind != nil {
		return bytes.EqualFold(kind, []byte("LLM"))
	}
	switch string(b.text("gen_ai.operation.name", "llm.request.type")) {
	case "chat", "text_completion", "generate_content", "completion":
		return true
	case "":
	default:
		return false
	}
	if b.text("traceloop.span.kind") != nil || b.text("gen_ai.tool.name") != nil {
		return false
	}
	return b.text("gen_ai.request.model", "gen_ai.response.model", "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens",
		"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.request.id") != nil
}

// callRecord fills a record with what the attributes of a span say.
func callRecord(b *bag, r *row) error {
	start, err := b.moment(Nanoseconds, "span.startTimeUnixNano")
	if err != nil {
		return err
	}
	end, err := b.moment(Nanoseconds, "span.endTimeUnixNano")
	if err != nil {
		return err
	}
	r.start(start)
	r.elapsed(FieldLatency, start, end)
	if !bytes.EqualFold(b.text("gen_ai.request.stream"), falseText) {
		r.scaled(FieldTTFT, b.text("gen_ai.response.time_to_first_chunk", "gen_ai.latency.time_to_first_token"), 3)
	}
	r.whole(FieldOutputTokens, b.text("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"))
	r.money(b.text("gen_ai.usage.cost", "llm.cost.total"))
	r.give(FieldModel, b.text("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"))
	r.give(FieldUserID, b.text("user.id", "enduser.id"))
	r.give(FieldConversationID, b.text("gen_ai.conversation.id", "session.id"))
	variant := b.text("feature_flag.result.variant")
	if isArm(variant) {
		r.give(FieldArm, variant)
	}
	for _, v := range [...][]byte{b.text("resource.service.version"), b.text("gen_ai.agent.version"), b.text("gen_ai.prompt.name"), variant} {
		if v != nil {
			r.give(FieldVersion, v)
			break
		}
	}
	callStatus(b, r)
	return nil
}

// callStatus fills in the status, which OpenTelemetry says for errors alone, and
// whether a stream broke off.
func callStatus(b *bag, r *row) {
	failed := b.text("error.type") != nil
	switch string(b.text("span.status.code")) {
	case "2", "STATUS_CODE_ERROR":
		failed = true
	}
	r.cells[FieldStatus] = cell{kind: scalar, text: okText}
	if failed {
		r.failure(b.text("error.type"))
		if code := b.text("http.response.status_code", "http.status_code"); isFailure(code) {
			r.failure(code)
		} else if head, _, ok := bytes.Cut(b.text("span.status.message"), []byte(" ")); ok && isFailure(head) && !isHungUp(r) {
			r.failure(head) // the OpenAI clients begin so: 429 Rate limit reached
		}
	}
	first := r.cells[FieldTTFT].present()
	if streamed := first || bytes.EqualFold(b.text("gen_ai.request.stream"), trueText); streamed && (first || !failed) {
		r.flagged(FieldStreamAborted, failed)
	}
}

// isFailure reports whether text is an HTTP status from 400 to 599.
func isFailure(text []byte) bool {
	return len(text) == 3 && (text[0] == '4' || text[0] == '5') && text[1] >= '0' && text[1] <= '9' && text[2] >= '0' && text[2] <= '9'
}

func isHungUp(r *row) bool { return bytes.Equal(r.cells[FieldStatus].text, hungUpText) }

// readEvent reads what an event of a span says of its request: an evaluation of
// the answer, or which variant of a feature flag served it.
func readEvent(v []byte, b *bag, r *row) {
	if v[0] != '{' {
		return
	}
	name, _ := member(v, "name")
	list, _ := member(v, "attributes")
	switch string(textOf(name)) {
	case "gen_ai.evaluation.result":
		var s score
		eachAttribute(list, func(key, v []byte) {
			switch c := attributeCell(v); string(key) {
			case "gen_ai.evaluation.name":
				s.name = c.text
			case "gen_ai.evaluation.score.label":
				s.label = c.text
			case "gen_ai.evaluation.score.value":
				s.value = c.text
			}
		})
		s.judge(b, r)
	case "feature_flag.evaluation":
		eachAttribute(list, func(key, v []byte) {
			if string(key) == "feature_flag.result.variant" || string(key) == "feature_flag.variant" {
				b.put([]byte("feature_flag.result.variant"), attributeCell(v))
			}
		})
	}
}

// eachAttribute calls f for the attributes in a list of {"key","value"}.
func eachAttribute(list []byte, f func(key, value []byte)) {
	eachElement(list, func(v []byte) {
		if v[0] != '{' {
			return
		}
		key, _ := member(v, "key")
		value, ok := member(v, "value")
		if name := textOf(key); ok && len(name) > 0 {
			f(name, value)
		}
	})
}

// attributeCell is the value of an attribute: of {"intValue":"15"} it is 15. A
// 64-bit integer is a string by the standard and a number as some write it; both
// are read as they stand, never as floating point.
func attributeCell(v []byte) cell {
	if v[0] != '{' {
		return cell{kind: null}
	}
	out := cell{kind: null}
	jsonscan.EachMember(v, func(key, v []byte) {
		switch string(key) {
		case "stringValue", "intValue", "doubleValue", "boolValue":
			if c := jsonCell(v); c.kind != composite {
				out = c
			}
		case "arrayValue", "kvlistValue", "bytesValue":
			out = cell{kind: composite, text: v}
		}
	})
	return out
}
