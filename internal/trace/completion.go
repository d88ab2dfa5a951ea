package trace

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// Usage is what an answer says of its tokens. In this API cached tokens are part
// of Input and reasoning is part of Output.
type Usage struct{ Input, Output, Total int64 }

// answer is what the objects of an OpenAI-compatible API say of one answer:
// chunks, whole completions, or events of the Responses API.
type answer struct {
	events, skipped int64

	token, done bool
	finish      string
	err         string
	usage       Usage
	used        bool
	calls       []toolCall
	model       string
	created     int64
}

// toolCall is one call of a tool, found again by its place until its arguments
// have come.
type toolCall struct {
	choice, index int64
	id, name      string
}

const (
	// maxCalls bounds the tool calls of one answer.
	maxCalls = 256
	// maxName bounds the names kept: of models, tools and errors.
	maxName = 128
	// unnamedError is the class of an error that names none.
	unnamedError = "error"
)

// event takes the data of one event or a whole body.
func (a *answer) event(data []byte) {
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		a.done = true
		return
	}
	if len(data) == 0 || data[0] != '{' || !json.Valid(data) {
		a.skipped++
		return
	}
	a.events++
	var object, kind []byte
	jsonscan.EachMember(data, func(key, v []byte) {
		switch string(key) {
		case "object":
			object = textOf(v)
		case "type":
			kind = textOf(v)
		}
	})
	switch {
	case bytes.HasPrefix(kind, []byte("response.")):
		a.responseEvent(string(kind), data)
	case string(object) == "response":
		a.response(data)
		a.output(data)
		a.done = true
	default:
		a.completion(data)
		if string(object) == "error" || string(kind) == "error" {
			a.fail(data) // the error's members stand in the object itself
		}
		switch string(object) {
		case "chat.completion":
			a.done = true
		case "text_completion": // of a chunk and of a whole answer alike
			a.done = a.done || a.finish != ""
		}
	}
}

// named takes the name of the event just read.
func (a *answer) named(name []byte) {
	if string(name) == "error" && a.err == "" {
		a.err = unnamedError
	}
}

// completion reads a chat completion, a chunk of one, or an error in place of
// it.
func (a *answer) completion(obj []byte) {
	jsonscan.EachMember(obj, func(key, v []byte) {
		switch string(key) {
		case "model":
			a.model = nameOr(v, a.model)
		case "created":
			a.created = wholeOr(v, a.created)
		case "usage":
			a.use(v)
		case "error":
			a.fail(v)
		case "choices":
			eachElement(v, a.choice)
		}
	})
}

func (a *answer) choice(v []byte) {
	if v[0] != '{' {
		return
	}
	at := int64(0)
	if i, ok := member(v, "index"); ok {
		at = wholeOr(i, 0)
	}
	jsonscan.EachMember(v, func(key, v []byte) {
		switch string(key) {
		case "delta", "message":
			a.delta(at, v)
		case "text":
			a.token = a.token || holds(v)
		case "error":
			a.fail(v)
		case "finish_reason":
			a.finish = nameOr(v, a.finish)
			if a.finish == "error" && a.err == "" {
				a.err = unnamedError
			}
		}
	})
}

// delta reads what a chunk adds, or a whole message.
func (a *answer) delta(choice int64, v []byte) {
	if v[0] != '{' {
		return
	}
	jsonscan.EachMember(v, func(key, v []byte) {
		switch string(key) {
		case "content", "reasoning_content", "reasoning", "refusal", "audio":
			a.token = a.token || holds(v)
		case "tool_calls":
			at := int64(0)
			eachElement(v, func(v []byte) {
				a.toolCall(choice, at, v)
				at++
			})
		case "function_call":
			if v[0] == '{' {
				a.token = true
				name, _ := member(v, "name")
				a.call(toolCall{choice: choice, name: nameOr(name, "")})
			}
		}
	})
}

// toolCall reads one element of tool_calls; at is its place where it names none.
func (a *answer) toolCall(choice, at int64, v []byte) {
	if v[0] != '{' {
		return
	}
	a.token = true
	c := toolCall{choice: choice, index: at}
	jsonscan.EachMember(v, func(key, v []byte) {
		switch string(key) {
		case "index":
			c.index = wholeOr(v, at)
		case "id":
			c.id = nameOr(v, "")
		case "function":
			if v[0] == '{' {
				name, _ := member(v, "name")
				c.name = nameOr(name, "")
			}
		}
	})
	a.call(c)
}

// call adds to the call at the same place, unless it has another id: some
// servers give every call the place 0.
func (a *answer) call(c toolCall) {
	for i := len(a.calls) - 1; i >= 0; i-- {
		old := &a.calls[i]
		if old.choice != c.choice || old.index != c.index {
			continue
		}
		if c.id != "" && old.id != "" && c.id != old.id {
			break
		}
		if old.name == "" {
			old.name = c.name
		}
		return
	}
	if len(a.calls) < maxCalls {
		a.calls = append(a.calls, c)
	}
}

// responseEvent reads an event of the Responses API.
func (a *answer) responseEvent(kind string, obj []byte) {
	if inner, ok := member(obj, "response"); ok && inner[0] == '{' {
		a.response(inner)
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		a.done = true
	case "response.output_item.added":
		if item, ok := member(obj, "item"); ok {
			a.item(item)
		}
	}
	if delta, ok := member(obj, "delta"); ok && strings.HasSuffix(kind, ".delta") {
		a.token = a.token || holds(delta)
	}
}

// response reads the object that events of the Responses API carry.
func (a *answer) response(obj []byte) {
	jsonscan.EachMember(obj, func(key, v []byte) {
		switch string(key) {
		case "model":
			a.model = nameOr(v, a.model)
		case "created_at":
			a.created = wholeOr(v, a.created)
		case "usage":
			a.use(v)
		case "error":
			a.fail(v)
		case "status":
			if s := nameOr(v, ""); s != "in_progress" && s != "queued" {
				a.finish = s
			}
			if a.finish == "failed" && a.err == "" {
				a.err = unnamedError
			}
		}
	})
}

// output reads the items of a response that was not streamed.
func (a *answer) output(obj []byte) {
	items, ok := member(obj, "output")
	if !ok {
		return
	}
	eachElement(items, a.item)
}

func (a *answer) item(v []byte) {
	if v[0] != '{' {
		return
	}
	kind, _ := member(v, "type")
	switch string(textOf(kind)) {
	case "function_call", "custom_tool_call":
		a.token = true
		id, _ := member(v, "call_id")
		name, _ := member(v, "name")
		a.call(toolCall{id: nameOr(id, ""), name: nameOr(name, "")})
	case "message":
		if content, ok := member(v, "content"); ok {
			a.token = a.token || holds(content)
		}
	}
}

// use reads a usage object; of several, which some servers send, the last counts.
func (a *answer) use(v []byte) {
	if v[0] != '{' {
		return
	}
	u := Usage{-1, -1, -1}
	jsonscan.EachMember(v, func(key, v []byte) {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			u.Input = wholeOr(v, u.Input)
		case "completion_tokens", "output_tokens":
			u.Output = wholeOr(v, u.Output)
		case "total_tokens":
			u.Total = wholeOr(v, u.Total)
		}
	})
	if u.Input < 0 || u.Output < 0 {
		return
	}
	if u.Total < 0 {
		u.Total = u.Input + u.Output
	}
	a.usage, a.used = u, true
}

// fail reads an error, whose code says more than its type. The first one counts,
// unless it named nothing.
func (a *answer) fail(v []byte) {
	if v[0] == 'n' || a.err != "" && a.err != unnamedError {
		return
	}
	class := ""
	if v[0] == '{' {
		code, _ := member(v, "code")
		kind, _ := member(v, "type")
		if class = nameOr(code, ""); class == "" {
			class = nameOr(kind, "")
		}
	}
	if class == "" || class == "null" {
		class = unnamedError
	}
	a.err = class
}

// holds reports whether a value says anything: no null, no empty string, array
// or object.
func holds(v []byte) bool {
	switch v[0] {
	case '"':
		return len(v) > 2
	case '{':
		return v[jsonscan.SkipSpace(v, 1)] != '}'
	case '[':
		return v[jsonscan.SkipSpace(v, 1)] != ']'
	}
	return v[0] != 'n'
}

// textOf is a string's text, nil for any other value.
func textOf(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return jsonscan.Text(v)
}

// nameOr is a string or a number as a name of bounded length, or else what there
// was.
func nameOr(v []byte, or string) string {
	if len(v) == 0 {
		return or
	}
	text := v
	switch v[0] {
	case '"':
		text = jsonscan.Text(v)
	case '{', '[', 'n', 't', 'f':
		return or
	}
	if len(text) == 0 {
		return or
	}
	if string(text) == or {
		return or // without another copy for each of a thousand chunks
	}
	return string(validText(text[:min(len(text), maxName)]))
}

// wholeOr is a whole number of at least 0, or else what there was.
func wholeOr(v []byte, or int64) int64 {
	n, fig := parseNumber(v)
	if fig != finite {
		return or
	}
	if w, ok := n.floor(0); ok && w >= 0 {
		return w
	}
	return or
}

// eachElement calls f for every element of an array in order, as written. Of
// anything else there are none. v must be valid JSON.
func eachElement(v []byte, f func(v []byte)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	i := jsonscan.SkipSpace(v, 1)
	for v[i] != ']' {
		end := jsonscan.ValueEnd(v, i)
		f(v[i:end])
		i = jsonscan.SkipSpace(v, end)
		if v[i] == ',' {
			i = jsonscan.SkipSpace(v, i+1)
		}
	}
}
