package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode writes a body as JSON, with < > and & as they are: receivers show
// bodies in their logs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write body: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodedLen is the length of a body; 0 if it cannot be written, which encode
// then says.
func encodedLen(v any) int {
	b, err := encode(v)
	if err != nil {
		return 0
	}
	return len(b)
}
