package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// strip is a film of the held release, in which nothing changes but the time.
type strip struct {
	frames int
	marks  []int
	span   time.Duration
}

func (f *strip) Len() int             { return f.frames }
func (f *strip) Time(i int) time.Time { return noon.Add(time.Duration(i) * f.Span()) }
func (f *strip) Marks() []int         { return f.marks }

func (f *strip) Span() time.Duration {
	if f.span > 0 {
		return f.span
	}
	return time.Minute
}

func (f *strip) At(i int) watch.Snapshot {
	s := held()
	s.At, s.Replay = f.Time(i), "strip"
	return s
}

// replayed is a view of a film that plays at a frame a second.
func replayed(f Film) model {
	o := &Options{Film: f, Speed: f.Span().Seconds(), Now: func() time.Time { return noon }, Colors: termenv.Ascii, Dark: true}
	return sized(newModel(context.Background(), o, o.theme()), 80, 24)
}

func sized(m model, w, h int) model {
	next, _ := m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return next.(model)
}

// deed is what a person has had done.
type deed struct {
	action Action
	step   int
	reason string
}

// hand notes what it is to do.
type hand struct {
	deeds []deed
	err   error
}

func (h *hand) Do(a Action, shown *watch.Snapshot, reason string) (string, error) {
	h.deeds = append(h.deeds, deed{a, shown.Step, reason})
	return "done", h.err
}

// handled is a view of a live release, and the hand that acts on it.
func handled(s watch.Snapshot) (model, *hand) {
	h := &hand{}
	m := sized(shown(s), 80, 24)
	m.o.Actions = h
	return m.allow(), h
}

// press is a model after a key, and what is to be done.
func press(m model, name string) (model, tea.Cmd) {
	next, cmd := m.Update(keyMsg(name))
	return hasRead(next.(model)), cmd
}

// difference says what a key has changed.
func difference(a, b model, cmd tea.Cmd) string {
	var out []string
	say := func(form string, args ...any) { out = append(out, fmt.Sprintf(form, args...)) }
	if b.gone {
		say("%s", [...]string{Left: "left", Interrupted: "interrupted", Cancelled: "cancelled"}[b.ending])
	}
	if cmd != nil && reflect.ValueOf(cmd).Pointer() == reflect.ValueOf(tea.Suspend).Pointer() {
		say("suspends")
	}
	switch {
	case a.asking == nil && b.asking != nil:
		say("asks %d", b.asking.action)
	case a.asking != nil && b.asking == nil:
		say("leaves the question")
	case a.asking != nil && string(a.asking.reason.text) != string(b.asking.reason.text):
		say("types %q", string(b.asking.reason.text))
	}
	for _, c := range []struct {
		what string
		a, b any
	}{
		{"signal", a.chosenSignal(), b.chosenSignal()}, {"picked", a.picked, b.picked}, {"event", a.chosenEvent(), b.chosenEvent()},
		{"pointed", a.pointed, b.pointed}, {"unfolded", a.unfolded, b.unfolded}, {"pane", a.pane, b.pane}, {"help", a.help, b.help},
		{"frame", a.play.frame, b.play.frame}, {"playing", a.play.on, b.play.on}, {"speed", a.play.speed, b.play.speed},
		{"doing", len(a.doing), len(b.doing)},
	} {
		if c.a != c.b {
			say("%s %v", c.what, c.b)
		}
	}
	return strings.Join(out, ", ")
}

func TestEveryKeyInEveryView(t *testing.T) {
	film := &strip{frames: 10, marks: []int{2, 5, 9}}
	views := map[string]model{
		"live": sized(shown(held()), 80, 24), "replay": replayed(film).show(3), "empty": sized(liveModel(), 80, 24),
		"question": pressed(sized(shown(held()), 80, 24), "r"),
	}
	const types = `types "%s"`
	unpressed := everyKey()
	for _, c := range []struct{ keys, live, replay, empty, question string }{
		{"p", "asks 0", "", "", types},
		{"a", "", "", "", types},
		{"r", "asks 3", "", "", types},
		{"j", "signal 2, picked true", "signal 2, picked true", "", types},
		{"tab", "signal 2, picked true", "signal 2, picked true", "", ""},
		{"k", "signal 0, picked true", "signal 0, picked true", "", types},
		{"shift+tab", "signal 0, picked true", "signal 0, picked true", "", ""},
		{"up", "event 1, pointed true", "event 1, pointed true", "", ""},
		{"down", "", "", "", ""},
		{"enter", "pointed true, unfolded true", "pointed true, unfolded true", "", "leaves the question, doing 1"},
		{"c", "pane 1", "pane 1", "", types},
		{" ", "", "playing false", "", types},
		{"right", "", "frame 4, playing false", "", ""},
		{"l", "", "frame 4, playing false", "", types},
		{"left", "", "frame 2, playing false", "", ""},
		{"h", "", "frame 2, playing false", "", types},
		{"]", "", "frame 5, playing false", "", types},
		{"[", "", "frame 2, playing false", "", types},
		{"home", "", "frame 0", "", ""},
		{"g", "", "frame 0", "", types},
		{"end", "", "frame 9, playing false", "", ""},
		{"G", "", "frame 9, playing false", "", types},
		{"+", "", "speed 120", "", types},
		{"=", "", "speed 120", "", types},
		{"-", "", "speed 30", "", types},
		{"esc", "", "", "", "leaves the question"},
		{"?", "help true", "help true", "help true", types},
		{"ctrl+z", "suspends", "suspends", "suspends", ""},
		{"q", "left", "left", "left", types},
		{"ctrl+c", "interrupted", "interrupted", "interrupted", "leaves the question"},
		{"x", "", "", "", types}, // no key
	} {
		for view, want := range map[string]string{"live": c.live, "replay": c.replay, "empty": c.empty, "question": c.question} {
			if want == types {
				want = fmt.Sprintf(types, c.keys)
			}
			after, cmd := press(views[view], c.keys)
			if got := difference(views[view], after, cmd); got != want {
				t.Errorf("%s view, key %q: %q, want %q", view, c.keys, got, want)
			}
			delete(unpressed, c.keys)
		}
	}
	if len(unpressed) > 0 {
		t.Errorf("keys that are in no row: %q", slices.Sorted(maps.Keys(unpressed)))
	}
}

// everyKey are the keys of the key map.
func everyKey() map[string]bool {
	k, out := newKeyMap(&Unicode), map[string]bool{}
	for _, b := range append(k.all(), k.Confirm, k.Cancel) {
		for _, name := range b.Keys() {
			out[name] = true
		}
	}
	return out
}

// stateOf is the state with a name.
func stateOf(t testing.TB, name string) state {
	t.Helper()
	i := slices.IndexFunc(states, func(s state) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no state %s", name)
	}
	return states[i]
}

func TestActionsAreOfferedWhereTheyMakeSense(t *testing.T) {
	offered := func(m model) string {
		var out []string
		for _, b := range []*key.Binding{&m.keys.Pause, &m.keys.Approve, &m.keys.RollBack} {
			if b.Enabled() {
				out = append(out, b.Help().Desc)
			}
		}
		return strings.Join(out, ", ")
	}
	for name, want := range map[string]string{
		"first-look": "", "cannot-look": "", "not-started": "", "locked": "give it up", "gate-failed": "give it up", "by-hand": "",
		"holding": "pause, roll back", "moving": "pause, roll back", "moved": "pause, roll back", "failing": "pause, roll back",
		"paused": "resume, roll back", "approval": "pause, approve 10 %, roll back", "rolling-back": "roll back", "rolled-back": "stay at 0 %",
		"on-trial": "roll back", "complete": "roll back", "look-failed-later": "pause, roll back",
	} {
		m := stateOf(t, name).make()
		if got := offered(m); got != want {
			t.Errorf("%s: offered %q, want %q", name, got, want)
		}
		m.o.Actions = nil
		if got := offered(m.allow()); got != "" {
			t.Errorf("%s: %q are offered where nobody carries them out", name, got)
		}
	}
	if got := offered(replayed(&strip{frames: 3})); got != "" {
		t.Errorf("a replay offers %q", got)
	}
}

func TestWhatIsNotOfferedIsNotAsked(t *testing.T) {
	for _, s := range states {
		for name, enabled := range map[string]func(*keyMap) bool{
			"p": func(k *keyMap) bool { return k.Pause.Enabled() },
			"a": func(k *keyMap) bool { return k.Approve.Enabled() },
			"r": func(k *keyMap) bool { return k.RollBack.Enabled() },
		} {
			m := s.make()
			m.asking, m.help, m.unfolded = nil, false, false
			if got := pressed(m, name).asking != nil; got != enabled(&m.keys) {
				t.Errorf("%s: %s asks: %v", s.name, name, got)
			}
		}
	}
}

func TestAQuestionIsAboutWhatWasShown(t *testing.T) {
	m, h := handled(held())
	m = pressed(m, "r", "b", "a", "d", " ", "sums")
	newer := held()
	newer.Step, newer.Weight, newer.Outcome.Step = 3, weight(10), 3
	next, _ := m.Update(snapshotMsg{newer})
	m = next.(model)
	if m.snapshot.Step != 3 || m.asking.shown.Step != 2 || !strings.Contains(m.View(), "from 5 %") {
		t.Fatalf("step %d, asked about step %d:\n%s", m.snapshot.Step, m.asking.shown.Step, m.View())
	}
	m, cmd := press(m, "enter")
	if m.asking != nil || !strings.Contains(m.View(), "rolling back ...") {
		t.Errorf("the view does not say that it is being done:\n%s", m.View())
	}
	cmd()
	if want := []deed{{RollBack, 2, "bad sums"}}; !slices.Equal(h.deeds, want) {
		t.Errorf("done: %v, want %v", h.deeds, want)
	}
}

func TestWhatIsConfirmedIsDoneOnce(t *testing.T) {
	for _, c := range []struct {
		state, key string
		want       deed
	}{
		{"holding", "p", deed{Pause, 2, "why"}}, {"paused", "p", deed{Resume, 2, "why"}},
		{"approval", "a", deed{Approve, 2, "why"}}, {"holding", "r", deed{RollBack, 2, "why"}},
	} {
		m, h := handled(stateOf(t, c.state).make().snapshot)
		m, confirm := press(pressed(m, c.key, "why"), "enter")
		m, again := press(m, "enter")
		if again != nil {
			again()
		}
		next, _ := m.Update(confirm())
		confirm() // whoever else asks gets what came of it
		if m = next.(model); !slices.Equal(h.deeds, []deed{c.want}) || len(m.doing) != 0 || m.note != "done" {
			t.Errorf("%s, %s: done %v, note %q, under way %d", c.state, c.key, h.deeds, m.note, len(m.doing))
		}
	}
}

func TestAQuestionThatIsLeftDoesNothing(t *testing.T) {
	for _, leave := range []string{"esc", "ctrl+c"} {
		m, h := handled(held())
		m, cmd := press(pressed(m, "r", "why"), leave)
		if cmd != nil || m.asking != nil || m.gone || len(h.deeds) > 0 || m.note != "nothing was done" {
			t.Errorf("%s: command %v, left %v, done %v, note %q", leave, cmd != nil, m.gone, h.deeds, m.note)
		}
		if m = pressed(m, "r"); string(m.asking.reason.text) != "" {
			t.Errorf("%s: the next question begins with %q", leave, string(m.asking.reason.text))
		}
	}
}

func TestAReasonIsEdited(t *testing.T) {
	m, h := handled(held())
	m, cmd := press(pressed(m, "r", "sumz", "backspace", "s", "home", "bad ", "end", "!"), "enter")
	cmd()
	if len(h.deeds) != 1 || h.deeds[0].reason != "bad sums!" {
		t.Errorf("done %v", h.deeds)
	}
	m = pressed(m, "p", strings.Repeat("x", 600))
	if n := len(string(m.asking.reason.text)); n != longestReason {
		t.Errorf("a reason of %d letters", n)
	}
}

func TestAnActionsErrorIsShown(t *testing.T) {
	m, h := handled(held())
	h.err = errors.New("the lock is held by run on build-7")
	m, cmd := press(pressed(m, "r"), "enter")
	next, _ := m.Update(cmd())
	if m = next.(model); m.tone != watch.Bad || !strings.Contains(m.View(), "rolling back: the lock is held by run on build-7") {
		t.Errorf("tone %v:\n%s", m.tone, m.View())
	}
}

func TestTwoActionsAtOnceAreBothWaitedFor(t *testing.T) {
	m, h := handled(held())
	m, pause := press(pressed(m, "p"), "enter")
	m, back := press(pressed(m, "r"), "enter")
	next, _ := m.Update(back())
	if m = next.(model); len(m.doing) != 1 || m.doing[0].action != Pause {
		t.Fatalf("under way: %d", len(m.doing))
	}
	next, _ = m.Update(pause())
	if m = next.(model); len(m.doing) != 0 || len(h.deeds) != 2 {
		t.Errorf("under way: %d, done %v", len(m.doing), h.deeds)
	}
}

// driving is a view over this process's own loop.
func driving() model {
	m, _ := handled(held())
	m.o.Driving = true
	return m.allow()
}

func TestALoopsViewIsNotPutAside(t *testing.T) {
	for name, m := range map[string]model{"view": driving(), "question": pressed(driving(), "r"), "help": pressed(driving(), "?")} {
		after, cmd := press(m, "ctrl+z")
		if cmd != nil && reflect.ValueOf(cmd).Pointer() == reflect.ValueOf(tea.Suspend).Pointer() {
			t.Errorf("%s: the process is stopped", name)
		}
		if name == "view" && !strings.Contains(after.View(), "ctrl+z would stop the release's loop") {
			t.Errorf("it does not say why:\n%s", after.View())
		}
	}
}

func TestALoopIsEndedAfterAsking(t *testing.T) {
	asked := pressed(driving(), "ctrl+c")
	if asked.gone || asked.asking == nil || !strings.Contains(strings.Join(strings.Fields(asked.View()), " "), "nobody watches the canary") {
		t.Fatalf("ctrl+c does not ask:\n%s", asked.View())
	}
	for keys, want := range map[string]string{
		"esc": "stays", "esc q": "left", "enter": "interrupted", "ctrl+c": "interrupted", "q": "asks", "y": "asks", "x": "asks",
		"esc ctrl+c esc": "stays", "esc ctrl+c enter": "interrupted",
	} {
		m := pressed(asked, strings.Fields(keys)...)
		got := map[bool]string{true: "asks", false: "stays"}[m.asking != nil]
		if m.gone {
			got = [...]string{Left: "left", Interrupted: "interrupted"}[m.ending]
		}
		if got != want {
			t.Errorf("ctrl+c %s: %s, want %s", keys, got, want)
		}
	}
	if m := pressed(driving(), "r", "ctrl+c"); m.gone || m.asking != nil {
		t.Error("ctrl+c at another question does more than leave it")
	}
}

// after is a snapshot in which so many events more have happened.
func after(s watch.Snapshot, more int) watch.Snapshot {
	s.Events = slices.Clone(s.Events)
	for i := range more {
		s.Events = append(s.Events, watch.Event{At: noon.Add(time.Duration(i+1) * time.Second), Line: int64(100 + i), Kind: "message", Text: fmt.Sprintf("message %d", i)})
	}
	return s
}

func TestAChosenEventStaysTheSame(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		line int64 // of the chosen event, afterwards
	}{
		{"the newest, if nobody points", nil, 102},
		{"the one that is pointed at", []string{"up", "up"}, 3},
		{"the oldest", []string{"up", "up", "up", "up", "up"}, 2},
		{"the unfolded one", []string{"enter"}, 16},
		{"the newest again", []string{"up", "down"}, 102},
	} {
		m := pressed(sized(shown(held()), 80, 24), c.keys...)
		next, _ := m.Update(snapshotMsg{after(held(), 3)})
		if m = next.(model); m.chosen().Line != c.line {
			t.Errorf("%s: line %d, want %d", c.name, m.chosen().Line, c.line)
		}
	}
	m := pressed(sized(shown(after(held(), 9)), 80, 24), "up", "up", "up", "up", "up", "up")
	next, _ := m.Update(snapshotMsg{held()}) // a journal that was put aside
	if m = next.(model); m.chosen() == nil {
		t.Error("a chosen event that is gone leaves none")
	}
	none := held()
	none.Events = nil
	next, _ = pressed(m, "enter").Update(snapshotMsg{none})
	if m = next.(model); m.unfolded || m.chosen() != nil {
		t.Error("an event is unfolded where there are none")
	}
}

func TestARollbackInForceIsChosenUntilAPersonChooses(t *testing.T) {
	m := sized(shown(after(rolledBack(), 2)), 80, 24)
	if m.chosen().Kind != "record" {
		t.Errorf("chosen: %+v", m.chosen())
	}
	if m = pressed(m, "enter"); !strings.Contains(m.View(), "line 20 of the journal") && !m.unfolded {
		t.Errorf("enter does not unfold it:\n%s", m.View())
	}
	if m = pressed(sized(shown(after(rolledBack(), 2)), 80, 24), "down"); m.chosen().Kind == "record" {
		t.Error("down does not leave it")
	}
}

func TestAnUnfoldedEventScrollsBetweenItsEnds(t *testing.T) {
	m := pressed(sized(shown(rolledBack()), 40, 12), "enter")
	top := m.View()
	most := m.mostScroll(len(m.detailLines(m.chosen())), m.detailRoom())
	if most == 0 {
		t.Fatal("everything fits: nothing is scrolled")
	}
	views := []string{top}
	for range most {
		m = pressed(m, "down")
		views = append(views, m.View())
	}
	for i := range most {
		if views[i] == views[i+1] {
			t.Errorf("down does not scroll from line %d of %d", i, most)
		}
	}
	bottom := m.View()
	if m = pressed(m, "down", "down", "down"); m.scroll != most || m.View() != bottom {
		t.Errorf("scrolled to %d of %d", m.scroll, most)
	}
	if !strings.Contains(bottom, "line 20 of the journal") || strings.Contains(bottom, "more lines") {
		t.Errorf("the end is not the end:\n%s", bottom)
	}
	for range most {
		m = pressed(m, "up")
	}
	if m = pressed(m, "up", "up"); m.scroll != 0 || m.View() != top {
		t.Errorf("scrolled back to %d", m.scroll)
	}
	for _, fold := range []string{"enter", "esc"} {
		if f := pressed(m, "down", fold); f.unfolded {
			t.Errorf("%s does not fold it", fold)
		} else if f = pressed(f, "enter"); f.scroll != 0 {
			t.Errorf("it unfolds at line %d", f.scroll)
		}
	}
}

func TestAScrolledEventScrollsBackAtOnceInALargerTerminal(t *testing.T) {
	m := pressed(sized(shown(rolledBack()), 40, 12), "enter")
	for range 100 {
		m = pressed(m, "down")
	}
	m = sized(m, 40, 16)
	before := m.View()
	if m.mostScroll(len(m.detailLines(m.chosen())), m.detailRoom()) == 0 {
		t.Fatal("everything fits: nothing is scrolled")
	}
	if pressed(m, "up").View() == before {
		t.Error("up scrolls nothing: the terminal has grown, and what it was scrolled by has not shrunk")
	}
}

func TestASignalIsChosenForThePersonUntilTheyChoose(t *testing.T) {
	s := held()
	m := sized(shown(s), 80, 24)
	if m.chosenSignal() != int(release.Cost) {
		t.Errorf("chosen: %d, not the one with the least room", m.chosenSignal())
	}
	s.Signals = slices.Clone(s.Signals)
	s.Signals[release.Transfers].State = watch.Failing
	next, _ := m.Update(snapshotMsg{s})
	if m = next.(model); m.chosenSignal() != int(release.Transfers) {
		t.Errorf("chosen: %d, not the one that fails", m.chosenSignal())
	}
	m = pressed(m, "j")
	s.Signals = slices.Clone(s.Signals)
	s.Signals[release.Violations].State = watch.Tripped
	next, _ = m.Update(snapshotMsg{s})
	if m = next.(model); m.chosenSignal() != len(s.Signals)-1 {
		t.Errorf("chosen: %d, not the person's", m.chosenSignal())
	}
	more := s
	more.Signals = slices.Insert(slices.Clone(s.Signals), len(s.Signals)-1, watch.Signal{Signal: release.ITL, Unit: watch.Millis})
	next, _ = m.Update(snapshotMsg{more})
	if n := next.(model); n.chosenSignal() != len(more.Signals)-1 {
		t.Errorf("chosen: %d, not the person's, which a row has come before", n.chosenSignal())
	}
	if m = pressed(m, "j"); m.chosenSignal() != 0 {
		t.Errorf("after the last comes %d", m.chosenSignal())
	}
	if m = pressed(m, "k"); m.chosenSignal() != len(s.Signals)-1 {
		t.Errorf("before the first comes %d", m.chosenSignal())
	}
}

func TestKeysBeforeTheFirstLookChooseNothing(t *testing.T) {
	m := pressed(sized(liveModel(), 80, 24), "j", "up")
	next, _ := m.Update(snapshotMsg{after(rolledBack(), 2)})
	m = next.(model)
	if want := sized(shown(after(rolledBack(), 2)), 80, 24); m.chosenSignal() != want.chosenSignal() || m.chosenEvent() != want.chosenEvent() {
		t.Errorf("signal %d, event %d; untouched it would be signal %d, event %d", m.chosenSignal(), m.chosenEvent(), want.chosenSignal(), want.chosenEvent())
	}
}

func TestAResizeKeepsWhatIsOpen(t *testing.T) {
	for _, s := range states {
		m := s.make()
		for _, size := range []struct{ w, h int }{{80, 24}, {40, 12}, {1, 1}, {200, 60}, {39, 11}, {120, 40}, {0, 0}, {80, 24}} {
			m = sized(m, size.w, size.h)
			if got, want := m.View(), s.frame(size.w, size.h); got != want {
				t.Fatalf("%s at %dx%d, after another size:\n%s\nwant:\n%s", s.name, size.w, size.h, got, want)
			}
		}
	}
	m := pressed(sized(shown(held()), 80, 24), "r", "sums")
	if m = pressed(sized(m, 40, 12), "!"); m.asking == nil || string(m.asking.reason.text) != "sums!" {
		t.Error("a resize ends what is being typed")
	}
}

// chain is a feed that gives what it was told to, one after the other.
type chain struct {
	left  []any // snapshots and errors
	calls int
}

func (f *chain) Next(context.Context) (watch.Snapshot, error) {
	f.calls++
	next := f.left[0]
	f.left = f.left[1:]
	if err, bad := next.(error); bad {
		return watch.Snapshot{}, err
	}
	return next.(watch.Snapshot), nil
}

func TestAFailedLookIsShownAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := held()
		later.Step = 3
		feed := &chain{left: []any{held(), errors.New("journal.jsonl: permission denied"), errors.New("and again"), later}}
		m := sized(liveModel(), 80, 24)
		m.o.Feed = feed
		turn := func(cmd tea.Cmd) tea.Cmd {
			next, cmd := m.Update(cmd())
			m = next.(model)
			return cmd
		}
		cmd := turn(m.look()) // seen
		cmd = turn(cmd)       // failed
		if m.snapshot.Step != 2 || !strings.Contains(m.View(), "CANNOT LOOK: journal.jsonl: permission denied") {
			t.Errorf("step %d:\n%s", m.snapshot.Step, m.View())
		}
		for range 2 {
			calls, from := feed.calls, time.Now()
			cmd = turn(cmd) // waited
			if took := time.Since(from); took != 2*time.Second || feed.calls != calls {
				t.Errorf("waited %v, %d looks meanwhile", took, feed.calls-calls)
			}
			cmd = turn(cmd) // looked
		}
		if m.failed != nil || m.snapshot.Step != 3 || strings.Contains(m.View(), "CANNOT LOOK") || feed.calls != 4 {
			t.Errorf("not recovered after %d looks: %v\n%s", feed.calls, m.failed, m.View())
		}
	})
}

func TestNotesComeOneAfterTheOther(t *testing.T) {
	notes := make(chan string, 3)
	m := sized(shown(held()), 80, 24)
	m.o.Notes = notes
	notes <- "the webhook did not answer"
	notes <- "tick 12"
	cmd := m.awaitNote()
	for _, want := range []string{"the webhook did not answer", "tick 12"} {
		next, again := m.Update(cmd())
		m, cmd = next.(model), again
		if !strings.Contains(m.View(), want) {
			t.Errorf("%q is not shown:\n%s", want, m.View())
		}
	}
	if m = pressed(m, "j"); strings.Contains(m.View(), "tick 12") {
		t.Error("a note stays over a key")
	}
	close(notes)
	if msg := cmd(); msg != nil {
		t.Errorf("the end of the notes is a %T", msg)
	}
}

// played is a model after so much time at its playing.
func played(m model, at time.Time) (model, tea.Cmd) {
	next, cmd := m.Update(playMsg{at, m.play.turn})
	return next.(model), cmd
}

func TestFramesPassAtTheirSpeed(t *testing.T) {
	for _, c := range []struct {
		name  string
		speed float64
		every time.Duration
		ticks int
		want  int // frame
	}{
		{"a frame a tick", 60, time.Second, 100, 100},
		{"many frames a tick", 6000, 50 * time.Millisecond, 100, 500},
		{"a tick that came late", 600, 3 * time.Second, 2, 1 + 30}, // the first is as long as it was to be
		{"ten ticks a frame", 6, time.Second, 100, 10},
		{"part frames are kept", 90, time.Second, 9, 1 + 12},
		{"the Slowest", 0.1, time.Second, 1200, 2},
		{"the Fastest", 100000, 50 * time.Millisecond, 60, 5000},
	} {
		m := replayed(&strip{frames: 1 << 20})
		m.play.speed = c.speed
		at := noon
		for range c.ticks {
			at = at.Add(c.every)
			m, _ = played(m, at)
		}
		if m.play.frame != c.want {
			t.Errorf("%s: frame %d, want %d", c.name, m.play.frame, c.want)
		}
	}
}

func TestPartsOfFramesAddUpExactly(t *testing.T) {
	m := replayed(&strip{frames: 1 << 20})
	m.play.last = noon
	for i := 1; i <= 20000; i++ {
		if m, _ = played(m, noon.Add(time.Duration(i)*100*time.Millisecond)); m.play.frame != i/10 {
			t.Fatalf("after %d tenths of a frame: frame %d", i, m.play.frame)
		}
	}
}

func TestAStoppedReplayStandsStill(t *testing.T) {
	m, _ := played(replayed(&strip{frames: 100}), noon.Add(time.Second))
	stale := playMsg{noon.Add(time.Hour), m.play.turn}
	stopped, cmd := press(m, " ")
	if cmd != nil {
		t.Error("a stopped replay waits for its next frame")
	}
	for _, m := range []model{stopped, pressed(stopped, " "), pressed(m, "+"), pressed(m, "left", " ")} {
		next, cmd := m.Update(stale)
		if got := next.(model); got.play.frame != m.play.frame || cmd != nil {
			t.Errorf("a tick of an earlier playing goes from frame %d to %d, and on: %v", m.play.frame, got.play.frame, cmd != nil)
		}
	}
	m = pressed(stopped, " ") // an hour later
	if m, _ = played(m, noon.Add(time.Hour)); m.play.frame != 2 {
		t.Errorf("the time it stood still counts: frame %d", m.play.frame)
	}
}

func TestAReplayWaitsWhileAnEventIsRead(t *testing.T) {
	m := pressed(replayed(&strip{frames: 100}), "enter")
	at := noon
	for range 10 {
		at = at.Add(time.Second)
		m, _ = played(m, at)
	}
	if m.play.frame != 0 || !m.unfolded {
		t.Fatalf("frame %d, unfolded %v", m.play.frame, m.unfolded)
	}
	if m, _ = played(pressed(m, "enter"), at.Add(time.Second)); m.play.frame != 1 {
		t.Errorf("frame %d: what was missed is made up for", m.play.frame)
	}
}

func TestTheEndOfAReplay(t *testing.T) {
	m := replayed(&strip{frames: 5}).show(3)
	m, cmd := played(m, noon.Add(time.Second))
	if m.play.frame != 4 || m.play.on || cmd != nil || !strings.Contains(m.View(), "the end of the replay") {
		t.Fatalf("frame %d, plays %v:\n%s", m.play.frame, m.play.on, m.View())
	}
	for key, want := range map[string]string{" ": "frame 0, playing true", "home": "frame 0, playing true", "left": "frame 3", "right": "", "end": ""} {
		after, cmd := press(m, key)
		if got := difference(m, after, cmd); got != want || (cmd != nil) != after.play.on {
			t.Errorf("%q at the end: %q, want %q", key, got, want)
		}
	}
	one, cmd := played(replayed(&strip{frames: 1}), noon.Add(time.Second))
	if one.play.frame != 0 || one.play.on || cmd != nil {
		t.Error("a replay of a single frame does not end")
	}
	if far, _ := played(replayed(&strip{frames: 5}), noon.Add(1000*time.Hour)); far.play.frame != 1 {
		t.Errorf("frame %d after the first tick", far.play.frame)
	}
	over := replayed(&strip{frames: 5})
	over.play.last = noon
	if over, _ = played(over, noon.Add(1000*time.Hour)); over.play.frame != 4 || over.play.on {
		t.Errorf("frame %d, plays %v after a tick that came days late", over.play.frame, over.play.on)
	}
}

func TestStepsAndJumpsKeepToTheReplay(t *testing.T) {
	film := &strip{frames: 10, marks: []int{2, 5, 8}}
	for _, c := range []struct {
		from int
		key  string
		want int
	}{
		{0, "left", 0}, {9, "right", 9}, {0, "[", 0}, {1, "[", 1}, {2, "[", 2}, {3, "[", 2}, {5, "[", 2}, {9, "[", 8},
		{0, "]", 2}, {2, "]", 5}, {3, "]", 5}, {8, "]", 8}, {9, "]", 9}, {4, "home", 0}, {4, "end", 9},
	} {
		if m := pressed(replayed(film).show(c.from), c.key); m.play.frame != c.want {
			t.Errorf("%s at frame %d: frame %d, want %d", c.key, c.from, m.play.frame, c.want)
		}
	}
	for _, key := range []string{"[", "]"} {
		if m := pressed(replayed(&strip{frames: 4}).show(2), key); m.play.frame != 2 {
			t.Errorf("%s without any mark: frame %d", key, m.play.frame)
		}
	}
}

func TestAReplaysSpeedHasEnds(t *testing.T) {
	m := replayed(&strip{frames: 10})
	for range 40 {
		m = pressed(m, "+")
	}
	if m.play.speed != Fastest {
		t.Errorf("Fastest: %v", m.play.speed)
	}
	for range 60 {
		m = pressed(m, "-")
	}
	if m.play.speed != Slowest {
		t.Errorf("Slowest: %v", m.play.speed)
	}
	stopped := pressed(replayed(&strip{frames: 10}), " ", "+")
	if stopped.play.on || stopped.play.speed != 120 {
		t.Errorf("a stopped replay is made faster: plays %v at %v", stopped.play.on, stopped.play.speed)
	}
}

func TestTheWaitForAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for speed, want := range map[float64]time.Duration{60: time.Second, 120: 500 * time.Millisecond, 100000: shortest, 0.1: longest, 100: 600 * time.Millisecond} {
			p := playing{speed: speed, on: true, turn: 7}
			from := time.Now()
			msg := p.tick(time.Minute)().(playMsg)
			if took := time.Since(from); took != want || msg.turn != 7 || !msg.at.Equal(time.Now()) {
				t.Errorf("at %gx: %v, want %v; %+v", speed, took, want, msg)
			}
		}
	})
}

func TestAFrameFoldsWhatWasChosenInAnother(t *testing.T) {
	m := pressed(replayed(&strip{frames: 10}), " ", "up", "right")
	if m.pointed || m.unfolded || m.event != 0 {
		t.Errorf("event %d, pointed %v, unfolded %v", m.event, m.pointed, m.unfolded)
	}
	if m = pressed(m, "j", "right"); !m.picked || m.chosenSignal() != 2 {
		t.Errorf("the signal does not stay: %d", m.chosenSignal())
	}
}

func TestALockedReleaseIsNotSteered(t *testing.T) {
	s := held()
	s.Outcome.Locked = true
	if m := shown(s); m.keys.Pause.Enabled() || m.keys.Approve.Enabled() {
		t.Error("a locked release can be paused or approved")
	}
	s = held()
	s.Outcome.Phase = release.Open
	if m := shown(s); m.keys.Pause.Enabled() {
		t.Error("an open breaker can be paused")
	}
	s.Stage, s.Weight, s.Target.Weight = ladder.NotStarted, weight(0), weight(0)
	if m := shown(s); m.keys.RollBack.Enabled() {
		t.Error("a release that was never started can be rolled back")
	}
}

// A terminal's keys that are read at once, as those of a key that is held down or
// over a slow line, are one message of several letters.
func TestKeysThatAreReadTogetherAreTakenOneByOne(t *testing.T) {
	m := pressed(sized(shown(held()), 80, 24), "jjj")
	if want := (int(release.Cost) + 3) % len(m.snapshot.Signals); m.chosenSignal() != want {
		t.Errorf("jjj: signal %d, want %d", m.chosenSignal(), want)
	}
	m = pressed(sized(shown(held()), 80, 24), "rtotals")
	if m.asking == nil || string(m.asking.reason.text) != "totals" {
		t.Error("what is typed ahead of a question is lost")
	}
	if m = pressed(sized(shown(held()), 80, 24), "jq"); !m.gone {
		t.Error("jq does not leave")
	}
}

func TestWhatIsPastedIsNoKeys(t *testing.T) {
	paste := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("r"), Paste: true}
	m := sized(shown(held()), 80, 24)
	next, cmd := m.Update(paste)
	if got := difference(m, next.(model), cmd); got != "" {
		t.Errorf("a pasted r: %s", got)
	}
	next, _ = pressed(m, "p").Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("see\x1b[31m\nTICKET-7\r"), Paste: true})
	m = next.(model)
	if m.asking == nil || !strings.HasPrefix(string(m.asking.reason.text), "see") || !strings.HasSuffix(strings.TrimSpace(string(m.asking.reason.text)), "TICKET-7") {
		t.Fatalf("a pasted reason: %v", m.asking)
	}
	if view := m.View(); strings.ContainsAny(view, "\x1b\r") {
		t.Errorf("what was pasted reaches the terminal: %q", view)
	}
}
