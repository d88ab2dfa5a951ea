package trace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestWindowRowsThatCannotBeAreBadLines(t *testing.T) {
	const head, good = "t,total,judged,solved,violations,cost,span\n", "2026-05-04T00:00:00Z,5,,4,0,1,1m\n"
	for line, why := range map[string]string{
		"2026-05-04T00:01:00Z,4.5,,4,0,1,1m":     `total "4.5" is not a whole number`,
		"2026-05-04T00:01:00Z,-1,,4,0,1,1m":      `total "-1" is negative`,
		"2026-05-04T00:01:00Z,1e15,,4,0,1,1m":    "too large for a count",
		"2026-05-04T00:01:00Z,1e300,,4,0,1,1m":   "too large for a count",
		"2026-05-04T00:01:00Z,5,,6,0,1,1m":       "solved 6 is more than judged 5",
		"2026-05-04T00:01:00Z,5,4,5,0,1,1m":      "solved 5 is more than judged 4",
		"2026-05-04T00:01:00Z,5,6,4,0,1,1m":      "judged 6 is more than total 5",
		"2026-05-04T00:01:00Z,true,,4,0,1,1m":    `total "true" is not a number`,
		"2026-05-04T00:01:00Z,5,,4,x,1,1m":       `violations "x" is not a number`,
		"2026-05-04T00:01:00Z,5,,4,0,-1,1m":      `cost "-1" is negative`,
		"2026-05-04T00:01:00Z,5,,4,0,1,-1m":      "is not a span of time",
		"2026-05-04T00:01:00Z,5,,4,0,1,tomorrow": "is not a span of time",
	} {
		d, err := read(head+good+line+"\n", Options{MaxBad: anyBad})
		if err != nil || d.Bad != 1 || len(d.BadLines) != 1 || !strings.Contains(d.BadLines[0].Message, why) {
			t.Errorf("%s: %v, %+v", line, err, d)
		}
	}
	d := mustRead(t, head+good+"2026-05-04T00:01:00Z,4.0,,4e0,0,NaN,1m\n", Options{})
	wantTable(t, d, "2026-05-04T00:00:00Z,all,5,5,4,0,,1,,", "2026-05-04T00:01:00Z,all,4,4,4,0,,,,")
	if d.NonFinite != 1 {
		t.Errorf("%d figures not finite", d.NonFinite)
	}
}

// TestABareSpanIsSecondsIfTheWindowsSaySo: a number without a unit is taken as
// seconds where the windows are that far apart, and refused elsewhere.
func TestABareSpanIsSecondsIfTheWindowsSaySo(t *testing.T) {
	rows := func(span string) string {
		return "t,total,solved,span\n2026-05-04T00:00:00Z,5,4," + span + "\n2026-05-04T00:01:00Z,6,4," + span + "\n"
	}
	d := mustRead(t, rows("60"), Options{})
	if d.Span != time.Minute || !noted(d, "spans are numbers, taken as seconds") {
		t.Errorf("span %v, notes %q", d.Span, d.Notes)
	}
	for _, span := range []string{"1", "60000", "5"} {
		if _, err := read(rows(span), Options{}); err == nil || !strings.Contains(err.Error(), "has no unit") {
			t.Errorf("span %s: %v", span, err)
		}
	}
}

func TestAWindowWithoutATotalIsAGap(t *testing.T) {
	d := mustRead(t, "t,total,solved,span\n2026-05-04T00:00:00Z,5,4,1m\n2026-05-04T00:01:00Z,,,1m\n2026-05-04T00:02:00Z,NaN,,1m\n", Options{})
	if len(d.Windows) != 1 || d.NoData != 2 || !noted(d, "2 window rows have no total") {
		t.Errorf("%+v", d)
	}
}

func TestTheSameWindowTwiceIsDroppedOrRefused(t *testing.T) {
	const head, row = "t,arm,total,solved,span\n", "2026-05-04T00:00:00Z,canary,5,4,1m\n"
	d := mustRead(t, head+row+row, Options{})
	if len(d.Windows) != 1 || d.Duplicates != 1 {
		t.Errorf("%+v", d)
	}
	other := "2026-05-04T00:00:00Z,canary,7,4,1m\n"
	_, err := read(head+row+other, Options{})
	e, ok := errors.AsType[*InputError](err)
	if !ok || e.Error() != "-:3: 2026-05-04T00:00:00Z of canary is there already, with other figures: -:2" || !strings.Contains(e.Hint(), "--sum-duplicates") {
		t.Errorf("%v", err)
	}
	d = mustRead(t, head+row+other, Options{SumDuplicates: true})
	wantTable(t, d, "2026-05-04T00:00:00Z,canary,12,12,8,,,,,")
}

func TestWindowsOfOneArmMustNotOverlap(t *testing.T) {
	const text = "t,arm,total,span\n2026-05-04T00:00:00Z,canary,5,5m\n2026-05-04T00:03:00Z,%s,5,5m\n"
	if _, err := read(fmt.Sprintf(text, "canary"), Options{}); err == nil || !strings.Contains(err.Error(), "-:3: the window of canary at 2026-05-04T00:03:00Z starts before") {
		t.Error(err)
	}
	mustRead(t, fmt.Sprintf(text, "stable"), Options{})
}

func TestTheSpanIsReadGivenOrAskedFor(t *testing.T) {
	minutes := "t,total\n2026-05-04T00:00:00Z,5\n2026-05-04T00:01:00Z,5\n2026-05-04T00:05:00Z,5\n"
	d := mustRead(t, minutes, Options{})
	if d.Span != time.Minute || !noted(d, "taken as 1m, the step between them") {
		t.Errorf("%+v", d)
	}
	fives := "t,total\n2026-05-04T00:00:00Z,5\n2026-05-04T00:05:00Z,5\n"
	_, err := read(fives, Options{})
	if e, ok := errors.AsType[*NoSpanError](err); !ok || e.Step != 5*time.Minute || !strings.Contains(e.Hint(), "--input-span 5m") {
		t.Errorf("%v", err)
	}
	if d = mustRead(t, fives, Options{InputSpan: 5 * time.Minute}); d.Span != 5*time.Minute {
		t.Errorf("%+v", d)
	}
	_, err = read("t,total\n2026-05-04T00:00:00Z,5\n", Options{})
	if e, ok := errors.AsType[*NoSpanError](err); !ok || e.Step != 0 {
		t.Errorf("%v", err)
	}
	d = mustRead(t, "t,total,step\n2026-05-04T00:00:00Z,5,300\n", options(t, "span=step:s"))
	if d.Span != 5*time.Minute {
		t.Errorf("%+v", d)
	}
	d = mustRead(t, "t,total,span\n2026-05-04T00:00:00Z,5,1m\n2026-05-04T00:01:00Z,5,5m\n", Options{})
	if d.Span != 0 {
		t.Errorf("two spans are %s", d.Span)
	}
}

const fiveMinutes = `t,span,arm,total,judged,solved,violations,transfers,cost_mean,p99_ms
2026-05-04T00:00:00Z,5m,canary,10,8,7,1,2,0.02,300
2026-05-04T00:05:00Z,5m,canary,30,30,29,0,,0.01,500
2026-05-04T00:00:00Z,5m,stable,100,,99,0,0,0.01,200
2026-05-04T00:10:00Z,5m,stable,50,,49,2,0,,210
2026-05-04T00:15:00Z,5m,stable,0,0,0,0,0,,
`

func TestFinerWindowsAreMerged(t *testing.T) {
	d := mustRead(t, fiveMinutes, Options{Span: 10 * time.Minute})
	wantTable(t, d,
		"2026-05-04T00:00:00Z,canary,40,38,36,1,,1.25,0.0125,", // transfers known in one part only, no percentile of percentiles
		"2026-05-04T00:00:00Z,stable,100,100,99,0,0,,0.01,200",
		"2026-05-04T00:10:00Z,stable,50,50,49,2,0,,,210")
	want := []Partial{{T: d.Windows[1].T, Arm: "stable", Covered: 5 * time.Minute}}
	if diff := cmp.Diff(want, d.Partial); diff != "" {
		t.Error(diff)
	}
	if d.Span != 10*time.Minute {
		t.Error(d.Span)
	}
}

func TestArmsOfWindowsAreMerged(t *testing.T) {
	opt := Options{MergeArms: true}
	d := mustRead(t, fiveMinutes, opt)
	wantTable(t, d,
		"2026-05-04T00:00:00Z,all,110,108,106,1,2,,0.01090909090909091,",
		"2026-05-04T00:05:00Z,all,30,30,29,0,,,0.01,500",
		"2026-05-04T00:10:00Z,all,50,50,49,2,0,,,210",
		"2026-05-04T00:15:00Z,all,0,0,0,0,0,,,")
}

func TestWindowsThatDoNotFitAreRefused(t *testing.T) {
	for span, text := range map[time.Duration]string{
		time.Minute:     "t,span,total\n2026-05-04T00:00:00Z,5m,1\n",
		7 * time.Minute: "t,span,total\n2026-05-04T00:00:00Z,5m,1\n2026-05-04T00:05:00Z,5m,1\n",
	} {
		if _, err := read(text, Options{Span: span}); err == nil || !strings.Contains(err.Error(), "does not fit into windows of") {
			t.Errorf("%s: %v", span, err)
		}
	}
}

// Counts must come out the same whether minutes are merged at once or by way
// of five minutes.
func TestMergingIsTheSameInOneStepOrTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := drawWindows(t, false)
		for i := range minutes {
			w := &minutes[i]
			w.Known &^= release.HasP99 | release.HasCost | release.HasCostMean | release.HasTTFT | release.HasITL
			w.P99MS, w.Cost, w.CostMean, w.TTFTP99MS, w.ITLMS, w.ITLOf = 0, 0, 0, 0, 0, 0
			if !w.Has(release.HasTTFTSlow) {
				w.TTFTOf = 0
			}
		}
		ten, err := read(asCSV(minutes), Options{Span: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		five, err := read(asCSV(minutes), Options{Span: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		again, err := read(asCSV(five.Windows), Options{Span: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ten.Windows, again.Windows); diff != "" {
			t.Fatal(diff)
		}
	})
}

func asCSV(windows []release.Window) string {
	var b strings.Builder
	if err := WriteCSV(&b, windows, allColumns); err != nil {
		panic(err)
	}
	return b.String()
}

// drawWindows draws windows that may stand in a feed, sorted.
func drawWindows(t *rapid.T, odd bool) []release.Window {
	at := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	var out []release.Window
	for range rapid.IntRange(1, 40).Draw(t, "n") {
		at = at.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "gap")) * time.Minute)
		arms := rapid.SliceOfNDistinct(rapid.SampledFrom([]release.Arm{"canary", "stable", "v1,\"x\""}), 1, 3, rapid.ID[release.Arm]).Draw(t, "arms")
		for _, arm := range arms {
			w := release.Window{T: at, Span: time.Minute, Arm: arm}
			if odd {
				w.T = w.T.Add(time.Duration(rapid.Int64Range(0, 9).Draw(t, "ns")))
				w.Span -= 9
			}
			w.Total = rapid.Int64Range(1, 1e9).Draw(t, "total")
			if rapid.Bool().Draw(t, "solved?") {
				w.Known |= release.HasSolved
				w.Judged = rapid.Int64Range(0, w.Total).Draw(t, "judged")
				w.Solved = rapid.Int64Range(0, w.Judged).Draw(t, "solved")
			}
			if rapid.Bool().Draw(t, "violations?") {
				w.Known |= release.HasViolations
				w.Violations = rapid.Int64Range(0, w.Total).Draw(t, "violations")
			}
			if rapid.Bool().Draw(t, "transfers?") {
				w.Known |= release.HasTransfers
				w.Transfers = rapid.Int64Range(0, w.Total).Draw(t, "transfers")
			}
			if rapid.Bool().Draw(t, "slow?") {
				w.Known |= release.HasSlow
				w.Slow = rapid.Int64Range(0, w.Total).Draw(t, "slow")
			}
			figure := func(name string, has release.Figures, dst *float64) {
				if rapid.Bool().Draw(t, name+"?") {
					w.Known |= has
					*dst = rapid.Float64Range(0, 1e300).Draw(t, name)
				}
			}
			figure("cost", release.HasCost, &w.Cost)
			figure("p99", release.HasP99, &w.P99MS)
			if arm != release.Canary || w.Has(release.HasCost) { // else the ratio is filled in
				figure("mean", release.HasCostMean, &w.CostMean)
			}
			drawStreams(t, &w, figure)
			out = append(out, w)
		}
	}
	sortWindows(out)
	return out
}

// drawStreams draws what a window knows of streams and statuses.
func drawStreams(t *rapid.T, w *release.Window, figure func(string, release.Figures, *float64)) {
	count := func(name string, has release.Figures, dst *int64, most int64) {
		if rapid.Bool().Draw(t, name+"?") {
			w.Known |= has
			*dst = rapid.Int64Range(0, most).Draw(t, name)
		}
	}
	of := func(name string, dst *int64) int64 {
		*dst = rapid.Int64Range(0, w.Total).Draw(t, name)
		return *dst
	}
	count("ttft_slow", release.HasTTFTSlow, &w.TTFTSlow, of("ttft_of", &w.TTFTOf))
	figure("ttft_p99", release.HasTTFT, &w.TTFTP99MS)
	if w.Known&(release.HasTTFT|release.HasTTFTSlow) == 0 {
		w.TTFTOf = 0
	}
	if figure("itl", release.HasITL, &w.ITLMS); w.Has(release.HasITL) {
		of("itl_of", &w.ITLOf)
	}
	count("aborted", release.HasAborts, &w.Aborted, of("streams", &w.Streams))
	if !w.Has(release.HasAborts) {
		w.Streams = 0
	}
	count("errors", release.HasErrors, &w.Errors, of("status_of", &w.StatusOf))
	most := w.StatusOf
	if w.Has(release.HasErrors) {
		most = w.Errors
	}
	count("server_errors", release.HasServerErrors, &w.ServerErrors, most)
	if w.Known&(release.HasErrors|release.HasServerErrors) == 0 {
		w.StatusOf = 0
	}
	if rapid.Bool().Draw(t, "kv?") {
		w.KVCache, w.Known = rapid.Float64Range(0, 1).Draw(t, "kv"), w.Known|release.HasKVCache
	}
}

func TestWindowsReadBackAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawWindows(t, true)
		var lines strings.Builder
		if err := WriteJSONL(&lines, want, allColumns); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{asCSV(want), lines.String()} {
			got, err := read(text, Options{})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(want, got.Windows); diff != "" {
				t.Fatalf("%s\n%s", diff, text)
			}
		}
	})
}

func TestCountedRecordsReadBackAsTheyWereCounted(t *testing.T) {
	d := mustRead(t, recordLines, Options{})
	got := mustRead(t, asCSV(d.Windows), Options{})
	if diff := cmp.Diff(d.Windows, got.Windows); diff != "" {
		t.Error(diff)
	}
	if got.Supplied != d.Supplied || !cmp.Equal(got.Arms, d.Arms) {
		t.Errorf("%+v", got)
	}
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]string{
		"t,totl": "did you mean total?", "t,t": "", "user_id": "the columns are",
	} {
		_, err := ParseColumns(text)
		if e, ok := errors.AsType[*MappingError](err); !ok || !strings.Contains(e.Hint(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

const answerOf = `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`

func TestPrometheusAnswersAreWindows(t *testing.T) {
	d := mustRead(t, fmt.Sprintf(answerOf, `{"metric":{},"values":[[1777852860,"26"],[1777852920,"NaN"],[1777852980,"25.98"],[1777853040,"0.4"],[1777853100,"+Inf"],[1777853160,"0"]]}`), options(t, "total=value"))
	wantTable(t, d, "2026-05-04T00:00:00Z,all,26,,,,,,,", "2026-05-04T00:02:00Z,all,26,,,,,,,", "2026-05-04T00:05:00Z,all,0,,,,,,,")
	if d.NonFinite != 2 || d.NoData != 3 || !noted(d, "windows start one span earlier") || !noted(d, "1 count was not whole") {
		t.Errorf("%+v", d)
	}
}

func TestAnswersJoinByTimeAndArm(t *testing.T) {
	dir := t.TempDir()
	series := func(arm, values string) string {
		return fmt.Sprintf(`{"metric":{"version":%q},"values":[%s]}`, arm, values)
	}
	var paths []string
	for name, result := range map[string]string{
		"total.json":   series("canary", `[1777852860,"10"],[1777852920,"12"]`) + "," + series("stable", `[1777852860,"90"]`),
		"solved.json":  series("canary", `[1777852860,"9"],[1777852920,"NaN"]`) + "," + series("stable", `[1777852860,"91"]`),
		"latency.json": series("canary", `[1777852860,"0.3"]`),
	} {
		paths = append(paths, filepath.Join(dir, name))
		write(t, paths[len(paths)-1], fmt.Sprintf(answerOf, result))
	}
	opt := options(t, "p99_ms=latency:s")
	opt.MaxBad = anyBad
	d, err := ReadFiles(t.Context(), paths, nil, opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTable(t, d, "2026-05-04T00:00:00Z,canary,10,10,9,,,,,300", "2026-05-04T00:01:00Z,canary,12,,,,,,,")
	if d.Bad != 1 || !strings.Contains(d.BadLines[0].Message, "solved 91 is more than judged 90") {
		t.Errorf("%+v", d)
	}
}

func TestAnswersThatCannotBeReadSayWhy(t *testing.T) {
	for text, want := range map[string]string{
		`{"status":"error","errorType":"bad_data","error":"1:5: parse error"}`:                                                         "Prometheus answered with an error, bad_data: 1:5: parse error",
		`{"status":"success","data":{"resultType":"vector","result":[]}}`:                                                              "is a vector",
		`{"status":"success","data":{"resultType":"matrix","result":null}}`:                                                            "no result",
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,2]]}]}}`:                                "result",
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1,{}]]}]}}`:                           "",
		fmt.Sprintf(answerOf, `{"letric":{"version":"canary"},"values":[[1777852860,"1"]]}`):                                           "a series without its labels",
		`{"status":"success","data":{"resultType":"matrix"`:                                                                            "cut off or damaged",
		fmt.Sprintf(answerOf, `{"metric":{"pod":"b"},"values":[[1777852860,"1"]]},{"metric":{"pod":"a"},"values":[[1777852860,"1"]]}`): `2 series where one is expected (one an arm, by the labels arm and version): {pod="a"}, {pod="b"}`,
		fmt.Sprintf(answerOf, `{"metric":{},"values":[[1777852860,"1"],[1777852860,"2"]]}`):                                            "is there already, with other figures",
	} {
		_, err := read(text, options(t, "total=value"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := read(fmt.Sprintf(answerOf, `{"metric":{},"values":[[1777852860,"1"]]}`), Options{})
	if e, ok := errors.AsType[*InputError](err); !ok || !strings.Contains(e.Hint(), "--map total=value") {
		t.Errorf("%v", err)
	}
	d, err := read(`{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[{"metric":{},"values":[[1777852860,"1"],[1777852920,"1"]]}]},"warnings":["slow"]}`, options(t, "total=value"))
	if err != nil || !noted(d, "Prometheus says: slow") || !noted(d, "partial") {
		t.Errorf("%v %q", err, d.Notes)
	}
}

func TestARecordThatLooksLikeAnAnswerIsARecord(t *testing.T) {
	d := mustRead(t, `{"status":"error","ts":"2026-05-04T00:00:00Z","data":{"result":1}}`, Options{})
	if d.Kind != Records {
		t.Errorf("%+v", d)
	}
}
