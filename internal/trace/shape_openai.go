package trace

import (
	"bytes"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// completionShape is the body of an answer of an OpenAI-compatible API that was
// not streamed, one a line.
var completionShape = &shape{
	name: "openai", time: "created", one: "answer", many: "answers",
	is: func(k *keys) bool {
		switch string(textOf(k.values["object"])) {
		case "chat.completion", "text_completion":
			return !k.own() && k.has("choices")
		case "response":
			return !k.own() && k.has("output")
		case "error":
			return !k.own()
		}
		e, ok := k.values["error"]
		return ok && len(k.names) == 1 && len(e) > 0 && e[0] == '{'
	},
	read:   func(b *bag, r *row) (bool, error) { return true, readCompletion(r.raw, nil, b, r) },
	strict: true,
}

// captureShape is a request and its response, one pair a line, with whatever
// else the logger says by canaryctl's own names; and a line of the results of
// OpenAI's Batch API.
var captureShape = &shape{
	name: "openai", time: "created", one: "answer", many: "answers",
	is: func(k *keys) bool {
		request, response := k.values["request"], k.values["response"]
		if k.has("call_type") || len(response) == 0 || !k.has("custom_id") && !bytes.HasPrefix(request, []byte("{")) {
			return false
		}
		switch response[0] {
		case '{':
			inner, _ := keysOf(response)
			return inner.any("choices", "output", "error", "body", "object")
		case '"':
			return isEvents(textOf(response))
		case 'n':
			return k.has("custom_id", "error") // of a batch that could not be run
		}
		return response[0] == '['
	},
	read: readCapture,
}

// chunkShape is the answers of an OpenAI-compatible API as they were streamed:
// one chunk a line, or server-sent events as they came.
var chunkShape = &shape{
	name: "openai", time: "created", one: "stream", many: "streams",
	is: func(k *keys) bool {
		if k.own() {
			return false
		}
		kind := textOf(k.values["type"])
		switch string(textOf(k.values["object"])) {
		case "chat.completion.chunk":
			return true
		case "": // Azure's first chunk says only how its filters judged the prompt
			if k.has("object", "choices", "created") {
				return true
			}
		}
		return bytes.HasPrefix(kind, []byte("response.")) && k.any("response", "sequence_number", "delta")
	},
	strict: true,
}

// record fills a record with what an answer said. Of times it says only when
// it was begun.
func (a *answer) record(b *bag, r *row) {
	if a.created > 0 {
		r.start(moment{a.created * 1e9, a.created < maxTime/1e9})
		b.put([]byte("created"), cell{kind: scalar, text: strconv.AppendInt(nil, a.created, 10)})
	}
	r.give(FieldModel, []byte(a.model))
	if a.used {
		r.give(FieldOutputTokens, strconv.AppendInt(nil, a.usage.Output, 10))
	}
	r.cells[FieldStatus] = cell{kind: scalar, text: okText}
	if a.err != "" {
		r.failure([]byte(a.err))
	}
	b.put([]byte("model"), scalarCell([]byte(a.model)))
	b.put([]byte("finish_reason"), scalarCell([]byte(a.finish)))
	b.put([]byte("error"), scalarCell([]byte(a.err)))
}

// broke reports whether a stream did not come to its end: an error came after
// its first token, or nothing said why it ended.
func (a *answer) broke() bool {
	return a.err != "" && a.token || a.err == "" && !a.done && a.finish == ""
}

// readCompletion reads a body and the HTTP status that it came with, nil where
// nobody logged it.
func readCompletion(body, status []byte, b *bag, r *row) error {
	var a answer
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
	case body[0] == '{':
		a.event(body)
	case body[0] == '[':
		eachElement(body, a.event)
	default:
		s := NewSSE()
		s.Write(body)
		s.Close()
		a = s.answer
	}
	streamed := len(body) > 0 && body[0] != '{'
	a.record(b, r)
	if status != nil {
		if o, _ := statusOutcome(status); o != statusOK {
			r.give(FieldStatus, status)
			return nil
		}
	} else if a.err == "" && !a.done && !streamed {
		r.cells[FieldStatus] = cell{} // no answer that is known
	}
	if streamed && (a.err == "" || a.token) {
		r.flagged(FieldStreamAborted, a.broke())
	}
	return nil
}

// captureFields are what a capture may say by canaryctl's own names.
var captureFields = []Field{FieldArm, FieldVersion, FieldModel, FieldStatus, FieldLatency, FieldOutputTokens}

func readCapture(b *bag, r *row) (bool, error) {
	response := b.get("response")
	body, status := response.text, b.text("status_code")
	if !response.present() {
		body = r.raw // there may be an error beside the response that never came
	}
	if response.kind == composite && body[0] == '{' {
		if inner, ok := member(body, "body"); ok {
			for _, name := range [...]string{"status_code", "status"} {
				if v, ok := member(body, name); ok && status == nil && v[0] != '{' {
					status = jsonCell(v).text
				}
			}
			body = inner
			if inner[0] == '"' {
				body = jsonscan.Text(inner)
			}
		}
	}
	at, err := b.moment(NoUnit, FieldTS.String(), "timestamp", "created_at", "time")
	if err != nil {
		return false, err
	}
	own := make([]cell, len(captureFields))
	for i, f := range captureFields {
		own[i] = b.get(f.String())
	}
	if err := readCompletion(body, status, b, r); err != nil {
		return false, err
	}
	r.start(at)
	for i, f := range captureFields {
		if own[i].present() {
			r.cells[f] = own[i]
		}
	}
	return true, nil
}
