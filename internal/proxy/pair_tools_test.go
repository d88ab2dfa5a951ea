package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/shadow"
)

// An answer without tool calls is written as one: where tools are absent nobody
// knows which were called, and the pair is outside the check of tools.
func TestNoToolsAreWrittenAsNone(t *testing.T) {
	var s sideLine
	s.of(&shadow.Answer{Parsed: true}, "f")
	text, err := json.Marshal(&s)
	if err != nil || !strings.Contains(string(text), `"tools":[]`) {
		t.Errorf("%s: %v", text, err)
	}
}
