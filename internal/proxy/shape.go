package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
)

// shape is what the proxy wants to know of a chat completion request.
type shape struct {
	model       string // as it is named in output
	named       string // as it is written
	user        string
	stream      bool
	temperature string // as written; "" where the request names none
	tools       string // names the tools on offer; "" for none

	models []span // where the values of "model" stand; the last of several counts
}

// span is a piece of a text.
type span struct{ from, to int }

var errNoObject = errors.New("the request is no JSON object")

// readShape reads a request. An error says that it is not JSON as it should be,
// and then it is no request to make something of.
func readShape(text []byte) (s shape, err error) {
	in := json.NewDecoder(bytes.NewReader(text))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return s, errNoObject
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return s, err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return s, err
		}
		end := int(in.InputOffset())
		s.take(name, value, span{end - len(value), end})
	}
	if _, err := in.Token(); err != nil { // the closing brace
		return s, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return s, errNoObject // something stands behind it
	}
	return s, nil
}

// take takes one member. What is of another type than it should be is left for
// the server to refuse.
func (s *shape) take(name json.Token, value json.RawMessage, at span) {
	switch name {
	case "model":
		s.models = append(s.models, at)
		s.named = unquoted(value)
		s.model = bounded(s.named)
	case "user":
		s.user = unquoted(value)
	case "stream":
		s.stream = string(value) == "true"
	case "temperature":
		s.temperature = ""
		if len(value) <= maxNumber && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			s.temperature = string(value)
		}
	case "tools", "functions":
		if string(value) != "null" && string(value) != "[]" {
			sum := sha256.Sum256(compacted(value))
			s.tools = hex.EncodeToString(sum[:8])
		}
	}
}

// maxNumber is the length of a number that is taken for one.
const maxNumber = 32

func unquoted(value json.RawMessage) (text string) {
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// compacted is a value without its blanks, so that the same tools are the same
// however they are laid out.
func compacted(value json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return value
	}
	return out.Bytes()
}

// withModel returns the request for another model: the value of "model" is
// replaced and no other byte. A request without one is given none.
func (s *shape) withModel(text []byte, model string) []byte {
	if model == "" || model == s.named || len(s.models) == 0 {
		return text
	}
	quoted, err := json.Marshal(model)
	if err != nil {
		return text // a string is always encoded
	}
	out := make([]byte, 0, len(text)+len(s.models)*len(quoted))
	at := 0
	for _, m := range s.models {
		out = append(append(out, text[at:m.from]...), quoted...)
		at = m.to
	}
	return append(out, text[at:]...)
}
