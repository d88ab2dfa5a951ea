package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// shots are a feed of what was made ready: a snapshot, or an error.
type shots struct {
	shots []any
	end   context.CancelFunc // after the last of them
}

// Next implements [tui.Feed].
func (f *shots) Next(ctx context.Context) (watch.Snapshot, error) {
	if len(f.shots) == 0 {
		f.end()
		return watch.Snapshot{}, ctx.Err()
	}
	next := f.shots[0]
	f.shots = f.shots[1:]
	if err, failed := next.(error); failed {
		return watch.Snapshot{}, err
	}
	return next.(watch.Snapshot), nil
}

// held is a release at a step, with notes.
func held(step int, notes ...string) watch.Snapshot {
	return watch.Snapshot{
		At: time.Date(2026, 3, 2, 12, step, 0, 0, time.UTC), Step: step, Stage: ladder.Climbing, Notes: notes,
		Outcome: journal.Outcome{Move: release.Hold, Why: ladder.WhyTime, Steps: 3, Reason: "held\x1b[2J"},
		Weight:  release.Weight{Slots: int64(step), Ring: 100}, Decider: watch.Decider{At: time.Date(2026, 3, 2, 12, step, 0, 0, time.UTC)},
	}
}

func TestLinesOfAFeed(t *testing.T) {
	failed := errors.New("disk away")
	broken := &journal.CorruptError{Path: "journal.jsonl", Line: 3}
	for _, tt := range []struct {
		name     string
		shots    []any
		out, err []string
		code     ExitCode // 0: until it is interrupted
	}{
		{
			name:  "a line for each change, and each note once whatever its figures",
			shots: []any{held(1, "4 rows have no time"), held(1, "5 rows have no time"), held(2)},
			out: []string{
				"2026-03-02T12:01:00Z  hold           step 1 of 3  1 %  CLOSED     held\uFFFD[2J",
				"2026-03-02T12:02:00Z  hold           step 2 of 3  2 %  CLOSED     held\uFFFD[2J",
			},
			err: []string{"canaryctl: 4 rows have no time"},
		},
		{
			name:  "what fails is said once until it is over",
			shots: []any{failed, failed, held(1), failed},
			out:   []string{"2026-03-02T12:01:00Z  hold           step 1 of 3  1 %  CLOSED     held\uFFFD[2J"},
			err:   []string{"canaryctl: warning: disk away", "canaryctl: warning: disk away"},
		},
		{
			name:  "a journal that cannot be trusted ends it",
			shots: []any{held(1), broken},
			out:   []string{"2026-03-02T12:01:00Z  hold           step 1 of 3  1 %  CLOSED     held\uFFFD[2J"},
			code:  ExitFailed,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out, said bytes.Buffer
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				app := &App{Stdout: &out, Stderr: &said}
				err := app.lines(ctx, &shots{tt.shots, cancel})
				if interrupted := errors.Is(err, context.Canceled); interrupted != (tt.code == 0) || !interrupted && codeOf(err) != tt.code {
					t.Errorf("it ends with %v", err)
				}
				if diff := cmp.Diff(tt.out, linesOf(out.String())); diff != "" {
					t.Errorf("stdout (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.err, linesOf(said.String())); diff != "" {
					t.Errorf("stderr (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// closed is a pipe that nobody reads.
type closed struct{}

// Write implements [io.Writer].
func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestNobodyReadsTheLines(t *testing.T) {
	app := &App{Stdout: closed{}, Stderr: &bytes.Buffer{}}
	err := app.lines(t.Context(), &shots{shots: []any{held(1)}})
	if code := app.report(err); code != ExitOK {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestAPanicOfTheLoopWaitsForTheTerminal(t *testing.T) {
	if d := (&running{}).driven(t.Context()); !strings.Contains(d.broken, "nil pointer") || !strings.Contains(d.broken, "run.go") {
		t.Errorf("it came to %+v", d)
	}
}
