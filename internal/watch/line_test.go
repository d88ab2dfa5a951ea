package watch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// climbing is a healthy release at step 2 of 3, at noon.
func climbing() Snapshot {
	return Snapshot{
		At: noon, Service: "order-service", Release: "3f1c2ab90d11", Step: 2, Stage: ladder.Climbing,
		Outcome: journal.Outcome{
			Move: release.Hold, Why: ladder.WhyTime, Stage: ladder.Climbing, Step: 2, Steps: 3, Attempt: 1, Reason: "held 5 minutes of 1 hour",
		},
		Rungs:  []Rung{{Weight: percent(1)}, {Weight: percent(5)}, {Weight: percent(100)}},
		Weight: percent(5), Since: noon.Add(-5 * time.Minute),
		Target:  Target{Name: "file weights.json", Weight: percent(5), At: noon},
		Source:  Source{Name: "prometheus", Newest: noon.Add(-time.Minute), Settle: time.Minute},
		Decider: Decider{At: noon, Who: "ann@ops"}, Times: Times{Span: time.Minute},
		Events: []Event{{At: noon.Add(-5 * time.Minute), Line: 7, Kind: "write", Text: "5 % read back"}},
	}
}

func percent(n int64) release.Weight { return release.Weight{Slots: n, Ring: 100} }

func TestLinesSayWhatHasChanged(t *testing.T) {
	for _, tt := range []struct {
		name string
		was  func(*Snapshot) // nil: the first look
		is   func(*Snapshot)
		want []string
	}{
		{
			name: "the first look says where it stands and nothing of the past",
			want: []string{"2026-03-02T12:00:00Z  hold           step 2 of 3  5 %  CLOSED     held 5 minutes of 1 hour"},
		},
		{
			name: "a longer hold is no change",
			was:  func(*Snapshot) {},
			is: func(s *Snapshot) {
				s.Outcome.Reason, s.Outcome.HeldS, s.Served = "held 6 minutes of 1 hour", 360, 99
			},
		},
		{
			name: "an event behind those that were there",
			was:  func(*Snapshot) {},
			is: func(s *Snapshot) {
				s.Events = append(s.Events, Event{At: noon, Line: 8, Kind: "tell", Text: "told slack\n(started)"})
			},
			want: []string{"2026-03-02T12:00:00Z  tell           told slack (started)"},
		},
		{
			name: "events of which those before have gone from the tail",
			was:  func(*Snapshot) {},
			is:   func(s *Snapshot) { s.Events = []Event{{At: noon, Line: 300, Kind: "note", Text: "a note"}} },
			want: []string{"2026-03-02T12:00:00Z  note           a note"},
		},
		{
			name: "a decision that the line of where it stands says is not said twice",
			was:  func(*Snapshot) {},
			is: func(s *Snapshot) {
				s.Outcome.Move, s.Outcome.Phase, s.Outcome.Reason, s.Weight = release.RollBackMove, release.Open, "4 violations", percent(0)
				s.Events = append(s.Events, Event{At: noon, Line: 8, Kind: "decide", Text: "roll_back to 0 %: 4 violations [CLOSED -> OPEN]"})
			},
			want: []string{"2026-03-02T12:00:00Z  roll_back      step 2 of 3  0 %  OPEN       4 violations"},
		},
		{
			name: "a decision whose write is not read back yet is said alone",
			was:  func(*Snapshot) {},
			is: func(s *Snapshot) {
				s.Outcome.Move, s.Outcome.Write, s.Outcome.Reason = release.Advance, true, "all gates of step 2 have passed"
				s.Pending = ladder.Pending{Move: release.Advance, Weight: percent(100)}
				s.Events = append(s.Events, Event{At: noon, Line: 8, Kind: "decide", Text: "advance to 100 %, step 3 of 3: all gates of step 2 have passed"})
			},
			want: []string{"2026-03-02T12:00:00Z  decide         advance to 100 %, step 3 of 3: all gates of step 2 have passed"},
		},
		{
			name: "a person's word is said with theirs",
			was:  func(*Snapshot) {},
			is: func(s *Snapshot) {
				s.Outcome.Paused, s.Outcome.Reason = true, "pause by ann@ops"
				s.Events = append(s.Events, Event{At: noon, Line: 8, Kind: "command", Text: "pause by ann@ops: review"})
			},
			want: []string{"2026-03-02T12:00:00Z  command        pause by ann@ops: review"},
		},
		{
			name: "what somebody who decides is about to do is said when it is done",
			was:  func(*Snapshot) {},
			is:   func(s *Snapshot) { s.Outcome.Move, s.Outcome.Write = release.Advance, true },
		},
		{
			name: "and that nobody does it, when nobody decides",
			was:  func(s *Snapshot) { s.Outcome.Move, s.Outcome.Write = release.Advance, true },
			is: func(s *Snapshot) {
				s.Outcome.Move, s.Outcome.Write, s.Outcome.Reason = release.Advance, true, "all gates of step 2 have passed"
				s.Decider.At, s.Source.Newest = noon.Add(-time.Hour), noon
			},
			want: []string{
				"2026-03-02T12:00:00Z  would advance  step 2 of 3  5 %  CLOSED     all gates of step 2 have passed",
				"2026-03-02T12:00:00Z  undecided      nobody has decided anything since 2026-03-02T11:00:00Z, and 5 % is on the canary",
			},
		},
		{
			name: "nobody has to decide about a complete release",
			was:  func(s *Snapshot) { s.Stage = ladder.Completed },
			is:   func(s *Snapshot) { s.Stage, s.Decider.At = ladder.Completed, noon.Add(-time.Hour) },
		},
		{
			name: "somebody decides again",
			was:  func(s *Snapshot) { s.Decider.At = noon.Add(-time.Hour) },
			want: []string{"2026-03-02T12:00:00Z  decided        decided again by ann@ops"},
		},
		{
			name: "the source is lost, and how old its newest window is",
			was:  func(*Snapshot) {},
			is:   func(s *Snapshot) { s.Source.Err, s.Source.Newest = "connection refused", noon.Add(-12*time.Minute) },
			want: []string{"2026-03-02T12:00:00Z  source_lost    prometheus: connection refused, newest window 12 minutes old"},
		},
		{
			name: "the source is back",
			was:  func(s *Snapshot) { s.Source.Err = "connection refused" },
			want: []string{"2026-03-02T12:00:00Z  source_back    prometheus, newest window 1 minute old"},
		},
		{
			name: "a source that answers without new windows",
			was:  func(*Snapshot) {},
			is:   func(s *Snapshot) { s.Source.Newest = noon.Add(-20 * time.Minute) },
			want: []string{"2026-03-02T12:00:00Z  no_window      prometheus, newest window 20 minutes old"},
		},
		{
			name: "the target cannot be read",
			was:  func(*Snapshot) {},
			is:   func(s *Snapshot) { s.Target.Err = "no such file" },
			want: []string{"2026-03-02T12:00:00Z  target_unread  file weights.json: no such file"},
		},
		{
			name: "the target can be read again",
			was:  func(s *Snapshot) { s.Target.Err = "no such file" },
			want: []string{"2026-03-02T12:00:00Z  target_read    file weights.json holds 5 %"},
		},
		{
			name: "a share that is not the weight",
			was:  func(*Snapshot) {},
			is: func(s *Snapshot) {
				s.Outcome.Off, s.Outcome.Share = true, ladder.Share{Canary: 300, Stable: 700}
			},
			want: []string{"2026-03-02T12:00:00Z  share_mismatch the gateway does not follow the weight of 5 %: the canary serves 30 % of 1000 requests"},
		},
		{
			name: "before a release",
			is: func(s *Snapshot) {
				*s = Snapshot{
					At: noon, Rungs: s.Rungs, Outcome: journal.Outcome{Move: release.Start, Why: ladder.WhyStart, Write: true, Steps: 3, Step: 1, Weight: percent(1)},
					Source: s.Source, Times: s.Times,
				}
			},
			want: []string{"2026-03-02T12:00:00Z  not_started    step 0 of 3  0 %  CLOSED     step 1 of 3 at 1 %, as soon as somebody starts it; canaryctl run (or promote) starts it"},
		},
		{
			name: "a replay has no present that could be lost, and its past is new",
			is: func(s *Snapshot) {
				s.Replay, s.Decider.At, s.Source = "scenario-a", time.Time{}, Source{}
			},
			want: []string{
				"2026-03-02T11:55:00Z  write          5 % read back",
				"2026-03-02T12:00:00Z  hold           step 2 of 3  5 %  CLOSED     held 5 minutes of 1 hour",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := climbing()
			if tt.is != nil {
				tt.is(&now)
			}
			var prev *Snapshot
			if tt.was != nil {
				was := climbing()
				tt.was(&was)
				prev = &was
			}
			if diff := cmp.Diff(tt.want, Lines(prev, &now)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if again := Lines(&now, &now); len(again) != 0 {
				t.Errorf("a snapshot against itself gives %q", again)
			}
		})
	}
}

func TestLinesAreLines(t *testing.T) {
	s := climbing()
	s.Outcome.Reason, s.Target.Err = "two\nlines", "and\r\nmore"
	for _, l := range Lines(nil, &s) {
		if strings.ContainsAny(l, "\r\n") {
			t.Errorf("%q is not one line", l)
		}
	}
}
