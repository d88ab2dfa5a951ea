package tui

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// noon is the time of every state.
var noon = time.Date(2026, 3, 3, 12, 0, 30, 0, time.UTC)

func weight(pct int64) release.Weight { return release.Weight{Slots: pct * 10, Ring: 1000} }

// ripple is a series around a level; what lies before the release is missing.
func ripple(level, swing float64, missing int) []watch.Figure {
	points := make([]watch.Figure, watch.Points)
	for i := missing; i < len(points); i++ {
		points[i] = watch.Known(level + float64(swing*math.Sin(float64(i)*0.9)))
	}
	return points
}

// held is a release that has been at step 2 for a while: the state that the
// others are changes of.
func held() watch.Snapshot {
	left := int64(380)
	return watch.Snapshot{
		At: noon, Service: "order-service", Release: "3f1c2ab90d11", Candidate: "3f1c2ab90d11aa", Stage: ladder.Climbing, Step: 2,
		Outcome: journal.Outcome{
			T: noon, Move: release.Hold, Why: ladder.WhyTime, Weight: weight(5), Stage: ladder.Climbing, Step: 2, Steps: 5, Attempt: 1,
			Verdict: release.Pass, HeldS: 220, HoldS: 600, Share: ladder.Share{Canary: 1203, Stable: 22830}, LeftS: &left,
			Reason:   "held 3 minutes of 10 minutes",
			Verdicts: []journal.Verdict{{Verdict: release.Pass, Counts: true}},
		},
		Next:   "step 3 of 5 when all gates of step 2 have passed",
		Rungs:  rungsOf(1, 5, 10, 30, 100),
		Weight: weight(5), Since: noon.Add(-220 * time.Second), Held: 220 * time.Second,
		Target:  watch.Target{Name: "config API http://127.0.0.1:8080", Weight: weight(5), At: noon},
		Source:  watch.Source{Name: "prometheus http://127.0.0.1:9090", Newest: noon.Add(-30 * time.Second), Settle: 15 * time.Second},
		Decider: watch.Decider{At: noon.Add(-20 * time.Second), Who: "alice@build-7"}, Trips: true, Locks: true,
		Served: 1421, Times: watch.Times{From: noon.Add(-60*time.Minute - 30*time.Second), Span: time.Minute},
		Signals: signals(), Events: happenings(),
	}
}

func rungsOf(pcts ...int64) []watch.Rung {
	out := make([]watch.Rung, len(pcts))
	for i, p := range pcts {
		out[i] = watch.Rung{Weight: weight(p), Hold: 10 * time.Minute, Gates: ladder.TimeGate | ladder.MetricGate}
	}
	return out
}

func signals() []watch.Signal {
	fast, slow := 5*time.Minute, 10*time.Minute
	rows := []watch.Signal{
		{
			Signal: release.Violations, Unit: watch.Count, State: watch.Passing, Value: watch.Known(1), Beside: watch.Known(0.11), Limit: watch.Known(4),
			Line: watch.Known(3), Room: watch.Known(0.75), Samples: 1203, Needed: 381, Canary: ripple(0.5, 0.5, 45), Stable: ripple(0.5, 0.4, 0), Over: fast,
		},
		{
			Signal: release.Cost, Unit: watch.Ratio, State: watch.Passing, Value: watch.Known(1.08), Beside: watch.Known(1), Limit: watch.Known(2),
			Line: watch.Known(2), Room: watch.Known(0.46), Samples: 1203, Needed: 381, Canary: ripple(1.08, 0.05, 45), Stable: make([]watch.Figure, watch.Points),
		},
		{
			Signal: release.P99, Unit: watch.Millis, State: watch.Passing, Value: watch.Known(1840), Beside: watch.Known(1795), Limit: watch.Known(5400),
			Line: watch.Known(5400), Room: watch.Known(0.659), Samples: 1203, Needed: 381, Canary: ripple(1840, 120, 45), Stable: ripple(1795, 90, 0),
		},
		{
			Signal: release.Transfers, Unit: watch.Share, State: watch.Passing, Value: watch.Known(0.0224), Beside: watch.Known(0.0198), Limit: watch.Known(0.06),
			Line: watch.Known(0.06), Room: watch.Known(0.627), Samples: 1203, Needed: 381, Canary: ripple(0.022, 0.006, 45), Stable: ripple(0.02, 0.003, 0), Over: fast,
		},
		{
			Signal: release.SolveRate, Unit: watch.Share, State: watch.Passing, Value: watch.Known(0.931), Beside: watch.Known(0.938), Limit: watch.Known(0.889),
			Line: watch.Known(0.885), Low: true, Room: watch.Known(0.86), Samples: 1180, Needed: 381, Canary: ripple(0.931, 0.012, 45), Stable: ripple(0.938, 0.006, 0), Over: slow,
		},
	}
	for i := range rows {
		rows[i].PointUnit, rows[i].PointLow = rows[i].Unit, rows[i].Low
	}
	return rows
}

func happenings() []watch.Event {
	at := func(m int) time.Time { return noon.Add(-time.Duration(m) * time.Minute) }
	return []watch.Event{
		{At: at(15), Line: 2, Kind: "decide", Tone: watch.Good, Text: "start to 1 %, step 1 of 5, attempt 1: release starts at step 1 of 5"},
		{At: at(15), Line: 3, Kind: "write", Text: "1 % read back at 2026-03-03T11:45:31Z", Detail: []string{"tries: 1"}},
		{At: at(4).Add(20 * time.Second), Line: 15, Kind: "decide", Tone: watch.Good, Text: "advance to 5 %, step 2 of 5, attempt 1: all gates of step 1 passed after 10 minutes"},
		{At: at(4).Add(20 * time.Second), Line: 16, Kind: "write", Text: "5 % read back at 2026-03-03T11:56:50Z"},
	}
}

// tripRecord is the record of a rollback on transfers.
func tripRecord() *journal.Rollback {
	f := release.Finding{Signal: release.Transfers, Value: 0.125, Limit: 0.06, Count: 15, Of: 120, Span: 5 * time.Minute}
	return &journal.Rollback{
		Key: "3f1c2ab90d11/1/rollback/1", Final: true, T: noon.Add(-3 * time.Minute), Service: "order-service", Release: "3f1c2ab90d11aa",
		Stable: "77aa10bb20cc30dd", By: "breaker", Finding: &f, Reason: f.String(), From: noon.Add(-7 * time.Minute), To: noon.Add(-3 * time.Minute),
		Share: weight(5), Step: 2, Attempt: 1, Exposure: release.Exposure{Requests: 1541}, AskedAt: noon.Add(-2 * time.Minute),
		ReadBack: noon.Add(-2*time.Minute + 300*time.Millisecond),
		Hooks:    []journal.Hooked{{Key: "3f1c2ab90d11/1/rollback/1", Hook: "clear-cache", OK: true, Try: 1}},
	}
}

// rolledBack is the release after that.
func rolledBack() watch.Snapshot {
	s := held()
	left := int64(480)
	rec := tripRecord()
	s.Outcome.Why, s.Outcome.Phase, s.Outcome.Weight, s.Outcome.LeftS = ladder.WhyCooldown, release.Open, weight(0), &left
	s.Outcome.Reason, s.Outcome.Verdicts = "cooling down until 2026-03-03T12:08:30Z", nil
	s.Weight, s.Target.Weight, s.Record = weight(0), weight(0), rec
	for i := range s.Signals {
		row := &s.Signals[i]
		row.State, row.Samples, row.Needed = watch.NotJudged, 0, 0
	}
	row := &s.Signals[release.Transfers]
	row.State, row.Value, row.Room, row.Samples = watch.Tripped, watch.Known(0.125), watch.Known(0), 120
	for i := 56; i < watch.Points; i++ {
		row.Canary[i] = watch.Known(0.02 * float64(i-54))
	}
	s.Events = append(s.Events,
		watch.Event{At: noon.Add(-2 * time.Minute), Line: 18, Kind: "decide", Tone: watch.Bad, Text: "roll_back to 0 %, step 2 of 5, attempt 1: " + rec.Reason + " [CLOSED -> OPEN]", Detail: []string{"CLOSED -> OPEN"}},
		watch.Event{At: noon.Add(-2 * time.Minute), Line: 19, Kind: "write", Text: "0 % read back at 2026-03-03T11:58:30Z"},
		watch.Event{At: noon.Add(-2 * time.Minute), Line: 20, Kind: "record", Tone: watch.Bad, Text: "rollback by the breaker at 5 % of traffic, step 2, attempt 1: " + rec.Reason + "; weight 0 read back 2026-03-03T11:58:30Z, exposure 1541 requests", Detail: watch.RecordDetail(rec)},
	)
	return s
}

// state is a name for the golden files and what makes it.
type state struct {
	name string
	make func() model
}

// shown is a model of a live release with this snapshot.
func shown(s watch.Snapshot) model {
	m := liveModel()
	m.snapshot, m.seen = s, true
	return m.settle()
}

// of changes the held release.
func of(change func(s *watch.Snapshot)) func() model {
	return func() model {
		s := held()
		change(&s)
		return shown(s)
	}
}

// down changes the release that was rolled back.
func down(change func(s *watch.Snapshot)) func() model {
	return func() model {
		s := rolledBack()
		change(&s)
		return shown(s)
	}
}

func judge(s *watch.Snapshot, v release.Verdict, row watch.Standing, reason string, why ladder.Why) {
	s.Outcome.Verdict, s.Outcome.Reason, s.Outcome.Why = v, reason, why
	s.Outcome.Verdicts = []journal.Verdict{{Verdict: v, Counts: true}}
	for i := range s.Signals {
		s.Signals[i].State = row
	}
}

// states is every state that the view tells apart.
var states = []state{
	{"holding", of(func(*watch.Snapshot) {})},
	{"not-started", of(func(s *watch.Snapshot) {
		s.Stage, s.Step, s.Weight, s.Target.Weight = ladder.NotStarted, 0, weight(0), weight(0)
		s.Outcome = journal.Outcome{Move: release.Start, Why: ladder.WhyStart, Write: true, Weight: weight(1), Step: 1, Steps: 5, Attempt: 1, Reason: "release starts at step 1 of 5"}
		s.Events, s.Decider, s.Served = nil, watch.Decider{}, 0
		for i := range s.Signals {
			s.Signals[i] = watch.Signal{Signal: s.Signals[i].Signal, Unit: s.Signals[i].Unit, Low: s.Signals[i].Low, PointUnit: s.Signals[i].PointUnit, PointLow: s.Signals[i].PointLow, Limit: s.Signals[i].Limit, Line: s.Signals[i].Line, Canary: make([]watch.Figure, watch.Points), Stable: s.Signals[i].Stable}
		}
	})},
	{"moving", of(func(s *watch.Snapshot) {
		s.Pending = ladder.Pending{Move: release.Advance, Weight: weight(10), Why: ladder.WhyPassed}
		s.Outcome.Move, s.Outcome.Why, s.Outcome.Write, s.Outcome.Weight, s.Outcome.LeftS = release.Advance, ladder.WhyPassed, true, weight(10), nil
		s.Outcome.Reason = "asked for 10 % before (passed), not read back yet"
	})},
	{"moved", of(func(s *watch.Snapshot) {
		s.Step, s.Weight, s.Target.Weight = 3, weight(10), weight(10)
		s.Outcome.Move, s.Outcome.Why, s.Outcome.Weight, s.Outcome.Step, s.Outcome.LeftS = release.Advance, ladder.WhyPassed, weight(10), 3, nil
		s.Outcome.Reason = "all gates of step 2 passed after 10 minutes"
	})},
	{"too-early", of(func(s *watch.Snapshot) {
		judge(s, release.Insufficient, watch.Few, "210 of 381 judged; about 8 more minutes at the present 21 a minute", ladder.WhyInsufficient)
		left := int64(480)
		s.Outcome.HeldS, s.Outcome.LeftS = 600, &left
		for i := range s.Signals {
			s.Signals[i].Samples = 210
		}
	})},
	{"no-data", of(func(s *watch.Snapshot) {
		judge(s, release.NoData, watch.NoData, "no canary traffic seen at this step", ladder.WhyNoData)
		s.Outcome.LeftS, s.Outcome.Share = nil, ladder.Share{}
		for i := range s.Signals {
			r := &s.Signals[i]
			r.Value, r.Room, r.Samples, r.Canary = watch.Figure{}, watch.Figure{}, 0, make([]watch.Figure, watch.Points)
		}
	})},
	{"failing", of(func(s *watch.Snapshot) {
		judge(s, release.Fail, watch.Passing, "cost 2.4 times stable's, limit 2 (1203 requests)", ladder.WhyFailing)
		s.Outcome.LeftS = nil
		s.Signals[release.Cost].State, s.Signals[release.Cost].Value, s.Signals[release.Cost].Room = watch.Failing, watch.Known(2.4), watch.Known(0)
	})},
	{"source-lost", of(func(s *watch.Snapshot) {
		judge(s, release.Error, watch.Unknown, "the source could not be read", ladder.WhySourceFailed)
		s.Outcome.LeftS = nil
		s.Source.Err, s.Source.Newest = "dial tcp 127.0.0.1:9090: connect: connection refused", noon.Add(-2*time.Minute)
		s.Decider.Blind, s.Held = true, 90*time.Second
		s.Outcome.HeldS = 90
	})},
	{"source-lost-here", of(func(s *watch.Snapshot) {
		judge(s, release.Error, watch.Unknown, "the source could not be read", ladder.WhySourceFailed)
		s.Outcome.LeftS, s.Source.Err = nil, "dial tcp 10.0.0.9:9090: i/o timeout"
	})},
	{"windows-stopped", of(func(s *watch.Snapshot) { s.Source.Newest = noon.Add(-9 * time.Minute) })},
	{"target-lost", of(func(s *watch.Snapshot) {
		s.Target.Err, s.Target.At = "GET /v1/weights: 503 Service Unavailable", noon.Add(-3*time.Minute)
		s.Outcome.Why, s.Outcome.LeftS, s.Outcome.Reason = ladder.WhyUnread, nil, "everything has passed, but the target could not be read"
	})},
	{"approval", of(func(s *watch.Snapshot) {
		s.Outcome.Move, s.Outcome.Why, s.Outcome.HeldS, s.Outcome.LeftS = release.AwaitApproval, ladder.WhyApproval, 660, nil
		s.Events, s.Held, s.Since = s.Events[:2], 11*time.Minute, noon.Add(-11*time.Minute)
		s.Outcome.Reason, s.Next = "step 2 waits for a person's approval", "canaryctl approve --release 3f1c2ab90d11 --step 2"
	})},
	{"paused", of(func(s *watch.Snapshot) {
		s.Outcome.Why, s.Outcome.Paused, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyPaused, true, nil, nil
		s.Outcome.Reason, s.Next = "paused by a person", "canaryctl resume"
	})},
	{"frozen", of(func(s *watch.Snapshot) {
		left := int64(3 * 3600)
		s.Outcome.Why, s.Outcome.LeftS, s.Outcome.HeldS, s.Outcome.Reason = ladder.WhyFrozen, &left, 600, "frozen until 2026-03-03T15:00:00Z"
	})},
	{"config-changed", of(func(s *watch.Snapshot) {
		s.Outcome.Why, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyConfigChanged, nil, nil
		s.Outcome.Reason, s.Next = "the configuration has changed since the release started", "canaryctl resume --accept-config"
	})},
	{"drift", of(func(s *watch.Snapshot) {
		s.Target.Weight, s.Target.By = weight(20), "bob"
		s.Outcome.Why, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyDrift, nil, nil
		s.Outcome.Reason = "the weight is not what was last read back: somebody else has moved it"
	})},
	{"mismatch", of(func(s *watch.Snapshot) {
		s.Outcome.Why, s.Outcome.Off, s.Outcome.LeftS, s.Outcome.Share = ladder.WhyMismatch, true, nil, ladder.Share{Canary: 11, Stable: 24022}
		s.Outcome.Reason = "the weight is 5 %, and the canary is seen to serve 0.0458 % of 24033: the gateway does not follow it"
	})},
	{"ready", of(func(s *watch.Snapshot) {
		s.Outcome.Move, s.Outcome.Why, s.Outcome.Write, s.Outcome.Weight, s.Outcome.LeftS = release.Advance, ladder.WhyPassed, true, weight(10), nil
		s.Outcome.Reason = "all gates of step 2 passed after 10 minutes"
	})},
	{"ready-to-probe", down(func(s *watch.Snapshot) {
		s.Outcome.Move, s.Outcome.Why, s.Outcome.Write, s.Outcome.Weight, s.Outcome.LeftS = release.Probe, ladder.WhyProbe, true, weight(1), nil
		s.Outcome.Phase, s.Outcome.Reason = release.HalfOpen, "cooldown of 6 minutes over"
	})},
	{"limit-passed", of(func(s *watch.Snapshot) {
		s.Outcome.Move, s.Outcome.Why, s.Outcome.Write, s.Outcome.Weight, s.Outcome.LeftS = release.RollBackMove, ladder.WhyTrip, true, weight(0), nil
		s.Outcome.Reason, s.Outcome.Phase, s.Outcome.Verdicts = "4 violations in 5 minutes, limit 3 (1203 requests)", release.Open, nil
	})},
	{"swapped", of(func(s *watch.Snapshot) {
		s.Stage, s.Outcome.Stage, s.Step, s.Outcome.Step, s.Swapped = ladder.Completed, ladder.Completed, 5, 5, true
		s.Weight, s.Target.Weight, s.Outcome.Weight = weight(0), weight(0), weight(0)
		s.Outcome.Why, s.Outcome.Reason, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyCompleted, "the release is complete", nil, nil
	})},
	{"other-candidate", of(func(s *watch.Snapshot) {
		s.Outcome.Why, s.Outcome.Reason, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyOtherCandidate, "another candidate's release is not finished", nil, nil
		s.Next = "finish or roll back that release, or canaryctl promote --restart"
	})},
	{"elsewhere", of(func(s *watch.Snapshot) {
		s.Decider = watch.Decider{At: noon.Add(-2 * time.Hour), Elsewhere: true}
		s.Notes = []string{"the release is driven from another directory or machine: what happened there is in the journal there"}
	})},
	{"moved-back", down(func(s *watch.Snapshot) {
		s.Stage, s.Outcome.Stage, s.Outcome.Locked, s.Outcome.Phase = ladder.RolledBack, ladder.RolledBack, true, release.Closed
		s.Outcome.Why, s.Outcome.LeftS, s.Target.Weight, s.Target.By = ladder.WhyDrift, nil, weight(30), "bob"
		s.Outcome.Reason = "the weight is not what was last read back: somebody else has moved it"
	})},
	{"undecided", of(func(s *watch.Snapshot) { s.Decider.At = noon.Add(-220 * time.Second) })},
	{"stale-view", func() model {
		m := shown(held())
		m.now = noon.Add(95 * time.Second)
		return m
	}},
	{"rolling-back", down(func(s *watch.Snapshot) {
		s.Pending = ladder.Pending{Move: release.RollBackMove, Weight: weight(0), Why: ladder.WhyTrip}
		s.Weight, s.Target.Weight, s.Record.ReadBack, s.Record.Final = weight(5), weight(5), time.Time{}, false
		s.Outcome.Move, s.Outcome.Why, s.Outcome.Again, s.Outcome.Write, s.Outcome.LeftS = release.RollBackMove, ladder.WhyTrip, true, true, nil
		s.Target.Err = "GET /v1/weights: 503 Service Unavailable"
		s.Events = s.Events[:len(s.Events)-2]
	})},
	{"rolled-back", down(func(*watch.Snapshot) {})},
	{"on-trial", down(func(s *watch.Snapshot) {
		s.Outcome.Phase, s.Outcome.Why, s.Outcome.LeftS, s.Outcome.Step, s.Step = release.HalfOpen, ladder.WhyProbing, nil, 1, 1
		s.Weight, s.Target.Weight, s.Outcome.Reason = weight(1), weight(1), "probing: 1 of 3 probes done, 1 good"
	})},
	{"locked", down(func(s *watch.Snapshot) {
		s.Outcome.Locked, s.Outcome.Why, s.Outcome.LeftS = true, ladder.WhyLocked, nil
		s.Record.Escalated, s.Record.Locked, s.Outcome.Reason = true, true, "locked until a person clears it"
		f := release.Finding{Signal: release.Probes, Value: 1.0 / 3, Limit: 1, Count: 1, Of: 3}
		s.Record.Finding, s.Record.Reason, s.Record.ReadBack = &f, f.String(), noon.Add(-20*time.Second)
		s.Events = append(s.Events,
			watch.Event{At: noon.Add(-90 * time.Second), Line: 21, Kind: "decide", Tone: watch.Warning, Text: "probe to 1 %, step 1 of 5, attempt 1: cooldown of 30 seconds over"},
			watch.Event{At: noon.Add(-20 * time.Second), Line: 30, Kind: "decide", Tone: watch.Bad, Text: "lock to 0 %, step 1 of 5, attempt 1: " + f.String() + "; locked until a person clears it", Detail: watch.RecordDetail(s.Record)},
			watch.Event{At: noon.Add(-20 * time.Second), Line: 31, Kind: "write", Text: "0 % read back at 2026-03-03T12:00:10Z"})
		s.Signals[release.Transfers].State = watch.NotJudged
		s.Next = `canaryctl resume --clear-lock --reason "..."`
	})},
	{"gate-failed", down(func(s *watch.Snapshot) {
		s.Stage, s.Outcome.Stage, s.Outcome.Locked, s.Outcome.Phase = ladder.Failed, ladder.Failed, true, release.Closed
		s.Outcome.Why, s.Outcome.LeftS, s.Record.By = ladder.WhyFailed, nil, "gate"
	})},
	{"by-hand", down(func(s *watch.Snapshot) {
		s.Stage, s.Outcome.Stage, s.Outcome.Locked, s.Outcome.Phase = ladder.RolledBack, ladder.RolledBack, true, release.Closed
		s.Record.By, s.Record.Who, s.Record.Finding, s.Record.Reason = "person", "alice@laptop", nil, "rolled back by alice@laptop: customers report wrong totals"
		s.Outcome.Why, s.Outcome.LeftS = ladder.WhyFailed, nil
		s.Signals[release.Transfers].State = watch.NotJudged
	})},
	{"complete", of(func(s *watch.Snapshot) {
		s.Stage, s.Outcome.Stage, s.Step, s.Outcome.Step = ladder.Completed, ladder.Completed, 5, 5
		s.Weight, s.Target.Weight, s.Outcome.Weight = weight(100), weight(100), weight(100)
		s.Outcome.Why, s.Outcome.Reason, s.Outcome.LeftS, s.Outcome.Verdicts = ladder.WhyCompleted, "the release is complete", nil, nil
		s.Outcome.Share = ladder.Share{}
	})},
	{"first-look", liveModel},
	{"cannot-look", func() model {
		m := liveModel()
		m.failed = errors.New("journal.jsonl:812: the line's sum is not that of its bytes")
		return m
	}},
	{"look-failed-later", func() model {
		m := shown(held())
		m.failed = errors.New("state.json: permission denied")
		return m
	}},
	{"asking-roll-back", func() model { return pressed(shown(held()), "r", "t", "o", "t", "a", "l", "s") }},
	{"asking-to-stop", func() model {
		m := shown(held())
		m.o.Driving = true
		return pressed(m.allow(), "ctrl+c")
	}},
	{"carried-out", func() model {
		m := shown(held())
		return m.carriedOut(carriedOutMsg{action: Pause, text: "order-service 3f1c2ab90d11 is paused at step 2"})
	}},
	{"refused", func() model {
		m := shown(held())
		return m.carriedOut(carriedOutMsg{action: Approve, err: errors.New("step 2 does not wait for approval (canaryctl status says where the release stands)")})
	}},
	{"unfolded", func() model { return pressed(shown(rolledBack()), "enter") }},
	{"help", func() model { return pressed(shown(held()), "?") }},
	{"wide-names", of(func(s *watch.Snapshot) {
		s.Service = "注文サービス🚀-größe"
		s.Events = append(s.Events, watch.Event{At: noon, Tone: watch.Warning, Kind: "command", Text: "pause by 佐藤@端末: 合計が違うという報告あり、確認中です\x1b[31m\u202e"})
	})},
}

// sizes are the terminals of the golden frames.
var sizes = []struct{ w, h int }{{80, 24}, {120, 40}, {40, 12}}

func (s state) frame(w, h int) string {
	m := s.make()
	m.width, m.height = w, h
	return m.View()
}

func sizeName(w, h int) string { return fmt.Sprintf("%dx%d", w, h) }
