package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// ladderOf is a ladder of so many slots of 1000.
func ladderOf(slots ...int64) []watch.Rung {
	var rungs []watch.Rung
	for _, s := range slots {
		rungs = append(rungs, watch.Rung{Weight: release.Weight{Slots: s, Ring: 1000}})
	}
	return rungs
}

func TestLadderShowsWhereTheReleaseIs(t *testing.T) {
	usual := ladderOf(10, 50, 100, 300, 1000)
	many := ladderOf(1, 5, 10, 20, 50, 100, 200, 300, 500, 700, 900, 1000)
	const held, hold = 3 * time.Minute, 10 * time.Minute
	for _, c := range []struct {
		name       string
		rungs      []watch.Rung
		step       int
		zero       bool
		held, hold time.Duration
		width      int
		want       string
	}{
		{"with all there is to say", usual, 2, false, held, hold, 80, "✓1 › [5 ████░░░░░░░░░░░░ 3m of 10m] › 10 › 30 › 100"},
		{"a shorter bar", usual, 2, false, held, hold, 45, "✓1 › [5 ██░░░░░░ 3m of 10m] › 10 › 30 › 100"},
		{"no marks", usual, 2, false, held, hold, 42, "1 › [5 ██░░░░░░ 3m of 10m] › 10 › 30 › 100"},
		{"a still shorter bar", usual, 2, false, held, hold, 40, "1 › [5 █░░░ 3m of 10m] › 10 › 30 › 100"},
		{"no bar", usual, 2, false, held, hold, 34, "✓1 › [5 3m/10m] › 10 › 30 › 100"},
		{"only the bracket", usual, 2, false, held, hold, 28, "✓1 › [5] › 10 › 30 › 100"},
		{"only the bracket, no marks", usual, 2, false, held, hold, 23, "1 › [5] › 10 › 30 › 100"},
		{"the farthest rungs left out", usual, 2, false, held, hold, 22, "1 › [5] › 10 › 30 › …"},
		{"of two as far the passed one first", usual, 3, false, held, hold, 20, "… › [10] › 30 › …"},
		{"both ends left out", many, 6, false, held, hold, 40, "… › 1 › 2 › 5 › [10] › 20 › 30 › 50 › …"},
		{"at last the current one alone", usual, 2, false, held, hold, 4, "[5]"},
		{"and that cut", usual, 5, false, held, hold, 4, "[10…"},
		{"before the start", usual, 0, false, 0, 0, 80, "1 › 5 › 10 › 30 › 100"},
		{"rolled back", usual, 3, true, held, hold, 80, "[0] › 1 › 5 › 10 › 30 › 100"},
		{"rolled back, narrow", usual, 3, true, held, hold, 20, "[0] › 1 › 5 › 10 › …"},
		{"at the end, without a hold", usual, 5, false, 0, 0, 80, "✓1 › ✓5 › ✓10 › ✓30 › [100]"},
		{"beyond the end is the last", usual, 9, false, 0, 0, 80, "✓1 › ✓5 › ✓10 › ✓30 › [100]"},
		{"a hold that is not over is never full", usual, 1, false, hold - time.Second, hold, 80, "[1 ███████████████░ 9m 59s of 10m] › 5 › 10 › 30 › 100"},
		{"one that is over is", usual, 1, false, 2 * hold, hold, 80, "[1 ████████████████ 20m of 10m] › 5 › 10 › 30 › 100"},
		{"nothing held", usual, 1, false, -hold, hold, 80, "[1 ░░░░░░░░░░░░░░░░ 0s of 10m] › 5 › 10 › 30 › 100"},
		{"exact shares", ladderOf(1, 25), 1, false, 0, 0, 80, "[0.1] › 2.5"},
		{"no ladder", nil, 2, false, held, hold, 80, ""},
		{"no ladder, rolled back", nil, 0, true, held, hold, 80, "[0]"},
		{"no columns", usual, 2, false, held, hold, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ladderBar(plainTheme(Unicode), c.rungs, c.step, c.zero, c.held, c.hold, c.width); got != c.want {
				t.Errorf("drawn as\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	got := ladderBar(plainTheme(ASCII), usual, 2, false, held, hold, 50)
	if want := "+1 > [5 ##...... 3m of 10m] > 10 > 30 > 100"; got != want {
		t.Errorf("without UTF-8 drawn as %q, want %q", got, want)
	}
}

func TestLadderFitsAndShowsTheCurrentRung(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rungs := ladderOf(rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 20).Draw(t, "slots")...)
		step, width := rapid.IntRange(-2, 25).Draw(t, "step"), rapid.IntRange(-1, 200).Draw(t, "width")
		zero := rapid.Bool().Draw(t, "zero")
		held, hold := time.Duration(rapid.Int64().Draw(t, "held")), time.Duration(rapid.Int64().Draw(t, "hold"))
		got := ladderBar(themeOf(Unicode, termenv.TrueColor), rungs, step, zero, held, hold, width)
		if ansi.StringWidth(got) > max(width, 0) {
			t.Fatalf("%d columns, at most %d: %q", ansi.StringWidth(got), width, got)
		}
		bracket := zero || step > 0 && len(rungs) > 0
		if plain := ansi.Strip(got); width >= 10 && (strings.Count(plain, "[") == 1) != bracket {
			t.Errorf("in brackets: %v, drawn as %q", bracket, plain)
		}
	})
}
