package tui

import (
	"math"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/canaryctl/canaryctl/internal/watch"
)

const (
	roomFigure = len(" >99 %") // columns of a room's percentage, which is set to the right
	roomLeast  = 3             // cells from which on a bar has its percentage beside it
)

// roomBar draws how much of the way to the limit is left, in exactly width
// columns: full is far from the limit. Only a room of 0 has no cell filled and
// only one of 1 has all of them; between, it is the nearest number of cells, but
// at least one is filled and one is not. A bar of a single cell is filled where
// anything is left. The percentage keeps to the same: "<1 %" and ">99 %" are
// neither end.
func roomBar(th *Theme, room watch.Figure, width int) string {
	if width <= 0 {
		return ""
	}
	if !known(room) {
		return fit(missing, width, &th.Glyphs)
	}
	left := min(max(room.Value, 0), 1)
	cells, figure := width, ""
	if width >= roomFigure+roomLeast {
		cells = width - roomFigure
		text := roomPercent(left)
		figure = strings.Repeat(" ", roomFigure-len(text)) + text
	}
	style := th.roomStyle(left)
	full := filledCells(left, cells)
	return painted(style, strings.Repeat(th.Glyphs.Full, full)) +
		painted(th.Faint, strings.Repeat(th.Glyphs.Empty, cells-full)) + painted(style, figure)
}

func (th *Theme) roomStyle(left float64) lipgloss.Style {
	switch {
	case left <= 0:
		return th.Bad
	case left <= 0.5:
		return th.Warn
	default:
		return th.Good
	}
}

// filledCells is the rule that roomBar states.
func filledCells(left float64, cells int) int {
	switch {
	case left <= 0:
		return 0
	case left >= 1 || cells < 2:
		return cells
	default:
		return min(max(int(math.Round(left*float64(cells))), 1), cells-1)
	}
}

func roomPercent(left float64) string {
	switch {
	case left > 0 && left < 0.01:
		return "<1 %"
	case left > 0.99 && left < 1:
		return ">99 %"
	default:
		return strconv.Itoa(int(math.Round(left*100))) + " %"
	}
}

// painted renders text that has something in it: a style of nothing is nothing.
func painted(style lipgloss.Style, text string) string {
	if text == "" {
		return ""
	}
	return style.Render(text)
}
