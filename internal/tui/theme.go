package tui

import (
	"github.com/charmbracelet/lipgloss"
)

// Theme is how the view is drawn: styles for what things mean, and the marks
// that say the same without any colour.
type Theme struct {
	Glyphs Glyphs

	Good, Bad, Warn lipgloss.Style // of states and verdicts
	Strong, Faint   lipgloss.Style
	Canary, Stable  lipgloss.Style // of series
	Limit           lipgloss.Style
	Chosen          lipgloss.Style // the row or line that keys act on
	Banner          lipgloss.Style // what must not be overlooked
}

// tones are a colour in the palettes of 16, 256 and all colours.
func tones(ansi, ansi256, full string) lipgloss.CompleteColor {
	return lipgloss.CompleteColor{ANSI: ansi, ANSI256: ansi256, TrueColor: full}
}

// NewTheme returns the theme for a renderer, which knows how many colours there
// are, on a dark or a light background.
func NewTheme(r *lipgloss.Renderer, dark bool, g Glyphs) *Theme {
	pick := func(onDark, onLight lipgloss.CompleteColor) lipgloss.Style {
		if dark {
			return r.NewStyle().Foreground(onDark)
		}
		return r.NewStyle().Foreground(onLight)
	}
	bad := pick(tones("9", "203", "#ff6b6b"), tones("1", "160", "#b3261e"))
	return &Theme{
		Glyphs: g,
		Good:   pick(tones("10", "78", "#5fd787"), tones("2", "28", "#1a7f37")),
		Bad:    bad.Bold(true),
		Warn:   pick(tones("11", "221", "#ffd75f"), tones("3", "130", "#8a5a00")),
		Strong: r.NewStyle().Bold(true),
		Faint:  r.NewStyle().Faint(true),
		Canary: pick(tones("11", "221", "#ffd75f"), tones("5", "127", "#9b1fa8")),
		Stable: pick(tones("14", "80", "#5fd7d7"), tones("6", "31", "#0b7285")),
		Limit:  pick(tones("9", "203", "#ff6b6b"), tones("1", "160", "#b3261e")),
		Chosen: r.NewStyle().Bold(true),
		Banner: bad.Bold(true).Reverse(true),
	}
}
