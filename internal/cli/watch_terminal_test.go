package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/muesli/termenv"
)

// env is an environment of pairs.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestColorsOfATerminal(t *testing.T) {
	for _, tt := range []struct {
		name    string
		env     []string
		noColor bool
		want    termenv.Profile
	}{
		{name: "a plain xterm has 16", env: []string{"TERM", "xterm"}, want: termenv.ANSI},
		{name: "the console of Linux has 16", env: []string{"TERM", "linux"}, want: termenv.ANSI},
		{name: "xterm-256color has 256", env: []string{"TERM", "xterm-256color"}, want: termenv.ANSI256},
		{name: "tmux has 256", env: []string{"TERM", "tmux-256color"}, want: termenv.ANSI256},
		{name: "COLORTERM=truecolor has all", env: []string{"TERM", "xterm-256color", "COLORTERM", "truecolor"}, want: termenv.TrueColor},
		{name: "COLORTERM=truecolor within screen has 256", env: []string{"TERM", "screen-256color", "COLORTERM", "truecolor"}, want: termenv.ANSI256},
		{name: "COLORTERM=truecolor within tmux has all", env: []string{"TERM", "screen-256color", "COLORTERM", "truecolor", "TERM_PROGRAM", "tmux"}, want: termenv.TrueColor},
		{name: "a vt100 has none", env: []string{"TERM", "vt100"}, want: termenv.Ascii},
		{name: "a terminal without a name has none", want: termenv.Ascii},
		{name: "NO_COLOR takes them away", env: []string{"TERM", "xterm-256color", "COLORTERM", "truecolor", "NO_COLOR", "1"}, want: termenv.Ascii},
		{name: "an empty NO_COLOR does not", env: []string{"TERM", "xterm-256color", "NO_COLOR", ""}, want: termenv.ANSI256},
		{name: "--no-color takes them away", env: []string{"TERM", "xterm-256color"}, noColor: true, want: termenv.Ascii},
		{name: "CLICOLOR is not looked at", env: []string{"TERM", "xterm-256color", "CLICOLOR", "0"}, want: termenv.ANSI256},
		{name: "nor is CI: it is a terminal", env: []string{"TERM", "xterm-256color", "CI", "true"}, want: termenv.ANSI256},
	} {
		t.Run(tt.name, func(t *testing.T) {
			app := &App{Stdout: &bytes.Buffer{}, Getenv: env(tt.env...)}
			app.global.NoColor = tt.noColor
			if got := app.colors(app.output(termenv.WithTTY(true))); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestMarksOfALocale(t *testing.T) {
	for _, tt := range []struct {
		name    string
		env     []string
		system  string
		unicode bool
	}{
		{"LANG in UTF-8", []string{"LANG", "de_DE.UTF-8"}, "linux", true},
		{"LANG in utf8, as glibc prints it", []string{"LANG", "de_DE.utf8"}, "linux", true},
		{"with a modifier", []string{"LANG", "de_DE.UTF-8@euro"}, "linux", true},
		{"C.UTF-8", []string{"LANG", "C.UTF-8"}, "linux", true},
		{"LANG without a charset", []string{"LANG", "de_DE"}, "linux", false},
		{"another charset", []string{"LANG", "de_DE.ISO-8859-1"}, "linux", false},
		{"C", []string{"LANG", "C"}, "darwin", false},
		{"POSIX", []string{"LC_ALL", "POSIX"}, "linux", false},
		{"LC_ALL before LANG", []string{"LC_ALL", "C", "LANG", "de_DE.UTF-8"}, "linux", false},
		{"LC_CTYPE before LANG", []string{"LC_CTYPE", "UTF-8", "LANG", "C"}, "linux", true},
		{"LC_ALL before LC_CTYPE", []string{"LC_ALL", "C", "LC_CTYPE", "UTF-8"}, "linux", false},
		{"an empty one is not set", []string{"LC_ALL", "", "LANG", "en_US.UTF-8"}, "linux", true},
		{"none on Linux is C", nil, "linux", false},
		{"none on macOS", nil, "darwin", true},
		{"none on Windows", nil, "windows", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := unicodeLocale(env(tt.env...), tt.system); got != tt.unicode {
				t.Errorf("%v, want %v", got, tt.unicode)
			}
		})
	}
}

func TestTheTerminalIsAskedOnlyWhereNothingElseTells(t *testing.T) {
	for _, tt := range []struct {
		name   string
		theme  string
		env    []string
		answer bool
		dark   bool
		asked  bool
	}{
		{name: "--theme dark", theme: "dark", env: []string{"COLORFGBG", "0;15"}, dark: true},
		{name: "--theme light", theme: "light", env: []string{"COLORFGBG", "15;0"}},
		{name: "black by COLORFGBG", theme: "auto", env: []string{"COLORFGBG", "15;0"}, dark: true},
		{name: "three parts", theme: "auto", env: []string{"COLORFGBG", "15;default;0"}, dark: true},
		{name: "bright black", theme: "auto", env: []string{"COLORFGBG", "15;8"}, dark: true},
		{name: "white", theme: "auto", env: []string{"COLORFGBG", "0;15"}},
		{name: "light grey", theme: "auto", env: []string{"COLORFGBG", "0;7"}},
		{name: "a default background is no answer", theme: "auto", env: []string{"COLORFGBG", "12;default"}, asked: true},
		{name: "the terminal says light", theme: "auto", env: []string{"TERM", "xterm-256color"}, asked: true},
		{name: "the terminal says dark", theme: "auto", env: []string{"TERM", "xterm-256color"}, answer: true, dark: true, asked: true},
		{name: "within tmux", theme: "auto", env: []string{"TERM", "tmux-256color"}, dark: true},
		{name: "within tmux under another name", theme: "auto", env: []string{"TERM", "xterm-256color", "TMUX", "/tmp/tmux-0/default,1,0"}, dark: true},
		{name: "within screen", theme: "auto", env: []string{"TERM", "screen"}, dark: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			got := isDark(tt.theme, env(tt.env...), func() bool { asked = true; return tt.answer })
			if got != tt.dark || asked != tt.asked {
				t.Errorf("dark %v, asked %v; want %v, %v", got, asked, tt.dark, tt.asked)
			}
		})
	}
}

func TestNoViewWithoutATerminal(t *testing.T) {
	app := &App{Stdout: &bytes.Buffer{}, Getenv: env("TERM", "xterm")}
	if app.drawable() {
		t.Error("a buffer can be drawn on")
	}
	if _, err := app.screen(looks{Theme: "auto"}); !errors.Is(err, errNoTerminal) {
		t.Errorf("screen: %v", err)
	}
	if _, err := app.runView("text", looks{Theme: "auto"}); codeOf(err) != ExitUsage {
		t.Errorf("run --tui: %v", err)
	}
}

func TestAStreamUnderAView(t *testing.T) {
	var to bytes.Buffer
	a := &aside{to: &to, prefix: "canaryctl: ", lines: make(chan string, 2)}
	write := func(text string) {
		t.Helper()
		if n, err := a.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	write("canaryctl: before\n")
	a.hold()
	write("canaryctl: one\ncanaryctl: tw")
	write("o\ncanaryctl: three\npart")
	if got := to.String(); got != "canaryctl: before\n" {
		t.Errorf("under the screen was written %q", got)
	}
	if line := <-a.lines; line != "two" {
		t.Errorf("the view gets %q, want two: the oldest goes where there is no room", line)
	}
	a.release()
	write(" of a line\n")
	if want := "canaryctl: before\ncanaryctl: three\npart of a line\n"; to.String() != want {
		t.Errorf("in the end:\n%s\nwant:\n%s", to.String(), want)
	}
}

func TestAViewKeepsNobodyWaiting(t *testing.T) {
	quiet, under := (&App{Stderr: &bytes.Buffer{}}).under()
	quiet.hold()
	for i := range 10 * notesKept {
		under.warn("%d", i) // would block for ever
	}
	if first := <-quiet.lines; !strings.HasSuffix(first, "warning: 576") {
		t.Errorf("the oldest that is kept is %q", first)
	}
}
