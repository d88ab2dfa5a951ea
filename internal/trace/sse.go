package trace

import "bytes"

// SSE follows one answer of an OpenAI-compatible API while its bytes come: it is
// a writer of server-sent events (WHATWG HTML, section 9.2) that looks only at
// what says how the answer went. The text of the answer is not kept.
//
//	sse := trace.NewSSE()
//	for piece := range pieces {
//		sse.Write(piece)
//		if sse.FirstToken() && firstAt.IsZero() {
//			firstAt = now()
//		}
//	}
//	sse.Close()
//
// Pieces may be cut anywhere. It never fails and holds a few MiB at most,
// whatever is written. It reads chunks of chat completions, of completions and events of
// the Responses API. An SSE is not for use by several goroutines at once.
type SSE struct {
	line    []byte // the start of a line whose end has not come
	long    bool   // that line is longer than maxEvent: what came of it is gone
	afterCR bool   // the last byte was a carriage return

	events eventLines
	answer
}

// maxEvent bounds one line and one event of an SSE.
const maxEvent = 1 << 20

// NewSSE returns an SSE that has seen nothing.
func NewSSE() *SSE {
	s := &SSE{}
	s.events.take = s.take
	return s
}

// Write takes the next bytes of the stream. It takes all of them and returns no
// error.
func (s *SSE) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.afterCR && p[0] == '\n' {
			p, s.afterCR = p[1:], false
			continue
		}
		s.afterCR = false
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			s.add(p)
			break
		}
		s.afterCR = p[i] == '\r'
		if len(s.line) == 0 && i <= maxEvent && !s.long {
			s.events.line(p[:i])
		} else {
			s.add(p[:i])
			s.endLine()
		}
		p = p[i+1:]
	}
	return n, nil
}

// Close takes an event that no blank line ended, as some captures end. It
// returns no error.
func (s *SSE) Close() error {
	if len(s.line) > 0 || s.long {
		s.endLine()
	}
	s.events.end()
	return nil
}

// add keeps the start of a line.
func (s *SSE) add(p []byte) {
	if s.long = s.long || len(s.line)+len(p) > maxEvent; s.long {
		s.line = s.line[:0]
		return
	}
	s.line = append(s.line, p...)
}

func (s *SSE) endLine() {
	if s.long {
		s.events.tooLong()
	} else {
		s.events.line(s.line)
	}
	s.line, s.long = s.line[:0], false
}

// take reads an event.
func (s *SSE) take(name, data []byte, long bool) {
	if long {
		s.skipped++
		return
	}
	s.event(data)
	s.named(name)
}

// eventLines makes events of the lines of a stream.
type eventLines struct {
	take func(name, data []byte, long bool) // gets each event; both are valid during the call

	data    []byte // the data lines of the event so far
	name    []byte // the event's name
	hasData bool
	long    bool // the event is longer than maxEvent: it is not read
	begun   bool // something came: no byte order mark any more
}

// line takes a line without its end.
func (e *eventLines) line(line []byte) {
	if !e.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		e.begun = true
	}
	if len(line) == 0 {
		e.end()
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case string(field) == "event" && len(value) <= maxName:
		e.name = append(e.name[:0], value...)
	case string(field) != "data" || e.long:
	case len(e.data)+len(value) >= maxEvent:
		e.long = true
	default:
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.hasData = true
	}
}

// tooLong takes a line that is longer than maxEvent.
func (e *eventLines) tooLong() { e.begun, e.long = true, true }

// end ends the event that has been gathered, if there is one.
func (e *eventLines) end() {
	if e.hasData || e.long {
		e.take(e.name, e.data, e.long)
	}
	e.data, e.name, e.hasData, e.long = e.data[:0], e.name[:0], false, false
}

// Event takes the data of one event, as it stands in captures that hold one
// chunk a line, or the whole body of an answer that was not streamed.
func (s *SSE) Event(data []byte) { s.event(data) }

// FirstToken reports whether anything of the answer came: text, reasoning or a
// tool call. The first chunk names the role only and does not count.
func (s *SSE) FirstToken() bool { return s.token }

// Done reports whether the answer says of itself that it is complete: [DONE],
// the last event of the Responses API, or a body that is not streamed. A stream
// that ends without it broke off, unless [SSE.Finish] says why it ended: not
// every server sends [DONE].
func (s *SSE) Done() bool { return s.done }

// Finish is the last finish reason: stop, length, tool_calls, content_filter;
// "" until there is one.
func (s *SSE) Finish() string { return s.finish }

// Err is the code, or else the type, of an error that came inside the stream,
// which HTTP answered with 200: "insufficient_quota". Where it has neither it is
// "error", and "" where there is no error. The error's message, which may quote
// the prompt, is not kept.
func (s *SSE) Err() string { return s.err }

// Usage is how many tokens the answer says it took; ok is false where it does
// not say, which servers do only when asked to.
func (s *SSE) Usage() (u Usage, ok bool) { return s.usage, s.used }

// ToolNames lists the tools called, in order, the same one twice where it was
// called twice; the first 256 of them.
func (s *SSE) ToolNames() []string {
	var names []string
	for _, c := range s.calls {
		if c.name != "" {
			names = append(names, c.name)
		}
	}
	return names
}

// Model is the model that answers, "" where nobody says.
func (s *SSE) Model() string { return s.model }

// Created is when the answer was begun by the server's clock, in seconds since
// the epoch; 0 where it does not say.
func (s *SSE) Created() int64 { return s.created }

// Events is the number of events read, [DONE] not among them.
func (s *SSE) Events() int64 { return s.answer.events }

// Skipped is the number of events that were longer than 1 MiB or no JSON.
func (s *SSE) Skipped() int64 { return s.skipped }
