package shadow

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// stream puts a chat completion together that came in chunks.
type stream struct {
	content strings.Builder
	said    bool // content was given, if only as ""
	calls   []*streamedCall
	ended   bool // finish_reason or [DONE] was met
	failed  bool

	texts map[string]*strings.Builder // all that was said, by the place where it stands
	loose int                         // fragments that say not of which call they are
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
	for line := range eachLine(body) {
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(value, []byte(" ")))
		} else if len(line) == 0 {
			event()
		}
	}
	event()
	return s
}

// eachLine yields the lines of a stream, which end with CR, LF or both.
func eachLine(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			end := bytes.IndexAny(body, "\r\n")
			if end < 0 {
				yield(body)
				return
			}
			line := body[:end]
			if bytes.HasPrefix(body[end:], []byte("\r\n")) {
				end++
			}
			if body = body[end+1:]; !yield(line) {
				return
			}
		}
	}
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
	v, err := Decode(data)
	c, ok := v.(map[string]any)
	choices, listed := c["choices"].([]any)
	if err != nil || !ok || c["error"] != nil || !listed && c["choices"] != nil {
		s.failed = true
		return
	}
	for _, item := range choices {
		choice, ok := item.(map[string]any)
		delta, is := choice["delta"].(map[string]any)
		at, whole := wholeIn(choice["index"])
		if choice["index"] == nil {
			at, whole = 0, true
		}
		if !ok || !whole || !is && choice["delta"] != nil {
			s.failed = true
			return
		}
		s.hear("choices["+strconv.Itoa(at)+"].message", delta)
		if at == 0 {
			s.ended = s.ended || choice["finish_reason"] != nil
			s.delta(delta)
		}
	}
}

// hear keeps every text of a delta, joined to what was said at the same place
// before.
func (s *stream) hear(at string, v any) {
	switch v := v.(type) {
	case string:
		if s.texts == nil {
			s.texts = map[string]*strings.Builder{}
		}
		if s.texts[at] == nil {
			s.texts[at] = &strings.Builder{}
		}
		s.texts[at].WriteString(v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !silent(key) {
				s.hear(at+"."+key, v[key])
			}
		}
	case []any:
		for _, item := range v {
			m, _ := item.(map[string]any)
			i, ok := wholeIn(m["index"])
			if !ok {
				s.loose++
				i = maxStreamedCalls + s.loose
			}
			s.hear(at+"["+strconv.Itoa(i)+"]", item)
		}
	}
}

func (s *stream) delta(m message) {
	if more, ok := m["content"].(string); ok {
		s.content.WriteString(more)
		s.said = true
	}
	calls, ok := m.calls()
	s.failed = s.failed || !ok
	for i := range calls {
		call := s.call(&calls[i])
		if call == nil {
			s.failed = true
			return
		}
		call.name.WriteString(calls[i].name)
		call.arguments.WriteString(calls[i].arguments)
		call.argued = call.argued || calls[i].argued
	}
}

// call returns the call that a fragment belongs to, by its index; one without
// an index is a call of its own. It is nil for an index that no stream has.
func (s *stream) call(fragment *toolCall) *streamedCall {
	at := len(s.calls)
	if fragment.index >= 0 {
		at = fragment.index
	}
	if fragment.index < -1 || at >= maxStreamedCalls {
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
		return Answer{Parsed: s.said && isJSON(s.content.String())}
	}
	a := Answer{Parsed: true}
	for _, call := range s.calls {
		a.Parsed = a.Parsed && call.name.Len() > 0 && call.argued
		a.Tools = append(a.Tools, call.name.String())
	}
	return a
}

// structured returns what the stream holds, as [read] does.
func (s *stream) structured() (reading, error) {
	switch {
	case s.failed || !s.ended:
		return reading{}, errFailed
	case len(s.calls) == 1 && s.calls[0].argued:
		v, err := Decode([]byte(s.calls[0].arguments.String()))
		return reading{v, s.beside("choices[0].message.tool_calls[")}, err
	case len(s.calls) == 0 && s.said:
		v, err := Decode([]byte(s.content.String()))
		return reading{v, s.beside("choices[0].message.content")}, err
	}
	return reading{}, errNoContent
}

// beside returns what was said in other places than the answer's.
func (s *stream) beside(answer string) (out []spoken) {
	for _, at := range slices.Sorted(maps.Keys(s.texts)) {
		if at != answer && !(strings.HasPrefix(at, answer) && strings.HasSuffix(at, "].function.arguments")) {
			out = append(out, spoken{at, s.texts[at].String()})
		}
	}
	return out
}
