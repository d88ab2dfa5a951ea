package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/report"
	"pgregory.net/rapid"
)

func render(t interface{ Fatal(...any) }, r *calibrate.Report) []byte {
	var b bytes.Buffer
	if err := report.CalibrationHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// coarse is a report small enough to be read as a golden file.
func coarse() *calibrate.Report {
	r := week(7, 6*time.Hour)
	r.Steps, r.Replay.Steps = r.Steps[:3], r.Replay.Steps[:3]
	var few []calibrate.GridPoint
	for i, p := range r.Replay.Grid.Points {
		if i%6 == 0 {
			few = append(few, p)
		}
	}
	r.Replay.Grid.Points = few
	return r
}

func TestPageOfACalibration(t *testing.T) {
	golden(t, "calibration.html", render(t, coarse()))
}

func TestThePageIsTheSameEveryTime(t *testing.T) {
	first := render(t, week(7, 10*time.Minute))
	for range 5 {
		if !bytes.Equal(first, render(t, week(7, 10*time.Minute))) {
			t.Fatal("two renderings of one report differ")
		}
	}
}

func TestThePageOfAYearStaysSmall(t *testing.T) {
	for _, c := range []struct {
		days, most int
	}{{7, 250_000}, {365, 400_000}} {
		if n := len(render(t, week(c.days, 10*time.Minute))); n > c.most {
			t.Errorf("%d days: %d bytes, want at most %d", c.days, n, c.most)
		}
	}
}

func TestThePageOfManyIncidentsStaysSmall(t *testing.T) {
	r := week(365, 10*time.Minute)
	for i := range 5000 {
		from := r.Span.From.Add(time.Duration(i) * 100 * time.Minute)
		r.Incidents = append(r.Incidents, calibrate.Incident{From: from, To: from.Add(10 * time.Minute), Windows: 1, Judged: 100, Solved: 40, WorstZ: -9})
	}
	page := render(t, r)
	if len(page) > 1<<21 {
		t.Errorf("%d bytes", len(page))
	}
	if !strings.Contains(string(page), "4,503 more; -o json has them all.") {
		t.Error("incidents were dropped in silence")
	}
}

// contains asserts texts of the page, entities and tags left out.
func contains(t *testing.T, r *calibrate.Report, want ...string) {
	t.Helper()
	text := textOf(t, render(t, r))
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the page does not say %q", w)
		}
	}
}

func TestThePageSaysTheVerdictInWords(t *testing.T) {
	r := week(7, time.Hour)
	contains(t, r, "✗ This plan cannot be judged as it stands.", "The steps 1 % and 5 % never hold the 236 judged requests", "What to do: --judge count looks back")
	r.Verdict = calibrate.Verdict{OK: true}
	contains(t, r, "✓ This plan can be judged.", "calibrate --write", "The fixed window is too short at 1 %, 5 %, 10 %", "First read the 3 remarks below.")
	r.Totals.Judged = 0
	contains(t, r, "Without outcomes no solve rate can be judged.")
	r.Verdict = calibrate.Verdict{Reasons: []string{"nobody-wrote-this"}}
	contains(t, r, "This plan cannot be judged as it stands.", "nobody-wrote-this")
}

func TestThePageNamesBoundsAndNotZero(t *testing.T) {
	r := week(7, time.Hour)
	contains(t, r, "fewer than 0.015 a week (95 %)", "0.13 a week (0.079 to 0.2)", "1.5 % (0.55 % to 3.24 %)", "over a day")
	r.Replay.Release.RolledBack = calibrate.Estimate{Upper: 0.0075}
	r.Replay.JointPerWeek = calibrate.Estimate{}
	contains(t, r, "fewer than 0.75 % (95 %) rolled back falsely", "At the worst step: unknown")
	r.Replay = nil
	contains(t, r, "Not replayed: false trips and delays were not counted. Run canaryctl calibrate on the same files with --replays 200.")
}

func TestWhatIsUnknownIsCalledSo(t *testing.T) {
	r := week(7, time.Hour)
	r.Slow.MinSamples, r.Slow.SMinPct, r.Centre.P0SE = nil, nil, nil
	r.Steps = r.Steps[:1]
	r.Steps[0].NPower, r.Steps[0].Sigma, r.Steps[0].HoldMin = nil, nil, map[string]*float64{"5": nil}
	contains(t, r, "standard error unknown", "Samples needed none", "holds them: none", "min_samples none", "1 % ✗ no 12 unknown 55.45 62.87 180, none 9 h 13 min unknown")
	r.Steps[0].SpanMaxMin = new(720.0)
	r.Slow.MinSamples = new(int64(236))
	contains(t, r, "1 % ↔ stretched: 12 of 236 in a window, so it looks back up to 12 h")
	contains(t, &calibrate.Report{}, "Solve rate p0 unknown", "False trips not replayed", "violations unknown unknown phi unknown, tau unknown", "There is no window with judged requests to draw.")
}

func TestThePageEscapesWhatUsersWrote(t *testing.T) {
	const evil = `</p><script>alert(1)</script>"'><img src=x onerror=alert(2)>` + "\x00\x1b[31m"
	r := coarse()
	r.Arm, r.Meta.Zone, r.Meta.Judge, r.Meta.Rule, r.Meta.Version, r.Meta.InputSHA256 = evil, evil, evil, evil, evil, evil
	r.Windows.Span, r.Slow.TauSpan, r.Slow.TauMethod, r.P99.Method, r.P99.Judge, r.Cost.CVFrom = evil, evil, evil, evil, evil, evil
	r.Verdict.Reasons = []string{evil}
	r.Warnings = append(r.Warnings, calibrate.Warning{Code: evil, Text: evil, Hint: evil}, calibrate.Warning{Code: "x", Text: evil, Hint: evil})
	r.Time.Weekdays[0].Day = evil
	r.Dispersion[evil] = calibrate.Dispersion{}
	r.Meta.Budget.Shares[evil] = 0.5
	r.Steps[0].HoldMin[evil] = new(3.0)
	r.Replay.Steps[0].BySignal[evil] = calibrate.Estimate{}
	page := render(t, r)
	for _, bad := range []string{"<script", "<img", "\x00", "\x1b"} {
		if bytes.Contains(page, []byte(bad)) {
			t.Errorf("the page has %q", bad)
		}
	}
	wellFormed(t, page)
}

func TestThePageNeedsNothingFromOutside(t *testing.T) {
	page := string(render(t, week(7, time.Hour)))
	if !strings.Contains(page, `content="default-src &#39;none&#39;; style-src &#39;sha256-`) && !strings.Contains(page, `content="default-src 'none'; style-src 'sha256-`) {
		t.Error("no policy that forbids everything but the style")
	}
	for _, bad := range []string{"<script", "<link", "<iframe", "@import", "http:", "https:", "src=", " style=", "url(//", "javascript:"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, `<html lang="en">`) {
		t.Error("the page has no language")
	}
}

// TestTheLineStopsAtAGap counts the runs of the line: an outage of the log is
// never bridged.
func TestTheLineStopsAtAGap(t *testing.T) {
	r := week(7, time.Hour)
	page := string(render(t, r))
	chart := page[strings.Index(page, `<svg id="control-wide"`):]
	chart = chart[:strings.Index(chart, "</svg>")]
	if n := strings.Count(chart, `class="series"`); n != 2 {
		t.Errorf("%d lines, want 2: the gap cuts one", n)
	}
	r.Chart = r.Chart[:40]
	page = string(render(t, r))
	chart = page[strings.Index(page, `<svg id="control-wide"`):]
	if n := strings.Count(chart[:strings.Index(chart, "</svg>")], `class="series"`); n != 1 {
		t.Errorf("%d lines, want 1: there is no gap", n)
	}
}

// TestThePageOfAMeasurement renders what the measurement itself returns.
func TestThePageOfAMeasurement(t *testing.T) {
	r, _ := measured(t)
	page := render(t, r)
	wellFormed(t, page)
	for _, chart := range []string{"control", "hours", "noise"} {
		if !bytes.Contains(page, []byte(`<svg id="`+chart+`-wide"`)) {
			t.Errorf("no chart %s", chart)
		}
	}
	contains(t, r, "Not replayed", "1 %", "100 %")
}

// TestTheStepsLieOnTheCurveOfTheNoise: the formula that the page draws is the
// one that the steps were measured by.
func TestTheStepsLieOnTheCurveOfTheNoise(t *testing.T) {
	r, _ := measured(t)
	page := string(render(t, r))
	chart := page[strings.Index(page, `<svg id="noise-wide"`):]
	chart = chart[:strings.Index(chart, "</svg>")]
	curve := regexp.MustCompile(`class="sigma" d="([^"]+)"`).FindStringSubmatch(chart)
	marks := regexp.MustCompile(`class="sigma-mark" cx="([\d.]+)" cy="([\d.]+)"`).FindAllStringSubmatch(chart, -1)
	if curve == nil || len(marks) != len(r.Steps) {
		t.Fatalf("%d marks for %d steps; curve %q", len(marks), len(r.Steps), curve)
	}
	for i, m := range marks {
		if s := &r.Steps[i]; *s.NJudged != *s.NWindow {
			continue // its window reaches back
		}
		x, y := number(t, m[1]), number(t, m[2])
		nearest := math.Inf(1)
		for _, p := range regexp.MustCompile(`([\d.]+) ([\d.]+)`).FindAllStringSubmatch(curve[1], -1) {
			nearest = min(nearest, math.Hypot(number(t, p[1])-x, number(t, p[2])-y))
		}
		if nearest > 6 { // half the distance of two points, and the rounding of the samples
			t.Errorf("the step at %g, %g lies %.1f away from the curve", x, y, nearest)
		}
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestAnyReportMakesAPage draws reports of which anything may be missing or
// mad: the page is whole, and no value of the program shows through.
func TestAnyReportMakesAPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &calibrate.Report{}
		fill(t, reflect.ValueOf(r).Elem(), 0)
		page := render(t, r)
		wellFormed(t, page)
		for _, bad := range []string{"NaN", "Inf", "%!", "&lt;nil", "ZgotmplZ", "0x"} {
			if bytes.Contains(page, []byte(bad)) {
				t.Fatalf("the page has %q", bad)
			}
		}
	})
}

// fill puts arbitrary values into everything that has a name.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			days := rapid.SampledFrom([]int{0, 1, 7, 400, 90_000}).Draw(t, "days")
			at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).AddDate(0, 0, days)
			if days == 0 && rapid.Bool().Draw(t, "zero") {
				at = time.Time{}
			}
			v.Set(reflect.ValueOf(at))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "known") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 2).Draw(t, "keys") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth+1)
			fill(t, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "10m", "25m", "solve_rate", "mon", "budget", "plain", "<b>&\"", "a\x00\x1b", "5"}).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{0, 1, 3, 200, 1 << 40, math.MaxInt64, -4}).Draw(t, "count"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "seed"))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{0, 0.01, 0.5, 0.9, 1, 5, 25, 1e6, 1e300, 1e-300, -0.3, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "figure"))
	default:
		t.Fatalf("the report has a %s", v.Type())
	}
}

// wellFormed reads the page as XML, which is stricter than HTML: every element
// is closed, ids are there once, and what labels an element exists.
func wellFormed(t interface{ Fatalf(string, ...any) }, page []byte) {
	ids, named := map[string]bool{}, []string{}
	d := xml.NewDecoder(bytes.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range element.Attr {
			switch a.Name.Local {
			case "id":
				if ids[a.Value] {
					t.Fatalf("two elements with the id %q", a.Value)
				}
				ids[a.Value] = true
			case "aria-labelledby":
				named = append(named, strings.Fields(a.Value)...)
			case "href":
				named = append(named, strings.TrimPrefix(a.Value, "#"))
			}
		}
	}
	for _, n := range named {
		if !ids[n] {
			t.Fatalf("nothing has the id %q", n)
		}
	}
}

// textOf returns the texts of a page with single spaces between.
func textOf(t *testing.T, page []byte) string {
	t.Helper()
	var words []string
	d := xml.NewDecoder(bytes.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(words, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			words = append(words, strings.Fields(string(text))...)
		}
	}
}
