// Package tui is the live view: it draws a watch.Snapshot, and lets a person act
// on the release that it shows.
//
//	ending, err := tui.Run(ctx, tui.Options{Feed: live, Actions: acts, In: os.Stdin, Out: os.Stdout, Now: time.Now})
//
// What is drawn is a function of the snapshot, the time and the size of the
// terminal. Everything that waits or does something is a command of the
// program, behind the interfaces of seams.go.
package tui

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// pane is what the lower part of the screen shows.
type pane uint8

const (
	bothPanes pane = iota
	chartPane
	eventPane
	panes
)

// model is the view's state. It is a value: Update returns the next one.
type model struct {
	ctx   context.Context // of the program; commands end with it
	o     *Options
	theme *Theme
	keys  keyMap

	width, height int
	now           time.Time // by the wall clock
	seen          bool      // snapshot is one
	snapshot      watch.Snapshot
	failed        error // of the newest look; nil: it worked

	signal   int  // the chosen row
	picked   bool // by a person; else it is the one that matters most
	event    int  // the chosen event, counted from the newest
	pointed  bool // at event, by a person; else it is the one that matters most
	unfolded bool
	scroll   int // lines of the unfolded event above the screen
	pane     pane
	help     bool

	play   playing
	asking *question
	doing  []*errand // that have not come back
	note   string
	tone   watch.Tone // of note

	ending Ending
	gone   bool // it has been left: the last frame is drawn without keys
}

func newModel(ctx context.Context, o *Options, th *Theme) model {
	m := model{ctx: ctx, o: o, theme: th, keys: newKeyMap(&th.Glyphs), now: o.Now(), ending: Cancelled}
	if o.Film != nil {
		m.play = playing{speed: o.Speed, on: true}
		m = m.show(0)
	}
	return m.allow()
}

// Init implements [tea.Model].
func (m model) Init() tea.Cmd {
	cmds := []tea.Cmd{everySecond(), m.awaitNote()}
	if m.o.Feed != nil {
		cmds = append(cmds, m.look())
	} else {
		cmds = append(cmds, m.play.tick(m.o.Film.Span()))
	}
	return tea.Batch(cmds...)
}

// everySecond keeps ages and countdowns moving.
func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(at time.Time) tea.Msg { return secondMsg{at} })
}

// look waits for the next snapshot.
func (m model) look() tea.Cmd {
	ctx, feed := m.ctx, m.o.Feed
	return guarded(func() tea.Msg {
		s, err := feed.Next(ctx)
		if err != nil {
			return lookFailedMsg{err}
		}
		return snapshotMsg{s}
	})
}

// guarded is a command whose panic breaks the view where the program can leave
// its screen first: said from the command it would be lost with that screen.
func guarded(cmd tea.Cmd) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if broken := recover(); broken != nil {
				msg = brokenMsg{fmt.Sprintf("%v\n%s", broken, debug.Stack())}
			}
		}()
		return cmd()
	}
}

// awaitNote waits for a line of those who have something to say.
func (m model) awaitNote() tea.Cmd {
	ctx, notes := m.ctx, m.o.Notes
	if notes == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case text, ok := <-notes:
			if ok {
				return noteMsg{text}
			}
		case <-ctx.Done():
		}
		return nil
	}
}

// afterFailure is how long after a failed look the next is made.
const afterFailure = 2 * time.Second

// Update implements [tea.Model].
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case secondMsg:
		m.now = m.o.Now()
		return m, everySecond()
	case snapshotMsg:
		m = m.take(msg.snapshot)
		return m, m.look()
	case lookFailedMsg:
		m.failed = msg.err
		return m, tea.Tick(afterFailure, func(time.Time) tea.Msg { return lookAgainMsg{} })
	case lookAgainMsg:
		return m, m.look()
	case playMsg:
		return m.advance(msg)
	case noteMsg:
		if m.note == "" || m.tone != watch.Bad {
			m.note, m.tone = msg.text, watch.Plain
		}
		return m, m.awaitNote()
	case readMsg:
		return m.reads(msg.of), nil
	case carriedOutMsg:
		return m.carriedOut(msg), nil
	case brokenMsg:
		panic(msg.text)
	case tea.KeyMsg:
		return m.pressAll(msg)
	}
	return m, nil
}

// take goes over to a newer snapshot. The event that a person points at and the
// signal that they chose stay the same ones, although others have come.
func (m model) take(s watch.Snapshot) model {
	if e := m.chosen(); m.pointed && e != nil {
		for i := range s.Events {
			if n := &s.Events[i]; n.Line == e.Line && n.At.Equal(e.At) {
				m.event = len(s.Events) - 1 - i
			}
		}
	}
	if rows := m.snapshot.Signals; m.picked && m.signal < len(rows) {
		for i := range s.Signals {
			if s.Signals[i].Signal == rows[m.signal].Signal {
				m.signal = i
			}
		}
	}
	m.snapshot, m.seen, m.failed, m.now = s, true, nil, m.o.Now()
	return m.settle().lapse()
}

// settle keeps what is chosen within what there is.
func (m model) settle() model {
	m.signal = min(m.signal, max(len(m.snapshot.Signals)-1, 0))
	m.event = min(m.event, max(len(m.snapshot.Events)-1, 0))
	if len(m.snapshot.Events) == 0 {
		m.unfolded = false
	}
	return m.allow()
}

// allow enables the keys that make sense now; the help shows these alone.
func (m model) allow() model {
	k, s := &m.keys, &m.snapshot
	film, acts := m.o.Film != nil, m.o.Actions != nil && m.seen
	for _, b := range []*key.Binding{&k.Play, &k.Forward, &k.Back, &k.NextMark, &k.LastMark, &k.Home, &k.End, &k.Faster, &k.Slower} {
		b.SetEnabled(film)
	}
	k.Pause.SetEnabled(acts && (s.Can(Pause) || s.Can(Resume)))
	k.Approve.SetEnabled(acts && s.Can(Approve))
	k.RollBack.SetEnabled(acts && s.Can(RollBack))
	k.Pause.SetHelp("p", map[bool]string{false: "pause", true: "resume"}[s.Can(Resume)])
	k.RollBack.SetHelp("r", "roll back")
	if s.Exposed().IsZero() && s.Pending.Move == release.Hold && !s.Swapped {
		k.RollBack.SetHelp("r", map[bool]string{false: "stay at 0 %", true: "give it up"}[s.Outcome.Locked])
	}
	k.Approve.SetHelp("a", "approve "+s.Goal())
	k.Unfold.SetEnabled(len(s.Events) > 0)
	k.Suspend.SetEnabled(!m.o.Driving)
	return m
}

// pressAll takes keys that were read as one message: letters that arrive
// together, as over a slow line, are the text of a paste to whoever types, and
// else each a key.
func (m model) pressAll(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	if m.asking != nil || msg.Type != tea.KeyRunes || msg.Paste || msg.Alt || len(msg.Runes) < 2 {
		return m.press(msg)
	}
	var next tea.Model = m
	var cmds []tea.Cmd
	for _, r := range msg.Runes {
		var cmd tea.Cmd
		next, cmd = next.(model).press(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		cmds = append(cmds, cmd)
	}
	return next, tea.Batch(cmds...)
}

// press takes a key.
func (m model) press(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	if m.asking != nil {
		return m.answer(msg)
	}
	if len(m.doing) == 0 && (m.tone == watch.Plain || m.tone == watch.Warning || key.Matches(msg, m.keys.Cancel)) {
		m.note = "" // what came of an action stays until it has been read
	}
	k := &m.keys
	switch {
	case key.Matches(msg, k.Interrupt):
		return m.interrupt()
	case key.Matches(msg, k.Quit):
		return m.leave(Left)
	case key.Matches(msg, k.Suspend):
		return m, tea.Suspend
	case msg.String() == "ctrl+z":
		m.note, m.tone = "ctrl+z would stop the release's loop: q closes the view alone", watch.Warning
	case key.Matches(msg, k.Help):
		m.help = !m.help
	case m.help:
		m.help = false
	case m.unfolded && key.Matches(msg, k.Unfold, k.Cancel, k.Later, k.Earlier):
		return m.fold(msg), nil
	case key.Matches(msg, k.Pause, k.Approve, k.RollBack):
		return m.ask(msg)
	case m.o.Film != nil && m.steers(msg):
		return m.steer(msg)
	default:
		return m.choose(msg), nil
	}
	return m, nil
}

// leave ends the view.
func (m model) leave(e Ending) (tea.Model, tea.Cmd) {
	m.ending, m.gone, m.asking = e, true, nil
	return m, tea.Quit
}

// interrupt ends the view; over this process's own loop it asks first, since
// that ends the loop.
func (m model) interrupt() (tea.Model, tea.Cmd) {
	if m.o.Driving {
		return m.asked(newQuestion(stopLoop, &m.snapshot))
	}
	return m.leave(Interrupted)
}

// choose moves what is chosen.
func (m model) choose(msg tea.KeyMsg) model {
	if !m.seen {
		return m
	}
	k, rows := &m.keys, max(len(m.snapshot.Signals), 1)
	switch {
	case key.Matches(msg, k.Next):
		m.signal, m.picked = (m.chosenSignal()+1)%rows, true
	case key.Matches(msg, k.Previous):
		m.signal, m.picked = (m.chosenSignal()+rows-1)%rows, true
	case key.Matches(msg, k.Earlier):
		m.event, m.pointed = min(m.chosenEvent()+1, max(len(m.snapshot.Events)-1, 0)), true
	case key.Matches(msg, k.Later):
		m.event = max(m.chosenEvent()-1, 0)
		m.pointed = m.event > 0
	case key.Matches(msg, k.Pane):
		m.pane = (m.pane + 1) % panes
	case key.Matches(msg, k.Unfold):
		m.event, m.pointed = m.chosenEvent(), true // it stays, whatever comes meanwhile
		m.unfolded, m.scroll = true, 0
	}
	return m
}

// fold scrolls what is unfolded, or folds it.
func (m model) fold(msg tea.KeyMsg) model {
	k := &m.keys
	most := m.mostScroll(len(m.detailLines(m.chosen())), m.detailRoom())
	switch {
	case key.Matches(msg, k.Unfold, k.Cancel):
		m.unfolded = false
	case key.Matches(msg, k.Later):
		m.scroll = min(m.scroll+1, most)
	case key.Matches(msg, k.Earlier):
		m.scroll = max(min(m.scroll, most)-1, 0)
	}
	return m
}

// chosen is the event that keys act on; nil: there is none.
func (m *model) chosen() *watch.Event {
	if i := len(m.snapshot.Events) - 1 - m.chosenEvent(); i >= 0 {
		return &m.snapshot.Events[i]
	}
	return nil
}

// chosenEvent is the event that the person has chosen, counted from the newest,
// or the one that matters most: the newest rollback while it is in force, else
// the newest event.
func (m *model) chosenEvent() int {
	events := m.snapshot.Events
	if m.pointed || !m.snapshot.InForce() {
		return m.event
	}
	for i := len(events) - 1; i >= 0; i-- {
		if e := &events[i]; e.Tone == watch.Bad && len(e.Detail) > 3 {
			return len(events) - 1 - i
		}
	}
	return m.event
}

// chosenSignal is the row that the person has chosen, or the one that matters
// most: what tripped or fails, else the one with the least room, the solve rate
// among equals.
func (m *model) chosenSignal() int {
	rows := m.snapshot.Signals
	if m.picked || len(rows) == 0 {
		return m.signal
	}
	best := 0
	for i := range rows {
		if a, b := &rows[i], &rows[best]; weighs(a) > weighs(b) || weighs(a) == weighs(b) && roomOf(a) <= roomOf(b) {
			best = i
		}
	}
	return best
}

// weighs is how much a signal's standing matters.
func weighs(s *watch.Signal) int {
	switch s.State {
	case watch.Tripped:
		return 4
	case watch.Failing:
		return 3
	case watch.WouldFail:
		return 2
	case watch.Off, watch.Absent:
		return 0
	}
	return 1
}

// roomOf is the room that is left; a signal without any figure has the most.
func roomOf(s *watch.Signal) float64 {
	if !s.Room.Known {
		return 2
	}
	return s.Room.Value
}
