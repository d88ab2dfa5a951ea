package simulate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// shifted are windows of stable, each of a span, from a time on.
func shifted(from time.Time, span time.Duration, n int) (ws []release.Window) {
	for i := range n {
		w := minute(0, 900, 800, 0, 0)
		w.T, w.Span, w.Arm = from.Add(time.Duration(i)*span), span, release.Stable
		ws = append(ws, w)
	}
	return ws
}

// The canary alone makes the ticks: whatever stable's windows are like, the
// breaker meets the same minutes.
func TestStableMovesNoTick(t *testing.T) {
	const want = "22 CLOSED->OPEN violations\n28 OPEN->HALF_OPEN cooldown\n32 HALF_OPEN->CLOSED probes\n"
	for _, tc := range []struct {
		name   string
		stable []release.Window
		later  time.Duration // by which the canary's minutes are later in the feed
	}{
		{"no stable", nil, 0},
		{"windows of ten seconds", shifted(t0, 10*time.Second, 360), 0},
		{"windows of five minutes", shifted(t0, 5*time.Minute, 12), 0},
		{"windows from half a minute earlier on", shifted(t0.Add(-30*time.Second), time.Minute, 60), 30 * time.Second},
		{"windows from two and a half minutes earlier on", shifted(t0.Add(-150*time.Second), 5*time.Minute, 12), 150 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			feed, err := simulate.NewRecorded(scenarioA(60), tc.stable)
			if err != nil {
				t.Fatal(err)
			}
			if feed.Span() != time.Minute || !feed.Start().Equal(t0.Add(-tc.later)) {
				t.Errorf("span %s, start %s", feed.Span(), feed.Start())
			}
			out, err := simulate.Run(plan(published()), feed, simulate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range out.Events {
				if e := &out.Events[i]; e.Minute != int(e.T.Sub(feed.Start())/time.Minute) {
					t.Errorf("minute %d of an event at %s", e.Minute, e.T)
				} else {
					e.Minute = int(e.T.Sub(t0) / time.Minute)
				}
			}
			if got := transitions(out); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if out.Gaps != int(tc.later/time.Minute) || out.Canary != 60*26 || out.Stable != 900*int64(len(tc.stable)) {
				t.Errorf("%d gaps, %d requests of the canary, %d of stable", out.Gaps, out.Canary, out.Stable)
			}
		})
	}
}

// One wrong time must not make a replay of years of ticks.
func TestAFeedOfTooManyTicksIsRefused(t *testing.T) {
	ws := scenarioA(2)
	ws[1].T = ws[0].T.AddDate(200, 0, 0)
	_, err := simulate.NewRecorded(ws, nil)
	if _, typed := errors.AsType[*simulate.LengthError](err); !typed || !strings.Contains(err.Error(), "2226-03-02T00:00:00Z: more than 50000000 times their length of 1 minute") {
		t.Errorf("200 years of minutes: %v", err)
	}
	ws[1].T = ws[0].T.AddDate(90, 0, 0)
	if _, err := simulate.NewRecorded(ws, nil); err != nil {
		t.Errorf("90 years of minutes: %v", err)
	}
}

func TestThinTicksByTheLongerWindow(t *testing.T) {
	feed, err := simulate.NewRecorded(scenarioA(60), shifted(t0, 5*time.Minute, 12))
	if err != nil {
		t.Fatal(err)
	}
	thin := thinned(t, feed, 1)
	for thin.More() {
		tick, err := thin.Next(release.Weight{Slots: 10, Ring: 100})
		if err != nil {
			t.Fatal(err)
		}
		if len(tick.Canary) != 5 || len(tick.Stable) != 1 {
			t.Errorf("%s: %d windows of the canary, %d of stable", tick.T, len(tick.Canary), len(tick.Stable))
		}
	}
}
