package watch

import (
	"strings"
	"testing"
	"time"
)

// served is a climber whose canary had requests in every so-manieth window, the
// last of them a while before.
func served(every int, ago time.Duration) Snapshot {
	s := climber()
	s.Since = nine.Add(-Points * time.Minute)
	s.Source.Canary = nine.Add(-ago)
	points := make([]Figure, Points)
	for i := len(points) - 1 - int(ago/time.Minute); i >= 0; i -= every {
		points[i] = Known(0.02)
	}
	s.Signals[0].Canary = points
	return s
}

func TestACanaryThatHasCeasedIsToldFromOneThatHasLittleTraffic(t *testing.T) {
	const patience = 3*time.Minute + 15*time.Second + 15*time.Second
	for _, c := range []struct {
		name   string
		every  int
		ago    time.Duration
		silent bool
	}{
		{"served in the newest window", 1, 0, false},
		{"every window, and as late as that may be", 1, patience + 2*time.Minute, false},
		{"every window, and later", 1, patience + 4*time.Minute, true},
		{"every tenth window, and within three times that", 10, patience + 15*time.Minute, false},
		{"every tenth window, and later", 10, patience + 31*time.Minute, true},
	} {
		s := served(c.every, c.ago)
		k := SituationOf(&s, nine)
		said := len(k.Alarms) > 0 && strings.HasPrefix(k.Alarms[0], "NO FIGURES OF THE CANARY")
		if said != c.silent || (k.Word == "NO FIGURES OF THE CANARY") != c.silent || c.silent && (k.Guarded || k.Tone != Warning) {
			t.Errorf("%s: %s, guarded %v, %q", c.name, k.Word, k.Guarded, k.Alarms)
		}
	}
	s := served(1, time.Hour)
	s.Weight, s.Target.Weight = pct(0), pct(0)
	if k := SituationOf(&s, nine); len(k.Alarms) > 0 {
		t.Errorf("a canary that serves nobody has no figures: %q", k.Alarms)
	}
}

func TestARecordIsTheReasonOfItsOwnAttempt(t *testing.T) {
	s := climber()
	fallen(&s)
	if k := SituationOf(&s, nine); !s.InForce() || !strings.Contains(k.Why, s.Record.Reason) {
		t.Errorf("in force %v, why %q", s.InForce(), k.Why)
	}
	s.Outcome.Attempt = 2
	if k := SituationOf(&s, nine); s.InForce() || strings.Contains(k.Why, s.Record.Reason) {
		t.Errorf("of another attempt: in force %v, why %q", s.InForce(), k.Why)
	}
}

func TestNobodyIsSaidToBeOnACanaryThatTheTargetHasTrafficOn(t *testing.T) {
	s := climber()
	s.Weight, s.Target.Weight = pct(0), pct(1)
	if what := (&viewer{s: &s, now: nine}).traffic(); what != "1 % are on the canary" {
		t.Error(what)
	}
}

func TestLinesDoNotSayThatNobodyDecidesWhereThatCannotBeSeen(t *testing.T) {
	for elsewhere, want := range map[bool]bool{false: true, true: false} {
		was := climber()
		now := was
		now.At, now.Source.Newest, now.Decider.Elsewhere = nine.Add(time.Hour), nine.Add(time.Hour), elsewhere
		if said := strings.Contains(strings.Join(Lines(&was, &now), "\n"), "nobody has decided"); said != want {
			t.Errorf("elsewhere %v: said %v", elsewhere, said)
		}
	}
}
