package notify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReferenceSaysWhatTheTablesSay holds docs/reference/notify.md to events,
// alerts and codes.
func TestReferenceSaysWhatTheTablesSay(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "notify.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	_, events, _ := strings.Cut(doc, "\n## Events\n")
	events, _, _ = strings.Cut(events, "\n## ")
	for e := range words {
		if !strings.Contains(events, "`"+string(e)+"`") {
			t.Errorf("%s is not among the events", e)
		}
	}
	for _, al := range alerts {
		ends := "itself, after 5 minutes"
		if len(al.ends) > 0 {
			var names []string
			for _, e := range al.ends {
				names = append(names, "`"+string(e)+"`")
			}
			ends = strings.Join(names, ", ")
		}
		row := "| `" + string(al.event) + "` | `" + al.name + "` | " + al.severity + " | " + ends + " |\n"
		if !strings.Contains(doc, row) {
			t.Errorf("the table of alerts has no row %s", row)
		}
	}
	for _, v := range variables(Message{}) {
		if name, _, _ := strings.Cut(v, "="); !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("%s is not told", name)
		}
	}
	if !strings.Contains(doc, "sha256="+webhookSign("this is secret", "1599360473", []byte(`{"a":1}`))) {
		t.Error("the example of a signature is not right")
	}
}
