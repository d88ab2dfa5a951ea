package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

//go:embed calibration.css
var calibrationStyle string

// CalibrationHTML writes what a baseline says as one page of HTML: no script,
// nothing from a network, the charts drawn into it. The same report gives the
// same bytes. A figure that does not exist is called unknown, never 0.
func CalibrationHTML(w io.Writer, r *calibrate.Report) error {
	digest := sha256.Sum256([]byte(calibrationStyle))
	page := calibrationPage{
		Style: calibrationStyle, StyleDigest: "sha256-" + base64.StdEncoding.EncodeToString(digest[:]),
		Title: "Calibration of " + orUnknown(r.Arm), Period: period(r.Span.From, r.Span.To) + " UTC",
		Verdict: verdictOf(r), Key: keyFigures(r), Sections: sectionsOf(r), Measured: measured(r),
	}
	_, err := io.WriteString(w, page.html())
	return err
}

type calibrationPage struct {
	Style       string // of this project: it is not escaped
	StyleDigest string
	Title       string
	Period      string
	Verdict     verdict
	Key         []fact
	Sections    []section
	Measured    []fact
}

// verdict says first whether the plan can be judged, then what to do.
type verdict struct {
	OK      bool
	Words   string
	What    string
	Blocks  []calibrate.Warning // what stands in the way
	Remarks []calibrate.Warning // what else to know
}

// fact is a figure with its name.
type fact struct{ Name, Value, Note string }

// section is a part of the page: what it says in words, then charts and tables.
type section struct {
	ID, Title string
	Words     []string
	Drawing   *drawing
	Absent    string // why there is no drawing
	Tables    []*table
}

func verdictOf(r *calibrate.Report) verdict {
	v := verdict{OK: r.Verdict.OK}
	for _, w := range r.Warnings {
		w = calibrate.Warning{Code: plain(w.Code), Text: sentence(w.Text), Hint: plain(w.Hint)}
		if !v.OK && slices.Contains(r.Verdict.Reasons, w.Code) {
			v.Blocks = append(v.Blocks, w)
		} else {
			v.Remarks = append(v.Remarks, w)
		}
	}
	if !v.OK {
		v.Words = "This plan cannot be judged as it stands."
		v.What = "Settle what stands below, then calibrate again. Until then a trip, or none, says little about the release."
		for _, code := range r.Verdict.Reasons {
			if !slices.ContainsFunc(v.Blocks, func(w calibrate.Warning) bool { return w.Code == plain(code) }) {
				v.Blocks = append(v.Blocks, calibrate.Warning{Code: plain(code), Text: "No text is recorded for this reason."})
			}
		}
		if len(v.Blocks) == 0 {
			v.What = "No reason is recorded."
		}
		return v
	}
	v.Words = "This plan can be judged."
	if r.Totals.Judged == 0 {
		v.Words = "Without outcomes no solve rate can be judged."
	}
	v.What = "Put the values into canary.yaml with canaryctl calibrate --write, and review the difference before it is committed."
	if blind := blindSteps(r); blind != "" {
		v.What += " The fixed window is too short at " + blind + ": see the step plan."
	}
	if n := len(v.Remarks); n > 0 {
		v.What += " First read the " + counted(n, "remark") + " below."
	}
	return v
}

// blindSteps lists the steps whose fixed window does not hold min_samples.
func blindSteps(r *calibrate.Report) string {
	var blind []string
	for _, s := range r.Steps {
		if !s.CanJudge {
			blind = append(blind, share(s.Pct))
		}
	}
	return strings.Join(blind, ", ")
}

// keyFigures are those that people ask for first.
func keyFigures(r *calibrate.Report) []fact {
	d := r.Dispersion[r.Windows.Span]
	smallest := none
	if p := r.Slow.SMinPct; p != nil && *p <= 100 {
		smallest = known(p, 1, 3, " %")
	}
	all := []fact{
		{"Solve rate p0", rate(r.Centre.P0), "standard error " + known(r.Centre.P0SE, 100, 2, " pp")},
		{"Noise, windows of " + orUnknown(r.Windows.Span), known(r.Slow.SigmaPP, 1, 3, " pp"), "chance alone " + known(r.Slow.ChancePP, 1, 3, " pp") + ", between windows " + known(d.TauUsed, 100, 3, " pp")},
		{"Threshold, at the least", positive(r.Slow.ThresholdPP, 4, " pp"), "below p0; higher where the noise is, see the step plan"},
		{"Samples needed", integer(r.Slow.MinSamples, none), "judged requests; smallest share whose window holds them: " + smallest},
	}
	allowed := positive(r.Meta.Budget.PerWeek, 3, " a week") + " allowed"
	if r.Replay == nil {
		return append(all, fact{"False trips", "not replayed", allowed})
	}
	return append(all, fact{"False trips, replayed", weekly(r.Replay.JointPerWeek), allowed})
}

// measured says what the report rests on, so that it can be made again.
func measured(r *calibrate.Report) []fact {
	all := []fact{
		{"Arm", orUnknown(r.Arm), ""},
		{"Span", period(r.Span.From, r.Span.To) + " UTC", fixed(r.Span.Hours, 1) + " hours, " + share(r.Meta.Coverage) + " of them known"},
		{"Requests", integer(&r.Totals.Total, unknown), known(r.RequestsPerMin, 1, 4, "") + " a minute, both arms"},
		{"Judged", integer(&r.Totals.Judged, unknown), integer(&r.Totals.Solved, unknown) + " of them solved"},
		{"Windows", thousands(int64(r.Windows.Whole)) + " whole ones of " + orUnknown(r.Windows.Span), fmt.Sprintf("%s partial, %s empty, %s", thousands(int64(len(r.Windows.Partial))), thousands(int64(r.Windows.Empty)), counted(len(r.Windows.Gaps), "gap"))},
		{"Traffic", known(r.Traffic.P50, 1, 4, "") + " requests a minute", "tenth percentile " + known(r.Traffic.P10, 1, 4, "") + "; busiest hour against quietest " + known(r.Traffic.PeakToTrough, 1, 3, " ×")},
		{"Rule", multiplierOf(r), "judge: " + orUnknown(r.Meta.Judge)},
		{"Budget", budgetOf(&r.Meta.Budget), shares(r.Meta.Budget.Shares)},
		{"Input", orUnknown(r.Meta.InputSHA256), "SHA-256 of the windows as they were read"},
		{"Made by", "canaryctl " + orUnknown(r.Meta.Version), fmt.Sprintf("seed %d; hours of the day in %s", r.Meta.Seed, orUnknown(r.Meta.Zone))},
	}
	return all
}

func multiplierOf(r *calibrate.Report) string {
	switch r.Meta.Rule {
	case "plain":
		return "plain: " + decimal(r.Slow.Plain.K, 4) + " sigma"
	case "budget":
		return "from the budget: " + known(r.Slow.Z, 1, 4, " sigma")
	}
	return orUnknown(r.Meta.Rule)
}

func budgetOf(b *calibrate.Budget) string {
	text := positive(b.PerWeek, 3, " false trips a week")
	if b.PerRelease != nil {
		text += ", asked for as " + known(b.PerRelease, 100, 3, " %") + " a release of " + known(b.ReleaseHours, 1, 3, " hours")
	}
	return text
}

func sectionsOf(r *calibrate.Report) []section {
	return []section{controlSection(r), timeSection(r), noiseSection(r), delaySection(r), stepSection(r), signalSection(r)}
}

// section with its tables, those that have rows.
func (s section) with(tables ...*table) section {
	for _, t := range tables {
		if t != nil {
			s.Tables = append(s.Tables, t)
		}
	}
	return s
}

func controlSection(r *calibrate.Report) section {
	s := section{ID: "time", Title: "The baseline over time", Drawing: controlChart(r), Absent: "There is no window with judged requests to draw."}
	s.Words = append(s.Words, "Each point is the solve rate of one window of "+orUnknown(r.Windows.Span)+". Outside the band lies what chance and the measured noise hardly ever do.")
	if len(r.Incidents) == 0 {
		s.Words = append(s.Words, "No incident: no window is far from the rest.")
	}
	return s.with(incidentTable(r), excludedTable(r))
}

func timeSection(r *calibrate.Report) section {
	s := section{ID: "hours", Title: "Hours, days and weeks", Drawing: hoursChart(r), Absent: "There are no rates by hour to draw."}
	swing := "From the worst hour to the best the solve rate swings by " + known(r.Time.Swing, 100, 3, " pp") + "; the chance of hours as different as these from the noise alone is " + chance(r.Time.SwingP) + ". Hours are those of " + orUnknown(r.Meta.Zone) + "."
	s.Words = append(s.Words, swing)
	drift := "Drift between the halves of the baseline: unknown."
	if h := r.Time.Halves; h != nil {
		drift = "The second half has a solve rate of " + rate(&h.Second) + ", the first " + rate(&h.First) + ": z " + fixed(h.Z, 1) + ". Beyond ±3 the baseline drifts."
	}
	s.Words = append(s.Words, drift)
	return s.with(weekdayTable(r), weekTable(r), hoursTable(r))
}

func noiseSection(r *calibrate.Report) section {
	s := section{ID: "noise", Title: "Noise against the canary's share", Drawing: noiseChart(r), Absent: "The noise between windows or the traffic is unknown, so there is no curve to draw."}
	s.Words = append(s.Words, "How far the solve rate strays by itself. Chance shrinks as more requests are judged; the noise between windows (tau) does not. A threshold below sigma times its multiplier would trip on noise. A step whose window reaches back for min_samples lies below the curve, which is that of the fixed window.",
		fmt.Sprintf("tau is %s, measured on windows of %s (%s); most noise under which a drop of %s could be caught: %s.", known(r.Slow.Tau, 100, 3, " pp"), orUnknown(r.Slow.TauSpan),
			orUnknown(r.Slow.TauMethod), positive(r.Slow.DetectDropPP, 4, " pp"), known(r.Slow.TauMax, 100, 3, " pp")))
	if f := r.Slow.TauFactor; f != nil && *f > 1 {
		s.Words = append(s.Words, "That is "+known(f, 1, 4, "")+" times what was measured: the baseline has few windows.")
	}
	if t := r.Slow.TauControl; t != nil {
		s.Words = append(s.Words, "Against stable in the same minutes only "+known(t, 100, 3, " pp")+" of noise is left: what both arms share cancels.")
	}
	return s.with(dispersionTable(r))
}

func delaySection(r *calibrate.Report) section {
	s := section{ID: "delay", Title: "Threshold against delay", Drawing: delayChart(r)}
	if r.Replay == nil {
		s.Absent = "Not replayed: false trips and delays were not counted. Run canaryctl calibrate on the same files with --replays 200."
		return s
	}
	s.Absent = "The replay has no row of thresholds."
	if s.Drawing == nil {
		return s
	}
	s.Words = append(s.Words, "A low threshold finds a drop soon and trips healthy canaries often; a high one the reverse. Replayed on "+counted(r.Replay.Weeks, "week")+
		" drawn from this baseline, at "+share(r.Replay.Grid.Pct)+" of the traffic.")
	if p := r.Replay.Grid.RecommendedPP; p != nil {
		s.Words = append(s.Words, "Recommended: "+decimal(*p, 4)+" pp, the smallest threshold from the tolerable drop on that keeps the budget.")
	} else if !r.Replay.Grid.Enough {
		s.Words = append(s.Words, "Recommended: none. Too few weeks were replayed to see whether the budget is kept.")
	} else {
		s.Words = append(s.Words, "Recommended: none. No threshold from the tolerable drop on keeps the budget.")
	}
	return s.with(delayTable(r))
}

func stepSection(r *calibrate.Report) section {
	s := section{ID: "steps", Title: "Step plan"}
	if len(r.Steps) == 0 {
		s.Absent = "There is no step plan: name a canary.yaml with -c."
	}
	s.Words = append(s.Words, fmt.Sprintf("Tolerable drop %s; drop to be found %s; min_samples %s.", positive(r.Slow.TolerableDropPP, 4, " pp"), positive(r.Slow.DetectDropPP, 4, " pp"), integer(r.Slow.MinSamples, none)), plainRule(&r.Slow.Plain))
	s = s.with(stepTable(r), countTable(r), costTable(r))
	if r.Replay == nil {
		s.Words = append(s.Words, "Not replayed: these figures are reckoned, not counted.")
		return s
	}
	s.Words = append(s.Words, fmt.Sprintf("Replayed on %s, in blocks of %s, seed %d. At the worst step: %s; under the plain rule %s. Of %s of the whole ladder, %s rolled back falsely.",
		counted(r.Replay.Weeks, "week"), length(r.Replay.BlockMin), r.Replay.Seed, weekly(r.Replay.JointPerWeek), weekly(r.Replay.DocPerWeek),
		counted(r.Replay.Release.Runs, "run"), falsely(r.Replay.Release.RolledBack)),
		"All of these weeks are drawn from this one baseline: what it never saw, they never show.")
	return s.with(replayTable(r), detectionTable(r))
}

// plainRule tells what the rule of three sigma would do.
func plainRule(p *calibrate.Plain) string {
	return fmt.Sprintf("The plain rule, %s sigma of a whole-traffic window, would set %s; held against single windows it trips on %d of the baseline's own %s.",
		positive(p.K, 3, ""), known(p.ThresholdPP, 1, 4, " pp"), p.OneWindow, counted(p.Of, "window"))
}

func signalSection(r *calibrate.Report) section {
	s := section{ID: "signals", Title: "The other signals"}
	if len(r.P99.Exceed) > 0 {
		var counts []string
		over := ""
		if r.P99.SlowMS != nil {
			over = " (over " + known(r.P99.SlowMS, 1, 5, " ms") + ")"
		}
		for _, e := range r.P99.Exceed {
			counts = append(counts, thousands(e.Count)+" of "+thousands(e.N))
		}
		s.Words = append(s.Words, "Too many slow requests"+over+" are: "+strings.Join(counts, ", ")+".")
	}
	return s.with(signalTable(r))
}
