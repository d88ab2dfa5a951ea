package trace

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestDenominatorsOfStreamsThatAreAbsent(t *testing.T) {
	for columns, c := range map[string]struct{ values, want string }{
		"ttft_p99_ms,ttft_slow":            {"900,3", "ttft_of 100 ttft_p99_ms 900 ttft_slow 3"},
		"streams,ttft_slow,itl_ms":         {"40,3,22", "ttft_of 40 ttft_slow 3 itl_of 40 itl_ms 22"},
		"streams,ttft_of,itl_of,ttft_slow": {"40,30,20,3", "ttft_of 30 ttft_slow 3"},
		"itl_ms,itl_of":                    {"22.5,7", "itl_of 7 itl_ms 22.5"},
		"aborted":                          {"2", "streams 100 aborted 2"},
		"aborted,streams":                  {"2,50", "streams 50 aborted 2"},
		"errors":                           {"2", "status_of 100 errors 2"},
		"server_errors,status_of":          {"2,99", "status_of 99 server_errors 2"},
		"errors,server_errors":             {"2,", "status_of 100 errors 2"},
		"status_of,streams,ttft_of,itl_of": {"99,50,40,30", ""},
		"kv_cache":                         {"0.875", "kv_cache 0.875"},
		"kv_cache,errors":                  {"1,NaN", "kv_cache 1"},
		"ttft_p99_ms":                      {"inf", ""},
	} {
		d := mustRead(t, "t,span,total,"+columns+"\n2026-05-04T00:00:00Z,1m,100,"+c.values+"\n", Options{})
		if got := streamFigures(t, d.Windows[0]); got != c.want {
			t.Errorf("%s: %s, want %s", columns, got, c.want)
		}
		again := mustRead(t, asCSV(d.Windows), Options{})
		if diff := cmp.Diff(d.Windows, again.Windows); diff != "" || d.Supplied != again.Supplied {
			t.Errorf("%s: %s", columns, diff)
		}
	}
}

func TestWindowsOfStreamsThatCannotBeAreBadLines(t *testing.T) {
	for columns, c := range map[string]struct{ values, why string }{
		"ttft_of":                 {"101", "ttft_of 101 is more than total 100"},
		"ttft_of,ttft_slow":       {"10,11", "ttft_slow 11 is more than ttft_of 10"},
		"streams,ttft_slow":       {"10,11", "ttft_slow 11 is more than ttft_of 10"},
		"itl_of":                  {"101", "itl_of 101 is more than total 100"},
		"streams":                 {"101", "streams 101 is more than total 100"},
		"streams,aborted":         {"10,11", "aborted 11 is more than streams 10"},
		"status_of":               {"101", "status_of 101 is more than total 100"},
		"status_of,errors":        {"10,11", "errors 11 is more than status_of 10"},
		"status_of,server_errors": {"10,11", "server_errors 11 is more than status_of 10"},
		"errors,server_errors":    {"3,4", "server_errors 4 is more than errors 3"},
		"kv_cache":                {"90", `kv_cache "90" is above 1: it is a fraction, and 0.9 is 90 %`},
		"kv_cache,ttft_p99_ms":    {"-0.1,5", "is negative"},
		"itl_ms":                  {"slow", "is not a number"},
	} {
		d, err := read("t,span,total,"+columns+"\n2026-05-04T00:00:00Z,1m,100,"+c.values+"\n", Options{MaxBad: anyBad})
		if d.Bad != 1 || len(d.BadLines) != 1 || !strings.Contains(d.BadLines[0].Message, c.why) {
			t.Errorf("%s: %v, %+v", columns, err, d.BadLines)
		}
	}
}

func TestPointsOfPrometheusAreFiguresOfStreams(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, value := range map[string]string{"total": "26", "streams": "20", "ttft": "0.9", "ttft_slow": "2", "aborted": "21", "kv_cache": "0.5"} {
		for _, arm := range []string{"canary", "stable"} {
			if arm == "stable" && name == "aborted" {
				value = "3.98" // extrapolated
			}
			path := filepath.Join(dir, name+"."+arm+".json")
			write(t, path, fmt.Sprintf(answerOf, fmt.Sprintf(`{"metric":{"version":%q},"values":[[1777852860,%q]]}`, arm, value)))
			paths = append(paths, path)
		}
	}
	opt := options(t, "ttft_p99_ms=ttft:s")
	opt.MaxBad, opt.InputSpan = anyBad, time.Minute
	d, err := ReadFiles(t.Context(), paths, nil, opt, nil)
	if err != nil || len(d.Windows) != 1 || d.Bad != 1 || !strings.Contains(d.BadLines[0].Message, "aborted 21 is more than streams 20") {
		t.Fatalf("%v %+v", err, d)
	}
	if got := streamFigures(t, d.Windows[0]); got != "ttft_of 20 ttft_p99_ms 900 ttft_slow 2 streams 20 aborted 4 kv_cache 0.5" || d.Windows[0].Arm != "stable" {
		t.Error(got)
	}
}

const streamWindows = `t,span,arm,total,ttft_of,ttft_p99_ms,ttft_slow,itl_of,itl_ms,streams,aborted,status_of,errors,server_errors,kv_cache
2026-05-04T00:00:00Z,1m,canary,100,80,900,4,60,20,80,1,90,5,2,0.5
2026-05-04T00:01:00Z,1m,canary,50,20,500,1,20,40,,,50,1,,0.8
2026-05-04T00:02:00Z,1m,canary,10,,,,,,10,2,,,,
2026-05-04T00:03:00Z,1m,canary,0,,,,,,,,,,,0.9
2026-05-04T00:10:00Z,1m,canary,100,80,900,4,60,20,80,1,90,5,2,0.5
2026-05-04T00:11:00Z,1m,canary,0,,,,,,,,,,,0.75
2026-05-04T00:20:00Z,1m,canary,0,,,,,,,,,,,0.25
`

func TestMergedWindowsOfStreams(t *testing.T) {
	d := mustRead(t, streamWindows, Options{Span: 10 * time.Minute})
	want := []string{
		// Counts add up with their own denominators, the mean is (60*20+20*40)/80,
		// no percentile of percentiles, server errors are not known in every part.
		"ttft_of 100 ttft_slow 5 itl_of 80 itl_ms 25 streams 90 aborted 3 status_of 140 errors 6 kv_cache 0.9",
		"ttft_of 80 ttft_p99_ms 900 ttft_slow 4 itl_of 60 itl_ms 20 streams 80 aborted 1 status_of 90 errors 5 server_errors 2 kv_cache 0.75",
		"kv_cache 0.25",
	}
	// Where errors are known in some part, those that know server errors alone
	// are left out; else these add up.
	const head, row = "t,span,total,status_of,errors,server_errors\n", "2026-05-04T00:0%d:00Z,1m,10,%s\n"
	for parts, want := range map[string]string{
		"9,2,1 8,,3 7,1,1": "status_of 16 errors 3 server_errors 2", "9,2, 8,,3": "status_of 9 errors 2", "9,,2 8,,3": "status_of 17 server_errors 5", ",, 8,0,0": "status_of 8 errors 0 server_errors 0",
	} {
		text := head
		for i, p := range strings.Fields(parts) {
			text += fmt.Sprintf(row, i, p)
		}
		if got := streamFigures(t, mustRead(t, text, Options{Span: 10 * time.Minute}).Windows[0]); got != want {
			t.Errorf("%s: %s, want %s", parts, got, want)
		}
	}
	if len(d.Windows) != len(want) {
		t.Fatalf("%+v", d.Windows)
	}
	for i, w := range want {
		if got := streamFigures(t, d.Windows[i]); got != w {
			t.Errorf("%d: %s, want %s", i, got, w)
		}
	}
}

func TestArmsAndPartsOfStreamsAreMerged(t *testing.T) {
	two := streamWindows + strings.ReplaceAll(strings.SplitN(streamWindows, "\n", 3)[1], "canary", "stable") + "\n"
	const want = "ttft_of 160 ttft_slow 8 itl_of 120 itl_ms 20 streams 160 aborted 2 status_of 180 errors 10 server_errors 4 kv_cache 0.5"
	if got := streamFigures(t, mustRead(t, two, Options{MergeArms: true}).Windows[0]); got != want {
		t.Errorf("arms: %s", got)
	}
	other := strings.Replace(strings.ReplaceAll(two, "stable", "canary"), "canary,100,80,900", "canary,100,80,901", 1) // a row said twice would be dropped
	if got := streamFigures(t, mustRead(t, other, Options{SumDuplicates: true}).Windows[0]); got != want {
		t.Errorf("parts: %s", got)
	}
}

func TestColumnsOfStreamsAreWrittenWhereTheyAreCarried(t *testing.T) {
	names := func(f release.Figures) (out []string) {
		for _, c := range Columns(f) {
			out = append(out, c.String())
		}
		return out[len(Columns(0)):]
	}
	for f, want := range map[release.Figures]string{
		release.HasTTFT: "ttft_of ttft_p99_ms", release.HasTTFTSlow: "ttft_of ttft_slow", release.HasITL: "itl_of itl_ms", release.HasAborts: "streams aborted",
		release.HasErrors: "status_of errors", release.HasServerErrors: "status_of server_errors", release.HasKVCache: "kv_cache", release.HasSolved: "",
	} {
		if got := strings.Join(names(f), " "); got != want {
			t.Errorf("%b: %s, want %s", f, got, want)
		}
	}
	columns, err := ParseColumns("t,kv_cache,ttft_p99_ms,errors")
	if err != nil || len(columns) != 4 {
		t.Error(err)
	}
}
