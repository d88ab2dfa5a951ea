package tui

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/watch"
)

func TestRoomIsFullFarFromTheLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		room  watch.Figure
		width int
		want  string
	}{
		{"all of it", watch.Known(1), 12, "██████ 100 %"},
		{"most of it", watch.Known(0.83), 12, "█████░  83 %"},
		{"a little of it", watch.Known(0.1), 12, "█░░░░░  10 %"},
		{"none of it", watch.Known(0), 12, "░░░░░░   0 %"},
		{"hardly any is not none", watch.Known(0.001), 12, "█░░░░░  <1 %"},
		{"hardly less than all is not all", watch.Known(0.999), 12, "█████░ >99 %"},
		{"past the limit is none", watch.Known(-3), 12, "░░░░░░   0 %"},
		{"better than the reference is all", watch.Known(7), 12, "██████ 100 %"},
		{"no room for the figure", watch.Known(0.5), 8, "████░░░░"},
		{"a single cell with something left", watch.Known(0.1), 1, "█"},
		{"a single cell with nothing left", watch.Known(0), 1, "░"},
		{"missing", watch.Figure{}, 5, "-    "},
		{"not a number", watch.Known(math.NaN()), 3, "-  "},
		{"no columns", watch.Known(1), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := roomBar(plainTheme(Unicode), c.room, c.width); got != c.want {
				t.Errorf("drawn as %q, want %q", got, c.want)
			}
		})
	}
	if got, want := roomBar(plainTheme(ASCII), watch.Known(0.5), 12), "###...  50 %"; got != want {
		t.Errorf("without UTF-8 drawn as %q, want %q", got, want)
	}
}

func TestRoomTakesItsColumnsAndGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		th := themeOf(Unicode, termenv.TrueColor)
		width := rapid.IntRange(-1, 200).Draw(t, "width")
		a, b := rapid.Float64().Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		less, more := roomBar(th, watch.Known(min(a, b)), width), roomBar(th, watch.Known(max(a, b)), width)
		for _, bar := range []string{less, more} {
			if got := ansi.StringWidth(bar); got != max(width, 0) {
				t.Fatalf("%d columns, want %d: %q", got, width, bar)
			}
		}
		if strings.Count(less, Unicode.Full) > strings.Count(more, Unicode.Full) {
			t.Errorf("more room, less bar: %q, %q", less, more)
		}
	})
}
