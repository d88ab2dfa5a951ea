package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// rungText is a rung as it is drawn.
type rungText struct {
	text  string
	style lipgloss.Style
}

// ladderBar draws the ladder in at most width columns:
//
//	✓1 › [5 ██░░░░░░ 3m of 10m] › 10 › 30 › 100
//
// Step counts from 1 and is 0 before the start; one beyond the ladder is its
// last. Zero: nobody is on the canary, and the bracket stands before the ladder.
// What the rung's hold has seen is held, of hold. As there is less room the marks
// of passed rungs go, the bar gets shorter, "3m/10m" stands in its place, then
// nothing, and at last the rungs that are farthest from the current one are left
// out.
func ladderBar(th *Theme, rungs []watch.Rung, step int, zero bool, held, hold time.Duration, width int) string {
	if width <= 0 {
		return ""
	}
	l := ladderLine{th: th, rungs: rungs, current: min(max(step, 0), len(rungs)) - 1, zero: zero, held: max(held, 0), hold: hold}
	for _, look := range []struct {
		bar    int
		figure string
		marks  bool
	}{
		{16, " of ", true}, {8, " of ", true}, {8, " of ", false}, {4, " of ", false},
		{0, "/", true}, {0, "/", false}, {0, "", true}, {0, "", false},
	} {
		texts := l.texts(look.bar, look.figure, look.marks)
		if l.wide(texts, false, false) <= width {
			return l.joined(texts, false, false)
		}
	}
	return l.around(l.texts(0, "", false), width)
}

// ladderLine is what a ladder is drawn from.
type ladderLine struct {
	th         *Theme
	rungs      []watch.Rung
	current    int // of rungs; -1: none
	zero       bool
	held, hold time.Duration
}

// texts are the rungs, the first of them weight 0 if that is where the release is.
func (l *ladderLine) texts(bar int, figure string, marks bool) (out []rungText) {
	plain := l.th.Strong.UnsetBold()
	if l.zero {
		out = append(out, rungText{"[0]", l.th.Strong})
	}
	for i, rung := range l.rungs {
		text := weightText(rung.Weight)
		switch {
		case l.zero || i > l.current:
			out = append(out, rungText{text, plain})
		case i == l.current:
			out = append(out, rungText{"[" + text + l.progress(bar, figure) + "]", l.th.Strong})
		case marks:
			out = append(out, rungText{l.th.Glyphs.Pass + text, l.th.Faint})
		default:
			out = append(out, rungText{text, l.th.Faint})
		}
	}
	return out
}

// weightText is a weight without the sign of percent.
func weightText(w release.Weight) string { return strings.TrimSuffix(w.String(), " %") }

// progress is how far the hold is. The bar is full only when the hold is over.
func (l *ladderLine) progress(bar int, between string) string {
	if l.hold <= 0 || between == "" {
		return ""
	}
	text := " "
	if bar > 0 {
		full := bar
		if l.held < l.hold {
			full = min(int(float64(l.held)/float64(l.hold)*float64(bar)), bar-1)
		}
		text += strings.Repeat(l.th.Glyphs.Full, full) + strings.Repeat(l.th.Glyphs.Empty, bar-full) + " "
	}
	return text + watch.Clock(l.held) + between + watch.Clock(l.hold)
}

// joined sets rungs side by side, with a mark where some are left out before or
// behind them.
func (l *ladderLine) joined(texts []rungText, before, behind bool) string {
	g := &l.th.Glyphs
	parts := make([]string, 0, len(texts)+2)
	if before {
		parts = append(parts, g.More)
	}
	for _, t := range texts {
		parts = append(parts, t.style.Render(t.text))
	}
	if behind {
		parts = append(parts, g.More)
	}
	return strings.Join(parts, " "+l.th.Faint.Render(g.Arrow)+" ")
}

// wide is how many columns joined takes.
func (l *ladderLine) wide(texts []rungText, before, behind bool) int {
	g := &l.th.Glyphs
	gap := 2 + ansi.StringWidth(g.Arrow)
	sum := -gap
	for _, t := range texts {
		sum += gap + ansi.StringWidth(t.text)
	}
	for _, more := range []bool{before, behind} {
		if more {
			sum += gap + ansi.StringWidth(g.More)
		}
	}
	return max(sum, 0)
}

// around leaves out, one after the other, the rung farthest from the current one,
// of two the passed one.
func (l *ladderLine) around(texts []rungText, width int) string {
	at := 0
	if !l.zero {
		at = max(l.current, 0)
	}
	from, to := 0, len(texts)
	for to-from > 1 {
		if at-from >= to-1-at {
			from++
		} else {
			to--
		}
		if kept := texts[from:to]; l.wide(kept, from > 0, to < len(texts)) <= width {
			return l.joined(kept, from > 0, to < len(texts))
		}
	}
	if from == to {
		return ""
	}
	last := slices.Clone(texts[from:to])
	last[0].text = cut(last[0].text, width, &l.th.Glyphs)
	return l.joined(last, false, false)
}
