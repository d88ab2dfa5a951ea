package breaker_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// states builds the states of the table. Each ends ready for a tick at 16: by
// then OPEN may become HALF_OPEN, and HALF_OPEN has just begun.
var states = map[string]func(l *breaker.Limits) *breaker.State{
	"CLOSED": func(l *breaker.Limits) *breaker.State {
		st := new(breaker.State)
		for m := range 10 {
			w := window(m, 2, 2)
			breaker.Step(l, st, &w)
		}
		return st
	},
	"OPEN": func(l *breaker.Limits) *breaker.State {
		st := new(breaker.State)
		w := window(10, 2, 2)
		w.Violations = 3
		breaker.Step(l, st, &w)
		return st
	},
	"OPEN locked": func(l *breaker.Limits) *breaker.State {
		st := new(breaker.State)
		breaker.Trip(st, at(10), true)
		return st
	},
	"HALF_OPEN": func(l *breaker.Limits) *breaker.State {
		st := new(breaker.State)
		breaker.Trip(st, at(10), false)
		breaker.Tick(l, st, at(16))
		return st
	},
}

// input is what comes at a minute; no window is a gap.
type input struct {
	minute int
	window *release.Window
}

func with(minute int, total, solved int64, change func(*release.Window)) input {
	w := window(minute, total, solved)
	if change != nil {
		change(&w)
	}
	return input{minute, &w}
}

// inputs but the last come at 15, before the cooldown is over; HALF_OPEN
// began at 16 and gets them at 17.
var inputs = map[string]input{
	"no window":                   {minute: 15},
	"empty window":                with(15, 0, 0, nil),
	"healthy window, probe good":  with(15, 20, 18, nil),
	"violations at the limit":     with(15, 20, 18, func(w *release.Window) { w.Violations = 3 }),
	"violations below the limit":  with(15, 20, 18, func(w *release.Window) { w.Violations = 2 }),
	"cost at the limit":           with(15, 20, 18, func(w *release.Window) { w.Cost, w.Known = 2, w.Known|release.HasCost }),
	"p99 at the limit":            with(15, 20, 18, func(w *release.Window) { w.P99MS, w.Known = 900, w.Known|release.HasP99 }),
	"transfers at the limit":      with(15, 20, 18, func(w *release.Window) { w.Transfers = 3 }),
	"solve rate at the limit":     with(15, 260, 260*8/10-20, nil),
	"solve rate, too few samples": with(15, 170, 0, nil),
	"probe bad":                   with(15, 20, 15, nil),
	"unjudged window":             with(15, 20, 0, func(w *release.Window) { w.Judged = 0 }),
	"unjudged, violations":        with(15, 20, 0, func(w *release.Window) { w.Judged, w.Violations = 0, 3 }),
	"solve rate missing":          with(15, 20, 0, func(w *release.Window) { w.Judged, w.Known = 0, w.Known&^release.HasSolved }),
	"cooldown not due":            {minute: 15},
	"cooldown due":                {minute: 16},
	"cooldown due, with a window": with(16, 20, 18, nil),
	"cooldown due, with a breach": with(16, 20, 18, func(w *release.Window) { w.Violations = 3 }),
}

// outcomes is the whole machine: what every input does in every state.
var outcomes = map[string]map[string]string{
	"CLOSED": {
		"no window":                   "stays CLOSED",
		"empty window":                "stays CLOSED",
		"healthy window, probe good":  "stays CLOSED",
		"violations at the limit":     "CLOSED->OPEN violations",
		"violations below the limit":  "stays CLOSED",
		"cost at the limit":           "CLOSED->OPEN cost",
		"p99 at the limit":            "CLOSED->OPEN p99",
		"transfers at the limit":      "CLOSED->OPEN transfers",
		"solve rate at the limit":     "CLOSED->OPEN solve_rate",
		"solve rate, too few samples": "stays CLOSED",
		"probe bad":                   "stays CLOSED",
		"unjudged window":             "stays CLOSED",
		"unjudged, violations":        "CLOSED->OPEN violations",
		"solve rate missing":          "stays CLOSED",
		"cooldown not due":            "stays CLOSED",
		"cooldown due":                "stays CLOSED",
		"cooldown due, with a window": "stays CLOSED",
		"cooldown due, with a breach": "CLOSED->OPEN violations",
	},
	"OPEN": {
		"no window":                   "stays OPEN",
		"empty window":                "stays OPEN",
		"healthy window, probe good":  "stays OPEN",
		"violations at the limit":     "stays OPEN",
		"violations below the limit":  "stays OPEN",
		"cost at the limit":           "stays OPEN",
		"p99 at the limit":            "stays OPEN",
		"transfers at the limit":      "stays OPEN",
		"solve rate at the limit":     "stays OPEN",
		"solve rate, too few samples": "stays OPEN",
		"probe bad":                   "stays OPEN",
		"unjudged window":             "stays OPEN",
		"unjudged, violations":        "stays OPEN",
		"solve rate missing":          "stays OPEN",
		"cooldown not due":            "stays OPEN",
		"cooldown due":                "OPEN->HALF_OPEN cooldown",
		"cooldown due, with a window": "OPEN->HALF_OPEN cooldown, 1 of 1 probes good",
		"cooldown due, with a breach": "OPEN->HALF_OPEN cooldown, HALF_OPEN->OPEN violations escalated locked",
	},
	"OPEN locked": {
		"no window":                   "stays OPEN locked",
		"empty window":                "stays OPEN locked",
		"healthy window, probe good":  "stays OPEN locked",
		"violations at the limit":     "stays OPEN locked",
		"violations below the limit":  "stays OPEN locked",
		"cost at the limit":           "stays OPEN locked",
		"p99 at the limit":            "stays OPEN locked",
		"transfers at the limit":      "stays OPEN locked",
		"solve rate at the limit":     "stays OPEN locked",
		"solve rate, too few samples": "stays OPEN locked",
		"probe bad":                   "stays OPEN locked",
		"unjudged window":             "stays OPEN locked",
		"unjudged, violations":        "stays OPEN locked",
		"solve rate missing":          "stays OPEN locked",
		"cooldown not due":            "stays OPEN locked",
		"cooldown due":                "stays OPEN locked",
		"cooldown due, with a window": "stays OPEN locked",
		"cooldown due, with a breach": "stays OPEN locked",
	},
	"HALF_OPEN": {
		"no window":                   "stays HALF_OPEN",
		"empty window":                "stays HALF_OPEN",
		"healthy window, probe good":  "stays HALF_OPEN, 1 of 1 probes good",
		"violations at the limit":     "HALF_OPEN->OPEN violations escalated locked",
		"violations below the limit":  "stays HALF_OPEN, 1 of 1 probes good",
		"cost at the limit":           "HALF_OPEN->OPEN cost escalated locked",
		"p99 at the limit":            "HALF_OPEN->OPEN p99 escalated locked",
		"transfers at the limit":      "HALF_OPEN->OPEN transfers escalated locked",
		"solve rate at the limit":     "stays HALF_OPEN, 0 of 1 probes good", // the slow layer rests
		"solve rate, too few samples": "stays HALF_OPEN, 0 of 1 probes good",
		"probe bad":                   "stays HALF_OPEN, 0 of 1 probes good",
		"unjudged window":             "stays HALF_OPEN",
		"unjudged, violations":        "HALF_OPEN->OPEN violations escalated locked",
		"solve rate missing":          "stays HALF_OPEN",
		"cooldown not due":            "stays HALF_OPEN",
		"cooldown due":                "stays HALF_OPEN",
		"cooldown due, with a window": "stays HALF_OPEN, 1 of 1 probes good",
		"cooldown due, with a breach": "HALF_OPEN->OPEN violations escalated locked",
	},
}

// TestEveryStateMeetsEveryInput walks the whole table; a pair that is missing
// from it fails too.
func TestEveryStateMeetsEveryInput(t *testing.T) {
	for _, state := range slices.Sorted(maps.Keys(states)) {
		for _, name := range slices.Sorted(maps.Keys(inputs)) {
			t.Run(state+"/"+name, func(t *testing.T) {
				want, ok := outcomes[state][name]
				if !ok {
					t.Fatal("the table has no outcome for this pair")
				}
				l := published()
				st := states[state](&l)
				if got := outcome(&l, st, inputs[name]); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

func outcome(l *breaker.Limits, st *breaker.State, in input) string {
	minute := in.minute
	if st.Phase == release.HalfOpen {
		minute = 17
	}
	var w *release.Window
	if in.window != nil {
		moved := *in.window
		moved.T = at(minute)
		w = &moved
	}
	out := ""
	for _, ev := range tick(l, st, at(minute), w) {
		out += ", " + say(&ev)[len("16 "):]
	}
	if out == "" {
		out = ", stays " + st.Phase.String()
		if st.Locked {
			out += " locked"
		}
	}
	if st.Round.Done > 0 {
		out += fmt.Sprintf(", %d of %d probes good", st.Round.Good, st.Round.Done)
	}
	return out[2:]
}

// TestFastSignalsComeInOrder: a window past several limits trips on the first
// of them in the order of DESIGN section 6, the slow layer last.
func TestFastSignalsComeInOrder(t *testing.T) {
	breaches := []func(*release.Window){
		func(w *release.Window) { w.Violations = 30 },
		func(w *release.Window) { w.Cost, w.Known = 9, w.Known|release.HasCost },
		func(w *release.Window) { w.P99MS, w.Known = 9000, w.Known|release.HasP99 },
		func(w *release.Window) { w.Transfers = 300 },
		func(w *release.Window) { w.Solved = 0 },
	}
	for first, want := range []release.Signal{release.Violations, release.Cost, release.P99, release.Transfers, release.SolveRate} {
		w := window(0, 400, 400)
		for _, breach := range breaches[first:] {
			breach(&w)
		}
		l, st := published(), new(breaker.State)
		if ev := breaker.Step(&l, st, &w); ev == nil || ev.Finding.Signal != want {
			t.Errorf("breaches from %s on: %s", want, say(ev))
		}
	}
}
