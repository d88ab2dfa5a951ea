package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// weekly is a rate of false trips a week with its standard error, taken from
// how the baselines differ: that has the chance of the fresh weeks in it and
// that of what was learnt.
type weekly struct{ rate, se float64 }

// weeklyOf sums up a count over the outcomes that have it.
func weeklyOf(outs []*outcome, weeks int, of func(o *outcome) (int64, bool)) weekly {
	var rates []float64
	for _, o := range outs {
		if n, ok := of(o); ok {
			rates = append(rates, float64(n)/float64(weeks))
		}
	}
	mean, sd := stats.MeanSD(rates)
	return weekly{mean, sd / math.Sqrt(float64(len(rates)))}
}

func (w weekly) String() string { return fmt.Sprintf("%s ± %s", short(w.rate), short(w.se)) }

// short is a rate in as few digits as it is known to.
func short(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

// row is one world at one step.
type row struct {
	slots            int64
	threshold, plain float64 // pp, the median baseline's
	limit            float64 // of the cumulative sum
	alone, set       weekly
	signals          [release.Judged]weekly
	plainTrips       weekly
	cusum            weekly
	transfers        weekly
	published        weekly
}

func rowOf(outs []*outcome, i int, a amount) row {
	count := func(of func(o *outcome) int64) weekly {
		return weeklyOf(outs, a.weeks, func(o *outcome) (int64, bool) { return of(o), true })
	}
	r := row{
		slots:      worldSlots[i],
		threshold:  medianOf(outs, func(o *outcome) float64 { return *o.lesson.report.Steps[i].ThresholdPP }),
		plain:      medianOf(outs, func(o *outcome) float64 { return o.lesson.plainDrop }),
		alone:      count(func(o *outcome) int64 { return o.steps[i].alone }),
		set:        count(func(o *outcome) int64 { return sumTrips(o.steps[i].set) }),
		plainTrips: count(func(o *outcome) int64 { return o.steps[i].plain }),
		transfers:  count(func(o *outcome) int64 { return o.steps[i].transfers }),
		published:  count(func(o *outcome) int64 { return sumTrips(o.steps[i].published) }),
		cusum:      weeklyOf(outs, a.weeks, func(o *outcome) (int64, bool) { return o.steps[i].cusum, o.lesson.cusum != nil }),
	}
	r.limit = medianOf(outs, func(o *outcome) float64 {
		if o.lesson.cusum == nil {
			return math.NaN()
		}
		return o.lesson.cusum.Steps[i].Limits.Cusum.Limit
	})
	for s := range r.signals {
		r.signals[s] = count(func(o *outcome) int64 { return o.steps[i].set[s] })
	}
	return r
}

func sumTrips(trips [release.Judged]int64) (n int64) {
	for _, t := range trips {
		n += t
	}
	return n
}

// medianOf is the median over the outcomes that have the figure.
func medianOf(outs []*outcome, of func(o *outcome) float64) float64 {
	var xs []float64
	for _, o := range outs {
		if x := of(o); !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	return stats.Median(xs)
}

// delays says how fast a drop was found over all runs: median and ninth
// decile in minutes, where so many were found in a day, and the share that was.
func delays(outs []*outcome, of func(o *outcome) []float64) string {
	var xs []float64
	for _, o := range outs {
		xs = append(xs, of(o)...)
	}
	if len(xs) == 0 {
		return "-"
	}
	slices.Sort(xs)
	found := 0
	for _, x := range xs {
		if !math.IsInf(x, 1) {
			found++
		}
	}
	at := func(q release.Ratio) string {
		x := stats.NearestRank(xs, q)
		if math.IsInf(x, 1) {
			return "-"
		}
		return fmt.Sprintf("%.0f", x)
	}
	out := at(half) + " / " + at(nineTenths)
	if found < len(xs) {
		out += fmt.Sprintf(" (%d %%)", 100*found/len(xs))
	}
	return out
}

// figuresBlock is the generated part of the page.
func figuresBlock(by map[int][]*outcome, a amount) string {
	b := &strings.Builder{}
	for i := range truths {
		w, outs := &truths[i], by[i]
		fmt.Fprintf(b, "### %s: %s\n\n", w.name, w.words)
		reportLines(b, w, outs)
		tripTables(b, outs, a)
		delayTable(b, outs)
	}
	atSix := weeklyOf(by[0], a.weeks, func(o *outcome) (int64, bool) { return o.transfersAtSix, true })
	fmt.Fprintf(b, "At 6 requests a minute the published limit of transfers alone trips a healthy canary %s times a week (no noise).\n\n", atSix)
	b.WriteString("A report with 16 replayed weeks is the same to the byte on 1, 2 and 8 workers.\n")
	return b.String()
}

// reportLines say what the reports of a world's baselines have in common.
func reportLines(b *strings.Builder, w *truth, outs []*outcome) {
	said := map[string]int{}
	ok, planted, named, moved := 0, 0, 0, 0.0
	for _, o := range outs {
		l := o.lesson
		for _, code := range warningCodes(l.defaults) {
			said[code]++
		}
		if l.defaults.Verdict.OK {
			ok++
		}
		planted, named, moved = planted+l.planted, named+l.named, max(moved, l.moved)
	}
	var parts []string
	for code, n := range said {
		parts = append(parts, fmt.Sprintf("`%s` %d", code, n))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		parts = []string{"nothing"}
	}
	fmt.Fprintf(b, "- %d reports: %d with a verdict of ok; they warn of: %s.\n", len(outs), ok, strings.Join(parts, ", "))
	fmt.Fprintf(b, "- tau at the live window, median: %.2f pp, with the factor for few windows.\n", 100*medianOf(outs, func(o *outcome) float64 { return *o.lesson.report.Slow.Tau }))
	fmt.Fprintf(b, "- 5 %% bad windows (25 pp worse) move no step's threshold by more than %.1f %%; the incidents name %d of %d.\n", 100*moved, named, planted)
	if w.detect != "" {
		fmt.Fprintf(b, "- 10 pp lie inside this noise, so nothing would be written; the limits below are those of `--detect-drop %s`.\n", w.detect)
	}
	b.WriteString("\n")
}

// warningCodes are the codes of a report's warnings, each once.
func warningCodes(r *Report) []string {
	var codes []string
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func tripTables(b *strings.Builder, outs []*outcome, a amount) {
	b.WriteString("False trips a week:\n\n")
	b.WriteString("| canary a minute | threshold pp | solve rate alone | whole set | violations | cost | slow requests | transfers | solve rate | cusum, limit | plain rule | plain pp | published transfers | published fast layer |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range worldSlots {
		r := rowOf(outs, i, a)
		s := &r.signals
		fmt.Fprintf(b, "| %d | %.1f | %s | %s | %s | %s | %s | %s | %s | %s, %.1f | %s | %.1f | %s | %s |\n", r.slots, r.threshold, r.alone, r.set,
			short(s[release.Violations].rate), short(s[release.Cost].rate), short(s[release.P99].rate), short(s[release.Transfers].rate), short(s[release.SolveRate].rate),
			r.cusum, r.limit, r.plainTrips, r.plain, short(r.transfers.rate), short(r.published.rate))
	}
	b.WriteString("\n")
}

func delayTable(b *strings.Builder, outs []*outcome) {
	b.WriteString("Minutes until a drop of the solve rate is found, median / ninth decile (share found in a day where not all are):\n\n")
	b.WriteString("| canary a minute | drop pp | window, mid | window, cold | cusum, mid | cusum, cold |\n|---|---|---|---|---|---|\n")
	for i, slots := range worldSlots {
		for k, drop := range worldDrops {
			fmt.Fprintf(b, "| %d | %d | %s | %s | %s | %s |\n", slots, drop,
				delays(outs, func(o *outcome) []float64 { return o.steps[i].mid[k] }), delays(outs, func(o *outcome) []float64 { return o.steps[i].cold[k] }),
				delays(outs, func(o *outcome) []float64 { return o.steps[i].cusumMid[k] }), delays(outs, func(o *outcome) []float64 { return o.steps[i].cusumCold[k] }))
		}
	}
	b.WriteString("\n")
}
