package journal_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

var t0 = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func pct(n int64) release.Weight { return release.Weight{Slots: n, Ring: 100} }

// kinds returns one entry of every kind, each with every field that it may have.
func kinds() []*journal.Entry {
	finding := release.Finding{Signal: release.Transfers, Value: 0.0625, Limit: 0.06, Count: 3, Of: 48}
	out := journal.Outcome{
		T: t0, Move: release.RollBackMove, Why: ladder.WhyTrip, Write: true, Again: true, Weight: pct(0), Stage: ladder.Climbing,
		Step: 3, Steps: 5, Attempt: 2, Phase: release.Open, Locked: true, Paused: true, Verdict: release.Fail,
		Verdicts: []journal.Verdict{{Finding: finding, Verdict: release.Fail, Needed: 200, Counts: true, Latched: true}},
		HeldS:    600, HoldS: 7200, Overdue: true, Off: true, Share: ladder.Share{Canary: 5, Stable: 95, Users: true},
		Reason: `3 of 48 handed over in 5 minutes (6.25 %), limit 6 % <&> "quoted" \ ` + "\u2028 ü 漢", LeftS: new(int64(0)),
		Event: &journal.Event{T: t0, From: release.Closed, To: release.Open, Escalated: true, Locked: true, Finding: finding, First: t0.Add(-time.Minute), Last: t0},
	}
	solved := int64(0)
	hooked := journal.Hooked{Key: "r/1", Hook: "page", OK: true, Try: 2, GivenUp: true, Error: "503"}
	observed := journal.Observed{Weight: pct(10), At: t0, Known: true}
	return []*journal.Entry{
		{T: t0, Kind: journal.Config, By: "ann@ci", Token: 1<<63 + 1, Configured: &journal.Configured{
			ID: "a1", Digest: "d1", Candidate: "c1", Stable: "s1", Versions: map[string]json.RawMessage{"s1": json.RawMessage(`{"model_id":"m"}`), "c1": json.RawMessage(`{}`)},
			Text: "canary:\n  target_service: order-service # <&>\n", Program: "1.0.0",
		}},
		{T: t0.Add(123456789), Kind: journal.Decide, Decided: &journal.Decided{
			Now: t0, Config: "a1", Observed: observed, SourceFailed: true, SourceError: "no answer", Unasked: true, More: true, TargetError: "no", MovedBy: "bob",
			Canary: []journal.Window{{T: t0, SpanS: 60, Total: 30, Judged: new(int64(30)), Solved: &solved}}, Stable: []journal.Window{{T: t0, SpanS: 60}},
			Until: t0, Newest: t0, Outcome: out, State: "s",
		}},
		{T: t0, Kind: journal.Command, Command: &journal.Commanded{
			Command: ladder.Command{Verb: ladder.DoApprove, At: t0, By: "ann", Reason: "looked", Attempt: 1, Step: 2, Digest: "d1", Weight: new(pct(1))},
			Config:  "a1", Outcome: out, State: "s",
		}},
		{T: t0, Kind: journal.Write, Wrote: &journal.Wrote{
			Move: release.Advance, To: pct(10), Key: "k", ReadBack: true, At: t0, Held: observed, Tries: 3, Error: "refused", Conflict: true, Abandoned: true, Exchange: true,
			Kept: true, GivenUp: true, Begun: &journal.Exchanged{From: "s1", To: "c1"},
		}},
		{T: t0, Kind: journal.Record, Record: &journal.Rollback{
			Key: "k", Final: true, T: t0, Service: "order-service", Release: "c1", Stable: "s1", Config: "d1", By: "breaker", Who: "ann", Why: "because",
			Finding: &finding, Reason: "r", From: t0, To: t0, Share: pct(10), Step: 3, Attempt: 2, Escalated: true, Locked: true,
			Exposure: release.Exposure{Requests: 2600, Users: new(int64(41))}, AskedAt: t0, ReadBack: t0, Hooks: []journal.Hooked{hooked},
		}},
		{T: t0, Kind: journal.Record, Record: &journal.Rollback{Key: "k", T: t0, By: "person", AskedAt: t0}}, // no finding
		{T: t0, Kind: journal.Tell, Told: &journal.Told{Key: "k", Channel: "slack", OK: true, Tries: 1, GivenUp: true, Error: "e"}},
		{T: t0, Kind: journal.Hook, Hooked: &hooked},
		{T: t0, Kind: journal.Adopt, Adopted: json.RawMessage(`{"schema":1,"big":9007199254740993}`)},
		{T: t0, Kind: journal.Note, Note: "a line\nwith another, a NUL \x00 and a tab\t"},
	}
}

// written appends entries to a new journal and returns its path.
func written(t testing.TB, entries ...*journal.Entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	appendTo(t, path, entries...)
	return path
}

func appendTo(t testing.TB, path string, entries ...*journal.Entry) {
	t.Helper()
	j := open(t, path)
	for _, e := range entries {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a journal until the test ends.
func open(t testing.TB, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// readFrom reads entries and the heads behind them.
func readFrom(path string, from journal.Head) (entries []*journal.Entry, heads []journal.Head, err error) {
	err = journal.Read(context.Background(), path, from, func(e *journal.Entry, at journal.Head) error {
		entries, heads = append(entries, e), append(heads, at)
		return nil
	})
	return entries, heads, err
}

func load(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
