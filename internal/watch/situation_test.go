package watch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

func pct(n int64) release.Weight { return release.Weight{Slots: n * 10, Ring: 1000} }

// both are the gates of most steps.
const both = ladder.TimeGate | ladder.MetricGate

// climber is a release at step 2 of 3 that waits for its time.
func climber() Snapshot {
	return Snapshot{
		At: nine, Service: "order-service", Release: "3f1c2ab90d11", Stage: ladder.Climbing, Step: 2, Weight: pct(5), Since: nine.Add(-2 * time.Minute),
		Rungs: []Rung{{Weight: pct(1), Hold: 10 * time.Minute, Gates: both}, {Weight: pct(5), Hold: 10 * time.Minute, Gates: both}, {Weight: pct(100), Hold: time.Hour, Gates: both}},
		Outcome: journal.Outcome{
			Move: release.Hold, Why: ladder.WhyTime, Weight: pct(5), Stage: ladder.Climbing, Step: 2, Steps: 3, Attempt: 1, HeldS: 120, HoldS: 600,
			Verdict: release.Pass, Verdicts: []journal.Verdict{{Verdict: release.Pass, Counts: true}}, Reason: "held 2 minutes of 10 minutes", LeftS: new(int64(480)),
		},
		Held: 2 * time.Minute, Trips: true, Target: Target{Name: "gateway", Weight: pct(5), At: nine},
		Source:  Source{Name: "prometheus", Newest: nine, Settle: 15 * time.Second},
		Decider: Decider{At: nine, Who: "ci@build-7"}, Times: Times{Span: time.Minute},
		Signals: []Signal{{Signal: release.Cost, State: Passing}, {Signal: release.P99, State: Few, Samples: 3, Needed: 40}, {State: Off}},
	}
}

// fallen is a release that was rolled back and cools down.
func fallen(s *Snapshot) {
	s.Weight, s.Target.Weight = pct(0), pct(0)
	s.Outcome.Phase, s.Outcome.Why, s.Outcome.Weight, s.Outcome.Verdicts = release.Open, ladder.WhyCooldown, pct(0), nil
	s.Record = &journal.Rollback{Attempt: 1, Reason: "15 of 120 requests handed to a human"}
}

func TestASituationForEachState(t *testing.T) {
	for _, c := range []struct {
		name         string
		change       func(s *Snapshot)
		tone         Tone
		word         string
		what, why    string // parts of the answers
		next, do     string
		noNext, noDo string // what they must not say
		alarms       []string
	}{
		{name: "holding", tone: Good, word: "SAFE SO FAR", what: "5 % ", why: "1 of 2 signals pass, p99 has 3 of 40 samples", next: "100 % in 8m", do: "r rolls back"},
		{name: "the last step", change: func(s *Snapshot) { s.Step, s.Outcome.Step, s.Weight = 3, 3, pct(100) }, tone: Good, word: "SAFE SO FAR", what: "100 %", next: "complete in 8m"},
		{
			name: "nobody can say when", change: func(s *Snapshot) { s.Outcome.LeftS = nil }, tone: Good, word: "SAFE SO FAR",
			next: "100 % when all gates of this step have passed", noNext: " in ",
		},
		{
			name: "too few samples", tone: Warning, word: "TOO EARLY TO TELL", next: "100 %", why: "210 of 381 judged",
			change: func(s *Snapshot) {
				s.Outcome.Verdict, s.Outcome.Why, s.Outcome.Reason = release.Insufficient, ladder.WhyInsufficient, "210 of 381 judged"
			},
		},
		{
			name: "too few samples, and no rate of them", tone: Warning, word: "TOO EARLY TO TELL", next: "nobody can say when",
			change: func(s *Snapshot) {
				s.Outcome.Verdict, s.Outcome.Why, s.Outcome.LeftS = release.Insufficient, ladder.WhyInsufficient, nil
			},
		},
		{
			name: "no data", tone: Warning, word: "NO DATA YET", next: "nobody can say when", noNext: " in ",
			change: func(s *Snapshot) {
				s.Outcome.Verdict, s.Outcome.Why, s.Outcome.LeftS = release.NoData, ladder.WhyNoData, nil
			},
		},
		{
			name: "failing", tone: Bad, word: "FAILING", next: "no step while it fails", do: "r rolls back", why: "cost 2.4 times",
			change: func(s *Snapshot) {
				s.Outcome.Verdict, s.Outcome.Why, s.Outcome.Reason = release.Fail, ladder.WhyFailing, "cost 2.4 times stable's"
			},
		},
		{
			name: "the source failed", tone: Bad, word: "BLIND", what: "the breaker cannot trip", next: "no step until figures come again", do: "r rolls back",
			change: func(s *Snapshot) {
				s.Outcome.Verdict, s.Outcome.Why, s.Source.Err, s.Decider.Blind = release.Error, ladder.WhySourceFailed, "connection refused", true
			}, alarms: []string{"SOURCE LOST"},
		},
		{
			name: "the source failed here, and not where it is decided", tone: Warning, word: "NOT SEEN FROM HERE", what: "5 % ", next: "as whoever decides sees it", do: "r rolls back",
			change: func(s *Snapshot) {
				s.Outcome.Verdict, s.Outcome.Why, s.Source.Err = release.Error, ladder.WhySourceFailed, "no route to host"
			}, alarms: []string{"SOURCE NOT READ FROM HERE"},
		},
		{
			name: "paused", tone: Warning, word: "PAUSED", next: "no step until it is resumed", do: "p resumes", noDo: "p pauses",
			change: func(s *Snapshot) { s.Outcome.Why, s.Outcome.Paused, s.Outcome.LeftS = ladder.WhyPaused, true, nil },
		},
		{
			name: "waits for approval", tone: Warning, word: "WAITS FOR APPROVAL", next: "100 %", do: "a approves",
			change: func(s *Snapshot) {
				s.Outcome.Move, s.Outcome.Why, s.Outcome.LeftS = release.AwaitApproval, ladder.WhyApproval, nil
			},
		},
		{
			name: "frozen", tone: Good, word: "SAFE SO FAR", next: "100 % when the freeze ends, in 8m",
			change: func(s *Snapshot) { s.Outcome.Why = ladder.WhyFrozen },
		},
		{
			name: "another configuration", tone: Warning, word: "CONFIGURATION CHANGED", next: "no step until a person accepts it", do: "--accept-config",
			change: func(s *Snapshot) {
				s.Outcome.Why, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyConfigChanged, nil, nil
			},
		},
		{
			name: "another release", tone: Bad, word: "NOT GUARDED", next: "the breaker does not look at this one", do: "finish or roll back",
			change: func(s *Snapshot) {
				s.Outcome.Why, s.Next = ladder.WhyOtherCandidate, "finish or roll back that release"
			},
		},
		{
			name: "the gateway does not follow", tone: Bad, word: "GATEWAY DOES NOT FOLLOW", next: "no step until", do: "gateway",
			change: func(s *Snapshot) { s.Outcome.Why, s.Outcome.Off = ladder.WhyMismatch, true },
		},
		{
			name: "the target was not read", tone: Warning, word: "CANNOT READ THE TARGET", next: "when the target can be read", alarms: []string{"TARGET NOT READ: 503"},
			change: func(s *Snapshot) { s.Outcome.Why, s.Target.Err = ladder.WhyUnread, "503" },
		},
		{
			name: "drift", tone: Bad, word: "MOVED BY SOMEBODY ELSE", next: "5 %", do: "put the weight back to 5 %", alarms: []string{"last changed by bob"},
			change: func(s *Snapshot) {
				s.Outcome.Why, s.Target.Weight, s.Target.By = ladder.WhyDrift, pct(20), "bob"
			},
		},
		{
			name: "not judged", tone: Warning, word: "NOT JUDGED",
			change: func(s *Snapshot) { s.Outcome.Verdicts = nil },
		},
		{
			name: "a step that is under way", tone: Plain, word: "MOVING TO 100 %", what: "5 %", next: "when it is read back",
			change: func(s *Snapshot) { s.Pending = ladder.Pending{Move: release.Advance, Weight: pct(100)} },
		},
		{
			name: "a step that was just made", tone: Plain, word: "MOVED TO 100 %", next: "complete in 1h at the earliest",
			change: func(s *Snapshot) {
				s.Step, s.Weight, s.Outcome.Move, s.Outcome.Weight, s.Outcome.LeftS = 3, pct(100), release.Advance, pct(100), nil
			},
		},
		{
			name: "a rollback that is not read back", tone: Bad, word: "ROLLBACK NOT CONFIRMED", what: "5 %", why: "15 of 120", do: "r writes it once more", next: "until it is read back",
			change: func(s *Snapshot) {
				fallen(s)
				s.Weight, s.Pending = pct(5), ladder.Pending{Move: release.RollBackMove, Weight: pct(0)}
			},
		},
		{name: "rolled back", change: fallen, tone: Warning, word: "SAFE, ROLLED BACK", what: "nobody is on the canary", why: "15 of 120", next: "probes at 1 % in 8m", noDo: "p pauses"},
		{
			name: "on trial", tone: Warning, word: "ON TRIAL", what: "1 % ", next: "good probes", noDo: "p pauses",
			change: func(s *Snapshot) {
				fallen(s)
				s.Outcome.Phase, s.Outcome.Why, s.Weight, s.Outcome.LeftS = release.HalfOpen, ladder.WhyProbing, pct(1), nil
			},
		},
		{
			name: "locked", tone: Warning, word: "SAFE, ROLLED BACK, LOCKED", why: "15 of 120", next: "nothing until a person clears the lock", do: "resume --clear-lock", alarms: []string{"ESCALATED"},
			change: func(s *Snapshot) {
				fallen(s)
				s.Outcome.Locked, s.Record.Escalated = true, true
			},
		},
		{
			name: "a failed gate", tone: Warning, word: "SAFE, GATE FAILED, LOCKED", do: "resume --clear-lock",
			change: func(s *Snapshot) {
				fallen(s)
				s.Outcome.Locked, s.Stage, s.Outcome.Phase = true, ladder.Failed, release.Closed
			},
		},
		{
			name: "complete", tone: Good, word: "COMPLETE", what: "100 %", next: "nothing", do: "nothing needed", noDo: "p pauses",
			change: func(s *Snapshot) { s.Stage, s.Step, s.Weight, s.Outcome.LeftS = ladder.Completed, 3, pct(100), nil },
		},
		{
			name: "not started", tone: Plain, word: "NOT STARTED", what: "nobody is on the canary", next: "step 1 of 3 at 1 %", do: "canaryctl run",
			change: func(s *Snapshot) {
				s.Stage, s.Step, s.Weight, s.Target.Weight, s.Outcome.LeftS = ladder.NotStarted, 0, pct(0), pct(0), nil
				s.Outcome.Move, s.Outcome.Why, s.Outcome.Write = release.Start, ladder.WhyStart, true
			},
		},
		{
			name: "overdue", tone: Good, word: "SAFE SO FAR", alarms: []string{"OVERDUE"},
			change: func(s *Snapshot) { s.Outcome.Overdue = true },
		},
	} {
		s := climber()
		if c.change != nil {
			c.change(&s)
		}
		k := SituationOf(&s, nine)
		if k.Tone != c.tone || k.Word != c.word {
			t.Errorf("%s: %d %s, want %d %s", c.name, k.Tone, k.Word, c.tone, c.word)
		}
		for _, part := range []struct{ name, text, has, not string }{
			{"what", k.What, c.what, ""}, {"why", k.Why, c.why, ""}, {"next", k.Next, c.next, c.noNext}, {"do", k.Do, c.do, c.noDo},
		} {
			if part.text == "" || !strings.Contains(part.text, part.has) || part.not != "" && strings.Contains(part.text, part.not) {
				t.Errorf("%s: %s is %q", c.name, part.name, part.text)
			}
		}
		if len(k.Alarms) != len(c.alarms) || !slices.EqualFunc(k.Alarms, c.alarms, strings.Contains) {
			t.Errorf("%s: alarms %q, want %q", c.name, k.Alarms, c.alarms)
		}
	}
}

func TestACountdownEnds(t *testing.T) {
	for left, want := range map[int64]string{480: "in 8m (09:08)", 479: "in 7m 59s (09:07)", 1: "in 1s (09:00)", 0: "at the next look"} {
		s := climber()
		s.Outcome.LeftS = &left
		if k := SituationOf(&s, nine); !strings.Contains(k.Next, want) || strings.Contains(k.Next, "-") {
			t.Errorf("%d s left: %s, want %s", left, k.Next, want)
		}
	}
	s := climber()
	s.Outcome.LeftS = new(int64(10))
	for after, want := range map[time.Duration]string{
		0: "in 10s", 3 * time.Second: "in 7s", 9 * time.Second: "in 1s", 9500 * time.Millisecond: "at the next look", 10 * time.Second: "at the next look", 15 * time.Second: "at the next look",
	} {
		if k := SituationOf(&s, nine.Add(after)); !strings.Contains(k.Next, want) || strings.Contains(k.Next, "-") {
			t.Errorf("%v after the look: %s, want %s", after, k.Next, want)
		}
	}
	if left, ok := s.Left(nine.Add(time.Hour)); left != 0 || !ok {
		t.Errorf("left: %v, %v", left, ok)
	}
}

// What a view that cannot look, or that nobody stands behind, was about to
// promise is not promised.
func TestNothingIsPromisedThatNobodyKeeps(t *testing.T) {
	const late = 10 * time.Minute
	for _, c := range []struct {
		name string
		set  func(s *Snapshot)
		tone Tone
		word string
		next string
	}{
		{"the view is old", func(s *Snapshot) { s.At = nine }, Warning, "NOT KNOWN NOW", "not known"},
		{"the view of a rollback is old", func(s *Snapshot) { s.At = nine; s.Pending.Move = release.RollBackMove }, Bad, "NOT KNOWN NOW", "not known"},
		{"nobody decides", func(s *Snapshot) { s.Decider.At = nine }, Bad, "NOT WATCHED", "no step and no rollback by itself"},
		{"nobody decides, at 0 %", func(s *Snapshot) { fallen(s); s.Decider.At = nine }, Warning, "NOT WATCHED", "no step and no rollback by itself"},
		{"nobody writes the rollback", func(s *Snapshot) { s.Pending.Move, s.Decider.At = release.RollBackMove, nine }, Bad, "ROLLBACK NOT CONFIRMED", "nobody writes it again"},
		{"no figures come", func(s *Snapshot) { s.Source.Newest = nine }, Bad, "BLIND", "no step"},
		{"no figures come, at 0 %", func(s *Snapshot) { fallen(s); s.Source.Newest = nine }, Warning, "SAFE, ROLLED BACK", "probes"},
	} {
		s := climber()
		justSeen(late, c.set)(&s)
		k := SituationOf(&s, nine.Add(late))
		if k.Tone != c.tone || k.Word != c.word || !strings.Contains(k.Next, c.next) || k.Guarded {
			t.Errorf("%s: %d %s, next %q, guarded %v", c.name, k.Tone, k.Word, k.Next, k.Guarded)
		}
	}
	s := climber()
	if k := SituationOf(&s, nine); !k.Guarded {
		t.Error("a release that is watched is not guarded")
	}
	s.Trips = false
	if k := SituationOf(&s, nine); k.Guarded || strings.Contains(k.Next, "0 % at once") {
		t.Errorf("without a signal that trips: guarded %v, next %q", k.Guarded, k.Next)
	}
}

// alarmsAt are the alarms of a release some time after it was looked at.
func alarmsAt(after time.Duration, change func(s *Snapshot)) ([]string, bool) {
	s := climber()
	if change != nil {
		change(&s)
	}
	k := SituationOf(&s, nine.Add(after))
	return k.Alarms, k.Old
}

// justSeen keeps all but one fact as fresh as the view, which looks at the very
// time.
func justSeen(after time.Duration, also func(s *Snapshot)) func(s *Snapshot) {
	return func(s *Snapshot) {
		at := nine.Add(after)
		s.At, s.Source.Newest, s.Decider.At, s.Target.At = at, at, at, at
		also(s)
	}
}

func TestAnOldViewSaysSo(t *testing.T) {
	for after, old := range map[time.Duration]bool{0: false, 15 * time.Second: false, 16 * time.Second: true, time.Hour: true} {
		alarms, is := alarmsAt(after, func(s *Snapshot) { s.Source.Newest, s.Decider.At = nine.Add(after), nine.Add(after) })
		if is != old || (len(alarms) > 0) != old || old && !strings.Contains(alarms[0], "THIS VIEW IS "+Clock(after)+" OLD") {
			t.Errorf("after %v: old %v, %q", after, is, alarms)
		}
	}
}

func TestWindowsThatStopComingAreSaid(t *testing.T) {
	const patience = 3*time.Minute + 15*time.Second + 15*time.Second
	for _, c := range []struct {
		name  string
		after time.Duration
		set   func(s *Snapshot)
		want  string
	}{
		{"as late as they may be", patience, func(*Snapshot) {}, ""},
		{"later", patience + time.Second, func(*Snapshot) {}, "NO NEW WINDOW: the newest ended 3m 31s ago"},
		{"of five minutes, as late as they may be", 15*time.Minute + 30*time.Second, func(s *Snapshot) { s.Times.Span = 5 * time.Minute }, ""},
		{"of five minutes, later", 15*time.Minute + 31*time.Second, func(s *Snapshot) { s.Times.Span = 5 * time.Minute }, "NO NEW WINDOW"},
		{"there was never one", time.Hour, func(s *Snapshot) { s.Source.Newest = time.Time{} }, ""},
		{"the source is lost: that is said", time.Hour, func(s *Snapshot) { s.Source.Err, s.Decider.Blind = "refused", true }, "SOURCE LOST, newest figures 1h old: refused"},
		{"lost before there was one", time.Hour, func(s *Snapshot) { s.Source.Err, s.Source.Newest, s.Decider.Blind = "refused", time.Time{}, true }, "SOURCE LOST, no window has been seen"},
	} {
		alarms, old := alarmsAt(c.after, justSeen(c.after, func(s *Snapshot) { s.Source.Newest = nine; c.set(s) }))
		if got := strings.Join(alarms, "; "); old != (c.want != "") || !strings.HasPrefix(got, c.want) || len(alarms) > 1 {
			t.Errorf("%s: old %v, %q, want %q", c.name, old, got, c.want)
		}
	}
}

func TestALateDecisionIsSaidWhereSomebodyMustDecide(t *testing.T) {
	const late = 10 * time.Minute
	for _, c := range []struct {
		name string
		set  func(s *Snapshot)
		want bool
	}{
		{"on its way", func(*Snapshot) {}, true},
		{"on its way, paused", func(s *Snapshot) { s.Outcome.Paused = true }, true},
		{"cooling down", fallen, true},
		{"on trial", func(s *Snapshot) { fallen(s); s.Outcome.Phase, s.Weight = release.HalfOpen, pct(1) }, true},
		{"a rollback that is not read back", func(s *Snapshot) { fallen(s); s.Outcome.Locked, s.Pending.Move = true, release.RollBackMove }, true},
		{"locked at 0 %", func(s *Snapshot) { fallen(s); s.Outcome.Locked = true }, false},
		{"failed at 0 %", func(s *Snapshot) { fallen(s); s.Stage, s.Outcome.Locked = ladder.Failed, true }, false},
		{"locked, with weight", func(s *Snapshot) { s.Outcome.Locked = true }, true},
		{"complete", func(s *Snapshot) { s.Stage, s.Weight = ladder.Completed, pct(100) }, false},
		{"not started", func(s *Snapshot) { s.Stage, s.Weight = ladder.NotStarted, pct(0) }, false},
		{"never decided on", func(s *Snapshot) { s.Decider.At = time.Time{} }, false},
	} {
		alarms, old := alarmsAt(late, justSeen(late, func(s *Snapshot) { s.Decider.At = nine; c.set(s) }))
		said := slices.ContainsFunc(alarms, func(a string) bool {
			return strings.HasPrefix(a, "NOBODY HAS DECIDED FOR 10m (last: ci@build-7)")
		})
		if said != c.want || old {
			t.Errorf("%s: %q, old %v", c.name, alarms, old)
		}
	}
	if alarms, _ := alarmsAt(3*time.Minute+30*time.Second, justSeen(3*time.Minute+30*time.Second, func(s *Snapshot) { s.Decider.At = nine })); len(alarms) > 0 {
		t.Errorf("within its patience: %q", alarms)
	}
}

func TestAlarmsHaveTheWorstFirst(t *testing.T) {
	alarms, _ := alarmsAt(time.Hour, func(s *Snapshot) {
		s.Source.Err, s.Target.Err, s.Outcome.Overdue = "refused", "503", true
	})
	want := []string{"THIS VIEW", "SOURCE LOST", "TARGET NOT READ", "NOBODY HAS DECIDED", "OVERDUE"}
	if !slices.EqualFunc(alarms, want, strings.HasPrefix) {
		t.Errorf("%q", alarms)
	}
}

func TestWhatWasHeldAndServed(t *testing.T) {
	s := climber()
	s.Outcome.Share = ladder.Share{Canary: 5, Stable: 95}
	if held, hold := s.Hold(); held != 2*time.Minute || hold != 10*time.Minute {
		t.Errorf("held %v of %v", held, hold)
	}
	if s.Share().Of() != 100 {
		t.Errorf("share %+v", s.Share())
	}
	moved := s
	moved.Outcome.Move, moved.Step = release.Advance, 3
	if held, hold := moved.Hold(); held != 0 || hold != time.Hour || moved.Share().Of() != 0 {
		t.Errorf("a step that was just made has been held %v of %v, share %+v", held, hold, moved.Share())
	}
	fallen(&s)
	if held, _ := s.Hold(); held != 0 || s.Share().Of() != 0 {
		t.Errorf("a rolled back release has been held %v, share %+v", held, s.Share())
	}
	s.Step = 0
	if held, hold := s.Hold(); held != 0 || hold != 0 {
		t.Errorf("a release at no step has been held %v of %v", held, hold)
	}
}

func TestSpansInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", -time.Second: "0s", 45 * time.Second: "45s", 60 * time.Second: "1m", 6*time.Minute + 40*time.Second: "6m 40s",
		59*time.Minute + 59600*time.Millisecond: "59m 59s", 125 * time.Minute: "2h 05m", 76 * time.Hour: "3d 4h",
	} {
		if got := Clock(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
