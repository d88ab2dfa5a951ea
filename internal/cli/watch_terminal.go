package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/muesli/termenv"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// looks are the flags of how the view is drawn.
type looks struct {
	Theme string
	ASCII bool
}

func (k *looks) register(f *pflag.FlagSet) {
	f.StringVar(&k.Theme, "theme", "auto", "colours for a `background`: auto, dark or light")
	f.BoolVar(&k.ASCII, "ascii", false, "marks of ASCII alone, for terminals that show no others")
}

func (k *looks) check() error {
	switch k.Theme {
	case "auto", "dark", "light":
		return nil
	}
	return usage(errors.New("--theme is auto, dark or light"), "auto asks the terminal for its background")
}

// screen is a terminal that the view is drawn on, and how.
type screen struct {
	in     *os.File // keys
	opened bool     // in is not the process's own
	colors termenv.Profile
	dark   bool
	ascii  bool
}

// Close gives back what was opened.
func (s *screen) Close() {
	if s.opened {
		s.in.Close() //nolint:errcheck // nothing was written
	}
}

// errNoTerminal says why there can be no view.
var errNoTerminal = errors.New("stdout is not a terminal that a view can be drawn on")

// drawable reports whether stdout is a terminal that can be drawn on: one that
// has a size.
func (app *App) drawable() bool {
	f, ok := app.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || app.Getenv("TERM") == "dumb" {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0
}

// screen finds out how the view is drawn. The terminal is asked for its
// background only where nothing else says what it is.
func (app *App) screen(k looks) (*screen, error) {
	if !app.drawable() {
		return nil, errNoTerminal
	}
	s := &screen{ascii: k.ASCII || !unicodeLocale(app.Getenv, runtime.GOOS)}
	var err error
	if s.in, s.opened, err = app.keys(); err != nil {
		return nil, err
	}
	out := app.output()
	s.colors = app.colors(out)
	s.dark = isDark(k.Theme, app.Getenv, func() bool { return s.colors == termenv.Ascii || out.HasDarkBackground() })
	return s, nil
}

// keys is where keys come from: stdin, or the terminal itself where stdin is
// something else.
func (app *App) keys() (in *os.File, opened bool, err error) {
	if f, ok := app.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f, false, nil
	}
	in, err = openTerminal(runtime.GOOS)
	return in, true, err
}

func openTerminal(system string) (*os.File, error) {
	if system == "windows" {
		return os.OpenFile("CONIN$", os.O_RDWR, 0)
	}
	return os.Open("/dev/tty")
}

// output is stdout as termenv knows it, in the app's environment.
func (app *App) output(options ...termenv.OutputOption) *termenv.Output {
	options = append(options, termenv.WithEnvironment(environment(app.Getenv)), termenv.WithProfile(termenv.Ascii))
	return termenv.NewOutput(app.Stdout, options...)
}

// environment is the app's environment as termenv asks for it.
type environment func(string) string

// Getenv implements [termenv.Environ]. CI says nothing of colours here: the
// output is known to be a terminal.
func (e environment) Getenv(name string) string {
	if name == "CI" {
		return ""
	}
	return e(name)
}

// Environ implements [termenv.Environ].
func (e environment) Environ() []string { return nil }

// colors is how many colours may be used.
func (app *App) colors(out *termenv.Output) termenv.Profile {
	if app.global.NoColor || app.Getenv("NO_COLOR") != "" {
		return termenv.Ascii
	}
	profile := out.ColorProfile()
	if name := app.Getenv("TERM"); profile == termenv.Ascii && (strings.HasPrefix(name, "screen") || strings.HasPrefix(name, "tmux")) {
		return termenv.ANSI // multiplexers have the first colours, whatever they are called
	}
	return profile
}

// unicodeLocale reports whether the terminal is said to show UTF-8: by the first
// of the locale's variables that is set. Where none is, that is the C locale,
// but on systems whose terminals show UTF-8 without one.
func unicodeLocale(getenv func(string) string, system string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := getenv(name); locale != "" {
			locale = strings.ToLower(locale)
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return system == "darwin" || system == "windows"
}

// isDark reports whether the background is dark: as the flag says, else
// COLORFGBG, else what the terminal answers to ask. Multiplexers, which may be
// attached to several terminals, do not answer.
func isDark(theme string, getenv func(string) string, ask func() bool) bool {
	if theme != "auto" {
		return theme == "dark"
	}
	parts := strings.Split(getenv("COLORFGBG"), ";")
	if color, err := strconv.Atoi(parts[len(parts)-1]); err == nil {
		return color >= 0 && color <= 6 || color == 8
	}
	name := getenv("TERM")
	if getenv("TMUX") != "" || getenv("STY") != "" || strings.HasPrefix(name, "screen") || strings.HasPrefix(name, "tmux") {
		return true
	}
	return ask()
}

// aside is a stream whose terminal a view may hold: then whole lines go to the
// view instead, the newest of them where it does not keep up. Nobody who writes
// is ever kept waiting.
type aside struct {
	to     io.Writer
	prefix string // of lines, that the view does not need
	lines  chan string

	mu   sync.Mutex
	held bool
	part []byte
}

// Write implements [io.Writer].
func (a *aside) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.held {
		return a.to.Write(p)
	}
	a.part = append(a.part, p...)
	for {
		line, rest, whole := bytes.Cut(a.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		a.keep(strings.TrimPrefix(string(line), a.prefix))
		a.part = rest
	}
}

// keep puts a line where the view takes it from, in the place of the oldest
// where there is no room.
func (a *aside) keep(line string) {
	for {
		select {
		case a.lines <- line:
			return
		default:
		}
		select {
		case <-a.lines:
		default:
		}
	}
}

// hold is the view's coming. What goes to a file or a pipe is none of its
// business.
func (a *aside) hold() {
	if f, ok := a.to.(*os.File); ok && !term.IsTerminal(int(f.Fd())) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = true
}

// release is its going: what it has not shown is written now.
func (a *aside) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = false
	for {
		select {
		case line := <-a.lines:
			fmt.Fprintf(a.to, "%s%s\n", a.prefix, line) //nolint:errcheck // of the conversation
			continue
		default:
		}
		a.to.Write(a.part) //nolint:errcheck // of the conversation
		a.part = nil
		return
	}
}

// notesKept is how many lines wait for the view at most.
const notesKept = 64

// under is the app for what works under a view, and its stderr.
func (app *App) under() (*aside, *App) {
	quiet := &aside{to: app.Stderr, prefix: "canaryctl: ", lines: make(chan string, notesKept)}
	under := *app
	under.Stderr = quiet
	return quiet, &under
}
