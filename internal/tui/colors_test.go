package tui

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/muesli/termenv"
)

// palettes are how many colours a terminal may have.
var palettes = []struct {
	name   string
	colors termenv.Profile
}{{"no colours", termenv.Ascii}, {"16 colours", termenv.ANSI}, {"256 colours", termenv.ANSI256}, {"all colours", termenv.TrueColor}}

// coloured is a state's frame on a terminal with so many colours.
func (s state) coloured(colors termenv.Profile, dark bool, w, h int) string {
	m := s.make()
	o := *m.o
	o.Colors, o.Dark = colors, dark
	m.o, m.theme = &o, o.theme()
	m.width, m.height = w, h
	return m.View()
}

func background(dark bool) string {
	if dark {
		return "dark"
	}
	return "light"
}

func TestColoursOfTwoStates(t *testing.T) {
	for _, name := range []string{"holding", "rolled-back"} {
		var b strings.Builder
		for _, p := range palettes {
			for _, dark := range []bool{true, false} {
				fmt.Fprintf(&b, "%s, %s\n", p.name, background(dark))
				for line := range strings.SplitSeq(stateOf(t, name).coloured(p.colors, dark, 80, 24), "\n") {
					fmt.Fprintln(&b, strings.ReplaceAll(line, "\x1b", `\e`))
				}
			}
		}
		golden(t, "colours/"+name+".txt", b.String())
	}
}

// trimmedLines is a frame without the spaces at its lines' ends, which may be of
// a style.
func trimmedLines(frame string) string {
	lines := strings.Split(frame, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// escape is a sequence that only paints.
var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestColoursSayNothingAlone(t *testing.T) {
	for _, s := range states {
		for i, size := range []struct{ w, h int }{{40, 12}, {80, 24}} {
			plain := s.coloured(termenv.Ascii, true, size.w, size.h)
			if strings.Contains(plain, "\x1b") {
				t.Errorf("%s: escapes where there are no colours", s.name)
			}
			for _, p := range palettes {
				for _, dark := range []bool{true, false}[:1+i%2] { // a light one at every second size
					painted := s.coloured(p.colors, dark, size.w, size.h)
					if diff := cmp.Diff(plain, trimmedLines(ansi.Strip(painted))); diff != "" {
						t.Errorf("%s, %s, %s, %s: another text than without colours:\n%s", s.name, p.name, background(dark), sizeName(size.w, size.h), diff)
					}
					if rest := escape.ReplaceAllString(painted, ""); strings.Contains(rest, "\x1b") {
						t.Errorf("%s, %s: an escape that does more than paint: %q", s.name, p.name, rest)
					}
				}
			}
		}
	}
}

func TestEveryLineResetsItsStyle(t *testing.T) {
	for _, s := range states {
		for _, p := range palettes {
			for i, line := range strings.Split(s.coloured(p.colors, true, 80, 24), "\n") {
				sequences := escape.FindAllString(line, -1)
				if n := len(sequences); n > 0 && sequences[n-1] != "\x1b[0m" && sequences[n-1] != "\x1b[m" {
					t.Errorf("%s, %s: line %d ends in a style: %q", s.name, p.name, i+1, line)
				}
			}
		}
	}
}

// Two states that differ in what they mean differ without any colour, also in
// the line that says whether it is safe.
func TestStatesAreToldApartWithoutColours(t *testing.T) {
	seen := map[string]string{}
	for _, s := range states {
		frame := s.coloured(termenv.Ascii, true, 80, 24)
		if other, same := seen[frame]; same {
			t.Errorf("%s looks as %s does", s.name, other)
		}
		seen[frame] = s.name
	}
}
