package shadow

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Answer is what is compared of a chat completion. It holds no text of it but
// the names of the tools.
type Answer struct {
	// Parsed is true if every tool call has a name and an arguments string or,
	// where there are no tool calls, the content is JSON.
	Parsed bool
	// Tools is the names of the tools called, in order.
	Tools []string
	// ToolsUnknown says that nobody knows which tools were called, as where only
	// the verdict on an answer was logged. It is not the same as none.
	ToolsUnknown bool
	// LatencyMS is how long the answer took, if Timed.
	LatencyMS float64
	// Timed says that LatencyMS is known.
	Timed bool
	// Failed is true if there was no answer: refused, timed out, an error in
	// place of choices, a stream that broke off. It counts as not parsed, and
	// not among the slow ones.
	Failed bool
}

// message is what a choice of a completion says, or a part of it that came in a
// chunk: content, tool_calls and whatever else.
type message map[string]any

// ReadAnswer reads the body of a chat completion: one chat.completion object,
// or the server-sent events of one that was streamed. Its first choice counts.
// A body that is neither, that holds an error, or that readers of JSON read
// differently, is an answer that failed.
func ReadAnswer(body []byte) Answer {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if len(body) > 0 && body[0] != '{' {
		return readStream(body).answer()
	}
	v, err := Decode(body)
	c, _ := v.(map[string]any)
	m := message(firstMessage(c))
	if err != nil || c["error"] != nil || m == nil {
		return Answer{Failed: true}
	}
	return m.answer()
}

// answer judges a whole message.
func (m message) answer() Answer {
	calls, ok := m.calls()
	if !ok {
		return Answer{Failed: true}
	}
	if len(calls) == 0 {
		content, ok := m["content"].(string)
		return Answer{Parsed: ok && isJSON(content)}
	}
	a := Answer{Parsed: true, Tools: make([]string, 0, len(calls))}
	for i := range calls {
		a.Parsed = a.Parsed && calls[i].name != "" && calls[i].argued
		a.Tools = append(a.Tools, calls[i].name)
	}
	return a
}

// toolCall is a call of a tool, or a fragment of one.
type toolCall struct {
	index     int // -1: none is given
	name      string
	arguments string
	argued    bool // arguments are a string, if only ""
}

// calls returns the tool calls of a message; false where they are no calls. A
// name or arguments that are no string are none.
func (m message) calls() ([]toolCall, bool) {
	if m["tool_calls"] == nil {
		return nil, true
	}
	list, ok := m["tool_calls"].([]any)
	if !ok {
		return nil, false
	}
	calls := make([]toolCall, 0, len(list))
	for _, item := range list {
		call, ok := item.(map[string]any)
		function, is := call["function"].(map[string]any)
		if !ok || !is && call["function"] != nil {
			return nil, false
		}
		of := toolCall{index: -1}
		of.name, _ = function["name"].(string)
		of.arguments, of.argued = function["arguments"].(string)
		if call["index"] != nil {
			if of.index, ok = wholeIn(call["index"]); !ok {
				return nil, false
			}
		}
		calls = append(calls, of)
	}
	return calls, true
}

// wholeIn reads a small whole number.
func wholeIn(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(string(n))
	return i, err == nil
}

func isJSON(text string) bool {
	_, err := Decode([]byte(text))
	return err == nil
}
