package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/stats"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// defaultLimits is a configuration that says nothing of limits.
const defaultLimits = "canary: {target_service: shadow, steps: [{pct: 1.00, min_hold_min: 0}]}"

// setsReport is the JSON of shadow compare --records.
type setsReport struct {
	Schema  int               `json:"schema"`
	Verdict release.Verdict   `json:"verdict"`
	Trips   []release.Signal  `json:"trips"` // signals that failed
	Stable  setJSON           `json:"stable"`
	Canary  setJSON           `json:"canary"`
	Checks  []shadow.SetCheck `json:"checks"`
}

// setJSON is what was read of one set.
type setJSON struct {
	File     string          `json:"file"`
	Requests int64           `json:"requests"`
	Bad      int64           `json:"bad"`
	BadLines []trace.BadLine `json:"bad_lines"`
}

func runCompareRecords(ctx context.Context, o *compareOptions) error {
	format, err := o.app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if len(o.Contracts) > 0 || o.wantRecords {
		return usage(errors.New("--records holds two sets of records against each other: it takes neither --contract nor --records-out"), "")
	}
	files, err := o.recordFiles()
	if err != nil {
		return err
	}
	limits, slowMS, err := o.setLimits()
	if err != nil {
		return err
	}
	if sameFile(files[release.Stable], files[release.Canary]) {
		o.app.warn("both sets are one file: this holds a version against itself")
	}
	r := setsReport{Schema: 1, Trips: []release.Signal{}}
	stable, err := o.readSet(ctx, files[release.Stable], slowMS, &r.Stable)
	if err != nil {
		return err
	}
	canary, err := o.readSet(ctx, files[release.Canary], slowMS, &r.Canary)
	if err != nil {
		return err
	}
	r.Checks = append([]shadow.SetCheck{}, shadow.CompareSets(stable, canary, limits)...)
	r.Verdict = shadow.Outcome(r.Checks)
	for i := range r.Checks {
		k := &r.Checks[i]
		if k.Verdict == release.Fail && !k.Observe && !slices.Contains(r.Trips, k.Signal) {
			r.Trips = append(r.Trips, k.Signal)
		}
	}
	if format == "json" {
		err = encodeIndented(o.app.Stdout, r)
	} else {
		err = o.setsText(&r)
	}
	switch {
	case err != nil:
		return err
	case r.Verdict == release.Fail:
		return silent(ExitFailed)
	case r.Verdict != release.Pass && !o.AllowHold:
		return silent(ExitHeld)
	}
	return nil
}

// recordFiles reads ARM=FILE from the flag and the arguments: both arms, each
// once.
func (o *compareOptions) recordFiles() (map[release.Arm]string, error) {
	files := map[release.Arm]string{}
	const hint = "write --records stable=FILE canary=FILE"
	for _, text := range slices.Concat(o.Records, o.Files) {
		name, file, ok := strings.Cut(text, "=")
		arm := release.Arm(name)
		switch {
		case !ok || file == "" || arm != release.Stable && arm != release.Canary:
			return nil, usage(fmt.Errorf("--records: %q is neither stable=FILE nor canary=FILE", text), hint)
		case files[arm] != "":
			return nil, usage(fmt.Errorf("--records: %s is named twice", arm), hint)
		}
		files[arm] = file
	}
	if len(files) < 2 {
		return nil, usage(errors.New("--records: one of the two sets is missing"), hint)
	}
	if files[release.Stable] == "-" && files[release.Canary] == "-" {
		return nil, usage(errors.New("--records: standard input cannot be both sets"), hint)
	}
	return files, nil
}

// sameFile reports whether two names are of one file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// setLimits returns the limits of the configuration that -c names, or else the
// defaults, and the time to first token from which on a stream is slow.
func (o *compareOptions) setLimits() (*shadow.SetLimits, float64, error) {
	cfg, _ := config.Parse("defaults", []byte(defaultLimits))
	if o.wantConfig {
		var err error
		if cfg, err = o.app.loadConfig(); err != nil {
			return nil, 0, err
		}
	}
	f, m := &cfg.Fast, &cfg.Streaming
	all := cfg.Limits()
	l := &shadow.SetLimits{
		ViolationLimit: f.ViolationLimit, ViolationBaseline: f.BaselineViolationRate, ViolationMultiplier: f.ViolationRatioMultiplier,
		CostRatio: f.CostRatioLimit, MinTransfers: f.MinTransferCount, TransferBaseline: f.BaselineTransferRate, TransferRatio: f.TransferRateRatioLimit,
		P99Ratio: f.P99RatioLimit, TTFTMS: m.TTFTP99.LimitMS, TTFTRatio: m.TTFTP99.RatioLimit, ITLMS: m.ITL.LimitMS, ITLLeast: m.ITL.MinCount,
		MinJudged: cfg.Slow.MinSamplesSlow, Rules: cfg.Signals, Shares: map[release.Signal]breaker.StreamLimit{},
	}
	l.Slower, l.Confidence, l.Least = shadow.DefaultSlower()
	if ratio := release.Ratio(o.Slower); !ratio.IsZero() {
		l.Slower = ratio
	}
	var err error
	if l.SolveDrop, err = cfg.Slow.SolveRateDropPP.Mul(release.NewRatio(1, 100)); err != nil {
		return nil, 0, err
	}
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		l.Shares[s] = *all.StreamLimitOf(s)
	}
	return l, m.TTFTSlow.LimitMS.Float64(), nil
}

// readSet reads one set as a whole.
func (o *compareOptions) readSet(ctx context.Context, file string, slowMS float64, said *setJSON) (*shadow.RecordSet, error) {
	opt, err := o.Read.options()
	if err != nil {
		return nil, err
	}
	opt.Distributions, opt.TTFTLimitMS, opt.Scene = true, slowMS, o.app.scene
	w, data, err := trace.ReadWhole(ctx, file, o.app.Stdin, opt)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	for i, n := range data.Notes {
		if file = harmless(file); !strings.HasPrefix(n, file+":") {
			data.Notes[i] = file + ": " + n // of which of the two sets
		}
	}
	o.app.sayInput(data)
	if err != nil {
		return nil, inputError("", err)
	}
	*said = setJSON{File: file, Requests: w.Total, Bad: data.Bad, BadLines: append([]trace.BadLine{}, data.BadLines...)}
	return &shadow.RecordSet{Window: w, Latency: valuesOf(data.Latency), TTFT: valuesOf(data.TTFT), ITL: valuesOf(data.ITL)}, nil
}

// sayInput says what was met in a file of records.
func (app *App) sayInput(data *trace.Data) {
	for _, n := range data.Notes {
		app.say("%s", n)
	}
	app.sayBad(data.Bad, data.Rows, data.BadLines)
}

// valuesOf returns the values of the one arm of a set.
func valuesOf(of map[release.Arm]*trace.Distribution) []stats.Weighted {
	if d := of[release.All]; d != nil {
		return d.Values()
	}
	return nil
}

func (o *compareOptions) setsText(r *setsReport) error {
	out := bufio.NewWriter(o.app.Stdout)
	fmt.Fprintf(out, "stable  %s, %s\ncanary  %s, %s\n\n", harmless(r.Stable.File), counted(int(r.Stable.Requests), "request"), harmless(r.Canary.File), counted(int(r.Canary.Requests), "request"))
	fmt.Fprintf(out, "%-14s %-10s %-13s %11s %11s %11s %8s\n", "signal", "figure", "verdict", "stable", "canary", "limit", "samples")
	for i := range r.Checks {
		k := &r.Checks[i]
		fmt.Fprintf(out, "%-14s %-10s %-13s %11s %11s %11s %8d%s\n", k.Signal, k.Figure, k.Verdict, setFigure(k, k.Baseline), setFigure(k, k.Value), setFigure(k, k.Limit), k.Samples, setNote(k))
	}
	switch names := signalNames(r.Trips); r.Verdict {
	case release.Fail:
		fmt.Fprintf(out, "\nfail: %s\n", strings.Join(names, ", "))
	default:
		fmt.Fprintf(out, "\n%s\n", r.Verdict)
	}
	return out.Flush()
}

func signalNames(signals []release.Signal) (names []string) {
	for _, s := range signals {
		names = append(names, s.String())
	}
	return names
}

// setFigure writes a value in the unit of its figure.
func setFigure(k *shadow.SetCheck, v *float64) string {
	switch {
	case v == nil:
		return "-"
	case k.Figure == "share":
		return digits(k, *v, 100, 2) + " %"
	case k.Figure == "count":
		return strconv.FormatFloat(*v, 'f', 0, 64)
	case k.Figure == "mean_usd":
		return strconv.FormatFloat(*v, 'g', 4, 64)
	}
	return digits(k, *v, 1, 1) + " ms"
}

// digits writes a figure of a check with so many digits behind the point, or
// with as many as it takes to tell its value and its limit apart.
func digits(k *shadow.SetCheck, v, unit float64, places int) string {
	apart := k.Value != nil && k.Limit != nil && *k.Value != *k.Limit
	for apart && places < 12 && fixed(unit**k.Value, places) == fixed(unit**k.Limit, places) {
		places++
	}
	return fixed(unit*v, places)
}

// fixed writes a number in full, and one of more digits than a line holds with
// its exponent.
func fixed(v float64, places int) string {
	if math.Abs(v) >= 1e12 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}

// setNote says what the figures do not.
func setNote(k *shadow.SetCheck) (note string) {
	if k.AtLeast != nil {
		note += fmt.Sprintf("  %s times stable's, at least %s", fixed(*k.Value / *k.Baseline, 2), fixed(*k.AtLeast, 2))
	}
	switch {
	case k.OutOfReach && k.Verdict == release.NoData:
		note += "  worse than stable, and the limit is out of reach: it cannot trip"
	case k.OutOfReach && k.Verdict == release.Pass:
		note += "  no worse than stable; the limit is out of reach"
	case k.Figure == "share" && k.Verdict == release.Pass && k.Limit != nil && *k.Value > *k.Limit && k.Signal.Streaming():
		note += "  too few to trip"
	}
	if k.Needed > 0 {
		note += fmt.Sprintf("  %d more needed", k.Needed)
	}
	if k.Observe {
		note += "  observed"
	}
	return note
}
