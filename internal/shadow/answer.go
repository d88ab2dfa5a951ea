package shadow

import (
	"bytes"
	"encoding/json"
)

// Answer is what is compared of a chat completion. It holds no text of it but
// the names of the tools.
type Answer struct {
	// Parsed is true if every tool call has a name and an arguments string or,
	// where there are no tool calls, the content is JSON.
	Parsed bool
	// Tools is the names of the tools called, in order.
	Tools []string
	// LatencyMS is how long the answer took, if Timed.
	LatencyMS float64
	// Timed says that LatencyMS is known.
	Timed bool
	// Failed is true if there was no answer: refused, timed out, an error in
	// place of choices, a stream that broke off. It counts as not parsed, and
	// not among the slow ones.
	Failed bool
}

// completion is the part of a chat.completion, or of a chunk of one, that is
// looked at. What may be of another type than it should stays raw.
type completion struct {
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
}

type choice struct {
	Index        int             `json:"index"`
	Message      *message        `json:"message"`
	Delta        *message        `json:"delta"`
	FinishReason json.RawMessage `json:"finish_reason"`
}

type message struct {
	Content   json.RawMessage `json:"content"`
	ToolCalls []toolCall      `json:"tool_calls"`
}

type toolCall struct {
	Index    *int `json:"index"`
	Function struct {
		Name      json.RawMessage `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// ReadAnswer reads the body of a chat completion: one chat.completion object,
// or the server-sent events of one that was streamed. Its first choice counts.
// A body that is neither, or that holds an error, is an answer that failed.
func ReadAnswer(body []byte) Answer {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if len(body) > 0 && body[0] != '{' {
		return readStream(body).answer()
	}
	var c completion
	if err := json.Unmarshal(body, &c); err != nil || given(c.Error) || len(c.Choices) == 0 || c.Choices[0].Message == nil {
		return Answer{Failed: true}
	}
	return c.Choices[0].Message.answer()
}

// answer judges a whole message.
func (m *message) answer() Answer {
	if len(m.ToolCalls) == 0 {
		content, ok := text(m.Content)
		return Answer{Parsed: ok && json.Valid([]byte(content))}
	}
	a := Answer{Parsed: true, Tools: make([]string, 0, len(m.ToolCalls))}
	for i := range m.ToolCalls {
		name, named := text(m.ToolCalls[i].Function.Name)
		_, argued := text(m.ToolCalls[i].Function.Arguments)
		a.Parsed = a.Parsed && named && name != "" && argued
		a.Tools = append(a.Tools, name)
	}
	return a
}

// given reports whether a member is there and not null.
func given(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

// text returns the value of a JSON string.
func text(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}
