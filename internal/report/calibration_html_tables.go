package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// table is a table of finished texts.
type table struct {
	Caption string
	Folded  string // if not empty, the table is folded under this line
	Note    string // below the table; may be empty
	Head    []cell
	Rows    []row
}

// cell is one text. Figures stand to the right; of class left to the left;
// words too, and they may be broken.
type cell struct{ Text, Class string }

// row has a name that covers so many rows; 0: the one above still does.
type row struct {
	Name  string
	Span  int
	Cells []cell
}

// newTable has columns by name; one with a leading < stands to the left, one
// with a leading ~ has words.
func newTable(caption string, columns ...string) *table {
	t := &table{Caption: caption}
	for _, c := range columns {
		if name, ok := strings.CutPrefix(c, "<"); ok {
			t.Head = append(t.Head, cell{name, "left"})
		} else if name, ok := strings.CutPrefix(c, "~"); ok {
			t.Head = append(t.Head, cell{name, "words"})
		} else {
			t.Head = append(t.Head, cell{c, ""})
		}
	}
	return t
}

// add appends a row. One that has the name of the row above joins it.
func (t *table) add(name string, texts ...string) {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i] = cell{text, t.Head[i+1].Class}
	}
	span := 1
	for i := len(t.Rows) - 1; i >= 0 && t.Rows[i].Name == name; i-- {
		if t.Rows[i].Span > 0 {
			t.Rows[i].Span++
			span = 0
			break
		}
	}
	t.Rows = append(t.Rows, row{name, span, cells})
}

// orNil drops a table without rows.
func (t *table) orNil() *table {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// listed is how many incidents the page lists before it points at -o json.
const listed = 500

func incidentTable(r *calibrate.Report) *table {
	t := newTable("Incidents: windows far from the rest", "No.", "<When (UTC)", "Windows", "Solved of judged", "Rate", "Worst z", "<Status", "~What to do")
	for i, in := range r.Incidents[:min(listed, len(r.Incidents))] {
		status, do := "counted", "Find out what happened. A fault that is over: exclude it. Ordinary life: keep it."
		if in.Above {
			do = "Better than the rest: look for a fault of the log first, such as failures that were not written."
		}
		if in.Excluded {
			status, do = "excluded", "Nothing, if the cause is known."
		}
		t.add(strconv.Itoa(i+1), period(in.From, in.To), thousands(int64(in.Windows)), thousands(in.Solved)+" of "+thousands(in.Judged),
			rate(rateOf(in.Solved, in.Judged)), fixed(in.WorstZ, 1), status, do)
	}
	if rest := len(r.Incidents) - listed; rest > 0 {
		t.Note = thousands(int64(rest)) + " more; -o json has them all."
	}
	return t.orNil()
}

func excludedTable(r *calibrate.Report) *table {
	t := newTable("Excluded spans: not in centre and noise", "From (UTC)", "To (UTC)", "Length")
	for _, g := range r.Excluded[:min(listed, len(r.Excluded))] {
		t.add(instant(g.From), instant(g.To), length(g.Minutes))
	}
	if rest := len(r.Excluded) - listed; rest > 0 {
		t.Note = thousands(int64(rest)) + " more; -o json has them all."
	}
	return t.orNil()
}

func hoursTable(r *calibrate.Report) *table {
	t := newTable("Hours of the day ("+orUnknown(r.Meta.Zone)+")", "Hour", "Judged", "Solve rate", "Standard error, pp", "Requests a minute")
	t.Folded = "The hours in figures"
	for _, h := range r.Time.Hours {
		t.add(clock(h.Hour), thousands(h.Judged), rate(h.Rate), points(h.SE), known(h.RequestsPerMin, 1, 3, ""))
	}
	return t.orNil()
}

func weekdayTable(r *calibrate.Report) *table {
	t := newTable("Days of the week", "Day", "Judged", "Solve rate", "Requests a minute")
	for _, d := range r.Time.Weekdays {
		t.add(weekday(d.Day), thousands(d.Judged), rate(d.Rate), known(d.RequestsPerMin, 1, 3, ""))
	}
	return t.orNil()
}

func weekTable(r *calibrate.Report) *table {
	t := newTable("Weeks", "From (UTC)", "Requests", "Judged", "Solve rate", "Requests against the week before")
	for i, w := range r.Time.Weeks {
		ratio := known(w.Ratio, 1, 3, " ×")
		if i == 0 && w.Ratio == nil {
			ratio = "first week"
		}
		t.add(instant(w.From), thousands(w.Requests), thousands(w.Judged), rate(w.Rate), ratio)
	}
	return t.orNil()
}

// dispersionTable has a column for each span, the shortest first.
func dispersionTable(r *calibrate.Report) *table {
	spans := slices.SortedFunc(maps.Keys(r.Dispersion), func(a, b string) int {
		x, _ := time.ParseDuration(a)
		y, _ := time.ParseDuration(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	if len(spans) == 0 {
		return nil
	}
	t := newTable("How much whole windows vary", "Windows of")
	t.Folded = "The noise in figures"
	for _, span := range spans {
		t.Head = append(t.Head, cell{plain(span), ""})
	}
	t.Head = append(t.Head, cell{"What it is", "words"})
	for _, one := range dispersions {
		var texts []string
		for _, span := range spans {
			d := r.Dispersion[span]
			texts = append(texts, one.of(&d))
		}
		t.add(one.name, append(texts, one.what)...)
	}
	return t
}

// dispersions are the figures of a span of windows.
var dispersions = []struct {
	name, what string
	of         func(*calibrate.Dispersion) string
}{
	{"windows", "whole ones", func(d *calibrate.Dispersion) string { return thousands(int64(d.K)) }},
	{"independent", "as many independent ones would tell as much", func(d *calibrate.Dispersion) string { return known(d.KEff, 1, 4, "") }},
	{"mean", "of the rates, each window counting the same", func(d *calibrate.Dispersion) string { return rate(d.Mean) }},
	{"SD", "sample standard deviation of the rates", func(d *calibrate.Dispersion) string { return points(d.SD) + " pp" }},
	{"phi", "variance against the binomial's; 1: chance alone", func(d *calibrate.Dispersion) string { return known(d.Phi, 1, 3, "") }},
	{"p", "chance of so large a phi from chance alone", func(d *calibrate.Dispersion) string { return chance(d.P) }},
	{"tau used", "standard deviation of the true rate between windows", func(d *calibrate.Dispersion) string { return points(d.TauUsed) + " pp" }},
	{"tau robust", "the same by the median: incidents hardly move it", func(d *calibrate.Dispersion) string { return points(d.TauRobust) + " pp" }},
	{"tau DL", "the same by DerSimonian and Laird: incidents raise it", func(d *calibrate.Dispersion) string { return points(d.TauDL) + " pp" }},
	{"ICC", "correlation of requests in one window", func(d *calibrate.Dispersion) string { return known(d.ICC, 1, 3, "") }},
	{"sigma z", "from window to window (Laney), in sigmas of chance", func(d *calibrate.Dispersion) string { return known(d.SigmaZ, 1, 3, "") }},
	{"SD z", "over all windows, in sigmas of chance", func(d *calibrate.Dispersion) string { return known(d.SDZ, 1, 3, "") }},
	{"drift ratio", "SD z over sigma z; 1: nothing moves slowly", func(d *calibrate.Dispersion) string { return known(d.Drift, 1, 3, "") }},
	{"r1", "correlation of neighbours", func(d *calibrate.Dispersion) string { return known(d.R1, 1, 2, "") }},
}

func delayTable(r *calibrate.Report) *table {
	d := newDelayCurve(r)
	if d == nil {
		return nil
	}
	t := newTable("Thresholds as replayed at "+share(d.pct)+" of the traffic", "Threshold, pp", "False trips", "Drop put in, pp", "Median delay", "Nine of ten within", "Not found")
	t.Folded = "The thresholds in figures"
	for _, p := range d.points {
		t.add(decimal(p.ThresholdPP, 4), weekly(p.PerWeek), decimal(p.DropPP, 4), found(p.DelayP50, p.Missed), found(p.DelayP90, p.Missed), thousands(int64(p.Missed)))
	}
	return t
}

// stepTable says what the slow layer sees at each step.
func stepTable(r *calibrate.Report) *table {
	drops := holds(r.Steps)
	columns := []string{"Share", "~Can be judged", "Judged requests a window", "sigma, pp", "Threshold, pp", "Smallest drop caught, pp", "Samples needed: noise, power", "Wait for min_samples"}
	for _, drop := range drops {
		columns = append(columns, "Hold to find "+plain(drop)+" pp")
	}
	summed := slices.ContainsFunc(r.Steps, func(s calibrate.Step) bool { return s.CusumLimit != nil })
	if summed {
		columns = append(columns, "Limit of the cumulative sum")
	}
	t := newTable("Steps: the solve rate", columns...)
	for _, s := range r.Steps {
		texts := []string{canJudge(r, &s), integer(s.NWindow, unknown), points(s.Sigma), known(s.ThresholdPP, 1, 4, ""), known(s.MDE80PP, 1, 4, ""),
			integer(s.NNoise, none) + ", " + integer(s.NPower, none), minutes(s.WaitP95Min)}
		for _, drop := range drops {
			texts = append(texts, minutes(s.HoldMin[drop]))
		}
		if summed {
			texts = append(texts, known(s.CusumLimit, 1, 4, ""))
		}
		t.add(share(s.Pct), texts...)
	}
	t.Note = "A window is the live one, " + length(r.Meta.LiveMin) + " long, at the traffic of a quiet time (tenth percentile). 95 of 100 waits are shorter than the one given."
	return t.orNil()
}

// canJudge says in words and by a sign whether the fixed window holds enough,
// or looks back further where it may.
func canJudge(r *calibrate.Report, s *calibrate.Step) string {
	if s.CanJudge {
		return "✓ yes"
	}
	text := "✗ no"
	if n := r.Slow.MinSamples; n != nil && s.NWindow != nil {
		text += ": " + thousands(*s.NWindow) + " of " + thousands(*n)
	}
	if s.SpanMaxMin != nil {
		return strings.Replace(text, "✗ no", "↔ stretched", 1) + " in a window, so it looks back up to " + minutes(s.SpanMaxMin)
	}
	return text
}

// holds lists the drops for which any step has a hold, the smallest first.
func holds(steps []calibrate.Step) []string {
	seen := map[string]bool{}
	for _, s := range steps {
		for drop := range s.HoldMin {
			seen[drop] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
}

// countTable has the limits of the fast layer's counts at each step.
func countTable(r *calibrate.Report) *table {
	t := newTable("Steps: the counts of the fast layer", "Share", "<Signal", "Expected", "Variance over mean", "Trips at", "Chance a look", "False trips a week", "Published rule trips at", "Its chance a look")
	for _, s := range r.Steps {
		for _, one := range []struct {
			name  string
			limit *calibrate.Count
		}{{"violations", s.Violations}, {"transfers", s.Transfers}, {"slow requests", s.Slow}} {
			if c := one.limit; c != nil {
				t.add(share(s.Pct), one.name, decimal(c.Lambda, 3), decimal(c.Phi, 3), thousands(c.Threshold), chance(&c.PFalse),
					chance(&c.PerWeek), integer(c.DocThreshold, none), chanceOrNone(c.DocPFalse))
			}
		}
	}
	return t.orNil()
}

func chanceOrNone(p *float64) string {
	if p == nil {
		return none
	}
	return chance(p)
}

func costTable(r *calibrate.Report) *table {
	t := newTable("Steps: the cost", "Share", "<A window holds enough", "Requests needed")
	for _, s := range r.Steps {
		if s.CostSamples == nil {
			continue
		}
		holds := "✗ no"
		if s.CostJudged {
			holds = "✓ yes"
		}
		t.add(share(s.Pct), holds, thousands(*s.CostSamples))
	}
	return t.orNil()
}

// replayTable has the false trips of each step, of all layers and by signal.
func replayTable(r *calibrate.Report) *table {
	seen := map[string]bool{}
	for _, s := range r.Replay.Steps {
		for signal := range s.BySignal {
			seen[signal] = true
		}
	}
	signals := slices.Sorted(maps.Keys(seen))
	columns := []string{"Share", "~All signals"}
	for _, signal := range signals {
		columns = append(columns, "~"+spoken(signal))
	}
	t := newTable("Replayed: false trips of a healthy canary", columns...)
	for _, s := range r.Replay.Steps {
		texts := []string{weekly(s.PerWeek)}
		for _, signal := range signals {
			text := unknown
			if e, ok := s.BySignal[signal]; ok {
				text = weekly(e)
			}
			texts = append(texts, text)
		}
		t.add(share(s.Pct), texts...)
	}
	return t.orNil()
}

// detectionTable has the delays of each step.
func detectionTable(r *calibrate.Report) *table {
	t := newTable("Replayed: how fast a drop is found", "Share", "Drop, pp", "Found within a day", "Median delay", "Nine of ten within", "Median exposure, requests")
	for _, s := range r.Replay.Steps {
		for _, d := range s.Drops {
			t.add(share(s.Pct), decimal(d.DropPP, 4), thousands(int64(d.Found))+" of "+thousands(int64(d.Runs)), found(d.DelayP50, d.Runs-d.Found), found(d.DelayP90, d.Runs-d.Found), exposure(&d))
		}
	}
	return t.orNil()
}

// found is a quantile of the delays; it falls among the drops that were not
// found where there is none.
func found(delay *float64, missed int) string {
	if delay == nil && missed > 0 {
		return "over a day"
	}
	return minutes(delay)
}

// exposure is the median of the requests served until the drop was found.
func exposure(d *calibrate.Detection) string {
	if d.ExposureP50 == nil && d.Found < d.Runs {
		return "not found"
	}
	return known(d.ExposureP50, 1, 3, "")
}

// signalTable has the baseline of the signals of the fast layer.
func signalTable(r *calibrate.Report) *table {
	t := newTable("What is normal", "Signal", "<Baseline", "Requests", "~Remarks")
	t.add("violations", exactRate(r.Violations.Rate), requests(r.Violations.Requests), rateRemark(r.Violations))
	t.add("transfers", exactRate(r.Transfers.Rate), requests(r.Transfers.Requests), rateRemark(r.Transfers))
	p99 := orUnknown(r.P99.Method)
	if len(r.P99.CI) == 2 {
		p99 = "95 % interval " + decimal(r.P99.CI[0], 4) + " to " + decimal(r.P99.CI[1], 4) + " ms; " + p99
	}
	if r.P99.Judge != "" {
		p99 += "; judged by " + plain(r.P99.Judge)
	}
	t.add("p99", known(r.P99.ValueMS, 1, 5, " ms"), requests(r.P99.Slow.Requests), p99)
	if r.TTFT != nil {
		t.add("p99 of the first token", known(&r.TTFT.ValueMS, 1, 5, " ms"), "", plain(r.TTFT.Method))
	}
	cost := "coefficient of variation " + known(r.Cost.CV, 1, 3, "")
	if r.Cost.CVFrom != "" {
		cost += ", of " + plain(r.Cost.CVFrom)
	}
	if r.Cost.Top1Share != nil {
		cost += "; the dearest 1 % are " + known(r.Cost.Top1Share, 100, 3, " %") + " of the sum"
	}
	t.add("cost", known(r.Cost.MeanUSD, 1, 4, " USD a request"), requests(r.Cost.Requests), cost)
	return t
}

// requests is how many a figure was measured on; without any there is none.
func requests(n int64) string {
	if n <= 0 {
		return unknown
	}
	return thousands(n)
}

func exactRate(p *float64) string { return known(p, 100, 3, " %") }

func rateRemark(v calibrate.Rate) string {
	text := "phi " + known(v.Phi, 1, 3, "") + ", tau " + known(v.Tau, 100, 3, " pp")
	if v.Upper95 != nil {
		text = "at most " + exactRate(v.Upper95) + " (95 %); " + text
	}
	return text
}
