package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// hands do what a person has confirmed in the view, each through the code of the
// command of that name and with a wiring of its own, as if it had been given in
// another terminal. They implement [tui.Actions].
type hands struct {
	app     *App
	ctx     context.Context // the command's: the view may be gone before they are done
	command string          // that the view is of, for reasons that nobody gave
}

var _ tui.Actions = (*hands)(nil)

// grace is how long after a signal what was confirmed may still take.
const grace = 20 * time.Second

// Do implements [tui.Actions].
func (h *hands) Do(a tui.Action, shown *watch.Snapshot, reason string) (string, error) {
	if reason == "" {
		reason = "given in canaryctl " + h.command
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	defer cancel()
	defer context.AfterFunc(h.ctx, func() { time.AfterFunc(grace, cancel) })()

	var said bytes.Buffer
	app := *h.app
	app.Stdout, app.Stderr = &said, &said // not under the screen
	line, err := app.act(ctx, a, shown, reason)
	return told(line, err, said.String())
}

// act is one action.
func (app *App) act(ctx context.Context, a tui.Action, shown *watch.Snapshot, reason string) (string, error) {
	switch a {
	case tui.Pause:
		return app.steeredLine(ctx, "pause", ladder.Command{Verb: ladder.DoPause, Reason: reason})
	case tui.Resume:
		return app.steeredLine(ctx, "resume", ladder.Command{Verb: ladder.DoResume, Reason: reason})
	case tui.Approve:
		l, err := app.live("approve", needs{source: true})
		if err != nil {
			return "", err
		}
		res, err := l.approved(ctx, driver.Shown{
			Release: shown.Release, Step: shown.Step, Attempt: shown.Outcome.Attempt, Digest: shown.Digest, Verdict: &shown.Outcome.Verdict,
		}, reason)
		return l.line(res, ExitOK, err)
	}
	l, err := app.live(rollbackCommand, needs{})
	if err != nil {
		return "", err
	}
	res, code, err := l.rolledBack(ctx, reason)
	return l.line(res, code, err)
}

func (app *App) steeredLine(ctx context.Context, name string, c ladder.Command) (string, error) {
	l, err := app.live(name, needs{})
	if err != nil {
		return "", err
	}
	res, err := l.steered(ctx, c)
	return l.line(res, ExitOK, err)
}

// line is where an action has left the release, in a line.
func (l *live) line(res *driver.Result, code ExitCode, err error) (string, error) {
	if err != nil {
		return "", err
	}
	s := l.standing(res, code)
	text := l.command + ": " + s.Reason
	if s.Steps > 0 {
		text = fmt.Sprintf("%s: step %d of %d at %s %%: %s", l.command, s.Step, s.Steps, percentOf(s.Pct), s.Reason)
	}
	if code == ExitOK {
		return text, nil
	}
	if s.Error != "" {
		text += "; " + s.Error
	}
	return "", &Error{Code: code, Err: errors.New(text), Hint: s.Next}
}

// told adds what a command has said beside its result, and to an error what can
// be done, since there is no other place for either.
func told(line string, err error, said string) (string, error) {
	said = strings.Join(strings.Fields(strings.ReplaceAll(said, "canaryctl: ", "")), " ")
	if strings.Contains(line, said) {
		said = ""
	}
	if err == nil {
		return strings.Join(spoken(line, said), "; "), nil
	}
	what, hint := err.Error(), ""
	if e, typed := errors.AsType[*Error](err); typed {
		hint = e.Hint
		if e.Err == nil {
			what = "" // it has been said
		}
	}
	return "", errors.New(strings.Join(spoken(what, said, hint), "; "))
}

// spoken leaves out what says nothing.
func spoken(texts ...string) []string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
