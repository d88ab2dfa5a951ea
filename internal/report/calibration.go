package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	labelColumns = 12  // room for a line's label
	mostColumns  = 100 // no line is longer, however wide the terminal
	narrow       = 60  // below it labels take no column of their own
)

// calibrationText is a report on one screen in the making: numbers with units,
// then what to think of them, then what goes into the configuration.
type calibrationText struct {
	b     strings.Builder
	r     *calibrate.Report
	style Style
	width int
}

// Calibration writes what a baseline says for a person. A figure that does not
// exist is unknown, one that nobody recorded is not in the input; neither is 0.
// Lines are folded on a terminal and off it, at 100 columns or what there is.
func Calibration(w io.Writer, r *calibrate.Report, style Style) error {
	t := &calibrationText{r: r, style: style, width: mostColumns}
	if style.Width > 0 {
		t.width = min(style.width(), mostColumns)
	}
	t.baseline()
	t.solveRate()
	t.noise()
	t.incidents()
	t.time()
	t.traffic()
	t.budget()
	t.steps()
	t.plainRule()
	t.fastLayer()
	t.replay()
	t.verdict()
	t.warnings()
	t.settings()
	_, err := io.WriteString(w, t.b.String())
	return err
}

// line prints a labelled line; one without a label goes on.
func (t *calibrationText) line(label, format string, args ...any) {
	text, indent := fmt.Sprintf(format, args...), labelColumns
	switch {
	case t.width >= narrow:
		label = fmt.Sprintf("%-*s", labelColumns, label)
	case label != "":
		label, indent = label+": ", 2
	default:
		label, indent = "  ", 2
	}
	t.hang(label+text, indent)
}

// unitSpace is the blank between a figure and its unit, where no row ends.
var unitSpace = pattern.New(`(\d) (%|pp\b|min\b|ms\b|USD\b|sigma\b|hours?\b)`)

// hang prints a line in rows, those below the first indented.
func (t *calibrationText) hang(line string, indent int) {
	const held = "\u00a0"
	var b strings.Builder
	line = strings.ReplaceAll(unitSpace.ReplaceAllString(line, "$1"+held+"$2"), " < ", held+"<"+held)
	hang(&b, line+"\n", t.width, indent)
	t.b.WriteString(strings.ReplaceAll(b.String(), held, " "))
}

func (t *calibrationText) baseline() {
	r, w := t.r, &t.r.Windows
	t.line("baseline", "%s to %s, %s hours, %s covered", stamp(r.Span.From), stamp(r.Span.To),
		digits(r.Span.Hours, 4), percent(r.Meta.Coverage, 4))
	t.line("", "%s requests of arm %s; input sha256:%.12s, seed %d, hours of %s", thousands(r.Totals.Total), orUnknown(r.Arm),
		orUnknown(r.Meta.InputSHA256), r.Meta.Seed, orUnknown(r.Meta.Zone))
	text := fmt.Sprintf("%s whole of %s", thousands(int64(w.Whole)), plain(w.Span))
	if n := len(w.Partial) + w.Empty; n > 0 {
		text += fmt.Sprintf("; left out: %s", joined(
			some(len(w.Partial), fmt.Sprintf("%d partly covered", len(w.Partial))),
			some(w.Empty, fmt.Sprintf("%d with nothing judged", w.Empty))))
	}
	if n := len(w.Gaps); n > 0 {
		lost := 0.0
		for _, g := range w.Gaps {
			lost += g.Minutes
		}
		text += fmt.Sprintf("; %s, %s min", counted(n, "gap"), digits(lost, 4))
	}
	if n := len(r.Excluded); n > 0 {
		text += fmt.Sprintf("; %s excluded", counted(n, "span"))
	}
	t.line("windows", "%s", text)
}

func (t *calibrationText) solveRate() {
	r, c := t.r, &t.r.Centre
	if r.Totals.Judged == 0 {
		t.line("solve rate", "not in the input")
		return
	}
	of := fmt.Sprintf("%s of %s", thousands(r.Totals.Solved), thousands(r.Totals.Judged))
	if len(r.Excluded) > 0 {
		of += ", less what is excluded"
	}
	t.line("solve rate", "%s, give or take %s: %s; by window mean %s, median %s",
		optional(c.P0, 100, 6, " %"), optional(c.P0SE, 100, 2, " pp"), of,
		optional(c.Mean, 100, 6, " %"), optional(c.Median, 100, 6, " %"))
}

// noise says how far the service moves by itself: over the calibration windows,
// over live ones, and in the long run.
func (t *calibrationText) noise() {
	s := &t.r.Slow
	d, ok := t.r.Dispersion[t.r.Windows.Span]
	if !ok || t.r.Totals.Judged == 0 {
		return
	}
	t.line("noise", "sigma %s in %s: chance %s, between windows %s; phi %s%s: %s",
		optional(s.SigmaPP, 1, 3, " pp"), plain(t.r.Windows.Span), optional(s.ChancePP, 1, 3, " pp"), optional(d.TauUsed, 100, 3, " pp"),
		optional(d.Phi, 1, 3, ""), pValue(d.P), dispersed(&d))
	if live, ok := t.r.Dispersion[s.TauSpan]; ok && s.Tau != nil {
		text := fmt.Sprintf("tau %s over windows of %s (%s)", optional(s.Tau, 100, 3, " pp"), plain(s.TauSpan), methodOf(&live, s))
		if s.TauFactor != nil && *s.TauFactor > 1 {
			text += fmt.Sprintf(", x%s for few windows included", digits(*s.TauFactor, 4))
		}
		t.line("", "%s; %s windows tell as much as %s independent", text, thousands(int64(live.K)), optional(live.KEff, 1, 4, ""))
	}
	t.line("", "Laney sigma_z %s, long-run %s, ratio %s: %s", optional(d.SigmaZ, 1, 3, ""), optional(d.SDZ, 1, 3, ""), optional(d.Drift, 1, 3, ""), drifting(d.Drift))
	if s.TauControl != nil {
		t.line("", "against stable in the same minutes: tau %s", optional(s.TauControl, 100, 3, " pp"))
	}
}

// methodOf names how tau was taken, with the other estimate beside it.
func methodOf(d *calibrate.Dispersion, s *calibrate.Slow) string {
	switch s.TauMethod {
	case "robust":
		return "weighed by the median; DerSimonian-Laird " + optional(d.TauDL, 100, 3, " pp")
	case "dl":
		return "DerSimonian-Laird: too few failures a window for a median"
	}
	return plain(s.TauMethod)
}

// rare is the chance below which a test's result is told as a fact.
const rare = 0.01

func pValue(p *float64) string {
	switch {
	case p == nil:
		return ""
	case *p < 1e-9:
		return " (p < 1e-9)"
	}
	return fmt.Sprintf(" (p %s)", digits(*p, 2))
}

func dispersed(d *calibrate.Dispersion) string {
	switch {
	case d.P == nil || d.Phi == nil:
		return "unknown whether it is more than chance"
	case *d.P < rare:
		return "overdispersed"
	case *d.P > 1-rare:
		return "underdispersed, less than chance"
	}
	return "not overdispersed"
}

func drifting(ratio *float64) string {
	switch {
	case ratio == nil:
		return "unknown whether it moves slowly"
	case *ratio > 1.3:
		return "slow movement, which neighbouring windows do not show"
	case *ratio < 1/1.3:
		return "neighbouring windows differ more than far ones"
	}
	return "no slow movement"
}

// shownIncidents is how many incidents the text names; JSON has all of them.
const shownIncidents = 3

func (t *calibrationText) incidents() {
	all := t.r.Incidents
	if t.r.Totals.Judged == 0 {
		return
	}
	if len(all) == 0 {
		t.line("incidents", "none: no window lies far from the rest")
		return
	}
	label := "incidents"
	for i := range all[:min(shownIncidents, len(all))] {
		in := &all[i]
		text := fmt.Sprintf("%s, %s min: %s solved, %s sigma", stamp(in.From), digits(in.To.Sub(in.From).Minutes(), 4),
			percent(float64(in.Solved)/math.Max(float64(in.Judged), 1), 4), signed(in.WorstZ))
		if in.Above {
			text += ", better than the rest"
		}
		if in.Excluded {
			text += ", left out"
		}
		t.line(label, "%s", text)
		label = ""
	}
	if rest := len(all) - shownIncidents; rest > 0 {
		t.line("", "and %d more: -o json names them", rest)
	}
}

// time says what the rate does over the hours, halves and weeks.
func (t *calibrationText) time() {
	s := &t.r.Time
	if s.Swing != nil {
		text := "swing " + digits(100**s.Swing, 3) + " pp"
		if low, high := extremes(s.Hours); low != nil {
			text += fmt.Sprintf(", %02d:00 %s to %02d:00 %s", low.Hour, percent(*low.Rate, 4), high.Hour, percent(*high.Rate, 4))
		}
		t.line("hours", "%s%s: %s", text, pValue(s.SwingP), moreThanNoise(s.SwingP))
	} else if t.r.Totals.Judged > 0 {
		t.line("hours", "swing unknown")
	}
	var parts []string
	if h := s.Halves; h != nil {
		text := fmt.Sprintf("second half %s against %s, %s sigma: ", percent(h.Second, 4), percent(h.First, 4), signed(h.Z))
		if math.Abs(h.Z) > 3 {
			parts = append(parts, text+"the baseline drifts")
		} else {
			parts = append(parts, text+"no drift")
		}
	}
	const most = 3 // of a year of weeks those that moved are enough
	moved := 0
	for i := range s.Weeks {
		w := &s.Weeks[i]
		if w.Ratio == nil || len(s.Weeks) > most && math.Abs(*w.Ratio-1) < 0.1 {
			continue
		}
		if moved++; moved <= most {
			parts = append(parts, fmt.Sprintf("week %d has %s times the requests of the one before and solves %s", i+1, digits(*w.Ratio, 4), optional(w.Rate, 100, 4, " %")))
		}
	}
	if moved > most {
		parts = append(parts, fmt.Sprintf("%d more weeks moved by 10 %% or more", moved-most))
	}
	if len(parts) > 0 {
		t.line("drift", "%s", strings.Join(parts, "; "))
	}
}

// extremes returns the hours with the lowest and the highest rate.
func extremes(hours []calibrate.Hour) (low, high *calibrate.Hour) {
	for i := range hours {
		h := &hours[i]
		if h.Rate == nil {
			continue
		}
		if low == nil || *h.Rate < *low.Rate {
			low = h
		}
		if high == nil || *h.Rate > *high.Rate {
			high = h
		}
	}
	return low, high
}

func moreThanNoise(p *float64) string {
	switch {
	case p == nil:
		return "unknown whether noise explains it"
	case *p < rare:
		return "more than the noise explains"
	}
	return "the noise explains it"
}

func (t *calibrationText) traffic() {
	f := &t.r.Traffic
	text := fmt.Sprintf("%s requests a minute of both arms, median %s, p10 %s", optional(t.r.RequestsPerMin, 1, 4, ""),
		optional(f.P50, 1, 4, ""), optional(f.P10, 1, 4, ""))
	if f.PeakToTrough != nil && f.PeakHour != nil && f.TroughHour != nil {
		text += fmt.Sprintf("; %02d:00 has %s times %02d:00's", *f.PeakHour, digits(*f.PeakToTrough, 3), *f.TroughHour)
	}
	t.line("traffic", "%s", text)
}

// plainMultiplier is the three sigma that everybody takes.
const plainMultiplier = 3

// budget says how many false trips are allowed, and which multiplier that makes.
func (t *calibrationText) budget() {
	s, b := &t.r.Slow, &t.r.Meta.Budget
	if t.r.Meta.Rule == "plain" {
		t.line("budget", "none: the plain rule was asked for, %s sigma", digits(s.Plain.K, 4))
		return
	}
	text := digits(b.PerWeek, 3) + " false trips a week"
	if b.PerRelease != nil && b.ReleaseHours != nil {
		text = fmt.Sprintf("%s of releases of %s hours falsely rolled back, %s", percent(*b.PerRelease, 3), digits(*b.ReleaseHours, 4), text)
	}
	var shares []string
	for sig := range release.Judged {
		if share, ok := b.Shares[release.Signal(sig).String()]; ok {
			shares = append(shares, fmt.Sprintf("%s %s", release.Signal(sig), digits(100*share, 3)))
		}
	}
	if len(shares) > 0 {
		text += ": " + strings.Join(shares, ", ") + " %"
	}
	t.line("budget", "%s", text)
	if s.Z == nil {
		return
	}
	text = digits(*s.Z, 4) + " sigma for solve_rate's share"
	if m := &t.r.Meta; m.TickMin > 0 && m.LiveMin >= m.TickMin {
		week := stats.FalseTripRate(plainMultiplier, m.LiveMin/m.TickMin) * (7 * 24 * time.Hour).Minutes() / m.TickMin
		text += fmt.Sprintf("; %d sigma of a sliding %s would trip %s times a week", plainMultiplier, t.liveSpan(), digits(week, 2))
	}
	t.line("multiplier", "%s", text)
}

// plainRule shows what the copied rule would do.
func (t *calibrationText) plainRule() {
	p, s := &t.r.Slow.Plain, &t.r.Slow
	if p.ThresholdPP == nil {
		return
	}
	text := fmt.Sprintf("max(%s pp, %s sigma of %s windows) = %s pp", digits(s.TolerableDropPP, 4), digits(p.K, 4), plain(t.r.Windows.Span), digits(*p.ThresholdPP, 4))
	if p.MinSamples != nil {
		text += fmt.Sprintf(" from %s judged on", thousands(*p.MinSamples))
	}
	if r := t.r.Replay; r != nil && r.DocPerWeek.Upper > 0 {
		text += "; replayed: " + aWeek(r.DocPerWeek)
	}
	if p.Of > 0 {
		text += fmt.Sprintf("; %s of %s windows lie below its one-window limit", thousands(int64(p.OneWindow)), thousands(int64(p.Of)))
	}
	t.line("plain rule", "%s", text)
}

func (t *calibrationText) verdict() {
	v := &t.r.Verdict
	switch {
	case v.OK && t.r.Totals.Judged == 0:
		t.line("verdict", "%s", t.style.paint(yellow, "without outcomes no solve rate can be judged"))
		return
	case v.OK:
		t.line("verdict", "%s", t.style.paint(green, "the plan can be judged"))
		return
	}
	t.line("verdict", "%s", t.style.paint(red, "no: "+strings.Join(v.Reasons, ", ")))
}

func (t *calibrationText) warnings() {
	for i := range t.r.Warnings {
		w := &t.r.Warnings[i]
		t.b.WriteString("\n")
		t.hang(t.style.paint(yellow, "warning:")+fmt.Sprintf(" %s [%s]", plain(w.Text), w.Code), 2)
		if w.Hint != "" {
			t.hang("  what to do: "+plain(w.Hint), 4)
		}
	}
}

// settings prints what --write would set: a line for a value that holds for all
// steps, a line for a step's own.
func (t *calibrationText) settings() {
	all := t.r.Settings()
	if len(all) == 0 {
		t.b.WriteString("\n")
		t.hang("for canary.yaml: nothing, as long as the verdict is no", 2)
		return
	}
	t.b.WriteString("\n")
	t.hang("for canary.yaml (--write puts it in, -o yaml says where each value comes from):", 2)
	for i := 0; i < len(all); i++ {
		s := &all[i]
		text := strings.Join(s.Key, ".") + ": " + s.Value
		switch {
		case s.Step > 0:
			for ; i+1 < len(all) && all[i+1].Step == s.Step; i++ {
				text += ", " + strings.Join(all[i+1].Key, ".") + ": " + all[i+1].Value
			}
			text = fmt.Sprintf("step %d's limits: %s", s.Step, text)
		case s.InMetrics:
			text = "metrics." + text
		default:
			text = "canary." + text
		}
		t.hang("  "+text, 4)
	}
}

// optional prints a figure times factor with so many significant digits, or
// that there is none.
func optional(p *float64, factor float64, n int, unit string) string {
	if p == nil {
		return "unknown"
	}
	return digits(*p*factor, n) + unit
}

// digits prints so many significant digits without an exponent, and from a
// thousand on to the unit.
func digits(f float64, n int) string {
	if math.Abs(f) >= 1000 {
		return thousands(int64(math.Round(f)))
	}
	g, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', n, 64), 64)
	return strconv.FormatFloat(g, 'f', -1, 64)
}

func percent(share float64, n int) string { return digits(100*share, n) + " %" }

func signed(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return plain(text)
}

// some is a text about a count, or nothing where there is none.
func some(n int, text string) string {
	if n == 0 {
		return ""
	}
	return text
}

// joined joins what is not empty.
func joined(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}
