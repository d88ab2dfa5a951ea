package tui

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/canaryctl/canaryctl/internal/watch"
)

const (
	chartLeast     = 4  // lines from which on there is a plot
	chartRuled     = 8  // lines from which on the plot stands on a rule
	plotLeast      = 10 // columns that labels must leave to the plot
	limitReach     = 9  // a limit is shown in its place up to so many times the data's own extent away
	labelGap       = 7  // columns between times
	nothingSoFar   = "no data yet"
	clockTime      = "15:04"
	secondTime     = "15:04:05"
	dateTime       = "Jan _2 15:04"
	labelSpanDates = 24 * time.Hour // from which on times have dates
)

// chart draws the canary over stable with the limit as a line, in at most height
// lines of at most width columns: what the marks mean, the plot with its values
// on the left, and times (UTC) below. With less than four lines there is a
// sparkline in place of the plot.
//
// One cell is one column. Several points in a cell are the worst of the canary's
// and the mean of stable's; the canary covers stable, and stable the limit. A
// missing window is a gap. The canary's points at the limit or past it have the
// mark of a failed verdict.
func chart(th *Theme, sig *watch.Signal, times watch.Times, width, height int) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	g := &th.Glyphs
	if !anyKnown(sig.Canary) && !anyKnown(sig.Stable) {
		lines := []string{cut(signalName(sig), width, g), cut(nothingSoFar, width, g)}
		if height == 1 {
			return []string{cut(signalName(sig)+"  "+nothingSoFar, width, g)}
		}
		return lines
	}
	if height < chartLeast {
		return smallChart(th, sig, times, width, height)
	}
	p := newPlot(th, sig, width, height)
	lines := append([]string{legend(th, sig, p.edge, width)}, p.lines()...)
	if p.ruled {
		lines = append(lines, strings.Repeat(" ", p.margin)+g.Corner+strings.Repeat(g.Rule, p.columns))
	}
	left := width - p.columns
	return append(lines, painted(th.Faint, timeLine(times, p.spread, left)))
}

// smallChart is a chart where there is no room for a plot.
func smallChart(th *Theme, sig *watch.Signal, times watch.Times, width, height int) []string {
	lines := []string{
		legend(th, sig, 0, width),
		spark(th, sig, width),
		painted(th.Faint, timeLine(times, spread{points: len(sig.Canary), columns: width, each: 1}, 0)),
	}
	return lines[:min(height, len(lines))]
}

func anyKnown(points []watch.Figure) bool {
	for _, p := range points {
		if known(p) {
			return true
		}
	}
	return false
}

// legend names the signal and says what the marks are and what they stand at.
// Where that does not fit, the figures of the arms go, and then the entries from
// the right. Edge tells where the limit lies if it is off the scale, which is then
// said first.
func legend(th *Theme, sig *watch.Signal, edge, width int) string {
	name := signalName(sig)
	if ansi.StringWidth(name) > width {
		return cut(name, width, &th.Glyphs)
	}
	entries := legendEntries(th, sig, edge)
	line, fitted := joinedEntries(th.Strong.Render(name), entries, "  ", width, true)
	if fitted == len(entries) {
		return line
	}
	if short, more := joinedEntries(th.Strong.Render(name), entries, " ", width, false); more > fitted {
		return short
	}
	return line
}

// legendEntry is what a legend says of a mark.
type legendEntry struct {
	style        lipgloss.Style
	text, figure string
	always       bool // the figure stays
}

func legendEntries(th *Theme, sig *watch.Signal, edge int) []legendEntry {
	g := &th.Glyphs
	entries := []legendEntry{{th.Canary, g.Canary + " canary", figureText(newestOf(sig.Canary), sig.PointUnit, g), false}}
	switch {
	case anyKnown(sig.Stable):
		entries = append(entries, legendEntry{th.Stable, g.Stable + " stable", figureText(newestOf(sig.Stable), sig.PointUnit, g), false})
	case sig.Baseline && sig.Unit == sig.PointUnit:
		entries = append(entries, legendEntry{th.Stable, "baseline", figureText(sig.Beside, sig.PointUnit, g), true})
	}
	if known(sig.Line) {
		limit := legendEntry{th.Limit, limitMark(g, edge) + " limit", figureText(sig.Line, sig.PointUnit, g), true}
		if edge == 0 {
			entries = append(entries, limit)
		} else {
			entries = slices.Insert(entries, 0, limit)
		}
	}
	if past(sig, worstOf(sig.PointLow)(sig.Canary)) {
		entries = append(entries, legendEntry{th.Bad, g.Fail, "past it", true})
	}
	return entries
}

// newestOf is the newest point that is known.
func newestOf(points []watch.Figure) watch.Figure {
	for i := len(points) - 1; i >= 0; i-- {
		if known(points[i]) {
			return points[i]
		}
	}
	return watch.Figure{}
}

// joinedEntries returns a line with as many entries as fit, and how many did.
func joinedEntries(line string, entries []legendEntry, between string, width int, figures bool) (string, int) {
	for i, e := range entries {
		text := e.text
		if figures || e.always {
			text += " " + e.figure
		}
		longer := line + between + e.style.Render(text)
		if ansi.StringWidth(longer) > width {
			return line, i
		}
		line = longer
	}
	return line, len(entries)
}

func limitMark(g *Glyphs, edge int) string {
	switch {
	case edge > 0:
		return g.Up
	case edge < 0:
		return g.Down
	default:
		return g.Limit
	}
}

// plot is the part of a chart between its legend and its times.
type plot struct {
	th  *Theme
	sig *watch.Signal
	spread
	canary, stable []watch.Figure // of each column

	rows, margin int
	ruled        bool
	lo, hi       float64 // what the last and the first row of data stand for
	// Edge is 0, or 1 or -1 where the limit is so far above or below the data that
	// it has a row of its own at that edge, which stands for no value.
	edge int
}

func newPlot(th *Theme, sig *watch.Signal, width, height int) *plot {
	p := &plot{th: th, sig: sig, rows: height - 2, ruled: height >= chartRuled}
	if p.ruled {
		p.rows--
	}
	p.lo, p.hi, p.edge = chartScale(sig)
	for _, label := range p.labels() {
		p.margin = max(p.margin, ansi.StringWidth(label)+1)
	}
	if width < p.margin+1+plotLeast {
		p.margin = 0
	}
	p.spread = spread{points: max(len(sig.Canary), len(sig.Stable)), columns: width, each: 1}
	if p.margin > 0 {
		p.columns = width - p.margin - 1
	} else {
		p.ruled = false
		p.rows = height - 2
	}
	if p.columns >= 2*p.points {
		p.each = 2
	}
	p.canary = p.over(sig.Canary, worstOf(sig.PointLow))
	p.stable = p.over(sig.Stable, meanOf)
	return p
}

// meanOf is the mean of the points that are known.
func meanOf(points []watch.Figure) watch.Figure {
	n, sum := 0, 0.0
	for _, p := range points {
		if known(p) {
			n++
		}
	}
	for _, p := range points {
		if known(p) {
			sum += p.Value / float64(n) // each for itself: sums may overflow
		}
	}
	return watch.Figure{Value: sum, Known: n > 0}
}

// chartScale returns what the lowest and the highest row stand for: the data and
// the limit, to round values. A limit further from the data than limitReach times
// their extent would press them into a line; it is left to the edge that it lies
// beyond. Their extent is their range and at least half of their size, since what
// hardly moves is as readable small; where nothing moves the limit always has its
// place. Without a limit in it the scale is no finer than an eighth of
// the data's size, so that noise does not look like news. It starts at zero where
// that costs no more than half of the rows.
func chartScale(sig *watch.Signal) (lo, hi float64, edge int) {
	lo, hi, ok := extremes(sig.Canary, sig.Stable)
	if !ok { // nothing but infinite points
		lo, hi = 0, 0
	}
	size := max(math.Abs(lo), math.Abs(hi))
	placed := false
	if known(sig.Line) {
		limit := sig.Line.Value
		away := max(lo-limit, limit-hi, 0)
		switch {
		case !math.IsInf(limit, 0) && (lo == hi || away/limitReach <= max(hi-lo, size/2)):
			lo, hi, placed = min(lo, limit), max(hi, limit), true
		case limit > hi:
			edge = 1
		default:
			edge = -1
		}
	}
	most := hi
	if finest := size / 8; !placed && hi-lo < finest {
		wider := (finest - (hi - lo)) / 2
		positive := lo >= 0
		lo, hi = lo-wider, hi+wider
		if positive {
			lo = max(lo, 0)
		}
	}
	if hi == lo {
		hi = lo + 1
	}
	if lo >= 0 && lo <= hi-lo {
		lo = 0
	}
	lo, hi = rounded(lo, hi)
	if sig.PointUnit == watch.Share && most <= 1 {
		hi = min(hi, 1)
	}
	return lo, hi, edge
}

// rounded widens a scale to whole steps of 1, 2 or 5 times a power of ten, of
// which there are at least four.
func rounded(lo, hi float64) (float64, float64) {
	const slack = 1e-9 // of a step: 0.06 is three of 0.02, whatever the last bit says
	step := roundStep(hi/4 - lo/4)
	a := math.Floor(lo/step+slack) * step
	b := math.Ceil(hi/step-slack) * step
	if step == 0 || !(a < b) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return lo, hi
	}
	return a, b
}

// roundStep is the largest such step that is not above v.
func roundStep(v float64) float64 {
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return 0 // not a finite number
	}
	for _, m := range []float64{5, 2} {
		if m*math.Pow10(e) <= v {
			return m * math.Pow10(e)
		}
	}
	return math.Pow10(e)
}

// dataRows are the rows that stand for values: from the first to before the last.
func (p *plot) dataRows() (from, to int) {
	switch {
	case p.rows < 3:
		return 0, p.rows // the legend's arrow says where the limit is
	case p.edge > 0:
		return 1, p.rows
	case p.edge < 0:
		return 0, p.rows - 1
	default:
		return 0, p.rows
	}
}

// row is where a value stands.
func (p *plot) row(v float64) int {
	from, to := p.dataRows()
	return from + int(math.Round(portion(v, p.hi, p.lo)*float64(to-from-1)))
}

// labels are the values on the left, a row each; most are empty. The limit's goes
// before those of the ends.
func (p *plot) labels() []string {
	g := &p.th.Glyphs
	out := make([]string, p.rows)
	from, to := p.dataRows()
	out[to-1] = figureText(watch.Known(p.lo), p.sig.PointUnit, g)
	out[from] = figureText(watch.Known(p.hi), p.sig.PointUnit, g)
	if known(p.sig.Line) && p.edge == 0 {
		out[p.row(p.sig.Line.Value)] = figureText(p.sig.Line, p.sig.PointUnit, g)
	}
	return out
}

// cell is what a cell of the plot shows.
type cell uint8

const (
	blank cell = iota
	limitCell
	stableCell
	canaryCell
	pastCell
)

// cells returns what the plot shows, row by row.
func (p *plot) cells() [][]cell {
	grid := make([][]cell, p.rows)
	for i := range grid {
		grid[i] = make([]cell, p.columns)
	}
	if known(p.sig.Line) && p.edge == 0 {
		line := grid[p.row(p.sig.Line.Value)]
		for x := range line {
			line[x] = limitCell
		}
	}
	for x, f := range p.stable {
		if known(f) {
			grid[p.row(f.Value)][x] = stableCell
		}
	}
	for x, f := range p.canary {
		switch {
		case !known(f):
		case past(p.sig, f):
			grid[p.row(f.Value)][x] = pastCell
		default:
			grid[p.row(f.Value)][x] = canaryCell
		}
	}
	return grid
}

// lines draws the rows with what stands left of them.
func (p *plot) lines() []string {
	g := &p.th.Glyphs
	labels, grid := p.labels(), p.cells()
	from, to := p.dataRows()
	limit := -1
	if known(p.sig.Line) && p.edge == 0 {
		limit = p.row(p.sig.Line.Value)
	}
	lines := make([]string, p.rows)
	for y := range lines {
		left := ""
		if p.margin > 0 {
			style := p.th.Faint
			if y == limit {
				style = p.th.Limit
			}
			left = style.Render(padded(labels[y], p.margin-1, true)) + " " + g.Axis
		}
		if y < from || y >= to {
			lines[y] = left + p.edgeLine()
			continue
		}
		lines[y] = left + p.drawn(grid[y])
	}
	return lines
}

// edgeLine is the row of a limit that is off the scale.
func (p *plot) edgeLine() string {
	g := &p.th.Glyphs
	text := limitMark(g, p.edge) + " limit " + figureText(p.sig.Line, p.sig.PointUnit, g) + " "
	text += strings.Repeat(g.Limit, max(p.columns-ansi.StringWidth(text), 0))
	return p.th.Limit.Render(cut(text, p.columns, g))
}

// drawn renders a row, one style for each run of cells that are alike.
func (p *plot) drawn(row []cell) string {
	g := &p.th.Glyphs
	looks := [...]struct {
		mark  string
		style lipgloss.Style
	}{
		limitCell:  {g.Limit, p.th.Limit},
		stableCell: {g.Stable, p.th.Stable},
		canaryCell: {g.Canary, p.th.Canary},
		pastCell:   {g.Fail, p.th.Bad},
	}
	var b strings.Builder
	for start := 0; start < len(row); {
		end := start
		for end < len(row) && row[end] == row[start] {
			end++
		}
		if kind := row[start]; kind == blank {
			b.WriteString(strings.Repeat(" ", end-start))
		} else {
			b.WriteString(looks[kind].style.Render(strings.Repeat(looks[kind].mark, end-start)))
		}
		start = end
	}
	return b.String()
}

// timeLine writes when windows start below the columns in which they stand, with
// left columns before the first of them: each time ends below its column, the
// newest at the right edge. Where a column has several windows, it is the newest
// of them.
func timeLine(times watch.Times, s spread, left int) string {
	if times.From.IsZero() || times.Span <= 0 || s.points == 0 {
		return ""
	}
	layout := clockTime
	if times.Span < time.Minute {
		layout = secondTime
	}
	if times.Span > labelSpanDates/time.Duration(s.points) {
		layout = dateTime
	}
	every := len(layout) + labelGap
	every += every % s.each
	line := []byte(strings.Repeat(" ", left+s.columns))
	free := len(line)
	for x := s.columns - 1; x >= 0; x -= every {
		from, to := s.share(x)
		start := left + x + 1 - len(layout)
		if from == to || start < 0 {
			break
		}
		label := times.From.Add(time.Duration(to-1) * times.Span).UTC().Format(layout)
		free = start
		copy(line[start:], label)
	}
	if zone := "UTC"; left > len(zone) && free > len(zone) {
		copy(line, zone)
	}
	return strings.TrimRight(string(line), " ")
}
