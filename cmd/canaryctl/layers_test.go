package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/canaryctl/canaryctl/"

// layers lists the packages from the innermost out: a package may import only
// packages before it. Packages that nothing has filled yet keep their place.
var layers = []string{
	"release", "pattern", "jsonschema", "splice", "diag", "jsonscan", "stats", "draw", "slot", "breaker", "ladder", "throttle", "simulate", "calibrate", "shadow",
	"diagnose", "batch", "config", "trace", "scenario", "report", "envsecret", "webclient", "program", "source", "target", "journal", "state", "notify",
	"probe", "metrics", "ci", "driver", "configapi", "proxy", "watch", "tui", "cli", "servertest",
}

// pure packages have no hidden input: time is an argument.
var pure = []string{
	"release", "jsonscan", "stats", "draw", "slot", "breaker", "ladder", "throttle", "simulate", "calibrate", "shadow", "diagnose",
}

// impure is what a pure package may not import.
var impure = []string{"os", "os/exec", "os/signal", "net", "net/http", "log", "log/slog", "context", "sync", "syscall", "io/fs"}

// carried are packages that were written elsewhere and are kept as they are there,
// but for what their README says.
var carried = []string{"jsonschema"}

// owners says which packages alone may import a library directly. Tests are exempt:
// "tests" are all that may.
var owners = map[string][]string{
	"github.com/spf13/cobra":             {"cli"},
	"github.com/charmbracelet/bubbletea": {"tui"},
	"github.com/charmbracelet/lipgloss":  {"tui"},
	"github.com/charmbracelet/bubbles":   {"tui"},
	"github.com/charmbracelet/x":         {"tui"},
	"gopkg.in/yaml.v3":                   {"config", "scenario", "splice", "report", "target"},

	"html/template":                         {"tests"}, // with it the linker keeps every method: a binary a quarter larger, and slower to start
	"github.com/santhosh-tekuri/jsonschema": {"tests"}, // compiles schemas as the program starts: internal/jsonschema does not
}

// source is one non-test file of the project.
type source struct {
	pkg  string // the package's name under internal, "cmd" or "scenarios"
	path string
	file *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d files found: the walk looks in the wrong place", len(out))
	}
	return out
}

// parsed reads the project once for all tests.
var parsed = sync.OnceValues(func() (out []source, err error) {
	root := filepath.Join("..", "..")
	fset := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		parts := strings.Split(filepath.ToSlash(rel), "/")
		pkg := parts[0]
		if pkg == "internal" {
			pkg = parts[1]
		}
		out = append(out, source{pkg: pkg, path: rel, file: file, fset: fset})
		return err
	})
	return out, err
})

func imports(f *ast.File) (paths []string) {
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func TestPackagesImportOnlyInnerLayers(t *testing.T) {
	for _, s := range sources(t) {
		here := slices.Index(layers, s.pkg)
		if here < 0 && s.pkg != "cmd" && s.pkg != "scenarios" && s.pkg != "examples" {
			t.Errorf("%s: package %s has no place in the layout", s.path, s.pkg)
			continue
		}
		for _, p := range imports(s.file) {
			inner, ok := strings.CutPrefix(p, module+"internal/")
			if !ok {
				if strings.HasPrefix(p, module+"scenarios") && s.pkg != "cmd" {
					t.Errorf("%s imports scenarios: they are injected", s.path)
				}
				continue
			}
			if strings.HasPrefix(inner, s.pkg+"/") {
				continue // a part of the package
			}
			there := slices.Index(layers, strings.Split(inner, "/")[0])
			if s.pkg != "cmd" && (there < 0 || there >= here) {
				t.Errorf("%s: %s may not import %s, which is not further in", s.path, s.pkg, inner)
			}
		}
	}
}

func TestPurePackagesHaveNoHiddenInput(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(pure, s.pkg) {
			continue
		}
		for _, p := range imports(s.file) {
			if slices.Contains(impure, p) {
				t.Errorf("%s imports %s: take what it gives as an argument", s.path, p)
			}
			if s.pkg == "release" && strings.Contains(p, ".") {
				t.Errorf("%s imports %s: release has the standard library only", s.path, p)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in a pure package", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer", "NewTicker"}, n.Sel.Name) {
					t.Errorf("%s: time.%s in a pure package: time is an argument", s.fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestLibrariesStayWithTheirOwners(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range imports(s.file) {
			for lib, pkgs := range owners {
				if (p == lib || strings.HasPrefix(p, lib+"/")) && !slices.Contains(pkgs, s.pkg) {
					t.Errorf("%s imports %s, which belongs to %s", s.path, p, strings.Join(pkgs, ", "))
				}
			}
		}
	}
}

func TestOnlyTheEdgeTouchesTheProcess(t *testing.T) {
	touching := []string{"Args", "Exit", "Stdin", "Stdout", "Stderr"}
	for _, s := range sources(t) {
		if s.pkg == "cmd" || s.pkg == "cli" || s.pkg == "examples" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(touching, sel.Sel.Name) {
					t.Errorf("%s: os.%s outside cmd and cli", s.fset.Position(n.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestFunctionsFitAScreen holds the project to functions that can be seen at
// once, and every package to a doc comment.
func TestFunctionsFitAScreen(t *testing.T) {
	const longest = 80
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[filepath.Dir(s.path)] = documented[filepath.Dir(s.path)] || s.file.Doc != nil
		for _, decl := range s.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := s.fset.Position(fn.End()).Line - s.fset.Position(fn.Pos()).Line; lines > longest && !slices.Contains(carried, s.pkg) {
				t.Errorf("%s: %s has %d lines, at most %d", s.fset.Position(fn.Pos()), fn.Name.Name, lines, longest)
			}
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}
