package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// jsonlReader reads JSON objects, one a line.
type jsonlReader struct {
	lines *lineReader // nil where the rows are cut out by somebody else
	objectReader
	truncated bool // the last line is cut off
}

func (j *jsonlReader) next(r *row) error {
	r.reset()
	for {
		text, err := j.lines.next()
		if errors.Is(err, io.EOF) && j.noTime != nil {
			return j.noTime
		}
		r.line = j.lines.line
		if err != nil {
			return err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return j.object(r, text, j.lines.cut)
		}
	}
}

// nextIn implements [carefulReader].
func (j *jsonlReader) nextIn(r *row, o *oddRow) error {
	r.reset()
	if o.long {
		return errLineTooLong()
	}
	return j.object(r, bytes.TrimSpace(o.text), o.cut)
}

// object reads one line. cut says that it has no newline.
func (j *jsonlReader) object(r *row, text []byte, cut bool) error {
	if !flatObject(text) && !json.Valid(text) {
		j.truncated = cut
		return invalidJSON(text, cut)
	}
	r.raw = text
	return j.fill(r, text)
}

func invalidJSON(text []byte, truncated bool) error {
	if truncated {
		return &badRow{"the last line is cut off: no newline, and not complete JSON"}
	}
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	if err == nil {
		return &badRow{"not valid JSON"}
	}
	return &badRow{"not valid JSON: " + strings.TrimPrefix(err.Error(), "json: ")}
}
