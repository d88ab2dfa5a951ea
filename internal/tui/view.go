package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// The smallest terminal that the view is drawn in.
const (
	leastWidth  = 40
	leastHeight = 12
)

// View implements [tea.Model].
func (m model) View() string {
	if m.width == 0 || m.height == 0 {
		return "" // the terminal has not said how large it is
	}
	if m.width < leastWidth || m.height < leastHeight {
		return fit(fmt.Sprintf("canaryctl watch needs %dx%d, has %dx%d", leastWidth, leastHeight, m.width, m.height), m.width, &m.theme.Glyphs)
	}
	lines := m.screen()
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// below is left free under the last frame: the shell's prompt, and a line that
// the command has to say, would push what matters most off the top.
const below = 2

// screen is the lines of the view, at most its height.
func (m *model) screen() []string {
	switch {
	case m.help:
		return m.helpScreen()
	case !m.seen:
		return m.emptyScreen()
	}
	situation := watch.SituationOf(&m.snapshot, m.clock())
	foot := m.foot()
	p := page{m: m, situation: &situation, left: m.height - len(foot)}
	if m.gone {
		p.left -= below
	}
	p.head()
	if m.unfolded {
		p.detail()
	} else {
		p.table()
		p.panes()
	}
	for p.left > 0 && !m.gone {
		p.put("")
	}
	return append(p.lines, foot...)
}

// emptyScreen is drawn until something was seen.
func (m *model) emptyScreen() []string {
	lines := []string{m.theme.Strong.Render("canaryctl watch"), "", "looking at the release ..."}
	if m.failed != nil {
		lines = lines[:2]
		for _, line := range wrap("cannot look: "+safe(m.failed.Error()), m.width, m.height-6, &m.theme.Glyphs) {
			lines = append(lines, m.theme.Bad.Render(line))
		}
		lines = append(lines, wrap("It is tried again every few seconds; q quits. canaryctl rollback takes the weight to 0 all the same.", m.width, 3, &m.theme.Glyphs)...)
	}
	return lines[:min(len(lines), m.height)]
}

// page is a screen in the making.
type page struct {
	m         *model
	situation *watch.Situation
	lines     []string
	left      int // lines that are still free
}

// put adds a line, if there is room.
func (p *page) put(line string) bool {
	if p.left <= 0 {
		return false
	}
	p.lines, p.left = append(p.lines, line), p.left-1
	return true
}

// titleColumn is what the titles of the answers take.
const titleColumn = 6

// titled adds a text of up to so many lines behind a title of its own column.
func (p *page) titled(title, text string, most int) {
	th := p.m.theme
	for i, line := range wrap(safe(text), p.m.width-titleColumn, most, &th.Glyphs) {
		head := strings.Repeat(" ", titleColumn)
		if i == 0 {
			head = th.Faint.Render(fit(title, titleColumn, &th.Glyphs))
		}
		p.put(head + line)
	}
}

// styleOf is the style of a tone.
func (th *Theme) styleOf(t watch.Tone) lipgloss.Style {
	switch t {
	case watch.Good:
		return th.Good
	case watch.Warning:
		return th.Warn
	case watch.Bad:
		return th.Bad
	}
	return th.Strong
}

// signOf is the mark of a tone.
func (g *Glyphs) signOf(t watch.Tone) string {
	switch t {
	case watch.Good:
		return g.Pass
	case watch.Warning:
		return g.Unknown
	case watch.Bad:
		return g.Fail
	}
	return g.Idle
}
