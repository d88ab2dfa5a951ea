package config

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected output in the docs and golden files")

var (
	docsDir   = filepath.Join("..", "..", "docs", "reference")
	docRule   = regexp.MustCompile("(?ms)^## ([a-z0-9-]+)\n(.*?)(?:^## |\\z)")
	docBlocks = regexp.MustCompile("(?ms)^```(yaml(?: escapes)?)\n(.*?)^```\n\n```text\n(.*?)^```\n")
	docByte   = regexp.MustCompile(`\\x[0-9a-f]{2}`)
)

// sections returns the text of each rule's section of docs/reference/lint.md.
func sections(t *testing.T, doc string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := 0; ; {
		m := docRule.FindStringSubmatchIndex(doc[i:])
		if m == nil {
			return out
		}
		out[doc[i+m[2]:i+m[3]]] = doc[i+m[4] : i+m[5]]
		i += m[5]
	}
}

func TestEveryRuleIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(docsDir, "lint.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := sections(t, string(doc))
	for _, r := range Rules() {
		text, ok := documented[r.ID]
		if !ok {
			t.Errorf("rule %s is not in lint.md", r.ID)
			continue
		}
		delete(documented, r.ID)
		if paragraph, _, _ := strings.Cut(text, "```"); len(strings.TrimSpace(paragraph)) < 30 {
			t.Errorf("rule %s has no paragraph", r.ID)
		}
		if row := "| [" + r.ID + "](#" + r.ID + ") | " + r.Severity.String() + " | " + r.Short + " |\n"; !strings.Contains(string(doc), row) {
			t.Errorf("the table of rules lacks %q", row)
		}
	}
	for id := range documented {
		t.Errorf("lint.md has a rule %s that the code does not", id)
	}
}

// TestRulesHaveDistinctIDs keeps the table free of repetitions.
func TestRulesHaveDistinctIDs(t *testing.T) {
	var ids []string
	for _, r := range Rules() {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	if n := len(ids); len(slices.Compact(ids)) != n {
		t.Errorf("a rule id stands twice in %v", ids)
	}
}

// TestExamplesOfRules runs each example of lint.md. With -update it writes what
// lint says into the document instead; a person must read the difference.
func TestExamplesOfRules(t *testing.T) {
	path := filepath.Join(docsDir, "lint.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(doc)
	for id, section := range sections(t, text) {
		m := docBlocks.FindStringSubmatch(section)
		if m == nil {
			t.Errorf("rule %s has no example", id)
			continue
		}
		src := m[2]
		if m[1] != "yaml" {
			src = docByte.ReplaceAllStringFunc(src, func(s string) string {
				b, err := strconv.ParseUint(s[2:], 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				return string([]byte{byte(b)})
			})
		}
		got := lintText([]byte(src))
		if !strings.Contains(got, "["+id+"]\n") {
			t.Errorf("the example of %s does not show it:\n%s", id, got)
		}
		if *update {
			block := "```" + m[1] + "\n" + m[2] + "```\n\n```text\n"
			text = strings.Replace(text, block+m[3]+"```\n", block+got+"```\n", 1)
		} else if got != m[3] {
			t.Errorf("example of %s says\n%s\nthe document has\n%s", id, got, m[3])
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// lintText is what `canaryctl lint` prints for a source.
func lintText(src []byte) string {
	var b strings.Builder
	for _, f := range Check("canary.yaml", src) {
		b.WriteString(f.Render(Mask(src)))
	}
	return b.String()
}
