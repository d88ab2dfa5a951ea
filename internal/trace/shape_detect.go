package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// container is what holds the rows of a file of some shape.
type container uint8

const (
	inLines     container = iota // JSON objects, one a line
	inArray                      // a JSON array
	inDocument                   // JSON objects over several lines
	inTable                      // CSV
	inEvents                     // server-sent events
	inRecording                  // an httprr trace
)

// dataKey is the list in the answers of several APIs.
const dataKey = "data"

// shapedFile says which shape a file has and what holds its rows.
type shapedFile struct {
	shape *shape
	in    container
	list  string // in a document: the key under which the rows are
}

// growing reports whether the file can be read while it grows.
func (s *shapedFile) growing() bool {
	return (s.in == inLines || s.in == inTable) && s.shape != chunkShape
}

// open makes the reader of the file's rows.
func (s *shapedFile) open(text *bufio.Reader) foreignRows {
	switch {
	case s.in == inRecording:
		return &recordingRows{text: text}
	case s.shape == chunkShape:
		return newStreamRows(newLineReader(text), s.in == inEvents)
	case s.shape == otlpShape:
		return &otlpRows{from: s.objects(text)}
	}
	return &objectRows{from: s.objects(text), shape: s.shape}
}

// objects makes the reader of the objects in the file.
func (s *shapedFile) objects(text *bufio.Reader) objects {
	switch s.in {
	case inArray, inDocument:
		return newDocumentObjects(text, s.list, s.in == inArray)
	case inTable:
		return newCSVObjects(text)
	}
	return &lineObjects{lines: newLineReader(text)}
}

// detectShape looks for a shape in the start of a file, text being its start
// without blank space. It returns nil where there is none.
func detectShape(text []byte) (*shapedFile, error) {
	switch {
	case len(text) == 0:
		return nil, nil
	case bytes.HasPrefix(text, []byte(recordingMagic)):
		return &shapedFile{shape: recordingShape, in: inRecording}, nil
	case isEvents(text):
		return &shapedFile{shape: chunkShape, in: inEvents}, nil
	case text[0] == '[':
		k, _ := keysOf(text[1:])
		if s := k.find(); s != nil && s != chunkShape {
			return &shapedFile{shape: s, in: inArray}, nil
		}
		return nil, nil
	case text[0] == '{':
		return detectObjects(text)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	probe := csvReader{lines: newLineReader(bufio.NewReader(bytes.NewReader(first)))}
	if probe.record(&row{}) != nil {
		return nil, nil
	}
	k := &keys{}
	for _, f := range probe.fields {
		k.names = append(k.names, strings.TrimSpace(string(f)))
	}
	for _, s := range []*shape{langfuseScores, langfuseTraces, langfuseShape, heliconeShape, litellmShape} {
		if s.is(k) {
			return &shapedFile{shape: s, in: inTable}, nil
		}
	}
	return nil, nil
}

// detectObjects looks for a shape in JSON lines, or in a document.
func detectObjects(text []byte) (*shapedFile, error) {
	k, whole := keysOf(text)
	found := &shapedFile{shape: k.find()}
	if rest := text; found.shape == nil && !whole {
		for range 10 { // the first line may be damaged
			_, after, more := bytes.Cut(rest, []byte("\n"))
			rest = after
			if !more {
				break
			}
			if next, whole := keysOf(rest); whole {
				found.shape = next.find()
				break
			}
		}
	}
	if first, _, more := bytes.Cut(text, []byte("\n")); more {
		first = bytes.TrimSpace(first)
		if last := first[len(first)-1]; last == '{' || last == ',' || last == '[' {
			found.in = inDocument
		}
	}
	if v, ok := k.values[dataKey]; ok && found.shape == nil && len(v) > 0 && v[0] == '[' {
		if inner, _ := keysOf(v[1:]); inner != nil {
			found.shape, found.in, found.list = inner.find(), inDocument, dataKey
		}
	}
	switch found.shape {
	case nil:
		return nil, otherTelemetry(k, text)
	case otlpShape:
		if found.in == inDocument {
			found.list = spansKey
		}
	case chunkShape:
		if found.in == inDocument {
			return nil, nil
		}
	}
	return found, nil
}

// keysOf lists the keys of the first object in text, which may be cut off: then
// whole is false, and the keys are those that are there.
func keysOf(text []byte) (k *keys, whole bool) {
	k = &keys{values: make(map[string][]byte)}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return k, false
	}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return k, false
		}
		k.names = append(k.names, name)
		at := dec.InputOffset()
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			k.values[name] = bytes.TrimLeft(text[at:], ": \t\r\n")
			return k, false
		}
		k.values[name] = v
	}
	_, err := dec.Token()
	return k, err == nil
}

// otherTelemetry says what to give instead of metrics and logs of OTLP.
func otherTelemetry(k *keys, text []byte) error {
	for _, other := range []struct{ key, what, advice string }{
		{"resourceMetrics", "metrics", "export traces of it, or send the metrics to Prometheus and name that as the source"},
		{"resourceLogs", "logs", "export traces of it: a log record says nothing of how long a request took"},
		{"resourceProfiles", "profiles", "export traces of it"},
	} {
		if k.has(other.key) && !bytes.Contains(text, []byte(`"`+spansKey+`"`)) {
			return &InputError{Msg: fmt.Sprintf("this is OTLP JSON of %s (%s), in which there are no requests", other.what, other.key), Advice: other.advice}
		}
	}
	return nil
}

// findShape looks for a shape, and remembers it.
func (s *source) findShape(text []byte, opt *Options) (bool, error) {
	if opt.mapsWindows() {
		return false, nil
	}
	if (len(text) > 0 && (text[0] == '{' || text[0] == '[')) && !bytes.ContainsRune(text, '\n') {
		more, _ := s.text.Peek(bufferSize) // one long line
		text = bytes.TrimLeft(more, " \t\r\n")
	}
	found, err := detectShape(text)
	if e, ok := errors.AsType[*InputError](err); ok {
		e.File = s.name
	}
	s.shape = found
	return found != nil, err
}

// isProtobufOTLP reports whether a file starts as the collector's file exporter
// writes it with format: proto: four bytes of length, then field 1 of a message.
func isProtobufOTLP(head []byte) bool {
	return len(head) > 5 && head[0] == 0 && head[4] == 0x0a
}

// isEvents reports whether a file starts as server-sent events do, with JSON in
// their data.
func isEvents(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		field, value, _ := bytes.Cut(line, []byte(":"))
		switch string(field) {
		case "", "event", "id", "retry":
			continue // a comment, too
		case "data":
			value = bytes.TrimSpace(value)
			return len(value) > 0 && value[0] == '{' || isDone(value)
		}
		return false
	}
	return false
}
