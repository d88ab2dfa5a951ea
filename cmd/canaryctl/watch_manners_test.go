//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/muesli/termenv"

	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// breaking makes this test binary a view that breaks: in the drawing of a replay,
// or in looking at a release.
const breaking = "CANARYCTL_TEST_BREAKING_VIEW"

func init() {
	o := tui.Options{In: os.Stdin, Out: os.Stdout, Now: time.Now, Colors: termenv.Ascii, Speed: 1}
	switch os.Getenv(breaking) {
	case "film":
		o.Film = brokenFilm{}
	case "feed":
		o.Feed = brokenFeed{}
	default:
		return
	}
	_, err := tui.Run(context.Background(), o)
	fmt.Fprintln(os.Stderr, "the view said:", err)
	os.Exit(1)
}

// brokenFilm panics at its second frame.
type brokenFilm struct{}

func (brokenFilm) Len() int            { return 1000 }
func (brokenFilm) Time(int) time.Time  { return time.Time{} }
func (brokenFilm) Marks() []int        { return nil }
func (brokenFilm) Span() time.Duration { return time.Hour }
func (brokenFilm) At(i int) watch.Snapshot {
	if i > 0 {
		panic("the frame is torn")
	}
	return watch.Snapshot{Replay: "torn", Service: "order-service", Rungs: make([]watch.Rung, 1)}
}

// brokenFeed panics after a while.
type brokenFeed struct{}

func (brokenFeed) Next(context.Context) (watch.Snapshot, error) {
	<-time.After(200 * time.Millisecond)
	panic("the frame is torn")
}

// TestAViewThatBreaksGivesTheTerminalBack and says why.
func TestAViewThatBreaksGivesTheTerminalBack(t *testing.T) {
	for _, where := range []string{"film", "feed"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			p := openPane(t, 80, 24, t.TempDir())
			p.enter(breaking + "=" + where + " canaryctl" + tellExit)
			if where == "film" {
				p.shows("REPLAY torn")
				p.keys("Right")
			}
			p.shows("the view said: ", "panic", "exit 1\n")
			all := p.run("capture-pane", "-p", "-S", "-") // with what has scrolled by
			if !strings.Contains(all, "the frame is torn") || !strings.Contains(all, "watch_manners_test.go:") {
				t.Errorf("what broke, and where, is not said:\n%s", all)
			}
			if regexp.MustCompile(`\n {20,}\S`).MatchString(all) {
				t.Errorf("lines do not begin at the left:\n%s", all)
			}
			p.exits(1)
		})
	}
}

// TestResizingWhileTheViewRuns: each size settles on a frame of its own, the
// same one whichever way it is come to.
func TestResizingWhileTheViewRuns(t *testing.T) {
	t.Parallel()
	p := openPane(t, 80, 24, t.TempDir())
	stoppedReplay(t, p, "incident-0217")
	p.keys("Right", "Right")
	p.shows(" 2/60 ")
	f := p.record("resized.txt", p.screen)
	seen := map[string]string{}
	for _, size := range [][2]int{{120, 40}, {40, 12}, {39, 11}, {80, 24}, {300, 90}, {40, 11}, {39, 12}, {40, 12}, {80, 24}, {120, 40}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		p.resize(size[0], size[1])
		f.frame(name)
		screen := f.got[len(f.got)-1]
		if small := size[0] < 40 || size[1] < 12; small != strings.Contains(screen, "canaryctl watch needs 40x12, has "+name) {
			t.Errorf("at %s: %s", name, screen)
		}
		if was, again := seen[name]; again && was != screen {
			t.Errorf("%s differs from before", name)
		}
		seen[name] = screen
	}
	p.keys("Right") // it is still there
	p.shows(" 3/60 ")
	p.keys("q")
	p.exits(0)
}

// TestToTheShellAndBack: the view stops as the job that it is.
func TestToTheShellAndBack(t *testing.T) {
	t.Parallel()
	p := openPane(t, 80, 24, t.TempDir())
	p.enter("canaryctl watch --speed 0.1x --replay incident-0217")
	p.shows(" 0.1x\n")
	p.keys("Space", "Right")
	screen := p.shows(" 1/60 stopped")
	for range 2 {
		p.keys("C-z")
		p.shows("Stopped")
		p.restored()
		p.enter("jobs > jobs")
		p.enter("fg")
		p.wait("is back", func(now string) bool { return now == screen })
		if !strings.Contains(p.file("jobs"), "canaryctl watch") {
			t.Errorf("the shell's jobs: %s", p.file("jobs"))
		}
		p.keys("Right")
		p.shows(" 2/60 ")
		p.keys("Left")
		p.shows(" 1/60 ")
	}
	p.keys("C-z")
	p.shows("Stopped")
	p.resize(120, 40)
	p.enter("fg")
	p.wait("fills its new size", func(now string) bool {
		first, _, _ := strings.Cut(now, "\n")
		return strings.HasPrefix(first, "REPLAY") && len(first) > 100
	})
	p.keys("q")
	p.shows("\n$\n") // what is typed before belongs to the view
	p.enter(strings.TrimPrefix(tellExit, "; "))
	p.exits(0)
}

// frameOf is the screen of a replay at a window, in words for its styles, as it
// is drawn with an environment and flags.
func frameOf(t *testing.T, env, flags string) (plain, styled string) {
	t.Helper()
	p := openPane(t, 80, 24, t.TempDir())
	p.enter(env + " canaryctl watch --speed 0.1x --replay incident-0217 " + flags + tellExit)
	p.shows(" 0.1x\n")
	p.keys("Space", "Right", "Right", "Right")
	p.shows(" 3/60 stopped")
	plain, styled = p.screen(), p.styled()
	p.keys("q")
	p.exits(0)
	return plain, styled
}

// words are what a styled screen says of styles.
var words = regexp.MustCompile(`\{[^}]*\}`)

// TestColoursAsFarAsTheTerminalHasThem: what is drawn is the same everywhere,
// but for the colours.
func TestColoursAsFarAsTheTerminalHasThem(t *testing.T) {
	t.Parallel()
	var usual string
	seen := map[string]string{}
	for _, tt := range []struct {
		name, env, flags string
		has, hasNot      string // expressions, of the styles
	}{
		{"all", "", "--theme dark", `fg=2;`, `fg=5;|fg=[39]\d`},
		{"all, on light", "", "--theme light", `fg=2;`, `fg=5;|fg=[39]\d`},
		{"256", "COLORTERM= TERM=screen-256color", "", `fg=5;`, `fg=2;|fg=[39]\d`},
		{"16", "COLORTERM= TERM=xterm", "", `fg=[39]\d`, `fg=[25];`},
		{"16, on light", "COLORTERM= TERM=xterm COLORFGBG=0\\;15", "", `fg=3\d`, `fg=9\d`},
		{"NO_COLOR", "NO_COLOR=1", "", "", `[fb]g=|italic|underline|blink`},
		{"--no-color", "", "--no-color", "", `[fb]g=|italic|underline|blink`},
	} {
		plain, styled := frameOf(t, tt.env, tt.flags)
		if usual == "" {
			usual = plain
		}
		if plain != usual {
			t.Errorf("%s: something else is drawn:\n%s", tt.name, plain)
		}
		seen[tt.name] = styled
		said := strings.Join(words.FindAllString(styled, -1), "")
		if tt.has != "" && !regexp.MustCompile(tt.has).MatchString(said) {
			t.Errorf("%s: the styles %s have no %s", tt.name, said, tt.has)
		}
		if regexp.MustCompile(tt.hasNot).MatchString(said) {
			t.Errorf("%s: the styles %s have %s", tt.name, said, tt.hasNot)
		}
	}
	if seen["all"] == seen["all, on light"] || seen["16"] == seen["16, on light"] {
		t.Error("dark and light have the same colours")
	}
}

// TestASCIIWhereTheTerminalShowsNothingElse is a whole screen of it, keys too.
func TestASCIIWhereTheTerminalShowsNothingElse(t *testing.T) {
	t.Parallel()
	var usual string
	for _, tt := range []struct{ env, flags string }{{"", "--ascii"}, {"LANG=C", ""}, {"LC_ALL=POSIX LANG=de_DE.UTF-8", ""}, {"LANG=", ""}} {
		plain, _ := frameOf(t, tt.env, tt.flags)
		if i := strings.IndexFunc(plain, func(r rune) bool { return r > unicode.MaxASCII }); i >= 0 {
			t.Errorf("%s %s: %q is on the screen", tt.env, tt.flags, plain[i:min(i+8, len(plain))])
		}
		if usual == "" {
			usual = plain
		}
		if plain != usual {
			t.Errorf("%s %s: something else is drawn:\n%s", tt.env, tt.flags, plain)
		}
	}
}

// TestADumbTerminalGetsLines, of a replay and of a release.
func TestADumbTerminalGetsLines(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	s.want(0, "promote")
	p := s.pane(120, 40)
	raw := p.raw("raw")
	p.enter("TERM=dumb canaryctl watch --replay incident-0217 | tail -1" + tellExit)
	p.exits(0)
	p.enter("clear; TERM=dumb canaryctl watch --replay incident-0217" + tellExit)
	p.shows("2026-03-03T02:24:00Z  lock ")
	p.exits(0)
	p.enter("clear; TERM=dumb canaryctl watch" + tellExit)
	p.shows("Z  hold  ", "step 1 of 3  1 %")
	p.keys("C-c")
	p.exits(130)
	if text := raw(); strings.Contains(text, "\x1b[?1049h") {
		t.Errorf("a view was drawn")
	}
}

// TestWideCharactersInNames neither break lines nor the columns behind them.
func TestWideCharactersInNames(t *testing.T) {
	t.Parallel()
	const service = "注文サービス-お客様対応-本番環境"
	s := newScene(t, strings.Replace(heldConfig, "order-service", service, 1))
	for _, size := range [][2]int{{120, 40}, {40, 12}} {
		p := s.pane(size[0], size[1])
		p.enter("canaryctl watch" + tellExit)
		screen := p.shows("NOT STARTED")
		first, _, _ := strings.Cut(screen, "\n")
		if !strings.HasPrefix(first, "注文サ") || !strings.HasSuffix(first, "UTC") && !strings.HasSuffix(first, "Z") {
			t.Errorf("%v: the title is %q", size, first)
		}
		if size[0] == 120 && !strings.Contains(first, service) {
			t.Errorf("%v: the title is %q", size, first)
		}
		p.keys("q")
		p.exits(0)
	}
}

// raw records what programs send to the terminal, from now on. It is called when
// all of it has come.
func (p *pane) raw(name string) func() string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	p.run("pipe-pane", "exec cat > "+path)
	return func() string {
		p.t.Helper()
		p.enter("echo 'record'ed")
		p.shows("recorded\n")
		var text []byte
		eventually(p.t, "recorded", func() bool {
			var err error
			if text, err = os.ReadFile(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				p.t.Fatal(err)
			}
			return strings.Contains(string(text), "recorded\r\n")
		})
		return string(text)
	}
}

// questions are sequences that a terminal answers: its background, the cursor's
// place, what it is.
var questions = regexp.MustCompile(`\x1b\][0-9;]*\?|\x1b\[[?>]?6n|\x1b\[[>=]?0?c`)

// TestNoCommandAsksTheTerminalButTheViewThatWantsToKnow runs the command as it is
// built: what is initialised, and in which order, differs from this test's.
func TestNoCommandAsksTheTerminalButTheViewThatWantsToKnow(t *testing.T) {
	t.Parallel()
	built := filepath.Join(t.TempDir(), "canaryctl")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := newScene(t, heldConfig)
	const view = " watch --replay incident-0217 --speed 0.1x"
	for _, tt := range []struct {
		name, line string
		view, asks bool
	}{
		{name: "version", line: " version"},
		{name: "lint", line: " lint"},
		{name: "status", line: " status"},
		{name: "help", line: " --help"},
		{name: "a replay in lines", line: " watch --replay incident-0217 --plain"},
		{name: "a view that is told", line: view + " --theme light", view: true},
		{name: "a view that wants to know", line: view, view: true, asks: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := openPane(t, 80, 24, s.dir)
			p.enter("unset TMUX TMUX_PANE TERM_PROGRAM; export TERM=xterm-256color; clear")
			raw := p.raw("raw")
			p.enter(built + tt.line + tellExit)
			if tt.view {
				p.shows(" 0.1x\n")
				p.keys("q")
			}
			p.wait("tells the exit code", regexp.MustCompile(`exit \d+\n`).MatchString)
			text := raw()
			if asked := questions.FindString(text); (asked != "") != tt.asks {
				t.Errorf("asked %q in\n%q", asked, text)
			}
		})
	}
}
