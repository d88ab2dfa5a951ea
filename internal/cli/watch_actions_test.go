package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// look is the release as a person is shown it.
func (w *watched) look() *watch.Snapshot {
	w.t.Helper()
	feed, err := w.app.feed(w.t.Context(), "watch")
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := feed.Next(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return &s
}

// want checks what an action came to: a line that begins so, or an error.
func (w *watched) want(h *hands, a tui.Action, shown *watch.Snapshot, reason, line, refusal string) {
	w.t.Helper()
	w.out.Reset()
	w.err.Reset()
	got, err := h.Do(a, shown, reason)
	switch {
	case refusal == "" && (err != nil || !strings.HasPrefix(got, line)):
		w.t.Errorf("action %d: %q, %v; want %q", a, got, err, line)
	case refusal != "" && (err == nil || got != "" || !strings.Contains(err.Error(), refusal)):
		w.t.Errorf("action %d: %q, %v; want the error %q", a, got, err, refusal)
	}
	if printed := w.out.String() + w.err.String(); printed != "" {
		w.t.Errorf("action %d: printed under the screen:\n%s", a, printed)
	}
}

// promote expects an exit code.
func (w *watched) promote(want ExitCode) {
	w.t.Helper()
	if code, said := w.give("promote"); code != want {
		w.t.Fatalf("promote: exit code %d, want %d:\n%s", code, want, said)
	}
}

func TestActionsAreTheCommands(t *testing.T) {
	w := newWatched(t, 60, "time, metric")
	h := &hands{w.app, t.Context(), "watch"}
	w.want(h, tui.Pause, w.look(), "", "", "no release is under way; canaryctl status says where the release stands")
	w.want(h, tui.RollBack, w.look(), "", "rollback: nothing to roll back: the weight was read as 0", "")

	w.promote(ExitOK)
	w.want(h, tui.Pause, w.look(), "review", "pause: step 1 of 2 at 10 %: paused by ", "")
	w.want(h, tui.Pause, w.look(), "review", "", "the release is paused already; canaryctl status says where the release stands")
	if s := w.look(); !s.Outcome.Paused {
		t.Errorf("the release is not paused: %s", s.Outcome.Reason)
	}
	w.want(h, tui.Resume, w.look(), "", "resume: step 1 of 2 at 10 %: resumed by ", "")
	w.want(h, tui.Approve, w.look(), "", "", "its other gates have not passed; it says: held ")

	ctx, signal := context.WithCancel(t.Context())
	signal() // it came after the person had confirmed
	h = &hands{w.app, ctx, "watch"}
	line, err := h.Do(tui.RollBack, w.look(), "wrong totals")
	if err != nil || !strings.HasPrefix(line, "rollback: step 1 of 2 at 0 %: rolled back by ") || !strings.Contains(line, "wrong totals") {
		t.Errorf("rollback after a signal: %q, %v", line, err)
	}
	if b, err := os.ReadFile("weights.json"); err != nil || !strings.Contains(string(b), `"canary":{"weight":0}`) {
		t.Errorf("the target holds %s, %v", b, err)
	}
	_, history := w.give("history")
	for _, said := range []string{": review\n", "resume by ", ": given in canaryctl watch\n", ": wrong totals"} {
		if !strings.Contains(history, said) {
			t.Errorf("history does not say %q:\n%s", said, history)
		}
	}
}

func TestAnApprovalIsForWhatWasShown(t *testing.T) {
	w := newWatched(t, 0, "time, approval")
	w.promote(ExitOK)
	w.promote(ExitApproval)
	h := &hands{w.app, t.Context(), "watch"}
	shown := *w.look()
	another, later, before, changed := shown, shown, shown, shown
	another.Release, later.Step, changed.Digest = "000000000000", 2, "of another configuration"
	before.Outcome.Attempt = 7
	w.want(h, tui.Approve, &before, "", "", "the release is in attempt 1, not 7")
	w.want(h, tui.Approve, &changed, "", "", "another configuration than the one that was shown")
	w.want(h, tui.Approve, &later, "", "", "the release is at step 1, not 2")
	w.want(h, tui.Approve, &another, "", "", "not 000000000000")
	w.promote(ExitApproval)
	w.want(h, tui.Approve, &shown, "transcripts read", "approve: step 1 of 2 at 10 %: approved by ", "")
	w.promote(ExitOK)
}

func TestAnActionSaysWhatKeepsItFromItsWork(t *testing.T) {
	w := newWatched(t, 60, "time, metric")
	w.promote(ExitOK)
	shown := w.look()
	w.put("canary.yaml", "canary: 7\n")
	w.want(&hands{w.app, t.Context(), "watch"}, tui.Pause, shown, "", "", "canary.yaml:1")
}
