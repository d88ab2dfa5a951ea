package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/release"
)

// stepColumn is a column of the table of steps.
type stepColumn struct {
	head  string
	cell  func(i int) string
	spare int // columns with the most are left out first; 0: never
}

// steps prints what each step of the ladder can see.
func (t *calibrationText) steps() {
	r := t.r
	if len(r.Steps) == 0 {
		t.line("steps", "no ladder was given: -c canary.yaml says at which shares to look")
		return
	}
	if !slices.ContainsFunc(r.Steps, func(s calibrate.Step) bool { return s.NWindow != nil }) {
		t.line("steps", "unknown: nothing says how many requests are judged, or how they vary")
		return
	}
	t.b.WriteString("\n")
	cols := t.stepColumns()
	t.legend(cols, t.table(cols, len(r.Steps)))
	t.b.WriteString("\n")
}

func (t *calibrationText) stepColumns() []stepColumn {
	s, steps := &t.r.Slow, t.r.Steps
	pp := func(p *float64, factor float64) string { return optional(p, factor, 3, " pp") }
	minutes := func(i int, p *float64) string {
		if p == nil && steps[i].NWindow != nil {
			return "never"
		}
		return optional(p, 1, 4, " min")
	}
	cols := []stepColumn{
		{"step", func(i int) string { return percent(steps[i].Pct, 4) }, 0},
		{"in " + t.liveSpan(), func(i int) string { return count(steps[i].NWindow) }, 0},
	}
	if t.r.Meta.Rule != "plain" && steps[0].CusumLimit == nil {
		cols = append(cols, stepColumn{"sigma", func(i int) string { return pp(steps[i].Sigma, 100) }, 4})
	}
	if steps[0].CusumLimit != nil {
		cols = append(cols, stepColumn{"limit of the sum", func(i int) string { return optional(steps[i].CusumLimit, 1, 4, "") }, 0})
	} else {
		cols = append(cols,
			stepColumn{"trips at", func(i int) string { return pp(steps[i].ThresholdPP, 1) }, 0},
			stepColumn{"catches", func(i int) string { return pp(steps[i].MDE80PP, 1) }, 1},
			stepColumn{"judged", func(i int) string { return judged(&steps[i]) }, 0})
	}
	cols = append(cols, stepColumn{"wait", func(i int) string { return minutes(i, steps[i].WaitP95Min) }, 2})
	for n, drop := range []float64{s.TolerableDropPP, s.DetectDropPP} {
		if t.r.Meta.Rule == "plain" || n == 1 && drop == s.TolerableDropPP {
			break
		}
		key := strconv.FormatFloat(drop, 'f', -1, 64)
		cols = append(cols, stepColumn{"hold " + key + " pp", func(i int) string { return minutes(i, steps[i].HoldMin[key]) }, 4 - n})
	}
	return cols
}

// liveSpan names the live window.
func (t *calibrationText) liveSpan() string {
	if t.r.Meta.LiveMin <= 0 {
		return "window"
	}
	return strconv.FormatFloat(t.r.Meta.LiveMin, 'f', -1, 64) + "m"
}

func count(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return thousands(*n)
}

// judged says whether a step's window ever holds enough requests.
func judged(s *calibrate.Step) string {
	switch {
	case s.CanJudge:
		return "yes"
	case s.SpanMaxMin != nil:
		return "stretched"
	case s.NWindow == nil:
		return "unknown"
	}
	return "NO"
}

// bound is a rate a week in a cell: below its upper limit where nothing tripped.
func bound(e calibrate.Estimate) string {
	switch {
	case e.Upper == 0:
		return "unknown"
	case e.Count == 0:
		return "< " + digits(e.Upper, 2)
	}
	return digits(e.Rate, 2)
}

func columnWidth(c *stepColumn, rows int) int {
	n := len(c.head)
	for i := range rows {
		n = max(n, len(c.cell(i)))
	}
	return n
}

func tableWidth(cols []stepColumn, rows int) int {
	n := 0
	for i := range cols {
		n += 2 + columnWidth(&cols[i], rows)
	}
	return n
}

// table prints rows below their heads. Where the terminal is too narrow the
// less important columns are left out, and said to be; it returns their heads.
func (t *calibrationText) table(cols []stepColumn, rows int) (dropped []string) {
	for tableWidth(cols, rows) > t.width {
		worst := 0
		for i := range cols {
			if cols[i].spare >= cols[worst].spare {
				worst = i
			}
		}
		if cols[worst].spare == 0 {
			break
		}
		if head := cols[worst].head; !slices.Contains(dropped, head) {
			dropped = append(dropped, head)
		}
		cols = slices.Delete(cols, worst, worst+1)
	}
	for row := -1; row < rows; row++ {
		for i := range cols {
			t.cell(&cols[i], row, rows)
		}
		t.b.WriteString("\n")
	}
	if len(dropped) > 0 {
		t.hang("  (no room for: "+strings.Join(dropped, ", ")+")", 2)
	}
	return dropped
}

// cell prints a cell, or in row -1 the head.
func (t *calibrationText) cell(c *stepColumn, row, rows int) {
	text := c.head
	if row >= 0 {
		text = c.cell(row)
	}
	color := map[string]string{"yes": green, "stretched": yellow, "NO": red}[text]
	t.b.WriteString(t.style.paint(color, fmt.Sprintf("  %*s", columnWidth(c, rows), text)))
}

// legend says what the columns mean that do not say it themselves.
func (t *calibrationText) legend(cols []stepColumn, dropped []string) {
	r, s := t.r, &t.r.Slow
	parts := []string{fmt.Sprintf("in %s: judged requests at the traffic's tenth percentile", t.liveSpan())}
	shown := func(head string) bool {
		return slices.ContainsFunc(cols, func(c stepColumn) bool {
			return strings.HasPrefix(c.head, head) && !slices.Contains(dropped, c.head)
		})
	}
	for _, explain := range []struct{ head, text string }{
		{"trips at", "a drop of so much"}, {"catches", "the least likely seen in one look"},
		{"limit of the sum", "of log likelihood ratios"}, {"wait", waitText(s)}, {"hold", "until the gate tells such a drop"},
	} {
		if explain.text != "" && shown(explain.head) {
			parts = append(parts, explain.head+": "+explain.text)
		}
	}
	if slices.ContainsFunc(r.Steps, func(st calibrate.Step) bool { return !st.CanJudge && st.SpanMaxMin != nil }) {
		parts = append(parts, "stretched: reaches back for min_samples, told over those")
	}
	t.hang("  "+strings.Join(parts, "; "), 2)
	if s.MinSamples == nil {
		if r.Totals.Judged > 0 {
			t.hang("  no number of judged requests tells the drop from the noise", 2)
		}
		return
	}
	if s.SMinPct != nil {
		smallest := fmt.Sprintf("smallest step that a fixed window of %s can judge: %s %%", t.liveSpan(), digits(*s.SMinPct, 3))
		if *s.SMinPct > 100 {
			smallest += ", more than all the traffic"
		}
		t.hang("  "+smallest, 2)
	}
}

func waitText(s *calibrate.Slow) string {
	if s.MinSamples == nil {
		return ""
	}
	return fmt.Sprintf("for %s judged (min_samples), 95 %% sure", thousands(*s.MinSamples))
}

// fastLayer says what the other signals' limits are, step by step where they
// differ.
func (t *calibrationText) fastLayer() {
	r := t.r
	t.counted("violations", &r.Violations, func(s *calibrate.Step) *calibrate.Count { return s.Violations })
	t.counted("transfers", &r.Transfers, func(s *calibrate.Step) *calibrate.Count { return s.Transfers })
	t.p99()
	t.cost()
}

// counted prints a signal that is counted.
func (t *calibrationText) counted(label string, rate *calibrate.Rate, of func(*calibrate.Step) *calibrate.Count) {
	if rate.Rate == nil {
		t.line(label, "not in the input")
		return
	}
	t.line(label, "%s%s", rateText(rate), t.limitsText(of))
}

func rateText(rate *calibrate.Rate) string {
	text := ""
	if rate.Count != nil && *rate.Count == 0 {
		text = fmt.Sprintf("none in %s requests", thousands(rate.Requests))
	} else {
		text = percent(*rate.Rate, 4) + " of requests"
		if rate.Count != nil {
			text += fmt.Sprintf(" (%s of %s)", thousands(*rate.Count), thousands(rate.Requests))
		}
	}
	if rate.Upper95 != nil {
		text += fmt.Sprintf(", at most %s", percent(*rate.Upper95, 3))
	}
	if rate.Tau != nil && *rate.Tau > 0 {
		text += fmt.Sprintf(", tau %s", optional(rate.Tau, 100, 3, " pp"))
	}
	return text
}

// limitsText says which counts trip at which steps, how often a healthy service
// reaches them, and how often it would reach the published ones.
func (t *calibrationText) limitsText(of func(*calibrate.Step) *calibrate.Count) string {
	var groups []string
	most, published := 0.0, 0.0
	last := int64(-1)
	for i := range t.r.Steps {
		c := of(&t.r.Steps[i])
		if c == nil {
			continue
		}
		share := percent(t.r.Steps[i].Pct, 4)
		if c.Threshold == last {
			groups[len(groups)-1] += ", " + share
		} else {
			groups = append(groups, fmt.Sprintf("%s at %s", thousands(c.Threshold), share))
			last = c.Threshold
		}
		most = max(most, c.PerWeek)
		if c.DocPFalse != nil && c.PFalse > 0 {
			published = max(published, c.PerWeek/c.PFalse**c.DocPFalse) // as many looks a week
		}
	}
	if len(groups) == 0 {
		return ""
	}
	text := fmt.Sprintf("; trips by %s: at most %s false a week", strings.Join(groups, "; "), digits(most, 2))
	if published > most {
		text += fmt.Sprintf(" (the published limit: up to %s)", digits(published, 2))
	}
	return text
}

func (t *calibrationText) p99() {
	p := &t.r.P99
	if p.ValueMS == nil && p.Slow.Rate == nil {
		t.line("p99", "not in the input")
		return
	}
	text := optional(p.ValueMS, 1, 6, " ms")
	if len(p.CI) == 2 {
		text += fmt.Sprintf(" (%s to %s ms, 95 %%)", digits(p.CI[0], 6), digits(p.CI[1], 6))
	}
	text = joined(text, plain(p.Method))
	if p.Judge == "count" && p.Slow.Rate != nil {
		above := "slow ones, as the input has them,"
		if p.SlowMS != nil {
			above = "slower than " + digits(*p.SlowMS, 6) + " ms"
		}
		text += fmt.Sprintf("; %s are counted: %s%s", above, rateText(&p.Slow),
			t.limitsText(func(s *calibrate.Step) *calibrate.Count { return s.Slow }))
	} else if p.Judge != "" {
		text += "; judged by each window's p99"
	}
	t.line("p99", "%s", text)
}

func (t *calibrationText) cost() {
	c := &t.r.Cost
	if c.MeanUSD == nil {
		t.line("cost", "not in the input")
		return
	}
	text := fmt.Sprintf("%s USD a request, mean of %s", digits(*c.MeanUSD, 4), thousands(c.Requests))
	if c.CV != nil {
		text += fmt.Sprintf("; cv %s (from %s)", digits(*c.CV, 3), plain(c.CVFrom))
	}
	if c.Top1Share != nil {
		text += fmt.Sprintf(", the dearest 1 %% are %s of the sum", percent(*c.Top1Share, 3))
	}
	if c.NRequired != nil {
		text += fmt.Sprintf("; cost_ratio_limit is beyond noise from %s requests on", thousands(*c.NRequired))
	}
	var yes, no []string
	for i := range t.r.Steps {
		s := &t.r.Steps[i]
		switch share := percent(s.Pct, 4); {
		case s.CostSamples == nil:
		case s.CostJudged:
			yes = append(yes, share)
		default:
			no = append(no, share)
		}
	}
	if len(no) > 0 {
		text += "; a window holds too few at " + strings.Join(no, ", ")
	}
	if len(yes) > 0 {
		text += "; judged at " + strings.Join(yes, ", ")
	}
	t.line("cost", "%s", text)
}

// aWeek is a rate of false trips with its interval. Where there was none it is
// below what would have been seen.
func aWeek(e calibrate.Estimate) string {
	switch {
	case e.Upper == 0:
		return "false trips unknown"
	case e.Count == 0:
		return fmt.Sprintf("no false trip, fewer than %s a week (95 %%)", digits(e.Upper, 2))
	}
	return fmt.Sprintf("%s false trips a week (%s to %s, 95 %%)", digits(e.Rate, 3), digits(e.Lower, 3), digits(e.Upper, 3))
}

// replay sums up what the breaker did over the resampled baseline.
func (t *calibrationText) replay() {
	rep := t.r.Replay
	if rep == nil {
		t.line("replay", "none: the limits were not tried on the baseline")
		return
	}
	t.line("replay", "%s drawn from this one baseline in blocks of %s hours, seed %d; all layers, at the worst step: %s",
		counted(rep.Weeks, "week"), digits(rep.BlockMin/60, 3), rep.Seed, aWeek(rep.JointPerWeek))
	if s := worstStep(rep); s != nil {
		var parts []string
		for sig := range release.Judged {
			if e, ok := s.BySignal[release.Signal(sig).String()]; ok {
				parts = append(parts, fmt.Sprintf("%s %s", release.Signal(sig), bound(e)))
			}
		}
		if len(parts) > 0 {
			t.line("", "by signal at %s: %s", percent(s.Pct, 4), strings.Join(parts, ", "))
		}
	}
	if r := &rep.Release; r.Runs > 0 {
		chance := fmt.Sprintf("none rolled back falsely, fewer than %s (95 %%)", percent(r.RolledBack.Upper, 2))
		if r.RolledBack.Count > 0 {
			chance = fmt.Sprintf("%s rolled back falsely (%s to %s, 95 %%)", percent(r.RolledBack.Rate, 3), percent(r.RolledBack.Lower, 3), percent(r.RolledBack.Upper, 3))
		}
		t.line("", "%s: %s, %s completed", counted(r.Runs, "release"), chance, thousands(int64(r.Completed)))
	}
	if g := rep.Grid; g != nil {
		text := "no fixed threshold keeps the budget"
		if !g.Enough {
			text = "too few weeks to say which fixed threshold keeps the budget"
		} else if g.RecommendedPP != nil {
			text = fmt.Sprintf("the smallest fixed threshold that keeps the budget is %s pp", digits(*g.RecommendedPP, 3))
		}
		t.line("", "at %s %s", percent(g.Pct, 4), text)
	}
	if len(rep.Steps) > 0 {
		t.table(replayColumns(rep), len(rep.Steps))
	}
	t.b.WriteString("\n")
}

func worstStep(rep *calibrate.Replayed) (worst *calibrate.ReplayedStep) {
	for i := range rep.Steps {
		if s := &rep.Steps[i]; worst == nil || s.PerWeek.Count > worst.PerWeek.Count {
			worst = s
		}
	}
	return worst
}

// replayColumns say how often each step trips falsely and how fast it finds
// each drop.
func replayColumns(rep *calibrate.Replayed) []stepColumn {
	steps := rep.Steps
	cols := []stepColumn{
		{"step", func(i int) string { return percent(steps[i].Pct, 4) }, 0},
		{"false a week", func(i int) string { return bound(steps[i].PerWeek) }, 0},
	}
	for d := range steps[0].Drops {
		at := func(show func(*calibrate.Detection) string) func(int) string {
			return func(i int) string {
				if d >= len(steps[i].Drops) || steps[i].Drops[d].Runs == 0 {
					return "unknown"
				}
				return show(&steps[i].Drops[d])
			}
		}
		first := min(len(steps[0].Drops)-1-d, 1) // of two drops the last is the one that must be found
		cols = append(cols,
			stepColumn{digits(steps[0].Drops[d].DropPP, 4) + " pp found in", at(median), first},
			stepColumn{"90 % within", at(func(d *calibrate.Detection) string { return ifFound(d, d.DelayP90, " min") }), 2},
			stepColumn{"requests", at(func(d *calibrate.Detection) string { return ifFound(d, d.ExposureP50, "") }), 3},
		)
	}
	return cols
}

func ifFound(d *calibrate.Detection, p *float64, unit string) string {
	if d.Found == 0 || p == nil && d.Found < d.Runs {
		return "-"
	}
	return optional(p, 1, 3, unit)
}

// median is how soon half of the drops are found.
func median(d *calibrate.Detection) string {
	switch {
	case d.Found == 0:
		return "not in a day"
	case d.Found < d.Runs && d.DelayP50 != nil:
		return fmt.Sprintf("%s min, %d/%d", digits(*d.DelayP50, 3), d.Found, d.Runs)
	case d.Found < d.Runs:
		return fmt.Sprintf("%d/%d in a day", d.Found, d.Runs)
	}
	return optional(d.DelayP50, 1, 3, " min")
}
