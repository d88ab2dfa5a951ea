package ladder

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestReferenceHasEveryWhy holds docs/reference/release.md against the names.
func TestReferenceHasEveryWhy(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "release.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)<!-- why: .*?<!-- end of why -->`).Find(page)
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| .+ \\|$").FindAllSubmatch(table, -1) {
		if name := string(m[1]); name != "why" {
			got = append(got, name)
		}
	}
	if want := whyNames[WhyStart:]; !slices.Equal(got, want) {
		t.Errorf("the table of why has\n%v, the code\n%v", got, want)
	}
}
