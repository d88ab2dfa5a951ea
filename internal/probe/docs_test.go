package probe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEveryKindIsInTheReference(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "probe.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && spec.Type.(*ast.Ident).Name == "Kind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds[text] = true
		}
		return true
	})
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "preflight.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| kind | ")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented[m[1]] = true
	}
	for kind := range kinds {
		if !documented[kind] {
			t.Errorf("%s is not in the page", kind)
		}
	}
	for kind := range documented {
		if !kinds[kind] {
			t.Errorf("the page has %s, which does not exist", kind)
		}
	}
	if len(kinds) < 25 {
		t.Errorf("only %d kinds found", len(kinds))
	}
}
