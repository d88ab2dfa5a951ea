package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// unasked is the reason of what a person did in the view without giving one.
const unasked = "given in canaryctl watch"

// hands do what a person has confirmed in the view, each through the code of the
// command of that name and with a wiring of its own, as if it had been given in
// another terminal. They implement [tui.Actions].
type hands struct {
	app *App
	ctx context.Context // the command's: the view may be gone before they are done

	mu      sync.Mutex
	doing   map[tui.Action]int
	pending sync.WaitGroup
	last    string // line of what was finished last
}

var _ tui.Actions = (*hands)(nil)

func newHands(ctx context.Context, app *App) *hands {
	return &hands{app: app, ctx: ctx, doing: map[tui.Action]int{}}
}

// grace is how long after a signal what was confirmed may still take.
const grace = 20 * time.Second

// Do implements [tui.Actions]. It goes on when ctx ends, which is the view's.
func (h *hands) Do(_ context.Context, a tui.Action, shown *watch.Snapshot, reason string) (string, error) {
	h.begin(a)
	defer h.end(a)
	if reason == "" {
		reason = unasked
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	defer cancel()
	defer context.AfterFunc(h.ctx, func() { time.AfterFunc(grace, cancel) })()

	var said bytes.Buffer
	app := *h.app
	app.Stdout, app.Stderr = &said, &said // not under the screen
	line, err := app.act(ctx, a, shown, reason)
	line, err = told(line, err, said.String())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last = line; err != nil {
		h.last = err.Error()
	}
	return line, err
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
		res, err := l.approved(ctx, approveOptions{Release: shown.Release, Step: shown.Step, Reason: reason})
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

func (h *hands) begin(a tui.Action) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doing[a]++
	h.pending.Add(1)
}

func (h *hands) end(a tui.Action) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doing[a]--
	h.pending.Done()
}

// names of the actions, as one says what is being done.
var actionNames = [...]string{tui.Pause: "pause", tui.Resume: "resume", tui.Approve: "approval", tui.RollBack: "rollback"}

// finish waits for what was confirmed before the view was closed, and says what
// came of it.
func (h *hands) finish() {
	h.mu.Lock()
	var doing []string
	for a, name := range actionNames {
		if h.doing[tui.Action(a)] > 0 {
			doing = append(doing, name)
		}
	}
	h.mu.Unlock()
	if len(doing) == 0 {
		return
	}
	h.app.tell("finishing the " + strings.Join(doing, " and the ") + " that was confirmed")
	h.pending.Wait()
	h.app.tell(h.last)
}
