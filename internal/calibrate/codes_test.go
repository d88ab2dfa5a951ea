package calibrate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code of a refusal or a warning has a line in the reference.
func TestEveryCodeIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/calibrate.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`\.(?:warn|add|fail)\("([a-z-]+)"`)
	found := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllStringSubmatch(string(src), -1) {
			found++
			if name := "`" + m[1]; !strings.Contains(string(page), name) {
				t.Errorf("%s: %s is not in docs/reference/calibrate.md", file, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d codes found; has the way they are added changed?", found)
	}
}
