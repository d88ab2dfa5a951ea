package tui

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// wave is a series of n points around a middle, without any hidden input.
func wave(n int, middle, swing float64) []watch.Figure {
	out := make([]watch.Figure, n)
	for i := range out {
		out[i] = watch.Known(middle + swing*float64(i*7%11-5)/5)
	}
	return out
}

// busySignal has something of everything: noise, gaps, and a canary that goes
// past its limit in the end.
func busySignal() *watch.Signal {
	canary, stable := wave(watch.Points, 0.023, 0.004), wave(watch.Points, 0.02, 0.003)
	for i := 50; i < len(canary); i++ {
		canary[i].Value += 0.006 * float64(i-50)
	}
	for i := 20; i < 25; i++ {
		canary[i] = watch.Figure{}
	}
	return &watch.Signal{
		Signal: release.Transfers, Unit: watch.Share, PointUnit: watch.Share, Value: watch.Known(0.031), Beside: watch.Known(0.021),
		Line: watch.Known(0.06), Canary: canary, Stable: stable,
	}
}

var minutes = watch.Times{From: time.Date(2026, 5, 4, 13, 4, 0, 0, time.UTC), Span: time.Minute}

// chartCases are the frames in testdata/plot, with what each of them shows.
func chartCases() map[string]*watch.Signal {
	busy := busySignal()
	far := *busy
	far.Limit, far.Value = watch.Known(0.9), watch.Known(0.031)
	solve := &watch.Signal{
		Signal: release.SolveRate, Unit: watch.Share, PointUnit: watch.Share, PointLow: true, Value: watch.Known(0.91), Beside: watch.Known(0.9),
		Baseline: true, Line: watch.Known(0.8), Canary: wave(30, 0.9, 0.05),
	}
	solve.Canary[28], solve.Canary[29] = watch.Known(0.81), watch.Known(0.79)
	below := *solve
	below.Limit, below.Unit, below.Canary = watch.Known(-40), watch.Score, wave(30, 0.9, 0.5)
	return map[string]*watch.Signal{
		"busy":                busy,
		"limit-far-above":     &far,
		"limit-far-below":     &below,
		"fails-when-low":      solve,
		"violations-none-yet": {Signal: release.Violations, Value: watch.Known(0), Line: watch.Known(3), Canary: figures(0, 0, 0, 0, 0), Stable: figures(0, 1, 0, 0, 0)},
		"p99":                 {Signal: release.P99, Unit: watch.Millis, PointUnit: watch.Millis, Value: watch.Known(1840), Beside: watch.Known(1790), Line: watch.Known(2500), Canary: wave(60, 1840, 90), Stable: wave(60, 1790, 40)},
		"cost-without-limit":  {Signal: release.Cost, Unit: watch.Ratio, PointUnit: watch.Ratio, Value: watch.Known(1.02), Canary: wave(60, 1.02, 0.02)},
		"no-data":             {Signal: release.Cost, Unit: watch.Ratio, PointUnit: watch.Ratio, Line: watch.Known(3), Canary: figures(gap, gap)},
	}
}

func TestChartFrames(t *testing.T) {
	for name, sig := range chartCases() {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range [][2]int{{120, 16}, {78, 10}, {40, 6}, {24, 4}, {40, 3}, {40, 1}} {
				lines := chart(plainTheme(Unicode), sig, minutes, size[0], size[1])
				b.WriteString(strings.Repeat("=", size[0]) + "\n" + strings.Join(lines, "\n") + "\n")
			}
			b.WriteString(strings.Join(chart(plainTheme(ASCII), sig, minutes, 78, 10), "\n") + "\n")
			golden(t, "plot/"+name+".txt", b.String())
		})
	}
}

func TestChartColoursSayWhatTheShapesSay(t *testing.T) {
	lines := chart(themeOf(Unicode, termenv.TrueColor), busySignal(), minutes, 78, 10)
	plain := chart(plainTheme(Unicode), busySignal(), minutes, 78, 10)
	if got, want := ansi.Strip(strings.Join(lines, "\n")), strings.Join(plain, "\n"); got != want {
		t.Errorf("without its colours\n%s\nwant\n%s", got, want)
	}
	golden(t, "plot/colours.txt", strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "ESC"))
}

func TestChartMarksFailuresOnly(t *testing.T) {
	sig := &watch.Signal{Line: watch.Known(3), Canary: figures(2.99, 3, 2.99)}
	body := strings.Join(chart(plainTheme(Unicode), sig, minutes, 30, 10)[1:], "\n")
	if strings.Count(body, "✗") != 1 || strings.Count(body, "●") != 2 {
		t.Errorf("one of three is at the limit:\n%s", body)
	}
}

func TestTimesStandBelowTheirWindows(t *testing.T) {
	for _, c := range []struct {
		name  string
		times watch.Times
		s     spread
		left  int
		want  string
	}{
		{"the newest at the right edge", minutes, spread{3, 10, 1}, 0, "     13:06"},
		{"others further left", minutes, spread{20, 20, 1}, 6, "UTC      13:11       13:23"},
		{"two columns a window", minutes, spread{10, 20, 2}, 0, "   13:07       13:13"},
		{"several windows a column: the newest of them", minutes, spread{60, 6, 1}, 0, " 14:03"},
		{"in days with dates", watch.Times{From: minutes.From, Span: time.Hour}, spread{48, 24, 1}, 0, "            May  6 12:04"},
		{"in UTC", watch.Times{From: minutes.From.In(time.FixedZone("", 7200)), Span: time.Minute}, spread{1, 5, 1}, 0, "13:04"},
		{"no room for one", minutes, spread{3, 4, 1}, 0, ""},
		{"no times", watch.Times{}, spread{3, 10, 1}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.TrimRight(timeLine(c.times, c.s, c.left), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestScaleHoldsWhatItShows(t *testing.T) {
	for _, c := range []struct {
		name string
		sig  watch.Signal
		want [3]float64
	}{
		{"from zero to the limit", watch.Signal{Line: watch.Known(0.06), Unit: watch.Share, PointUnit: watch.Share, Canary: figures(0.021, 0.023)}, [3]float64{0, 0.06, 0}},
		{"past the limit to a round value", watch.Signal{Line: watch.Known(3), Canary: figures(0, 7.5)}, [3]float64{0, 8, 0}},
		{"what hardly moves is not blown up", watch.Signal{Unit: watch.Millis, PointUnit: watch.Millis, Canary: figures(1000, 1001)}, [3]float64{920, 1080, 0}},
		{"a limit out of reach", watch.Signal{Line: watch.Known(100), Canary: figures(0, 1)}, [3]float64{0, 1, 1}},
		{"nothing moves: the limit has its place", watch.Signal{Line: watch.Known(100), Canary: figures(0, 0)}, [3]float64{0, 100, 0}},
		{"a limit out of reach below", watch.Signal{Line: watch.Known(-100), Canary: figures(0, 1)}, [3]float64{0, 1, -1}},
		{"a share is at most all", watch.Signal{Unit: watch.Share, PointUnit: watch.Share, Canary: figures(0.99, 1)}, [3]float64{0.92, 1, 0}},
		{"no limit, no movement", watch.Signal{Canary: figures(0)}, [3]float64{0, 1, 0}},
		{"a limit that is never reached", watch.Signal{Line: watch.Known(math.Inf(1)), Canary: figures(0, 1)}, [3]float64{0, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lo, hi, edge := chartScale(&c.sig)
			if got := [3]float64{lo, hi, float64(edge)}; math.Abs(lo-c.want[0]) > 1e-9 || math.Abs(hi-c.want[1]) > 1e-9 || got[2] != c.want[2] {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestChartKeepsToItsColumnsAndLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sig := anySignal().Draw(t, "sig")
		width, height := rapid.IntRange(-1, 200).Draw(t, "width"), rapid.IntRange(-1, 40).Draw(t, "height")
		times := watch.Times{From: minutes.From, Span: time.Duration(rapid.Int64().Draw(t, "span"))}
		lines := chart(themeOf(ASCII, termenv.ANSI), &sig, times, width, height)
		if len(lines) > max(height, 0) {
			t.Fatalf("%d lines, at most %d", len(lines), height)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > width || strings.Contains(line, "\n") {
				t.Errorf("%d columns, at most %d: %q", ansi.StringWidth(line), width, line)
			}
		}
	})
}

func BenchmarkChart(b *testing.B) {
	th, sig := themeOf(Unicode, termenv.TrueColor), busySignal()
	b.ReportAllocs()
	for b.Loop() {
		chart(th, sig, minutes, 120, 20)
	}
}
