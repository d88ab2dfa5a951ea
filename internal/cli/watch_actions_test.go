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
	got, err := h.Do(w.t.Context(), a, shown, reason)
	switch {
	case refusal == "" && (err != nil || !strings.HasPrefix(got, line)):
		w.t.Errorf("%s: %q, %v; want %q", actionNames[a], got, err, line)
	case refusal != "" && (err == nil || got != "" || !strings.Contains(err.Error(), refusal)):
		w.t.Errorf("%s: %q, %v; want the error %q", actionNames[a], got, err, refusal)
	}
	if printed := w.out.String() + w.err.String(); printed != "" {
		w.t.Errorf("%s: printed under the screen:\n%s", actionNames[a], printed)
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
	h := newHands(t.Context(), w.app)
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

	gone, leave := context.WithCancel(t.Context())
	leave() // the person pressed q right after
	line, err := h.Do(gone, tui.RollBack, w.look(), "wrong totals")
	if err != nil || !strings.HasPrefix(line, "rollback: step 1 of 2 at 0 %: rolled back by ") || !strings.Contains(line, "wrong totals") {
		t.Errorf("rollback after the view is gone: %q, %v", line, err)
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
	h := newHands(t.Context(), w.app)
	shown := *w.look()
	another, later := shown, shown
	another.Release, later.Step = "000000000000", 2
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
	w.want(newHands(t.Context(), w.app), tui.Pause, shown, "", "", "canary.yaml:1")
}

// said tells each write to whoever waits for it.
type said chan string

// Write implements [io.Writer].
func (c said) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}

func TestWhatWasConfirmedIsFinishedBeforeTheEnd(t *testing.T) {
	lines := make(said)
	h := newHands(t.Context(), &App{Stderr: lines})
	h.finish() // nothing is under way: it says nothing
	h.begin(tui.RollBack)
	over := make(chan struct{})
	go func() {
		h.finish()
		close(over)
	}()
	if line := <-lines; line != "canaryctl: finishing the rollback that was confirmed\n" {
		t.Errorf("it says %q", line)
	}
	select {
	case <-over:
		t.Error("it did not wait")
	default:
	}
	h.last = "rollback: done"
	h.end(tui.RollBack)
	if line := <-lines; line != "canaryctl: rollback: done\n" {
		t.Errorf("it says %q", line)
	}
	<-over
}
