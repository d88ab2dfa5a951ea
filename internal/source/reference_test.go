package source

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
)

func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "source.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReferenceHasEveryPresetsQueries(t *testing.T) {
	_, text, _ := strings.Cut(reference(t), "### Presets")
	for _, name := range slices.Sorted(maps.Keys(presets())) {
		_, section, ok := strings.Cut(text, "**"+name+"**")
		section, _, _ = strings.Cut(section, "\n\n**")
		got := map[string]string{}
		for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `(.*)` \\|$").FindAllStringSubmatch(section, -1) {
			got[m[1]] = strings.ReplaceAll(m[2], `\|`, "|") // in a table
		}
		if diff := cmp.Diff(map[string]string(presets()[name]), got); diff != "" || !ok {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestReferenceExamplesAreSources makes a source of each example.
func TestReferenceExamplesAreSources(t *testing.T) {
	examples := regexp.MustCompile("(?s)```yaml\n(source:.*?)```").FindAllStringSubmatch(reference(t), -1)
	if len(examples) < 3 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, m := range examples {
		cfg, err := config.Parse("canary.yaml", []byte("canary:\n  target_service: chat\n  steps: [ { pct: 1.00, min_hold_min: 60 } ]\n"+m[1]))
		if err != nil {
			t.Errorf("%s\n%v", m[1], err)
			continue
		}
		if _, err := New(cfg.Source, Options{}); err != nil {
			t.Errorf("%s\n%v", m[1], err)
		}
	}
}
