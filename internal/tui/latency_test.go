package tui

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// crowded is a release with as much to show as a view ever has: sixty points a
// signal and two hundred events.
func crowded() watch.Snapshot {
	s := rolledBack()
	for i := len(s.Events); i < 200; i++ {
		s.Events = append(s.Events, watch.Event{
			At: noon.Add(time.Duration(i) * time.Second), Line: int64(100 + i), Kind: "message", Tone: watch.Tone(i % 4),
			Text: fmt.Sprintf("message %d: 合計が違うという報告あり and the webhook did not answer within ten seconds", i), Detail: watch.RecordDetail(s.Record),
		})
	}
	return s
}

// strokes are keys of every kind, those that redraw most among them.
var strokes = []string{
	"j", "k", "up", "up", "down", "c", "enter", "down", "down", "up", "enter", "c", "c", "?", "x", "tab", "shift+tab",
	"r", "s", "u", "m", "s", "backspace", "esc", "up", "enter", "esc",
}

// stroke is one key, from its message to the frame.
func stroke(m model, name string) (model, string) {
	m = pressed(m, name)
	return m, m.View()
}

// raced reports whether this test was built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// TestAKeyIsSeenSoon measures from a key to its frame. A terminal shows it at the
// renderer's next tick, which is 17 ms away at most: with less than 20 ms here a
// key is seen within 50 ms.
func TestAKeyIsSeenSoon(t *testing.T) {
	if raced() {
		t.Skip("the race detector slows everything down")
	}
	m := sized(shown(crowded()), 200, 60)
	took := make([]time.Duration, 2000)
	for i := range took {
		from := time.Now()
		m, _ = stroke(m, strokes[i%len(strokes)])
		took[i] = time.Since(from)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("key to frame at 200x60: median %v, 99th percentile %v, longest %v", took[len(took)/2], p99, took[len(took)-1])
	if p99 >= 20*time.Millisecond {
		t.Errorf("99th percentile %v", p99)
	}
}

func BenchmarkKeyToFrame(b *testing.B) {
	m := sized(shown(crowded()), 200, 60)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m, _ = stroke(m, strokes[i%len(strokes)])
	}
}
