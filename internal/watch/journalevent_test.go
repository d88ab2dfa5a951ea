package watch

import (
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

func entryOf(o journal.Outcome) *journal.Entry {
	return &journal.Entry{N: 7, T: midday, Kind: journal.Decide, Decided: &journal.Decided{Outcome: o}}
}

// TestWhatALineMeansForTheRelease.
func TestWhatALineMeansForTheRelease(t *testing.T) {
	move := func(m release.Move) *journal.Entry { return entryOf(journal.Outcome{Move: m, Event: &journal.Event{}}) }
	turn := func(to release.Phase, why ladder.Why) *journal.Entry {
		return entryOf(journal.Outcome{Why: why, Event: &journal.Event{To: to}})
	}
	word := func(v ladder.Verb) *journal.Entry {
		return &journal.Entry{Kind: journal.Command, Command: &journal.Commanded{Command: ladder.Command{Verb: v, By: "ann"}}}
	}
	wrote := func(w journal.Wrote) *journal.Entry { return &journal.Entry{Kind: journal.Write, Wrote: &w} }
	for _, c := range []struct {
		what  string
		entry *journal.Entry
		want  Tone
	}{
		{"start", move(release.Start), Good},
		{"advance", move(release.Advance), Good},
		{"complete", move(release.Complete), Good},
		{"recovered", turn(release.Closed, ladder.WhyRecovered), Good},
		{"rolled back", move(release.RollBackMove), Bad},
		{"locked", move(release.Lock), Bad},
		{"tripped and held", turn(release.Open, ladder.WhyTrip), Bad},
		{"a gate failed", turn(release.Closed, ladder.WhyGateFailed), Bad},
		{"probe", move(release.Probe), Warning},
		{"on trial", turn(release.HalfOpen, ladder.WhyProbing), Warning},
		{"approval", move(release.AwaitApproval), Warning},
		{"drift", turn(release.Closed, ladder.WhyDrift), Warning},
		{"pause", word(ladder.DoPause), Warning},
		{"rollback by a person", word(ladder.DoRollBack), Bad},
		{"read back", wrote(journal.Wrote{ReadBack: true}), Plain},
		{"an exchange is asked for", wrote(journal.Wrote{Begun: &journal.Exchanged{}}), Plain},
		{"not read back", wrote(journal.Wrote{Error: "503"}), Bad},
		{"somebody else moved", wrote(journal.Wrote{Conflict: true}), Warning},
		{"given up", wrote(journal.Wrote{Conflict: true, GivenUp: true}), Bad},
		{"told", &journal.Entry{Kind: journal.Tell, Told: &journal.Told{OK: true}}, Good},
		{"not told yet", &journal.Entry{Kind: journal.Tell, Told: &journal.Told{Tries: 1}}, Warning},
		{"hook given up", &journal.Entry{Kind: journal.Hook, Hooked: &journal.Hooked{GivenUp: true}}, Bad},
		{"record", &journal.Entry{Kind: journal.Record, Record: &journal.Rollback{By: "gate"}}, Bad},
		{"configuration", &journal.Entry{Kind: journal.Config, Configured: &journal.Configured{}}, Plain},
		{"note", &journal.Entry{Kind: journal.Note, Note: "a"}, Plain},
	} {
		ev, told := EventOf(c.entry)
		if !told || ev.Tone != c.want || ev.Kind != string(c.entry.Kind) || ev.Text == "" {
			t.Errorf("%s: %v, %+v, want tone %d", c.what, told, ev, c.want)
		}
	}
}

// TestAHoldIsNoEvent.
func TestAHoldIsNoEvent(t *testing.T) {
	if ev, told := EventOf(entryOf(journal.Outcome{Move: release.Hold, Reason: "min_hold not over"})); told {
		t.Errorf("%+v", ev)
	}
}

// TestAnEventIsOneLine, of whatever its words have, and knows its place.
func TestAnEventIsOneLine(t *testing.T) {
	ev, told := EventOf(&journal.Entry{N: 7, T: midday, Kind: journal.Command, Command: &journal.Commanded{Command: ladder.Command{
		Verb: ladder.DoPause, By: "ann", Reason: "odd\r\nanswers\n",
	}}})
	if !told || ev.Text != "pause by ann: odd answers" || ev.Line != 7 || !ev.At.Equal(midday) || len(ev.Detail) != 1 || ev.Detail[0] != "reason: odd answers" {
		t.Errorf("%+v", ev)
	}
}

func wantLines(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n"); text != strings.TrimSpace(want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, text, strings.TrimSpace(want))
	}
}

// TestARollbackRecordUnfolds, fact by fact.
func TestARollbackRecordUnfolds(t *testing.T) {
	rec := &journal.Rollback{
		Key: "c1/2/rollback/1", Final: true, T: midday, Service: "order-service", Release: "c1c1c1c1c1c1c1", Stable: "0123456789abcdef", Config: "d1",
		By: "breaker", Finding: &release.Finding{Signal: release.SolveRate, Form: release.Concurrent, Value: 0.8, Limit: 0.8512, Count: 240, Of: 300, Sigmas: 3.09, ControlSolved: 900, ControlJudged: 1000},
		Reason: "240 of 300 solved", From: midday.Add(-30 * time.Minute), To: midday.Add(-time.Minute), Share: release.Weight{Slots: 10, Ring: 100},
		Step: 2, Attempt: 2, Escalated: true, Locked: true, Exposure: release.Exposure{Requests: 2600, Users: new(int64(41))},
		AskedAt: midday.Add(time.Second), ReadBack: midday.Add(2345678 * time.Microsecond),
		Hooks: []journal.Hooked{
			{Hook: "page", OK: true, Try: 1}, {Hook: "ticket", OK: true, Try: 3}, {Hook: "cache", Try: 2, Error: "503"}, {Hook: "mail", GivenUp: true, Try: 5, Error: "gone"},
		},
	}
	wantLines(t, "a breaker's", RecordDetail(rec), `
tripped at: 2026-03-02T12:00:00Z
by: the breaker
reason: 240 of 300 solved
signal: solve_rate, control
value against limit: 80 % against 85.12 %
solved: 240 of 300
stable in the same windows: 900 of 1000 solved
limit set by noise: 3.09 sigma
windows: from that of 2026-03-02T11:30:00Z to that of 2026-03-02T11:59:00Z
share at that moment: 10 %
step: 2, attempt 2
requests exposed: 2600, of 41 users
asked for: 2026-03-02T12:00:01Z
read back as 0: 2026-03-02T12:00:02Z, after 1.346s
escalated: the probes failed: a person is called
locked: until a person clears it
returns to: stable 0123456789ab
hook page: ran
hook ticket: ran, at try 3
hook cache: try 2 failed: 503
hook mail: given up after 5 tries: gone
service: order-service
release: c1c1c1c1c1c1c1
configuration: d1
key: c1/2/rollback/1`)
	wantLines(t, "a person's", RecordDetail(&journal.Rollback{
		Key: "k", T: midday, By: "person", Who: "ann@host", Why: "odd answers", Reason: "rolled back by ann@host: odd answers", AskedAt: midday, Step: 1, Attempt: 1,
	}), `
commanded at: 2026-03-02T12:00:00Z
by: a person
who: ann@host
why: odd answers
reason: rolled back by ann@host: odd answers
share at that moment: 0 %
step: 1, attempt 1
requests exposed: 0 so far
asked for: 2026-03-02T12:00:00Z
read back as 0: not yet
key: k`)
	wantLines(t, "a replay's", RecordDetail(&journal.Rollback{Final: true, T: midday, By: "gate", Reason: "r", Step: 1, Attempt: 1}), `
tripped at: 2026-03-02T12:00:00Z
by: a gate
reason: r
share at that moment: 0 %
step: 1, attempt 1
requests exposed: 0`)
}

// TestFindingsInTheirUnits.
func TestFindingsInTheirUnits(t *testing.T) {
	for _, c := range []struct {
		finding release.Finding
		want    string
	}{
		{release.Finding{Signal: release.Violations, Value: 8, Limit: 3, Count: 8, Of: 600}, "signal: violations\nvalue against limit: 8 against 3\nviolations in requests: 8 of 600"},
		{release.Finding{Signal: release.Cost, Value: 1.62, Limit: 1.5, Of: 600}, "signal: cost\nvalue against limit: 1.62 times stable's against 1.5 times stable's\nrequests: 600"},
		{release.Finding{Signal: release.P99, Value: 2400, Limit: 2000, Of: 600}, "signal: p99\nvalue against limit: 2400 ms against 2000 ms\nrequests: 600"},
		{release.Finding{Signal: release.P99, Form: release.ByCount, Value: 0.04, Limit: 0.03, Count: 24, Of: 600}, "signal: p99, count\nvalue against limit: 4 % against 3 %\nrequests: 24 of 600"},
		{release.Finding{Signal: release.Transfers, Value: 0.0625, Limit: 0.06, Count: 3, Of: 48}, "signal: transfers\nvalue against limit: 6.25 % against 6 %\nhanded to a human: 3 of 48"},
		{release.Finding{Signal: release.SolveRate, Form: release.CumulativeSum, Value: 5.25, Limit: 4.5, Count: 240, Of: 300}, "signal: solve_rate, cusum\nvalue against limit: 5.25 against 4.5\nsolved: 240 of 300"},
		{release.Finding{Signal: release.SolveRate, Form: release.Fitted, Limit: -0.1, Of: 2}, "signal: solve_rate, fitted\nvalue against limit: 0 % against none that so few requests can reach\nsolved: 0 of 2"},
		{release.Finding{Signal: release.Cooldown}, "signal: cooldown"},
		{release.Finding{Signal: release.Probes, Value: 0.6, Limit: 0.8, Count: 3, Of: 5}, "signal: probes\nvalue against limit: 60 % against 80 %\nprobes good: 3 of 5"},
	} {
		var f facts
		f.finding(&c.finding)
		wantLines(t, c.finding.Signal.String(), f, c.want)
	}
}

// TestATransitionAndAWriteUnfold.
func TestATransitionAndAWriteUnfold(t *testing.T) {
	ev, _ := EventOf(entryOf(journal.Outcome{Move: release.RollBackMove, Event: &journal.Event{
		T: midday, From: release.Closed, To: release.Open, Finding: release.Finding{Signal: release.Violations, Value: 8, Limit: 3, Count: 8, Of: 600}, First: midday.Add(-time.Minute), Last: midday.Add(-time.Minute), Locked: true,
	}}))
	wantLines(t, "a transition", ev.Detail, `
breaker: CLOSED -> OPEN at 2026-03-02T12:00:00Z
signal: violations
value against limit: 8 against 3
violations in requests: 8 of 600
window: the one of 2026-03-02T11:59:00Z
locked: until a person clears it`)
	ev, _ = EventOf(&journal.Entry{Kind: journal.Write, Wrote: &journal.Wrote{
		Move: release.Advance, To: release.Weight{Slots: 10, Ring: 100}, Target: "file weights.json", Tries: 3, Error: "503\nbusy", Conflict: true,
		Held: journal.Observed{Weight: release.Weight{Slots: 1, Ring: 100}, At: midday, Known: true},
	}})
	wantLines(t, "a write", ev.Detail, `
target: file weights.json
tries: 3
error: 503 busy
it holds: 1 %, read at 2026-03-02T12:00:00Z
conflict: somebody else moved it`)
}
