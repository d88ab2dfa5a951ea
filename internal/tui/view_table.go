package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// column is one of the table's.
type column struct {
	title string
	width int // 0: what is left
	right bool
	cell  func(m *model, row *watch.Signal, width int) (string, lipgloss.Style)
}

// columnGap is between two columns.
const columnGap = 1

// table is a row for each signal, the canary beside stable.
func (p *page) table() {
	m := p.m
	cols := m.columns()
	rows := m.rows(p.left)
	if p.left > len(rows)+1 {
		p.put(m.theme.Faint.Render(strings.TrimRight(m.header(cols), " ")))
	}
	for _, i := range rows {
		p.put(m.row(i, cols, p.situation.Old))
	}
}

// rows are the signals that there is room for: all, or those that a person must
// see first, in their own order.
func (m *model) rows(most int) []int {
	rows := make([]int, len(m.snapshot.Signals))
	for i := range rows {
		rows[i] = i
	}
	if len(rows) <= most {
		return rows
	}
	slices.SortStableFunc(rows, func(a, b int) int { return m.urgency(b) - m.urgency(a) })
	rows = rows[:max(most, 0)]
	slices.Sort(rows)
	return rows
}

// urgency is how much a person must see a row.
func (m *model) urgency(i int) int {
	row := &m.snapshot.Signals[i]
	switch row.State {
	case watch.Tripped, watch.Failing:
		return 9
	case watch.WouldFail, watch.Unknown:
		return 8
	case watch.Off, watch.Absent:
		return 0
	}
	if i == m.chosenSignal() {
		return 7
	}
	if row.State == watch.Passing {
		return 3
	}
	return 5
}

func (m *model) header(cols []column) string {
	cells := make([]string, len(cols))
	widths := m.widths(cols)
	for i, c := range cols {
		title := c.title
		if title == trendTitle {
			if title = strings.TrimSuffix(watch.Clock(watch.Points*m.snapshot.Times.Span), " 00m"); widths[i] > 7 {
				title = "last " + title
			}
		}
		cells[i] = padded(cut(title, widths[i], &m.theme.Glyphs), widths[i], c.right)
	}
	return "  " + strings.Join(cells, strings.Repeat(" ", columnGap))
}

// widths shares what is left among the columns that take it.
func (m *model) widths(cols []column) []int {
	out := make([]int, len(cols))
	left := m.width - 2 - columnGap*(len(cols)-1)
	for i, c := range cols {
		out[i] = c.width
		left -= c.width
	}
	for i, c := range cols {
		if c.width == 0 {
			out[i] = max(left, 0)
		}
	}
	return out
}

func (m *model) row(i int, cols []column, old bool) string {
	th, row := m.theme, &m.snapshot.Signals[i]
	mark := "  "
	if i == m.chosenSignal() {
		mark = th.Glyphs.Chosen + " "
	}
	cells := make([]string, len(cols))
	widths := m.widths(cols)
	for k, c := range cols {
		text, style := c.cell(m, row, widths[k])
		if old {
			style = th.Faint
		}
		cells[k] = style.Render(padded(cut(text, widths[k], &th.Glyphs), widths[k], c.right))
	}
	return th.Chosen.Render(mark) + strings.Join(cells, strings.Repeat(" ", columnGap))
}

// columns are the columns that there is room for, the first as wide as the names
// where the last can spare it.
func (m *model) columns() []column {
	cols := columnsFor(m.width)
	spare := m.widths(cols)[len(cols)-1]
	if last := &cols[len(cols)-1]; last.width > 0 {
		spare = 0
	}
	longest := cols[0].width
	for i := range m.snapshot.Signals {
		longest = max(longest, len(signalName(&m.snapshot.Signals[i])))
	}
	cols[0].width = min(longest, cols[0].width+max(spare-narrowTrend, 0))
	return cols
}

// narrowTrend is how narrow the trend may become for a longer name.
const narrowTrend = 4

// columnsFor are the columns that a width has room for.
func columnsFor(width int) []column {
	plain := func(text func(m *model, row *watch.Signal) string) func(*model, *watch.Signal, int) (string, lipgloss.Style) {
		return func(m *model, row *watch.Signal, _ int) (string, lipgloss.Style) {
			return text(m, row), lipgloss.NewStyle()
		}
	}
	signal := column{"signal", 10, false, plain(func(_ *model, r *watch.Signal) string { return signalName(r) })}
	canary := column{"canary", 8, true, plain(func(m *model, r *watch.Signal) string { return figureText(r.Value, r.Unit, &m.theme.Glyphs) })}
	stable := column{"stable", 9, true, plain(besideText)}
	limit := column{"limit", 9, true, plain(limitText)}
	room := column{"room", 6, false, func(m *model, r *watch.Signal, w int) (string, lipgloss.Style) {
		return roomBar(m.theme, r.Room, w), lipgloss.NewStyle()
	}}
	samples := column{"have/need", 9, true, plain(func(_ *model, r *watch.Signal) string { return samplesText(r, true) })}
	verdict := column{"verdict", 14, false, verdictCell}
	trend := column{trendTitle, 0, false, func(m *model, r *watch.Signal, w int) (string, lipgloss.Style) {
		return spark(m.theme, r, w), lipgloss.NewStyle()
	}}
	switch {
	case width >= 110:
		signal.width, room.width, samples.width = 12, 12, 14
		samples.cell = plain(func(_ *model, r *watch.Signal) string { return samplesText(r, false) })
		return []column{signal, canary, stable, limit, room, samples, verdict, trend}
	case width >= 76:
		return []column{signal, canary, stable, limit, room, samples, verdict, trend}
	case width >= 62:
		return []column{signal, canary, stable, limit, room, verdict}
	case width >= 53:
		return []column{signal, canary, limit, room, verdict}
	}
	room.width = 3
	return []column{signal, canary, room, verdict}
}

// trendTitle stands for the time that the trends are of.
const trendTitle = "last"

// limitText is the side of the limit that is good, and the limit.
func limitText(m *model, r *watch.Signal) string {
	text := figureText(r.Limit, r.Unit, &m.theme.Glyphs)
	switch {
	case !r.Limit.Known:
		return text
	case r.Low:
		return ">" + text
	}
	return "<" + text
}

// besideText is stable's figure, or in brackets the configured baseline.
func besideText(m *model, r *watch.Signal) string {
	text := figureText(r.Beside, r.Unit, &m.theme.Glyphs)
	if r.Beside.Known && r.Baseline {
		return "(" + text + ")"
	}
	return text
}

// samplesText is how many there are of those that are needed.
func samplesText(r *watch.Signal, short bool) string {
	if r.Needed == 0 && r.Samples == 0 {
		return "-"
	}
	form := count
	if short {
		form = brief
	}
	if r.Needed == 0 {
		return form(r.Samples)
	}
	return form(r.Samples) + "/" + form(r.Needed)
}

// brief prints a count in four columns at most.
func brief(n int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		switch per := unit.of; {
		case n < per:
		case per == 1e4:
			return fmt.Sprintf("%dk", n/1000)
		case n < 10*per:
			return fmt.Sprintf("%d.%d%s", n/per, n%per/(per/10), unit.name)
		default:
			return fmt.Sprintf("%d%s", n/per, unit.name)
		}
	}
	return fmt.Sprint(n)
}

// verdictCell says how a signal stands, by a mark and a word.
func verdictCell(m *model, r *watch.Signal, _ int) (string, lipgloss.Style) {
	th := m.theme
	g := &th.Glyphs
	switch r.State {
	case watch.Passing:
		return g.Pass + " pass", th.Good
	case watch.Failing:
		return g.Fail + " FAIL", th.Bad
	case watch.Tripped:
		return g.Fail + " TRIPPED", th.Bad
	case watch.Few:
		return g.Few + " insufficient", th.Warn
	case watch.NoData:
		return g.None + " no data", th.Warn
	case watch.Unknown:
		return g.Unknown + " error", th.Bad
	case watch.WouldFail:
		return g.Would + " would fail", th.Warn
	case watch.Off:
		return g.Off + " off", th.Faint
	case watch.Absent:
		return g.Off + " not supplied", th.Faint
	}
	return g.Idle + " not judged", th.Faint
}
