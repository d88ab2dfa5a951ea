package shadow

import (
	"bytes"
	"encoding/json"
	"strings"
)

// stream puts a chat completion together that came in chunks.
type stream struct {
	content strings.Builder
	said    bool // content was given, if only as ""
	calls   []*streamedCall
	ended   bool // finish_reason or [DONE] was met
	failed  bool
}

// maxStreamedCalls bounds the index of a tool call, which is read off the
// stream.
const maxStreamedCalls = 1024

type streamedCall struct {
	name, arguments strings.Builder
	argued          bool // arguments were given, if only as ""
}

// readStream reads server-sent events (WHATWG HTML, section 9.2) as far as
// chat completions use them: the data of each event is a chunk, or [DONE].
func readStream(body []byte) *stream {
	s := &stream{}
	var data [][]byte
	event := func() {
		if data != nil {
			s.chunk(bytes.Join(data, []byte("\n")))
		}
		data = nil
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(value, []byte(" ")))
		} else if len(line) == 0 {
			event()
		}
	}
	event()
	return s
}

// isStream knows server-sent events by how they begin.
func isStream(text string) bool {
	for _, start := range [...]string{"data:", "event:", "id:", "retry:", ":"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// chunk adds the data of one event.
func (s *stream) chunk(data []byte) {
	if bytes.Equal(data, []byte("[DONE]")) {
		s.ended = true
		return
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil || given(c.Error) {
		s.failed = true
		return
	}
	for i := range c.Choices {
		if first := &c.Choices[i]; first.Index == 0 {
			s.ended = s.ended || given(first.FinishReason)
			s.delta(first.Delta)
		}
	}
}

func (s *stream) delta(d *message) {
	if d == nil {
		return
	}
	if more, ok := text(d.Content); ok {
		s.content.WriteString(more)
		s.said = true
	}
	for i := range d.ToolCalls {
		call := s.call(&d.ToolCalls[i])
		if call == nil {
			s.failed = true
			return
		}
		name, _ := text(d.ToolCalls[i].Function.Name)
		call.name.WriteString(name)
		arguments, argued := text(d.ToolCalls[i].Function.Arguments)
		call.arguments.WriteString(arguments)
		call.argued = call.argued || argued
	}
}

// call returns the call that a fragment belongs to, by its index; one without
// an index is a call of its own. It is nil for an index that no stream has.
func (s *stream) call(fragment *toolCall) *streamedCall {
	at := len(s.calls)
	if fragment.Index != nil {
		at = *fragment.Index
	}
	if at < 0 || at >= maxStreamedCalls {
		return nil
	}
	for len(s.calls) <= at {
		s.calls = append(s.calls, &streamedCall{})
	}
	return s.calls[at]
}

func (s *stream) answer() Answer {
	if s.failed || !s.ended {
		return Answer{Failed: true}
	}
	if len(s.calls) == 0 {
		return Answer{Parsed: s.said && json.Valid([]byte(s.content.String()))}
	}
	a := Answer{Parsed: true}
	for _, call := range s.calls {
		a.Parsed = a.Parsed && call.name.Len() > 0 && call.argued
		a.Tools = append(a.Tools, call.name.String())
	}
	return a
}

// structured returns the value that the stream holds, as [Extract] does.
func (s *stream) structured() (any, error) {
	switch {
	case s.failed || !s.ended:
		return nil, errFailed
	case len(s.calls) == 1 && s.calls[0].argued:
		return Decode([]byte(s.calls[0].arguments.String()))
	case len(s.calls) == 0 && s.said:
		return Decode([]byte(s.content.String()))
	}
	return nil, errNoContent
}
