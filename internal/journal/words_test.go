package journal_test

import (
	"testing"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestAnEntryInWords.
func TestAnEntryInWords(t *testing.T) {
	held := journal.Outcome{Move: release.Hold, Weight: pct(1), Step: 1, Steps: 3, Attempt: 1, Reason: "min_hold not over"}
	moved := held
	moved.Move, moved.Weight, moved.Step = release.Advance, pct(10), 2
	closed := held
	closed.Event = &journal.Event{From: release.HalfOpen, To: release.Closed}
	hooked := []journal.Hooked{{Hook: "page", OK: true}}
	record := journal.Rollback{By: "gate", Share: pct(10), Step: 2, Attempt: 1, Reason: "slow", ReadBack: t0, Exposure: release.Exposure{Requests: 26}}
	again := record
	again.Hooks = hooked
	final := again
	final.Final = true
	const recorded = "rollback by a gate at 10 % of traffic, step 2, attempt 1: slow; weight 0 read back 2026-03-02T10:00:00Z, exposure 26 requests"
	for _, c := range []struct {
		what      string
		entry     journal.Entry
		text, all string // all "": as text
	}{
		{"a hold", journal.Entry{Kind: journal.Decide, Decided: &journal.Decided{Outcome: held}}, "", "hold at 1 %, step 1 of 3, attempt 1: min_hold not over"},
		{"a step", journal.Entry{Kind: journal.Decide, Decided: &journal.Decided{Outcome: moved}}, "advance to 10 %, step 2 of 3, attempt 1: min_hold not over", ""},
		{"a transition", journal.Entry{Kind: journal.Decide, Decided: &journal.Decided{Outcome: closed}}, "hold at 1 %, step 1 of 3, attempt 1: min_hold not over [HALF_OPEN -> CLOSED]", ""},
		{"a write", journal.Entry{Kind: journal.Write, Wrote: &journal.Wrote{Move: release.Start, To: pct(1), ReadBack: true, At: t0, Tries: 2}}, "1 % read back at 2026-03-02T10:00:00Z after 2 tries", ""},
		{"a write that failed", journal.Entry{Kind: journal.Write, Wrote: &journal.Wrote{Exchange: true, Tries: 1, Error: "503", GivenUp: true}}, "the exchange of the two versions NOT read back after 1 tries: 503; given up", ""},
		{"a record", journal.Entry{Kind: journal.Record, Record: &record}, recorded + " so far", ""},
		{"a record with hooks", journal.Entry{Kind: journal.Record, Record: &again}, "", recorded + " so far"},
		{"a final record", journal.Entry{Kind: journal.Record, Record: &final}, recorded, ""},
		{"a message", journal.Entry{Kind: journal.Tell, Told: &journal.Told{Channel: "slack", Key: "k", OK: true, Tries: 1}}, "told slack (k)", ""},
		{"a hook", journal.Entry{Kind: journal.Hook, Hooked: &journal.Hooked{Hook: "page", Try: 2, Error: "503"}}, "hook page: try 2 failed: 503", ""},
		{"a note of two lines", journal.Entry{Kind: journal.Note, Note: "a\nb"}, "a\nb", ""},
		{"a kind of later", journal.Entry{Kind: "later"}, "", ""},
	} {
		if got := c.entry.Text(false); got != c.text {
			t.Errorf("%s: %q, want %q", c.what, got, c.text)
		}
		want := c.all
		if want == "" {
			want = c.text
		}
		if got := c.entry.Text(true); got != want {
			t.Errorf("%s, all: %q, want %q", c.what, got, want)
		}
	}
}
