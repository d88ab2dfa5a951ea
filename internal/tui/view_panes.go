package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// leastChart is the smallest chart that says anything: its legend, three rows
// and its times.
const leastChart = 5

// panes are the chart of the chosen signal and the newest events, in what room
// is left.
func (p *page) panes() {
	m := p.m
	events := min(len(m.snapshot.Events), max(p.left/3, 3)) + 1
	chart := p.left - events
	switch {
	case m.pane == chartPane:
		chart, events = p.left, 0
	case m.pane == eventPane || chart < leastChart:
		chart, events = 0, p.left
	}
	if len(m.snapshot.Signals) == 0 {
		chart, events = 0, p.left
	}
	if chart >= 2 {
		p.rule(m.age())
		for _, line := range chartOf(m, p.situation.Old, chart-1) {
			p.put(line)
		}
	}
	if events > 0 {
		p.events(min(events, p.left))
	}
}

// age says of when the newest figures are.
func (m *model) age() string {
	at := m.snapshot.Source.Newest
	if at.IsZero() || m.snapshot.Replay != "" {
		return ""
	}
	return "figures up to " + at.UTC().Format("15:04:05") + ", " + watch.Clock(m.now.Sub(at)) + " ago"
}

// chartOf is the chart of the chosen signal.
func chartOf(m *model, old bool, height int) []string {
	lines := chart(m.theme, &m.snapshot.Signals[m.chosenSignal()], m.snapshot.Times, m.width, height)
	if old {
		for i := range lines {
			lines[i] = m.theme.Faint.Render(ansi.Strip(lines[i]))
		}
	}
	return lines
}

// rule is a line between two parts, with a title in it.
func (p *page) rule(title string) {
	g, th := &p.m.theme.Glyphs, p.m.theme
	if title != "" {
		title = g.Rule + g.Rule + " " + title + " "
	}
	p.put(th.Faint.Render(title + strings.Repeat(g.Rule, max(p.m.width-ansi.StringWidth(title), 0))))
}

// events are the newest lines of what happened, the newest last.
func (p *page) events(room int) {
	m := p.m
	all := m.snapshot.Events
	if room > 2 {
		p.rule("events")
		room--
	}
	if len(all) == 0 {
		p.put(m.theme.Faint.Render("nothing has happened yet"))
		return
	}
	chosen := m.chosenEvent()
	last := len(all) - max(chosen-room+1, 0) // the chosen one stays in view
	for i := max(last-room, 0); i < last; i++ {
		p.put(m.eventLine(&all[i], i == len(all)-1-chosen))
	}
}

func (m *model) eventLine(e *watch.Event, chosen bool) string {
	th := m.theme
	g := &th.Glyphs
	mark := "  "
	if chosen {
		mark = g.Chosen + " "
	}
	fold := ""
	if len(e.Detail) > 0 {
		fold = " [+]"
	}
	sign := g.signOf(e.Tone)
	head := mark + m.stamp(e) + " " + sign + " "
	text := cut(safe(e.Text), max(m.width-ansi.StringWidth(head)-len(fold), 0), g)
	style := th.styleOf(e.Tone)
	if e.Tone == watch.Plain {
		return head + text + th.Faint.Render(fold)
	}
	return mark + m.stamp(e) + " " + style.Render(sign+" "+text) + th.Faint.Render(fold)
}

// stamp is an event's time, with its day where that is not the view's.
func (m *model) stamp(e *watch.Event) string {
	at, now := e.At.UTC(), m.clock().UTC()
	form := "15:04:05"
	if m.width < 60 {
		form = "15:04"
	}
	if at.Format("2006-01-02") != now.Format("2006-01-02") {
		form = "01-02 15:04"
	}
	return at.Format(form)
}

// detail is the chosen event, unfolded.
func (p *page) detail() {
	m, e := p.m, p.m.chosen()
	if e == nil {
		return
	}
	th := m.theme
	p.rule("event, " + e.At.UTC().Format("2006-01-02 15:04:05") + " UTC")
	lines := m.detailLines(e)
	lines = lines[min(m.scroll, m.mostScroll(len(lines), p.left)):]
	if more := len(lines) - p.left + 1; more > 1 {
		for _, line := range lines[:max(p.left-1, 0)] {
			p.put(line)
		}
		lines = []string{th.Faint.Render(cut(fmt.Sprintf("%d more lines: %s", more, th.Glyphs.Down), m.width, &th.Glyphs))}
	}
	for _, line := range lines {
		p.put(line)
	}
}

// mostScroll is how far so many lines can be scrolled in so much room.
func (m *model) mostScroll(lines, room int) int { return max(lines-room, 0) }

// detailRoom is how many lines an unfolded event has on the screen.
func (m *model) detailRoom() int {
	situation := watch.SituationOf(&m.snapshot, m.clock())
	p := page{m: m, situation: &situation, left: m.height - len(m.foot())}
	p.head()
	return p.left - 1
}

func (m *model) detailLines(e *watch.Event) []string {
	g := &m.theme.Glyphs
	lines := wrap(safe(e.Text), m.width, 1000, g)
	for _, d := range e.Detail {
		lines = append(lines, hang(safe(d), m.width, g)...)
	}
	if e.Line > 0 {
		lines = append(lines, fmt.Sprintf("line %d of the journal", e.Line))
	}
	return lines
}

// hang wraps a line of details, its later lines indented.
func hang(s string, width int, g *Glyphs) []string {
	lines := wrap(s, max(width-4, 1), 1000, g)
	for i := range lines {
		if lines[i] = "  " + lines[i]; i > 0 {
			lines[i] = "  " + lines[i]
		}
	}
	return lines
}
