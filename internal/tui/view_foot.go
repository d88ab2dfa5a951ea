package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/x/ansi"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// foot is the last lines: a question, or a note and the keys.
func (m *model) foot() []string {
	g := &m.theme.Glyphs
	if m.asking != nil {
		return m.questionLines()
	}
	var lines []string
	note, tone := m.note, m.tone
	if notes := m.snapshot.Notes; note == "" && len(notes) > 0 && m.height >= 20 {
		note, tone = notes[0], watch.Warning
		if len(notes) > 1 {
			note = fmt.Sprintf("%s (and %d more: ?)", note, len(notes)-1)
		}
	}
	if note != "" {
		most := 1
		if m.height >= 20 {
			most = 3
		}
		for _, line := range wrap(g.signOf(tone)+" "+safe(note), m.width, most, g) {
			lines = append(lines, m.theme.styleOf(tone).Render(line))
		}
	}
	if m.gone {
		return lines
	}
	return append(lines, m.shortHelp())
}

// questionLines ask what was not confirmed yet.
func (m *model) questionLines() []string {
	th, q := m.theme, m.asking
	g := &th.Glyphs
	lines := wrap(q.says(), m.width, max(m.height/3, 3), g)
	for i := range lines {
		lines[i] = th.Warn.Bold(true).Render(lines[i])
	}
	if q.wantsReason() {
		why := "why (or nothing): "
		value, at := q.reason.text, q.reason.at
		if len(value) >= longestReason {
			why = "why (no more fits): "
		}
		typed := string(value[:at]) + "_" + string(value[at:])
		room := m.width - len(why)
		if over := ansi.StringWidth(typed) - room; over > 0 {
			typed = ansi.TruncateLeft(typed, over, "")
		}
		lines = append(lines, why+typed)
	}
	keys := keyHelp(m.keys.Cancel)
	if q.read {
		keys = keyHelp(m.keys.Confirm) + ", " + keys
	}
	return append(lines, th.Strong.Render(cut(keys, m.width, g)))
}

// shortHelp is the keys that matter most, as far as they fit.
func (m *model) shortHelp() string {
	k, th := m.keys, m.theme
	if m.unfolded {
		k.Unfold.SetHelp("enter", "fold")
	}
	always := keyHelp(k.Help) + "  " + keyHelp(k.Quit)
	line := ""
	for _, b := range []key.Binding{k.Play, k.Approve, k.RollBack, k.Pause, k.Back, k.Forward, k.NextMark, k.Unfold, k.Next, k.Pane} {
		if !b.Enabled() {
			continue
		}
		if item := keyHelp(b) + "  "; ansi.StringWidth(line+item+always) <= m.width {
			line += item
		}
	}
	return th.Faint.Render(line + always)
}

func keyHelp(b key.Binding) string { return b.Help().Key + " " + b.Help().Desc }

// legends say what the words of the table mean, the most needed first.
var legends = []string{
	"",
	"canary and stable stand for the same time; in brackets is the configured baseline, where stable has no such figure. limit: what keeps to its side is good. room: the share of the limit that is left.",
	"have/need: the samples of the canary, and from how many on it is judged. The last column is a point for each of the last 60 windows, its top the limit; the chart has the chosen signal's.",
	"violations: answers that leaked past the guard rails; beside them what stable would have had in as many requests. transfers: handed to a human. cost: as a multiple of stable's. solve_rate: solved, of those whose outcome is known.",
	"breaker CLOSED: the canary is watched, and is taken to 0 % at once where a limit is passed. OPEN: it is at 0 %. HALF_OPEN: it is on trial at the first step's share.",
}

// helpScreen is every key that can be pressed now, in as many columns as it
// takes.
func (m *model) helpScreen() []string {
	k, th := &m.keys, m.theme
	g := &th.Glyphs
	var items []string
	for _, b := range k.all() {
		if b.Enabled() {
			items = append(items, fit(b.Help().Key, 9, g)+b.Help().Desc)
		}
	}
	rows := m.height - 2
	cols := (len(items) + rows - 1) / rows
	width := m.width / max(cols, 1)
	lines := []string{th.Strong.Render(cut("keys", m.width, g))}
	for i := range min(rows, len(items)) {
		line := ""
		for c := i; c < len(items); c += rows {
			line += fit(items[c], width, g)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	for _, note := range append(slices.Clone(m.snapshot.Notes), legends...) {
		text := wrap(safe(note), m.width, 3, g)
		if len(lines)+len(text)+2 > m.height {
			break
		}
		lines = append(lines, text...)
	}
	return append(lines, th.Faint.Render("any key goes back"))
}
