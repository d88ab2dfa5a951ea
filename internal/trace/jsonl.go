package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// jsonlReader reads one JSON object a line.
type jsonlReader struct {
	lines *lineReader
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
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if !flatObject(text) && !json.Valid(text) {
			j.truncated = j.lines.cut
			return invalidJSON(text, j.truncated)
		}
		r.raw = text
		return j.fill(r, text)
	}
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
