package tui

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"
	"github.com/muesli/termenv"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata with what is drawn now; read the diff")

// golden compares what was drawn with testdata/<name>.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what is drawn now (-want +got):\n%s", path, diff)
	}
}

// themeOf is a theme for tests, on a dark background with as many colours.
func themeOf(g Glyphs, colors termenv.Profile) *Theme {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(colors)
	return NewTheme(r, true, g)
}

// plainTheme is a theme without any style: what is drawn must read well as it is.
func plainTheme(g Glyphs) *Theme { return themeOf(g, termenv.Ascii) }
