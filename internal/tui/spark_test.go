package tui

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// figures writes a series: numbers, and NaN for a missing window.
func figures(values ...float64) []watch.Figure {
	out := make([]watch.Figure, len(values))
	for i, v := range values {
		if !math.IsNaN(v) {
			out[i] = watch.Known(v)
		}
	}
	return out
}

var gap = math.NaN()

func TestSparkShowsHowNearTheLimitEachWindowWas(t *testing.T) {
	limit, none := watch.Known(8), watch.Figure{}
	for _, c := range []struct {
		name  string
		sig   watch.Signal
		width int
		want  string
	}{
		{"from zero to the limit, which alone has the highest mark",
			watch.Signal{Canary: figures(0, 2, 4, 6, 7.999, 8, 20), Line: limit}, 7, "▁▂▄▆▇██"},
		{"from the reference if there is one",
			watch.Signal{Canary: figures(0, 2, 4, 6, 7.999, 8), Line: limit, Beside: watch.Known(6), Unit: watch.Millis, PointUnit: watch.Millis}, 6, "▁▁▁▁▇█"},
		{"a flat line far from the limit is flat and low",
			watch.Signal{Canary: figures(0.1, 0.12, 0.1), Line: limit}, 3, "▁▁▁"},
		{"fails when low: from the limit, which alone has the lowest mark",
			watch.Signal{Canary: figures(1, 0.95, 0.9, 0.85, 0.801, 0.8, 0.5), Line: watch.Known(0.8), Beside: watch.Known(1), PointLow: true}, 7, "█▇▅▃▂▁▁"},
		{"fails when low, no reference: up to the greatest",
			watch.Signal{Canary: figures(0.9, 0.81, 0.7), Line: watch.Known(0.8), PointLow: true}, 3, "█▂▁"},
		{"a missing window is blank",
			watch.Signal{Canary: figures(0, gap, 8), Line: limit}, 3, "▁ █"},
		{"the newest is at the right",
			watch.Signal{Canary: figures(8, 0), Line: limit}, 5, "   █▁"},
		{"several in a column are the worst of them",
			watch.Signal{Canary: figures(0, 8, 0, 0, gap, 4), Line: limit}, 3, "█▁▄"},
		{"fails when low: the worst is the lowest",
			watch.Signal{Canary: figures(1, 0.5, 1, 1), Line: watch.Known(0.5), PointLow: true}, 2, "▁█"},
		{"no limit: from the least to the greatest, without the mark of a failure",
			watch.Signal{Canary: figures(1, 2, 3), Line: none}, 3, "▁▄▇"},
		{"no limit and nothing moves",
			watch.Signal{Canary: figures(5, 5, 5), Line: none}, 3, "▁▁▁"},
		{"endless is past any limit",
			watch.Signal{Canary: figures(math.Inf(1), math.Inf(-1)), Line: limit}, 2, "█▁"},
		{"a limit of zero is met by zero",
			watch.Signal{Canary: figures(0, 0), Line: watch.Known(0)}, 2, "██"},
		{"no data", watch.Signal{Line: limit}, 4, "    "},
		{"no columns", watch.Signal{Canary: figures(1), Line: limit}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := spark(plainTheme(Unicode), &c.sig, c.width); got != c.want {
				t.Errorf("drawn as %q, want %q", got, c.want)
			}
		})
	}
	sig := watch.Signal{Canary: figures(0, 2, 4, 6, 8, gap), Line: limit}
	if got, want := spark(plainTheme(ASCII), &sig, 6), "_.:+# "; got != want {
		t.Errorf("without UTF-8 drawn as %q, want %q", got, want)
	}
}

// anySeries is a series of up to 90 windows with whatever numbers.
func anySeries() *rapid.Generator[[]watch.Figure] {
	odd := rapid.SampledFrom([]float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64})
	value := rapid.OneOf(odd, rapid.Float64(), rapid.Float64Range(0, 1), rapid.Float64Range(0, 3000))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) watch.Figure {
		return watch.Figure{Value: value.Draw(t, "value"), Known: rapid.IntRange(0, 9).Draw(t, "known") > 0}
	}), 0, 90)
}

func anySignal() *rapid.Generator[watch.Signal] {
	return rapid.Custom(func(t *rapid.T) watch.Signal {
		three := append(anySeries().Draw(t, "figures"), watch.Figure{}, watch.Known(1), watch.Known(0.5))
		return watch.Signal{
			Signal: release.Signal(rapid.IntRange(0, release.Judged).Draw(t, "signal")),
			Form:   release.Form(rapid.IntRange(0, int(release.CumulativeSum)).Draw(t, "form")),
			Unit:   watch.Unit(rapid.IntRange(0, int(watch.Score)).Draw(t, "unit")),
			Value:  three[0], Beside: three[1], Line: three[2],
			Baseline: rapid.Bool().Draw(t, "baseline"), PointLow: rapid.Bool().Draw(t, "low"),
			Canary: anySeries().Draw(t, "canary"), Stable: anySeries().Draw(t, "stable"),
		}
	})
}

func TestSparkTakesItsColumnsWhateverItShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sig := anySignal().Draw(t, "sig")
		width := rapid.IntRange(-1, 200).Draw(t, "width")
		got := spark(themeOf(Unicode, termenv.TrueColor), &sig, width)
		if ansi.StringWidth(got) != max(width, 0) {
			t.Fatalf("%d columns, want %d: %q", ansi.StringWidth(got), width, got)
		}
		// The mark of a failure is there where and only where a point fails.
		end := len(Unicode.Spark) - 1
		if sig.Low {
			end = 0
		}
		failed := past(&sig, worstOf(sig.Low)(sig.Canary))
		if known(sig.Limit) && width > 0 && failed != strings.ContainsRune(ansi.Strip(got), Unicode.Spark[end]) && len(sig.Canary) <= width {
			t.Errorf("failed: %v, drawn as %q", failed, ansi.Strip(got))
		}
	})
}

func BenchmarkSpark(b *testing.B) {
	th, sig := themeOf(Unicode, termenv.TrueColor), busySignal()
	b.ReportAllocs()
	for b.Loop() {
		spark(th, sig, 30)
	}
}
