package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// scenarioA: 26 requests a minute, two violations a minute at 21 and 22.
func scenarioA(minutes int) (ws []release.Window) {
	for m := range minutes {
		v := int64(0)
		if m == 21 || m == 22 {
			v = 2
		}
		ws = append(ws, minute(m, 26, 24, v, 0))
	}
	return ws
}

// scenarioB: 8 requests a minute, 7 solved until minute 20, 6 from 21 on.
func scenarioB(minutes int) (ws []release.Window) {
	for m := range minutes {
		solved := int64(7)
		if m >= 21 {
			solved = 6
		}
		ws = append(ws, minute(m, 8, solved, 0, 0))
	}
	return ws
}

func transitions(out *simulate.Outcome) string {
	var b strings.Builder
	for _, e := range out.Events {
		fmt.Fprintf(&b, "%d %s->%s %s", e.Minute, e.From, e.To, e.Finding.Signal)
		if e.Escalated {
			b.WriteString(" escalated")
		}
		if e.Locked {
			b.WriteString(" locked")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestReferenceTrajectories are those of DESIGN section 6.
func TestReferenceTrajectories(t *testing.T) {
	cooldown3 := published()
	cooldown3.Cooldown = 3 * time.Minute
	for _, tc := range []struct {
		name    string
		limits  breaker.Limits
		windows []release.Window
		want    string
	}{
		{"scenario-a trips on violations and recovers", published(), scenarioA(60),
			"22 CLOSED->OPEN violations\n28 OPEN->HALF_OPEN cooldown\n32 HALF_OPEN->CLOSED probes\n"},
		{"scenario-b trips at exactly 0.80 and locks", published(), scenarioB(60),
			"35 CLOSED->OPEN solve_rate\n41 OPEN->HALF_OPEN cooldown\n45 HALF_OPEN->OPEN probes escalated locked\n"},
		{"a cooldown of 3 is struck down at its first probe", cooldown3, scenarioA(60),
			"22 CLOSED->OPEN violations\n25 OPEN->HALF_OPEN cooldown\n25 HALF_OPEN->OPEN violations escalated locked\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			feed, err := simulate.NewRecorded(tc.windows, nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := simulate.Run(plan(tc.limits), feed, simulate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := transitions(out); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// BenchmarkReplay folds a million one-minute windows of a healthy canary
// through breaker and ladder.
func BenchmarkReplay(b *testing.B) {
	ws := make([]release.Window, 1_000_000)
	for m := range ws {
		ws[m] = minute(m, 26, 24, 0, int64(m%3/2))
	}
	p := plan(published())
	b.ReportAllocs()
	for b.Loop() {
		feed, err := simulate.NewRecorded(ws, nil)
		if err != nil {
			b.Fatal(err)
		}
		out, err := simulate.Run(p, feed, simulate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if out.Ticks != len(ws) || len(out.Events) != 0 {
			b.Fatalf("%d ticks, %d events", out.Ticks, len(out.Events))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ws)), "ns/window")
}
