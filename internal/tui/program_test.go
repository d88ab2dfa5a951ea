package tui

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// terminal is as much of a terminal as the view asks for: two screens, a cursor,
// and modes. Colours leave no trace on it.
type terminal struct {
	mu       sync.Mutex
	main     screen
	other    screen
	modes    map[string]bool
	paints   int // writes that begin at the top of the screen
	unknown  []string
	finished func() // tells that nothing is written any more; nil: it may be
}

// screen is lines of cells, and where the cursor is.
type screen struct {
	lines    [][]string
	row, col int
}

func newTerminal() *terminal { return &terminal{modes: map[string]bool{"25": true}} }

// Write implements [io.Writer].
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finished != nil {
		t.finished()
	}
	if strings.HasPrefix(string(p), "\x1b[H") {
		t.paints++
	}
	var state byte
	for rest := p; len(rest) > 0; {
		seq, width, n, next := ansi.DecodeSequence(rest, state, nil)
		state, rest = next, rest[n:]
		t.take(string(seq), width)
	}
	return len(p), nil
}

func (t *terminal) now() *screen {
	if t.modes["1049"] {
		return &t.other
	}
	return &t.main
}

func (t *terminal) take(seq string, width int) {
	s := t.now()
	switch {
	case width > 0:
		s.put(seq, width)
	case seq == "\r":
		s.col = 0
	case seq == "\n":
		s.row, s.col = s.row+1, 0 // a terminal in the view's mode needs the \r as well, one at rest does not
	case strings.HasPrefix(seq, "\x1b["):
		t.control(s, seq[2:len(seq)-1], seq[len(seq)-1])
	default:
		t.unknown = append(t.unknown, strconv.Quote(seq))
	}
}

func (t *terminal) control(s *screen, params string, final byte) {
	switch final {
	case 'h', 'l':
		mode := strings.TrimPrefix(params, "?")
		t.modes[mode] = final == 'h'
		if mode == "1049" && final == 'h' {
			t.other = screen{}
		}
	case 'H':
		row, col, _ := strings.Cut(params, ";")
		r, _ := strconv.Atoi(row) //nolint:errcheck // nothing is the first
		c, _ := strconv.Atoi(col) //nolint:errcheck // as above
		s.row, s.col = max(r, 1)-1, max(c, 1)-1
	case 'J':
		if params != "2" {
			s.lines = s.lines[:min(s.row+1, len(s.lines))]
			s.erase(s.col)
		} else {
			s.lines = nil
		}
	case 'K':
		if params == "2" {
			s.erase(0)
		} else {
			s.erase(s.col)
		}
	case 'm':
	default:
		t.unknown = append(t.unknown, strconv.Quote("\x1b["+params+string(final)))
	}
}

func (s *screen) erase(from int) {
	if s.row < len(s.lines) {
		s.lines[s.row] = s.lines[s.row][:min(from, len(s.lines[s.row]))]
	}
}

func (s *screen) put(text string, width int) {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	line := s.lines[s.row]
	for len(line) < s.col+width {
		line = append(line, " ")
	}
	line[s.col] = text
	for i := 1; i < width; i++ {
		line[s.col+i] = ""
	}
	s.lines[s.row], s.col = line, s.col+width
}

func (s *screen) text() string {
	lines := make([]string, len(s.lines))
	for i, line := range s.lines {
		lines[i] = strings.TrimRight(strings.Join(line, ""), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// shows is what can be seen of the terminal.
func (t *terminal) shows() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now().text()
}

// rests fails the test unless the terminal is as it was before the view.
func (t *terminal) rests(tb testing.TB) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for mode, on := range t.modes {
		if on != (mode == "25") {
			tb.Errorf("mode %s of the terminal is on: %v", mode, on)
		}
	}
	if len(t.unknown) > 0 {
		tb.Errorf("sequences that this test does not know: %s", t.unknown)
	}
}

// script is a feed that says what it is told to.
type script struct{ say chan any } // snapshots and errors

func (f script) Next(ctx context.Context) (watch.Snapshot, error) {
	select {
	case next := <-f.say:
		if err, bad := next.(error); bad {
			return watch.Snapshot{}, err
		}
		return next.(watch.Snapshot), nil
	case <-ctx.Done():
		return watch.Snapshot{}, ctx.Err()
	}
}

// slow are actions that take their time.
type slow struct {
	takes time.Duration
	err   error
	deeds chan deed // those that have been done
}

func (h slow) Do(a Action, shown *watch.Snapshot, reason string) (string, error) {
	time.Sleep(h.takes) // of the bubble's clock
	h.deeds <- deed{a, shown.Step, reason}
	return "it is done at last", h.err
}

// session is a view that runs, with a person before it.
type session struct {
	t      *testing.T
	o      Options
	p      *tea.Program
	term   *terminal
	keys   *io.PipeWriter
	cancel context.CancelFunc
	done   chan struct{}

	final  model
	ending Ending
	err    error
}

// begin runs a view with what it is given, in a bubble.
func begin(t *testing.T, o Options) *session {
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{t: t, term: newTerminal(), cancel: cancel, done: make(chan struct{})}
	in, keys := io.Pipe()
	from := time.Now()
	o.In, o.Out, o.Colors, o.Dark = in, s.term, termenv.TrueColor, true
	o.Now = func() time.Time { return noon.Add(time.Since(from)) }
	s.o, s.keys = o, keys
	s.p = program(ctx, &s.o)
	go func() {
		defer close(s.done)
		final, err := s.p.Run()
		s.final, _ = final.(model)
		s.ending, s.err = s.o.ended(ctx, final, err)
	}()
	s.p.Send(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.settle()
	return s
}

// settle lets everything happen that happens within a few frames.
func (s *session) settle() {
	time.Sleep(readable + 50*time.Millisecond)
	synctest.Wait()
}

// types sends keys as a terminal does.
func (s *session) types(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

// sees fails the test unless all of this can be seen.
func (s *session) sees(what ...string) {
	s.t.Helper()
	frame := s.term.shows()
	for _, w := range what {
		if !strings.Contains(strings.Join(strings.Fields(frame), " "), w) {
			s.t.Errorf("%q is not seen in\n%s", w, frame)
		}
	}
}

// over reports whether the view has ended.
func (s *session) over() bool {
	synctest.Wait()
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// end waits for the view's end, and for what it has left behind to go.
func (s *session) end() {
	s.t.Helper()
	<-s.done
	s.keys.Close() //nolint:errcheck // never fails
	s.cancel()
	time.Sleep(5 * time.Second) // the longest timer of the view runs out
	s.term.rests(s.t)
}

// recovered is the release that goes up again after its trial.
func recovered() watch.Snapshot {
	s := held()
	s.Step, s.Weight, s.Target.Weight, s.Record = 1, weight(1), weight(1), tripRecord()
	s.Outcome.Step, s.Outcome.Attempt, s.Outcome.Weight = 1, 2, weight(1)
	return s
}

func TestProgramShowsAReleaseFromStepToStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed, deeds := script{make(chan any)}, make(chan deed, 1)
		s := begin(t, Options{Feed: feed, Actions: slow{takes: time.Second, deeds: deeds}})
		s.sees("looking at the release ...")
		tell := func(snap watch.Snapshot) {
			t.Helper()
			snap.At = s.o.Now()
			feed.say <- snap
			s.settle()
			s.sees(watch.SituationOf(&snap, s.o.Now()).Word)
		}
		named := func(name string) watch.Snapshot { return stateOf(t, name).make().snapshot }
		paused := named("paused")

		tell(held())
		s.sees("step 2 of 5", "12:00:30 UTC")
		s.types("p")
		s.types("the totals look odd\r")
		s.sees("pausing ...")
		time.Sleep(time.Second)
		s.settle()
		s.sees("it is done at last")
		tell(paused)
		tell(named("moved"))
		s.sees("step 3 of 5")
		tell(named("failing"))
		s.sees("▸ cost")
		tell(named("rolling-back"))
		tell(rolledBack())
		s.sees("15 of 120 requests handed to a human", "TRIPPED", "▸ transfers")
		s.types("\r")
		s.sees("tripped at: 2026-03-03T11:57:30Z")
		feed.say <- errors.New("state.json: permission denied")
		s.settle()
		s.sees("CANNOT LOOK: state.json: permission denied", "tripped at:")
		time.Sleep(20 * time.Second)
		s.sees("THIS VIEW IS 20s OLD")
		s.types("\x1b")
		time.Sleep(time.Second) // a lone escape is one when nothing follows
		tell(named("on-trial"))
		s.sees("[1")
		tell(recovered())
		s.sees("attempt 2", "step 1 of 5")
		tell(named("complete"))
		s.sees("100 %")
		frame := s.term.shows()
		s.types("q")
		s.end()

		if s.ending != Left || s.err != nil {
			t.Errorf("ended as %d: %v", s.ending, s.err)
		}
		if len(deeds) != 1 || <-deeds != (deed{Pause, 2, "the totals look odd"}) {
			t.Error("what was confirmed was not done")
		}
		if m := s.final; !m.gone || m.snapshot.Stage != ladder.Completed || m.failed != nil || m.unfolded || len(m.doing) > 0 {
			t.Errorf("the last model: gone %v, stage %v, failed %v, unfolded %v", m.gone, m.snapshot.Stage, m.failed, m.unfolded)
		}
		last := s.term.shows()
		for _, line := range strings.Split(last, "\n") {
			if !strings.Contains(frame, line) {
				t.Errorf("a line of what is left was never shown: %q", line)
			}
		}
		if strings.TrimSpace(last) == "" || strings.Contains(last, "q quit") {
			t.Errorf("what is left:\n%s", last)
		}
	})
}

func TestProgramTakesKeysInEveryOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed, deeds := script{make(chan any)}, make(chan deed, 1)
		s := begin(t, Options{Feed: feed, Actions: slow{takes: time.Second, deeds: deeds}})
		feed.say <- held()
		s.settle()
		for _, keys := range []string{"j", "\x1b[A\x1b[B", "\t\x1b[Z", "c", "?"} {
			s.types(keys)
		}
		s.p.Send(tea.WindowSizeMsg{Width: 40, Height: 12})
		s.settle()
		s.types("x") // any key leaves the help
		s.types("r")
		s.types("wrong\r\r") // the answer, and once too much
		time.Sleep(time.Second)
		s.settle()
		s.sees("it is done at last")
		s.p.Send(tea.WindowSizeMsg{Width: 20, Height: 5})
		s.settle()
		s.sees("canaryctl watch")
		s.types("\x03")
		s.end()
		if s.ending != Interrupted || s.err != nil || len(deeds) != 1 || !s.final.unfolded {
			t.Errorf("ended as %d: %v, done %d times, unfolded %v", s.ending, s.err, len(deeds), s.final.unfolded)
		}
	})
}

func TestProgramPlaysAReplayToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Film: &strip{frames: 11, marks: []int{3}}, Speed: 100})
		time.Sleep(6*time.Second - 100*time.Millisecond) // ten frames of 0.6 s
		s.settle()
		s.sees("the end of the replay", "10/10 stopped", "REPLAY strip")
		s.types("[")
		s.sees("3/10 stopped")
		s.types(" ")
		time.Sleep(600 * time.Millisecond)
		s.sees("4/10 100x")
		s.types("q")
		s.end()
		if s.ending != Left || s.err != nil {
			t.Errorf("ended as %d: %v", s.ending, s.err)
		}
		if !strings.Contains(s.term.shows(), "4/10") {
			t.Errorf("what is left:\n%s", s.term.shows())
		}
	})
}

func TestProgramEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := script{make(chan any)}
		s := begin(t, Options{Feed: feed})
		feed.say <- held()
		s.settle()
		s.types("jc")
		s.cancel()
		s.end()
		if s.ending != Cancelled || s.err != nil {
			t.Errorf("ended as %d: %v", s.ending, s.err)
		}
		if !strings.Contains(s.term.shows(), "step 2 of 5") {
			t.Errorf("what is left:\n%s", s.term.shows())
		}
	})
}

func TestProgramEndsWithItsTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := script{make(chan any)}
		s := begin(t, Options{Feed: feed})
		feed.say <- held()
		s.settle()
		lost := errors.New("input/output error")
		s.keys.CloseWithError(lost) //nolint:errcheck // never fails
		s.end()
		if !errors.Is(s.err, lost) {
			t.Errorf("ended as %d: %v", s.ending, s.err)
		}
	})
}

func TestProgramWithoutKeysOrASize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		term := newTerminal()
		ending, err := Run(ctx, Options{Feed: idle{}, Out: term, Now: time.Now})
		if ending != Cancelled || err != nil || term.shows() != "" {
			t.Errorf("ended as %d: %v\n%s", ending, err, term.shows())
		}
		term.rests(t)
		time.Sleep(5 * time.Second)
	})
}

func TestProgramIsOverBeforeItBeginsInAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ending, err := Run(ctx, Options{Film: &strip{frames: 3}, Speed: 60, Out: newTerminal(), Now: time.Now})
		if ending != Cancelled || err != nil {
			t.Errorf("ended as %d: %v", ending, err)
		}
		time.Sleep(5 * time.Second)
	})
}

func TestProgramFinishesWhatWasConfirmed(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		leave func(s *session)
		want  string
		how   Ending
	}{
		{"left", nil, func(s *session) { s.types("q") }, "✓ it is done at last", Left},
		{"interrupted", nil, func(s *session) { s.types("\x03") }, "✓ it is done at last", Interrupted},
		{"cancelled", nil, func(s *session) { s.cancel() }, "✓ it is done at last", Cancelled},
		{"refused", errors.New("the target is locked"), func(s *session) { s.types("q") }, "✗ rolling back: the target is locked", Left},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed, deeds := script{make(chan any)}, make(chan deed, 1)
				s := begin(t, Options{Feed: feed, Actions: slow{takes: 10 * time.Second, err: c.err, deeds: deeds}})
				feed.say <- held()
				s.settle()
				s.types("r")
				s.types("\r")
				c.leave(s)
				s.settle()
				if s.over() || len(deeds) > 0 {
					t.Fatalf("over: %v, done: %d", s.over(), len(deeds))
				}
				s.sees("step 2 of 5", "rolling back ...") // it is said what is waited for
				<-s.done
				s.term.mu.Lock()
				s.term.finished = func() { t.Error("written to after the end") }
				s.term.mu.Unlock()
				s.end()
				if s.ending != c.how || s.err != nil || len(deeds) != 1 {
					t.Errorf("ended as %d: %v, done %d times", s.ending, s.err, len(deeds))
				}
				if last := s.term.shows(); !strings.HasSuffix(last, c.want) || strings.Count(last, "rolling back ...") != 1 {
					t.Errorf("what is left:\n%s", last)
				}
			})
		})
	}
}

func TestProgramFinishesWhatWasConfirmedInTheSameBreath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed, deeds := script{make(chan any)}, make(chan deed, 1)
		s := begin(t, Options{Feed: feed, Actions: slow{takes: time.Second, deeds: deeds}})
		feed.say <- held()
		s.settle()
		s.types("r")
		if _, err := io.WriteString(s.keys, "\rq"); err != nil {
			t.Fatal(err)
		}
		<-s.done
		if len(deeds) != 1 || s.ending != Left {
			t.Errorf("ended as %d, done %d times", s.ending, len(deeds))
		}
		s.end()
	})
}

// Keys that were typed ahead are no answer to a question that nobody has seen.
func TestProgramTakesNoAnswerToAQuestionThatWasNotOnTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed, deeds := script{make(chan any)}, make(chan deed, 1)
		s := begin(t, Options{Feed: feed, Actions: slow{deeds: deeds}})
		feed.say <- held()
		s.settle()
		s.types("r\r")
		s.sees("Roll back: the weight goes from 5 % to 0 %")
		if len(deeds) != 0 {
			t.Error("it was done")
		}
		s.types("\r")
		if len(deeds) != 1 {
			t.Errorf("the answer was taken %d times", len(deeds))
		}
		s.types("q")
		s.end()
	})
}

// broken is a film that cannot be looked at from a frame on, or whose marks, which
// only drawing asks for, cannot be had from there; and a feed that cannot look.
type broken struct {
	strip
	from, marked int
	at           int // the newest frame
}

func (f *broken) At(i int) watch.Snapshot {
	if f.at = i; i >= f.from {
		panic("a frame that breaks")
	}
	return f.strip.At(i)
}

func (f *broken) Marks() []int {
	if f.at >= f.marked {
		panic("a drawing that breaks")
	}
	return nil
}

func (f *broken) Next(context.Context) (watch.Snapshot, error) { panic("a look that breaks") }

func TestProgramRestoresTheTerminalAfterAPanic(t *testing.T) {
	film := strip{frames: 10}
	for name, o := range map[string]Options{
		"of a film":    {Film: &broken{strip: film, from: 3, marked: 9}, Speed: 60},
		"of a drawing": {Film: &broken{strip: film, from: 9, marked: 3}, Speed: 60},
		"of a feed":    {Feed: &broken{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, o)
				s.end() // fails where the terminal is not as it was
				if !errors.Is(s.err, tea.ErrProgramPanic) {
					t.Errorf("ended as %d: %v", s.ending, s.err)
				}
			})
		})
	}
}

// breaking are actions that panic after a second.
type breaking struct{}

func (breaking) Do(Action, *watch.Snapshot, string) (string, error) {
	time.Sleep(time.Second)
	panic("an action that breaks")
}

func TestProgramEndsWithAnActionThatPanics(t *testing.T) {
	for name, keys := range map[string]string{"in the view": "\r", "when it is left": "\rq"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed := script{make(chan any)}
				s := begin(t, Options{Feed: feed, Actions: breaking{}})
				feed.say <- held()
				s.settle()
				s.types("r")
				s.types(keys)
				s.end()
				said := strings.HasSuffix(s.term.shows(), "rolling back: it broke off")
				if left := strings.HasSuffix(keys, "q"); left != said || left == errors.Is(s.err, tea.ErrProgramPanic) {
					t.Errorf("ended as %d: %v\n%s", s.ending, s.err, s.term.shows())
				}
			})
		})
	}
}
