package cli

import (
	"encoding/json"
	"io"
)

// encodeIndented prints one JSON document, for people and programs.
func encodeIndented(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// encodeLine prints one JSON document of several, a line each.
func encodeLine(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
