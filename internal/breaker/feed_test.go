package breaker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

var t0 = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return t0.Add(minutes(minute)) }

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// published returns the limits of DESIGN section 3.
func published() breaker.Limits {
	return breaker.Limits{
		FastSpan: minutes(5), ViolationLimit: 3, ViolationRate: release.MustRatio("0.005"),
		MinTransfers: 3, TransferRate: release.MustRatio("0.06"), CostRatio: 2, P99MS: 900,
		SlowSpan: minutes(25), SolveFloor: release.MustRatio("0.8"), MinSamples: 200,
		Cooldown: minutes(6), Trials: 5, SuccessRate: release.MustRatio("0.8"), LockOnEscalate: true, MaxRecoveries: 3,
		Streaming: publishedStreaming,
	}
}

// window returns a canary window with counts known and no cost and p99.
func window(minute int, total, solved int64) release.Window {
	return release.Window{
		T: at(minute), Span: time.Minute, Arm: release.Canary, Total: total, Judged: total, Solved: solved,
		Known: release.HasSolved | release.HasViolations | release.HasTransfers,
	}
}

// drive ticks every minute from the first window's to the last one's, as the
// simulator does: the change by time alone, then the window, or an idle minute.
func drive(l *breaker.Limits, st *breaker.State, ws []release.Window) (events []release.Event) {
	if len(ws) == 0 {
		return nil
	}
	i := 0
	for now := ws[0].T; i < len(ws); now = now.Add(time.Minute) {
		events = append(events, tick(l, st, now, &ws[i])...)
		if ws[i].T.Equal(now) {
			i++
		}
	}
	return events
}

// tick is one minute of drive; w counts only if it is of this minute.
func tick(l *breaker.Limits, st *breaker.State, now time.Time, w *release.Window) (events []release.Event) {
	if ev := breaker.Tick(l, st, now); ev != nil {
		events = append(events, *ev)
	}
	step := func() *release.Event { return breaker.Idle(l, st, now) }
	if w != nil && w.T.Equal(now) {
		step = func() *release.Event { return breaker.Step(l, st, w) }
	}
	if ev := step(); ev != nil {
		events = append(events, *ev)
	}
	return events
}

// say prints an event in one line: "22 CLOSED->OPEN violations"; nil is "nothing".
func say(ev *release.Event) string {
	if ev == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s->%s %s", int(ev.T.Sub(t0)/time.Minute), ev.From, ev.To, ev.Finding.Signal)
	if ev.Escalated {
		b.WriteString(" escalated")
	}
	if ev.Locked {
		b.WriteString(" locked")
	}
	return b.String()
}

func sayAll(events []release.Event) string {
	var lines []string
	for _, ev := range events {
		lines = append(lines, say(&ev))
	}
	return strings.Join(lines, "; ")
}

// marshal writes the state, read its written form back.
func marshal(t testing.TB, st *breaker.State) []byte {
	t.Helper()
	b, err := st.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, b []byte) *breaker.State {
	t.Helper()
	st := new(breaker.State)
	if err := st.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return st
}
