package trace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// anyBad accepts any number of bad lines, so that tests see them counted.
var anyBad = release.NewRatio(1, 1)

// read reads text as standard input.
func read(text string, opt Options) (*Data, error) {
	return ReadFiles(context.Background(), []string{"-"}, strings.NewReader(text), opt, nil)
}

func mustRead(t testing.TB, text string, opt Options) *Data {
	t.Helper()
	d, err := read(text, opt)
	if err != nil {
		t.Fatalf("%v\ninput:\n%s", err, text)
	}
	return d
}

// options parses flags the way the command line does.
func options(t testing.TB, maps string, arms ...string) Options {
	t.Helper()
	var o Options
	if maps != "" {
		m, err := ParseMapping(maps)
		if err != nil {
			t.Fatal(err)
		}
		o.Map = m
	}
	for _, a := range arms {
		if err := o.ParseArm(a); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// table prints windows as CSV without the span, for comparison.
func table(windows []release.Window) string {
	var b strings.Builder
	columns, _ := ParseColumns("t,arm,total,judged,solved,violations,transfers,cost,cost_mean,p99_ms")
	if err := WriteCSV(&b, windows, columns); err != nil {
		return err.Error()
	}
	_, rows, _ := strings.Cut(b.String(), "\n")
	return rows
}

func wantTable(t *testing.T, d *Data, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(append(want, ""), "\n"), table(d.Windows)); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

func noted(d *Data, part string) bool {
	return slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, part) })
}

const recordLines = `{"ts":"2026-05-04T00:00:10Z","version":"stable","user_id":"a","latency_ms":100,"cost_usd":0.01,"solved":true,"violation":false,"transfer":false}
{"ts":"2026-05-04T00:00:20Z","version":"stable","user_id":"b","latency_ms":200.5,"cost_usd":0.02,"solved":null,"violation":false,"transfer":true}
{"ts":"2026-05-04T00:00:30Z","version":"canary","user_id":"c","latency_ms":300,"cost_usd":0.06,"solved":false,"violation":true,"transfer":false}
{"ts":"2026-05-04T00:02:00Z","version":"canary","user_id":"c","latency_ms":400,"cost_usd":0.06,"solved":true,"violation":false,"transfer":false}
`

var recordTable = []string{
	"2026-05-04T00:00:00Z,canary,1,1,0,1,0,4,0.06,300",
	"2026-05-04T00:00:00Z,stable,2,1,1,0,1,,0.015,200.5",
	"2026-05-04T00:02:00Z,canary,1,1,1,0,0,,0.06,400",
}

const recordCSV = `ts,version,user_id,latency_ms,cost_usd,solved,violation,transfer,tool_calls
2026-05-04T00:00:10Z,stable,a,100,0.01,true,false,false,
2026-05-04 00:00:20Z,stable,b,200.5,0.02,,0,1,"[{""name"":""x"",""args"":""a,b""}]"
2026-05-04T00:00:30Z,canary,c,300,6e-2,False,TRUE,false,"two
lines"
1777852920,canary,c,400,0.06,1,f,f,
`

func TestRecordsBecomeWindowsPerArm(t *testing.T) {
	array := "[" + strings.ReplaceAll(strings.TrimSpace(recordLines), "\n", ",\n  ") + "]"
	for name, text := range map[string]string{
		"JSON lines": recordLines, "CSV": recordCSV, "JSON array": array,
		"BOM":              "\xef\xbb\xbf" + recordLines,
		"CSV with BOM":     "\xef\xbb\xbf" + recordCSV,
		"CRLF":             strings.ReplaceAll(recordLines, "\n", "\r\n"),
		"CSV with CRLF":    strings.ReplaceAll(recordCSV, "\n", "\r\n"),
		"no final newline": strings.TrimSuffix(recordLines, "\n"),
		"CSV no newline":   strings.TrimSuffix(recordCSV, "\n"),
		"blank lines":      "\n\n" + strings.ReplaceAll(recordLines, "\n", "\n \n\t\n"),
		"spaces":           strings.NewReplacer(",", " ,\t", ":t", " : t", "{", " { ").Replace(recordLines),
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, text, Options{})
			wantTable(t, d, recordTable...)
			if d.Kind != Records || d.Rows != 4 || d.Good != 4 || d.Bad != 0 || d.Span != time.Minute {
				t.Errorf("%+v", d)
			}
			if first, last := d.First.Format(time.TimeOnly), d.Last.Format(time.TimeOnly); first != "00:00:10" || last != "00:02:00" {
				t.Errorf("%s to %s", first, last)
			}
			if !slices.Equal(d.Arms, []release.Arm{"canary", "stable"}) {
				t.Errorf("%v", d.Arms)
			}
		})
	}
}

func TestNamesAndUnitsAreMapped(t *testing.T) {
	opt := options(t, `ts=at.start:ms,version=meta.build.version,latency_ms=took_s:s,cost_usd=price:uusd,solved=eval\.ok,user_id=user.id`)
	d := mustRead(t, `{"at":{"start":1777852810500},"meta":{"build.version":"v1"},"took_s":0.3,"price":1500,"eval.ok":true,"user.id":"u"}
{"at":{"start":1777852811500},"meta":{"build":{"version":"v1"}},"took_s":0.1,"price":500,"eval.ok":false,"user":{"id":"u"}}
`, opt)
	wantTable(t, d, "2026-05-04T00:00:00Z,v1,2,2,1,,,,0.001,300")
	if len(d.Notes) > 0 {
		t.Errorf("%q", d.Notes)
	}
}

func TestADamagedJSONCellIsABadLine(t *testing.T) {
	text := "ts,meta\n2026-05-04T00:00:00Z,\"{\"\"version\"\":\"\"v7\"\"\"\n2026-05-04T00:00:00Z,\n2026-05-04T00:00:00Z,{}\n"
	opt := options(t, "version=meta.version")
	opt.MaxBad = anyBad
	d := mustRead(t, text, opt)
	if d.Bad != 1 || d.Good != 2 || !strings.Contains(d.BadLines[0].Message, "is not JSON") {
		t.Errorf("%+v", d)
	}
}

func TestAPathLeadsIntoAJSONCell(t *testing.T) {
	d := mustRead(t, "ts,meta\n2026-05-04T00:00:00Z,\"{\"\"version\"\":\"\"v7\"\",\"\"took\"\":12}\"\n", options(t, "version=meta.version,latency_ms=meta.took"))
	wantTable(t, d, "2026-05-04T00:00:00Z,v7,1,,,,,,,12")
}

func TestWindowRowsAreTakenAsTheyAre(t *testing.T) {
	d := mustRead(t, `t,span,arm,total,judged,solved,violations,transfers,cost,cost_mean,p99_ms
2026-05-04T00:00:00Z,1m,canary,26,20,18,2,1,1.25,0.002,280
2026-05-04T00:01:00Z,1m,canary,26,,26,,,,,
2026-05-04T00:03:00Z,1m,canary,0,0,0,0,0,,,
`, Options{})
	wantTable(t, d,
		"2026-05-04T00:00:00Z,canary,26,20,18,2,1,1.25,0.002,280",
		"2026-05-04T00:01:00Z,canary,26,26,26,,,,,",
		"2026-05-04T00:03:00Z,canary,0,0,0,0,0,,,")
	if d.Kind != Windows || d.Last.Format(time.TimeOnly) != "00:04:00" {
		t.Errorf("%+v", d)
	}
}

func TestNothingIsInventedWhereFiguresAreMissing(t *testing.T) {
	const at = "2026-05-04T00:00:0"
	for name, c := range map[string]struct{ text, want string }{
		"no field at all": {`{"ts":"` + at + `0Z"}`, "2026-05-04T00:00:00Z,all,1,,,,,,,"},
		"solved null is supplied and not judged": {
			`{"ts":"` + at + `0Z","solved":null}`, "2026-05-04T00:00:00Z,all,1,0,0,,,,,"},
		"NaN and infinity are missing": {
			"ts,latency_ms,cost_usd\n" + at + "0Z,NaN,+Inf\n" + at + "1Z,5,\n", "2026-05-04T00:00:00Z,all,2,,,,,,,5"},
		"a latency that is null leaves the percentile to the others": {
			`{"ts":"` + at + `0Z","latency_ms":null}` + "\n" + `{"ts":"` + at + `1Z","latency_ms":7}`, "2026-05-04T00:00:00Z,all,2,,,,,,,7"},
		"cost zero is a cost": {`{"ts":"` + at + `0Z","cost_usd":0}`, "2026-05-04T00:00:00Z,all,1,,,,,,0,"},
		"numbers in strings":  {`{"ts":"` + at + `0Z","latency_ms":"7.5","solved":"true"}`, "2026-05-04T00:00:00Z,all,1,1,1,,,,,7.5"},
		"a key twice that no field is read from": {
			`{"ts":"` + at + `0Z","x":1,"x":2}`, "2026-05-04T00:00:00Z,all,1,,,,,,,"},
		"the last of two equal keys wins": {
			`{"ts":"` + at + `0Z","solved":true,"solved":false}`, "2026-05-04T00:00:00Z,all,1,1,0,,,,,"},
		"status does not make a record unsolved": {
			`{"ts":"` + at + `0Z","status":"error","solved":true}`, "2026-05-04T00:00:00Z,all,1,1,1,,,,,"},
	} {
		t.Run(name, func(t *testing.T) { wantTable(t, mustRead(t, c.text, Options{}), c.want) })
	}
}

// A flag that is only ever logged where it is true would otherwise be known in
// the very windows that have one, and its rate far too high.
func TestAFlagThatIsOnlyLoggedWhenTrueIsFalseElsewhere(t *testing.T) {
	sparse := `{"ts":"2026-05-04T00:00:00Z","violation":true}
{"ts":"2026-05-04T00:00:01Z"}
{"ts":"2026-05-04T00:01:00Z"}
`
	d := mustRead(t, sparse, Options{})
	wantTable(t, d, "2026-05-04T00:00:00Z,all,2,,,1,,,,", "2026-05-04T00:01:00Z,all,1,,,0,,,,")
	if !noted(d, "violation is only ever logged as true") {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, sparse+`{"ts":"2026-05-04T00:00:02Z","violation":false}`, Options{})
	wantTable(t, d, "2026-05-04T00:00:00Z,all,3,,,1,,,,", "2026-05-04T00:01:00Z,all,1,,,,,,,")
	if !noted(d, "1 record does not say violation though others in its window do") {
		t.Errorf("%q", d.Notes)
	}
}

func TestBadLinesAreCountedWithTheirReason(t *testing.T) {
	const good = `{"ts":"2026-05-04T00:00:00Z"}` + "\n"
	for line, why := range map[string]string{
		`{"ts":"2026-05-04T00:00:00Z"`:     "not valid JSON",
		`{"ts":"2026-05-04T00:00:00Z"} {}`: "not valid JSON",
		`[1]`:                              "not a JSON object",
		`null`:                             "not a JSON object",
		`{}`:                               "no ts",
		`{"ts":null}`:                      "no ts",
		`{"ts":"soon"}`:                    `"soon" is not a time`,
		`{"ts":"2026-05-04T00:00:00Z","latency_ms":-1}`:              `latency_ms "-1" is negative`,
		`{"ts":"2026-05-04T00:00:00Z","latency_ms":"fast"}`:          `latency_ms "fast" is not a number`,
		`{"ts":"2026-05-04T00:00:00Z","latency_ms":[1]}`:             "latency_ms is an object or an array",
		`{"ts":"2026-05-04T00:00:00Z","latency_ms":1e399}`:           "latency_ms \"1e399\" is out of range",
		`{"ts":"2026-05-04T00:00:00Z","cost_usd":-0.1}`:              `cost_usd "-0.1" is negative`,
		`{"ts":"2026-05-04T00:00:00Z","cost_usd":1e9}`:               "more than a million dollars",
		`{"ts":"2026-05-04T00:00:00Z","cost_usd":1e-10}`:             "less than a billionth of a dollar",
		`{"ts":"2026-05-04T00:00:00Z","solved":0.5}`:                 `solved "0.5" is neither true nor false`,
		`{"ts":"2026-05-04T00:00:00Z","solved":{}}`:                  "solved is an object or an array",
		`{"ts":"2026-05-04T00:00:00Z","violation":"maybe"}`:          `violation "maybe" is neither`,
		`{"ts":"2026-05-04T00:00:00Z","version":["v1"]}`:             "version is an object or an array",
		"{\"ts\":\"2026-05-04T00:00:00Z\",\"user_id\":\"a\x00b\"}":   "not valid JSON",
		`{"ts":"2026-05-04T00:00:00Z","latency_ms":NaN}`:             "not valid JSON",
		"{\"ts\":\"2026-05-04T00:00:00Z\",\"latency_ms\":\"\x1b[m\"": "not valid JSON",
	} {
		d, err := read(good+line+"\n"+good, Options{MaxBad: anyBad})
		if err != nil || d.Bad != 1 || d.Good != 2 || d.Rows != 3 || len(d.BadLines) != 1 {
			t.Errorf("%s: %v, %+v", line, err, d)
			continue
		}
		if b := d.BadLines[0]; b.Line != 2 || b.File != "-" || !strings.Contains(b.Message, why) || strings.ContainsAny(b.Message, "\x00\x1b\n") {
			t.Errorf("%s: %q, want %q", line, b, why)
		}
		if _, err := read(good+line+"\n"+good, Options{}); err == nil {
			t.Errorf("%s: accepted by default", line)
		}
	}
}

func TestBadCSVLinesAreCountedWithTheirReason(t *testing.T) {
	const head, good = "ts,solved,note\n", "2026-05-04T00:00:00Z,1,x\n"
	for line, c := range map[string]struct {
		why   string
		lines int64
	}{
		"2026-05-04T00:00:00Z,1":              {"2 cells, the header has 3", 1},
		"2026-05-04T00:00:00Z,1,x,y":          {"4 cells, the header has 3", 1},
		"2026-05-04T00:00:00Z,1,a\"b":         {"a quote inside a cell", 1},
		"2026-05-04T00:00:00Z,1,\"a\"b":       {"a quote inside a quoted cell", 1},
		"2026-05-04T00:00:00Z,1,\"a\n\nb\"c":  {"a quote inside a quoted cell", 3},
		"2026-05-04T00:00:00Z,1,x\x00":        {"NUL", 1},
		",1,x":                                {"no ts", 1},
		"2026-05-04T00:00:00Z,\"1\n1\",\"x\"": {"is neither true nor false", 2},
	} {
		d, err := read(head+good+line+"\n"+good, Options{MaxBad: anyBad})
		if err != nil || d.Bad != c.lines || d.Good != 2 || len(d.BadLines) != 1 || !strings.Contains(d.BadLines[0].Message, c.why) {
			t.Errorf("%q: %v, %+v", line, err, d)
		}
	}
	d, err := read(head+good+"2026-05-04T00:00:00Z,1,\"open\n"+good+good, Options{MaxBad: anyBad})
	if err != nil || d.Bad != 3 || d.Good != 1 || !strings.Contains(d.BadLines[0].Message, "does not end") {
		t.Errorf("an open quote: %v, %+v", err, d)
	}
}

func TestBadLinesPastTheBudgetAreRefused(t *testing.T) {
	lines := func(good, bad int) string {
		return strings.Repeat("{\"ts\":\"2026-05-04T00:00:00Z\"}\n", good) + strings.Repeat("{\n", bad)
	}
	for _, c := range []struct {
		good, bad int
		max       release.Ratio
		ok        bool
	}{
		{999, 1, release.Ratio{}, true}, {998, 1, release.Ratio{}, false}, {1998, 2, release.Ratio{}, true}, {1997, 2, release.Ratio{}, false},
		{1, 1, release.NewRatio(1, 2), true}, {1, 2, release.NewRatio(1, 2), false}, {10000, 1, release.NewRatio(0, 1), false},
	} {
		d, err := read(lines(c.good, c.bad), Options{MaxBad: c.max})
		e, refused := errors.AsType[*BadLinesError](err)
		if refused == c.ok || d.Bad != int64(c.bad) {
			t.Errorf("%+v: %v", c, err)
		}
		if refused && (e.Bad != int64(c.bad) || e.Rows != int64(c.good+c.bad) || !strings.Contains(e.Hint(), "--max-bad")) {
			t.Errorf("%+v: %+v", c, e)
		}
	}
	d, _ := read(lines(1, 30), Options{})
	if len(d.BadLines) != 10 || d.Bad != 30 {
		t.Errorf("%d of %d bad lines kept", len(d.BadLines), d.Bad)
	}
}

func TestALastLineThatIsCutOffIsShownHoweverManyAreBad(t *testing.T) {
	text := strings.Repeat("{}\n", 20) + strings.Repeat("{\"ts\":\"2026-05-04T00:00:00Z\"}\n", 20) + `{"ts":"2026-05-`
	d, err := read(text, Options{MaxBad: anyBad})
	if err != nil || d.Bad != 21 {
		t.Fatalf("%v %+v", err, d)
	}
	if b := d.BadLines[len(d.BadLines)-1]; b.Line != 41 || !strings.Contains(b.Message, "cut off") {
		t.Errorf("%v", b)
	}
}

func TestAnOverlongLineIsABadLine(t *testing.T) {
	defer func(n int) { maxLine = n }(maxLine)
	maxLine = 1 << 20
	good := "{\"ts\":\"2026-05-04T00:00:00Z\"}\n"
	long := `{"ts":"2026-05-04T00:00:00Z","prompt":"` + strings.Repeat("x", maxLine) + "\"}\n"
	d, err := read(good+long+good, Options{MaxBad: anyBad})
	if err != nil || d.Bad != 1 || d.Good != 2 || !strings.Contains(d.BadLines[0].Message, "more than 1 MiB") {
		t.Errorf("%v %+v", err, d)
	}
	d, err = read("ts,note\n2026-05-04T00:00:00Z,\""+strings.Repeat("x\n", maxLine)+"\"\n2026-05-04T00:00:00Z,y\n", Options{MaxBad: anyBad})
	if err == nil || !strings.Contains(err.Error(), "-:2: a quoted cell does not end within 1 MiB") {
		t.Errorf("an endless quoted cell hides lines: %v, %d of %d bad", err, d.Bad, d.Rows)
	}
	// What follows a long text may be within it: a prompt must not make requests.
	d, err = read("ts,note\n2026-05-04T00:00:00Z,\""+strings.Repeat("x", maxLine)+"\n2026-05-04T00:00:00Z,fake\n\"\n", Options{MaxBad: anyBad})
	if err == nil || d.Good > 0 {
		t.Errorf("rows within a cell are counted: %v, %d rows", err, d.Good)
	}
	if _, err = read("["+long+"]", Options{MaxBad: anyBad}); err != nil {
		t.Errorf("an element of the limit's size: %v", err)
	}
	if _, err = read("["+strings.Repeat(" ", 4*maxLine)+"]", Options{}); err == nil {
		t.Error("an endless element was read")
	}
}

func TestInvalidUTF8IsTheSameNameInEveryFormat(t *testing.T) {
	for _, text := range []string{"{\"ts\":\"2026-05-04T00:00:00Z\",\"version\":\"v\xff\"}\n", "ts,version\n2026-05-04T00:00:00Z,v\xff\n"} {
		d := mustRead(t, text, Options{})
		if d.Arms[0] != "v\uFFFD" {
			t.Errorf("%q", d.Arms)
		}
	}
}

func TestTheSameRequestTwiceIsDroppedAndCounted(t *testing.T) {
	line := `{"ts":"2026-05-04T00:00:00Z","user_id":"a","solved":true}` + "\n"
	other := `{"ts":"2026-05-04T00:00:00Z","user_id":"b","solved":true}` + "\n"
	anonymous := `{"ts":"2026-05-04T00:00:00Z","solved":true}` + "\n"
	d := mustRead(t, line+other+line+line, Options{})
	if d.Duplicates != 2 || d.Windows[0].Total != 2 || !noted(d, "2 duplicate rows dropped") {
		t.Errorf("%+v", d)
	}
	d = mustRead(t, anonymous+anonymous+anonymous, Options{})
	if d.Duplicates != 0 || d.Identical != 2 || d.Windows[0].Total != 3 {
		t.Errorf("%+v", d)
	}
	d = mustRead(t, strings.ReplaceAll(line+line, "user_id", "conversation_id"), Options{})
	if d.Duplicates != 1 {
		t.Errorf("%+v", d)
	}
}

func TestArms(t *testing.T) {
	const text = `ts,version,model
2026-05-04T00:00:00Z,v1,m1
2026-05-04T00:00:01Z,v2,m2
2026-05-04T00:00:02Z,v3,m2
2026-05-04T00:00:03Z,canary,m1
`
	for name, c := range map[string]struct {
		arms []string
		want string
		left int64
	}{
		"as they stand":    {nil, "canary 1 v1 1 v2 1 v3 1", 0},
		"mapped":           {[]string{"stable=v1", "canary=v2"}, "canary 2 stable 1", 1},
		"by model":         {[]string{"canary=m2", "stable=m1"}, "canary 3 stable 1", 0},
		"version wins":     {[]string{"canary=m2", "stable=v2"}, "canary 2 stable 1", 1},
		"merged":           {[]string{"all"}, "all 4", 0},
		"merged in part":   {[]string{"all", "stable=v1"}, "all 2", 2},
		"one of them only": {[]string{"stable=v3"}, "canary 1 stable 1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, text, options(t, "", c.arms...))
			var got []string
			for _, w := range d.Windows {
				got = append(got, fmt.Sprint(w.Arm, " ", w.Total))
			}
			if strings.Join(got, " ") != c.want || d.LeftOut != c.left {
				t.Errorf("%v, %d left out", got, d.LeftOut)
			}
			if c.left > 0 && !noted(d, "left out (v") {
				t.Errorf("%q", d.Notes)
			}
			if noted(d, "no row is of") || noted(d, "names no arm") {
				t.Errorf("%q", d.Notes)
			}
		})
	}
	d := mustRead(t, "ts,version\n2026-05-04T00:00:00Z,Stable\n2026-05-04T00:00:00Z,stable\n2026-05-04T00:00:00Z,canery\n2026-05-04T00:00:00Z,\n", Options{})
	if !noted(d, "Stable is an arm of its own and not stable") || !noted(d, "say --arm canary=canery") || noted(d, "stable is an arm of its own and not canary") || len(d.Notes) != 3 {
		t.Errorf("%q", d.Notes)
	}
	if d = mustRead(t, "t,version,total,span\n2026-05-04T00:00:00Z,stabel,1,1m\n2026-05-04T00:00:00Z,,1,1m\n", options(t, "", "all")); len(d.Notes) > 0 {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, text, options(t, "", "stable=v1", "canary=v9"))
	if !noted(d, "no row is of v9, which --arm says is canary") || noted(d, "no row is of v1") {
		t.Errorf("%q", d.Notes)
	}
}

func TestTooManyVersionsAreNoVersions(t *testing.T) {
	var b strings.Builder
	b.WriteString("ts,version\n")
	for i := range 100 {
		fmt.Fprintf(&b, "2026-05-04T00:00:00Z,request-%d\n", i)
	}
	if _, err := read(b.String(), Options{}); err == nil || !strings.Contains(err.Error(), "more than 64 different versions") {
		t.Error(err)
	}
	mustRead(t, b.String(), Options{MergeArms: true})
}

func TestTheOrderOfRowsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		lines := drawRecords(rand.New(rand.NewPCG(seed, 1)), rapid.IntRange(1, 60).Draw(t, "n"))
		opt := Options{Span: 10 * time.Minute, SlowMS: 500, TTFTLimitMS: 400}
		want, err := read(strings.Join(lines, ""), opt)
		if err != nil {
			t.Fatal(err)
		}
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		got, err := read(strings.Join(lines, ""), opt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Windows, got.Windows); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Minutes that are counted from records and then merged say what the records
// say when they are counted into ten minutes at once.
func TestMergedWindowsSayWhatTheirRecordsSay(t *testing.T) {
	met := release.Figures(0)
	// A share is a pair of counts of its own, known where some part knows it.
	pairs := release.HasSolved | release.HasSlow | release.HasTTFTSlow | release.HasITL | release.HasAborts | release.HasErrors | release.HasServerErrors
	// These are known where every part that serves knows them.
	flags := release.HasViolations | release.HasTransfers
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		text := strings.Join(drawRecords(r, rapid.IntRange(1, 80).Draw(t, "n")), "")
		opt := Options{SlowMS: 500, TTFTLimitMS: 400}
		minutes, err := read(text, opt)
		if err != nil {
			t.Fatal(err)
		}
		opt.Span = 10 * time.Minute
		direct, err := read(text, opt)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := read(asCSV(minutes.Windows), Options{Span: 10 * time.Minute})
		if err != nil || len(merged.Windows) != len(direct.Windows) {
			t.Fatalf("%v, %d windows, want %d", err, len(merged.Windows), len(direct.Windows))
		}
		for i := range direct.Windows {
			want, got := direct.Windows[i], merged.Windows[i]
			if diff := want.ITLMS - got.ITLMS; math.Abs(diff) > 1e-9 {
				t.Errorf("itl_ms %v, want %v", got.ITLMS, want.ITLMS)
			}
			met |= got.Known
			if want.Known&pairs != got.Known&pairs || got.Known&^want.Known != 0 {
				t.Errorf("%b known, of the records %b", got.Known, want.Known)
			}
			if !got.Has(release.HasViolations) {
				want.Violations = 0
			}
			if !got.Has(release.HasTransfers) {
				want.Transfers = 0
			}
			if got, want := countsOf(got), countsOf(want); got != want {
				t.Errorf("merged, and counted at once:\n%v\n%v", got, want)
			}
		}
	})
	if want := pairs | flags; met&want != want {
		t.Errorf("not met: %b", want&^met)
	}
}

// countsOf are the figures of a window that add up.
func countsOf(w release.Window) [16]int64 {
	return [...]int64{
		w.T.UnixNano(), w.Total, w.Judged, w.Solved, w.Violations, w.Transfers, w.Slow, w.TTFTOf, w.TTFTSlow, w.ITLOf,
		w.Streams, w.Aborted, w.StatusOf, w.Errors, w.ServerErrors, int64(w.Span),
	}
}

// drawRecords makes JSON lines of both arms over an hour, most fields missing
// now and then.
func drawRecords(r *rand.Rand, n int) []string {
	lines := make([]string, n)
	at := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	for i := range lines {
		b := fmt.Sprintf(`{"ts":%q,"arm":%q,"user_id":"u%d"`, at.Add(time.Duration(r.Int64N(int64(time.Hour)))).Format(time.RFC3339Nano), []string{"stable", "canary"}[r.IntN(2)], i)
		if r.IntN(4) > 0 {
			b += fmt.Sprintf(`,"latency_ms":%g`, r.Float64()*1000)
		}
		if r.IntN(4) > 0 {
			b += fmt.Sprintf(`,"cost_usd":%.7f`, r.Float64())
		}
		if r.IntN(4) > 0 {
			b += fmt.Sprintf(`,"solved":%s`, []string{"true", "false", "null"}[r.IntN(3)])
		}
		if r.IntN(4) > 0 {
			b += fmt.Sprintf(`,"violation":%t,"transfer":%t`, r.IntN(2) == 0, r.IntN(2) == 0)
		}
		if r.IntN(4) > 0 {
			b += fmt.Sprintf(`,"ttft_ms":%g,"output_tokens":%d,"stream_aborted":%t`, r.Float64()*900, r.IntN(90), r.IntN(9) == 0)
		}
		if r.IntN(4) > 0 {
			b += fmt.Sprintf(`,"status":%s`, []string{`"ok"`, "null", "429", "503", `"client_cancel"`, "200"}[r.IntN(6)])
		}
		if r.IntN(4) == 0 {
			b += fmt.Sprintf(`,"itl_ms":%g`, r.Float64()*90)
		}
		lines[i] = b + "}\n"
	}
	return lines
}

func TestOutOfOrderRowsAreCounted(t *testing.T) {
	d := mustRead(t, "ts\n2026-05-04T00:05:00Z\n2026-05-04T00:01:00Z\n2026-05-04T00:02:00Z\n2026-05-04T00:06:00Z\n", Options{})
	if d.OutOfOrder != 2 || len(d.Windows) != 4 {
		t.Errorf("%+v", d)
	}
}

func TestSeveralFilesAreOneFeed(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.csv")
	write(t, a, `{"ts":"2026-05-04T00:00:00Z"}`)
	write(t, b, "ts\n2026-05-04T00:00:30Z\n")
	d, err := ReadFiles(t.Context(), []string{a, "-", b}, strings.NewReader(`{"ts":"2026-05-04T00:00:10Z"}`), Options{}, nil)
	if err != nil || len(d.Windows) != 1 || d.Windows[0].Total != 3 {
		t.Errorf("%v %+v", err, d)
	}
	if _, err := ReadFiles(t.Context(), []string{a, b, a}, nil, Options{}, nil); err == nil || !strings.Contains(err.Error(), "named twice") {
		t.Error(err)
	}
	write(t, b, "t,span,total\n2026-05-04T00:00:30Z,1m,5\n")
	if _, err := ReadFiles(t.Context(), []string{a, b}, nil, Options{}, nil); err == nil || !strings.Contains(err.Error(), "holds windows, the files before it records") {
		t.Error(err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACancelledReadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadFiles(ctx, []string{"-"}, strings.NewReader("ts\n"), Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheTimeIsFoundOrAskedFor(t *testing.T) {
	d := mustRead(t, "@timestamp,latency_ms\n1777852800000,5\n", Options{})
	if !noted(d, "the time is taken from @timestamp, a guess from its name") || !noted(d, "taken as ms, a guess from their size") {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, "TimeStamp,total,solved,span\n2026-05-04 00:00:00,5,4,1m\n", Options{})
	if d.Kind != Windows || !noted(d, "--map t=TimeStamp") || !noted(d, "read as UTC") {
		t.Errorf("%+v", d)
	}
	for _, text := range []string{"id,solved\n1,true\n", "{\"id\":1}\n{\"id\":2}\n", `[{"id":1}]`} {
		_, err := read(text, Options{MaxBad: anyBad})
		if e, ok := errors.AsType[*NoTimeError](err); !ok || e.Columns[0] != "id" || !strings.Contains(e.Hint(), "--map ts=COLUMN") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := read("timestamp,value\n2026-05-04 00:00:00,45.0\n2026-05-04 00:57:30,45.0\n", Options{})
	e, ok := errors.AsType[*NoCountsError](err)
	if !ok || e.Rows != 2 || e.Span() != 57*time.Minute+30*time.Second || !strings.Contains(e.Error(), "2 rows over 57 minutes") {
		t.Errorf("%v", err)
	}
}

func TestAMappedColumnThatIsNotThereIsSaid(t *testing.T) {
	_, err := read("t,requests,successes\n2026-05-04T00:00:00Z,5,4\n", options(t, "total=requests,solved=succeses"))
	if e, ok := errors.AsType[*MappingError](err); !ok || e.Hint() != "did you mean successes?" {
		t.Errorf("%v", err)
	}
	d := mustRead(t, `{"ts":"2026-05-04T00:00:00Z","outcome":true}`, options(t, "solved=outcom"))
	if !noted(d, "no row has outcom") {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, `{"ts":"2026-05-04T00:00:00Z","solvd":true}`, Options{})
	if !noted(d, "solvd is not used; did you mean solved?") || !slices.Equal(d.Unused, []string{"solvd"}) {
		t.Errorf("%q %q", d.Notes, d.Unused)
	}
	d = mustRead(t, recordLines+"{\"ts\":\"2026-05-04T00:00:00Z\",\"wersion\":\"stable\",\"s\xf5lved\":true,\"tokens\":5,\"scene\":\"x\"}", Options{})
	if !noted(d, "key wersion, first in row 5, is not used; did you mean version?") || !noted(d, "did you mean solved?") || !noted(d, "1 row has bytes that are not UTF-8") {
		t.Errorf("%q", d.Notes)
	}
	if !noted(d, "1 row names no arm, beside rows that do") || noted(d, "tokens") || noted(d, "scene") {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, "ts,s\xf5lved,x\n2026-05-04T00:00:00Z,1,1\n", Options{})
	if !noted(d, "did you mean solved?") {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, `{"ts":"2026-05-04T00:00:00Z","took_s":5}`, options(t, "latency_ms=took_s"))
	if !noted(d, "took_s is taken as milliseconds though its name says otherwise") {
		t.Errorf("%q", d.Notes)
	}
}

func TestAFieldOfTheOtherKindIsNeverLeftOutInSilence(t *testing.T) {
	for _, c := range []struct{ text, maps, want string }{
		{"a,b\n2026-05-04T00:00:00Z,5\n", "ts=a,total=b", "total is a figure of windows, and the rows are records, by their time (ts)"},
		{"a,b,c\n2026-05-04T00:00:00Z,5,1\n", "t=a,total=b,violation=c", "violation is a figure of records, and the rows are windows, by their time (t)"},
		{"time,b\n2026-05-04T00:00:00Z,5\n", "violations=b", "violations is a figure of windows"},
		{`{"a":"2026-05-04T00:00:00Z","b":5}`, "ts=a,p99_ms=b", "p99_ms is a figure of windows"},
		{fmt.Sprintf(answerOf, `{"metric":{},"values":[[1777852860,"10"]]}`), "total=value,latency_ms=x", "latency_ms is a figure of records"},
	} {
		_, err := read(c.text, options(t, c.maps))
		if e, ok := errors.AsType[*MappingError](err); !ok || !strings.Contains(e.Error(), c.want) || e.Hint() == "" {
			t.Errorf("%q %s: %v, want %s", c.text, c.maps, err, c.want)
		}
	}
	windows := "ts,total\n2026-05-04T00:00:00Z,26\n2026-05-04T00:01:00Z,25\n"
	d := mustRead(t, windows, Options{})
	wantTable(t, d, "2026-05-04T00:00:00Z,all,26,,,,,,,", "2026-05-04T00:01:00Z,all,25,,,,,,,")
	if !noted(d, "--map t=ts would settle it") {
		t.Errorf("%q", d.Notes)
	}
	wantTable(t, mustRead(t, windows, options(t, "ts=ts")), "2026-05-04T00:00:00Z,all,1,,,,,,,", "2026-05-04T00:01:00Z,all,1,,,,,,,")
	d = mustRead(t, "ts,requests,solved\n2026-05-04T00:00:00Z,26,20\n", Options{Map: options(t, "total=requests").Map, InputSpan: time.Minute})
	wantTable(t, d, "2026-05-04T00:00:00Z,all,26,26,20,,,,,")
	d = mustRead(t, "ts,total,latency_ms\n2026-05-04T00:00:00Z,812,5\n", Options{InputSpan: time.Minute})
	wantTable(t, d, "2026-05-04T00:00:00Z,all,1,,,,,,,5")
	if !noted(d, "their total is not used") || !noted(d, "--input-span is not used") {
		t.Errorf("%q", d.Notes)
	}
}

func TestWindowsFurtherApartThanTheirSpanAreSaid(t *testing.T) {
	text := "t,total\n2026-05-04T00:00:00Z,26\n2026-05-04T00:05:00Z,25\n"
	if d := mustRead(t, text, Options{InputSpan: time.Minute}); !noted(d, "the windows are at least 5m apart, and --input-span says 1m") {
		t.Errorf("%q", d.Notes)
	}
	if d := mustRead(t, text, Options{InputSpan: 5 * time.Minute}); len(d.Notes) > 0 {
		t.Errorf("%q", d.Notes)
	}
}

func TestEmptyInputIsNoDataAndNoZero(t *testing.T) {
	for _, text := range []string{"", "\n\n", "ts,solved\n", "[]", " [ ] ", `{"status":"success","data":{"resultType":"matrix","result":[]}}`} {
		d, err := read(text, Options{})
		if _, ok := errors.AsType[*NoRowsError](err); !ok || len(d.Windows) > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestForeignFormatsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"PAR1\x15\x04":                        "Parquet",
		"PK\x03\x04":                          "zip archive",
		"\xff\xfet\x00":                       "UTF-16",
		"<html>":                              "HTML",
		"# HELP up x\n":                       "snapshot of /metrics",
		"\x0a\xc2\x01":                        "binary data (it starts with c2",
		"\x08\x96\x01":                        "binary data (it starts with 08 96 01)",
		`{"resourceMetrics":[]}`:              "OTLP JSON of metrics",
		"{\n  \"a\": 1\n}":                    "a JSON document over several lines",
		"ts;solved\n2026-05-04T00:00:00Z;1\n": "cells must be separated by commas",
		"0,2.84,Gamma,0.4\n600,2.8,Gamma,1\n": "is data: CSV needs a header",
		"ts,ts\n2026-05-04T00:00:00Z,x\n":     "two columns are named ts",
		`[{"ts":1777852800}] x`:               "something follows the JSON array",
		`[{"ts":1777852800}`:                  "cut off",
		`[{"ts":1777852800},`:                 "cut off",
		`[{"ts":1777852800}}`:                 "not valid JSON",
	} {
		if _, err := read(text, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A file is refused twice under whatever name, standard input among them.
func TestAFileThatIsStandardInputTooIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte("ts\n2026-05-04T00:00:00Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, names := range [][]string{{path, "-"}, {"-", path}} {
		if _, err := ReadFiles(context.Background(), names, f, Options{}, nil); err == nil || !strings.Contains(err.Error(), "is named twice") {
			t.Errorf("%v: %v", names, err)
		}
	}
}
