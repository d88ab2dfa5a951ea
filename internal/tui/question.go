package tui

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// stopLoop is the question that ends this process's own loop, beside the
// actions.
const stopLoop Action = RollBack + 1

// question is asked once before anything is done.
type question struct {
	id     *byte // tells it from others, whatever was typed since
	action Action
	shown  watch.Snapshot // that the person decides on
	reason line
	read   bool // it has stood on the screen long enough to be read
}

// readable is how long a question must have stood on the screen before it can be
// answered: keys that were typed ahead are no answer to it.
const readable = 250 * time.Millisecond

// readMsg says that the question has stood on the screen so long.
type readMsg struct{ of *question }

// asked shows a question.
func (m model) asked(q *question) (model, tea.Cmd) {
	m.asking = q
	return m, tea.Tick(readable, func(time.Time) tea.Msg { return readMsg{q} })
}

// reads notes that the question has been there to be read, if it still is.
func (m model) reads(q *question) model {
	if m.asking != nil && m.asking.id == q.id {
		next := *m.asking
		next.read = true
		m.asking = &next
	}
	return m
}

// longestReason is how many letters a reason may have.
const longestReason = 500

func newQuestion(a Action, shown *watch.Snapshot) *question {
	return &question{id: new(byte), action: a, shown: *shown}
}

// ask asks about the action of a key.
func (m model) ask(msg tea.KeyMsg) (model, tea.Cmd) {
	k := &m.keys
	action := RollBack
	switch {
	case key.Matches(msg, k.Pause) && m.snapshot.Can(Resume):
		action = Resume
	case key.Matches(msg, k.Pause):
		action = Pause
	case key.Matches(msg, k.Approve):
		action = Approve
	}
	if slices.ContainsFunc(m.doing, func(e *errand) bool { return e.action == action }) {
		m.note, m.tone = doing[action]+" already: wait for what comes of it", watch.Warning
		return m, nil
	}
	return m.asked(newQuestion(action, &m.snapshot))
}

// lapse takes a question back whose action has become another one, or none.
func (m model) lapse() model {
	q := m.asking
	if q == nil || q.action == stopLoop {
		return m
	}
	s, was := &m.snapshot, &q.shown
	same := s.Release == was.Release && s.Outcome.Attempt == was.Outcome.Attempt && (q.action != Approve || s.Step == was.Step)
	if !s.Can(q.action) || !same {
		m.asking = nil
		m.note, m.tone = "nothing was done: the release has moved on meanwhile", watch.Warning
	}
	return m
}

// says is what an action will do.
func (q *question) says() string {
	s := &q.shown
	switch q.action {
	case Pause:
		return fmt.Sprintf("Pause at step %d: the weight stays at %s, no step is taken and the hold stands still. The breaker still rolls back.", s.Step, s.Weight)
	case Resume:
		return fmt.Sprintf("Resume at step %d: the hold goes on from where it stood.", s.Step)
	case Approve:
		return fmt.Sprintf("Approve step %d of release %s: %s follows at the next look. It lapses if a verdict turns worse.", s.Step, s.Release, s.Goal())
	case RollBack:
		switch {
		case s.Swapped:
			return "Roll back: the versions are exchanged back, and the version before serves all users again. It stays so until a person clears the lock."
		case s.Exposed().IsZero():
			return "Give this release up: the weight stays 0 % and nothing is tried again by itself, until a person clears that. Another candidate may be released."
		}
		return fmt.Sprintf("Roll back: the weight goes from %s to 0 %% now, in one write, and stays there until a person clears the lock.", s.Exposed())
	}
	return "End canaryctl run: the write under way is finished, and then nobody watches the canary. To close the view alone, esc and then q."
}

// wantsReason reports whether the person may say why.
func (q *question) wantsReason() bool { return q.action != stopLoop }

// answer takes a key while a question is open.
func (m model) answer(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	q, k := m.asking, &m.keys
	switch {
	case key.Matches(msg, k.Cancel), key.Matches(msg, k.Interrupt) && q.action != stopLoop:
		m.asking = nil
		m.note, m.tone = "nothing was done", watch.Plain
		return m, nil
	case !q.read && key.Matches(msg, k.Confirm, k.Interrupt):
		return m, nil
	case q.action == stopLoop && key.Matches(msg, k.Confirm, k.Interrupt):
		return m.leave(Interrupted)
	case key.Matches(msg, k.Confirm):
		e := m.errand(q)
		m.asking, m.doing = nil, append(slices.Clip(m.doing), e)
		m.note, m.tone = doing[q.action]+" ...", watch.Plain
		return m, guarded(func() tea.Msg { return e.do() })
	}
	if !q.wantsReason() {
		return m, nil
	}
	next := *q
	next.reason = q.reason.press(msg, longestReason)
	m.asking = &next
	return m, nil
}

// doing says what is under way.
var doing = map[Action]string{Pause: "pausing", Resume: "resuming", Approve: "approving", RollBack: "rolling back"}

// errand is an action that was confirmed. It is done once, by whoever asks first;
// others wait for what comes of it.
type errand struct {
	action Action
	do     func() carriedOutMsg
}

// errBroke stands for what an action that panicked could not say.
var errBroke = errors.New("it broke off")

// errand is what was confirmed. It is not broken off with the view.
func (m model) errand(q *question) *errand {
	actions, reason, shown := m.o.Actions, string(q.reason.text), q.shown
	e := &errand{action: q.action}
	begun, came := make(chan struct{}, 1), make(chan carriedOutMsg, 1)
	e.do = func() carriedOutMsg {
		select {
		case begun <- struct{}{}:
			out := carriedOutMsg{errand: e, action: e.action, err: errBroke}
			defer func() { came <- out }()
			out.text, out.err = actions.Do(e.action, &shown, reason)
			return out
		default:
		}
		out := <-came
		came <- out
		return out
	}
	return e
}

// carriedOut says what came of an action.
func (m model) carriedOut(msg carriedOutMsg) model {
	m.doing = slices.DeleteFunc(slices.Clone(m.doing), func(e *errand) bool { return e == msg.errand })
	m.note, m.tone = msg.text, watch.Good
	if msg.err != nil {
		m.note, m.tone = fmt.Sprintf("%s: %v", doing[msg.action], msg.err), watch.Bad
	}
	return m
}
