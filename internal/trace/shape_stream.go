package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// streamRows makes one row of each stream in a file of streams. A stream ends
// with [DONE], with the last event of the Responses API, where an event of
// another id comes, and with the file.
type streamRows struct {
	lines *lineReader
	sse   bool // the lines are those of server-sent events; else each is one chunk
	split eventLines

	got        bool // split has made an event
	data, name []byte
	long       bool
	at         int64 // the line where its data begin

	now  *answer // the stream that is being read, nil between two
	id   string
	line int64  // where it began
	raw  []byte // its first event
}

func newStreamRows(lines *lineReader, sse bool) *streamRows {
	s := &streamRows{lines: lines, sse: sse}
	s.split.take = func(name, data []byte, long bool) { s.got, s.name, s.data, s.long = true, name, data, long }
	return s
}

func (s *streamRows) restart()     {}
func (s *streamRows) cutOff() bool { return !s.sse && s.lines.cut }

func (s *streamRows) next(b *bag, r *row) (bool, error) {
	b.reset()
	for {
		data, err := s.event()
		r.line = s.at
		if errors.Is(err, io.EOF) && s.now != nil {
			s.finish(b, r)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		id := streamID(data)
		if s.now != nil && !isDone(data) && (s.now.done || id != "" && s.id != "" && id != s.id) {
			s.finish(b, r)
			s.take(data, id)
			return true, nil
		}
		s.take(data, id)
	}
}

// take adds an event to the stream, and begins one if there is none.
func (s *streamRows) take(data []byte, id string) {
	if s.now == nil {
		if isDone(data) {
			return
		}
		s.now, s.id, s.line, s.raw = &answer{}, "", s.at, bytes.Clone(data)
	}
	if s.id == "" {
		s.id = id
	}
	s.now.event(data)
	s.now.named(s.name)
}

// finish makes a row of the stream.
func (s *streamRows) finish(b *bag, r *row) {
	a := s.now
	s.now = nil
	r.line, r.raw, r.named = s.line, s.raw, s.id != ""
	b.put([]byte("id"), scalarCell([]byte(s.id)))
	a.record(b, r)
	if a.err == "" || a.token {
		r.flagged(FieldStreamAborted, a.broke())
	}
}

// event returns the data of the next event, [DONE] or a JSON object; its name,
// if it has one, is in s.name.
func (s *streamRows) event() ([]byte, error) {
	for {
		s.got, s.name, s.long = false, nil, false
		text, err := s.lines.next()
		if !s.split.hasData {
			s.at = s.lines.line
		}
		_, bad := errors.AsType[*badRow](err)
		switch {
		case !s.sse && err == nil:
			s.data, s.got = bytes.TrimSpace(text), !blank(text)
		case !s.sse:
			return nil, err
		case errors.Is(err, io.EOF):
			if s.split.end(); !s.got {
				return nil, err
			}
		case bad:
			s.split.tooLong()
		case err != nil:
			return nil, err
		default:
			s.split.line(text)
		}
		switch {
		case !s.got:
			continue
		case s.long:
			return nil, &badRow{fmt.Sprintf("an event longer than %d MiB", maxEvent>>20)}
		case !isDone(s.data) && !validObject(s.data):
			return nil, invalidJSON(s.data, s.lines.cut)
		}
		return s.data, nil
	}
}

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// streamID is the id that the events of a stream share, "" where one has none.
func streamID(data []byte) string {
	if isDone(data) {
		return ""
	}
	v, ok := member(data, "id")
	if inner, nested := member(data, "response"); nested && inner[0] == '{' {
		v, ok = member(inner, "id")
	}
	if !ok {
		return ""
	}
	return nameOr(v, "")
}
