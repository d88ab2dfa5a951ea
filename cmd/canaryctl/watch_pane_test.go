//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/servertest"
)

// pane is a terminal with a shell in it: bash in a tmux server of its own, which
// ends with the test.
type pane struct {
	t      *testing.T
	tmux   string
	socket string
	looks  int // at the terminal's modes
}

// patience is how long a screen may take to show what it must.
const patience = 30 * time.Second

// openPane starts a shell in a folder, in a terminal of so many columns and
// rows. The environment has nothing of the tests' own; env is added to it.
func openPane(t *testing.T, cols, rows int, dir string, env ...string) *pane {
	t.Helper()
	bash := servertest.Program(t, "bash", "bash")
	p := &pane{t: t, tmux: servertest.Program(t, "tmux", "tmux"), socket: filepath.Join(shortDir(t), "tmux")}
	args := []string{"-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "-c", dir}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	cmd := p.command(append(args, bash, "--norc", "--noprofile")...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + filepath.Dir(canaryctl(t)) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir, "SHELL=" + bash, "PS1=$ ", "HISTFILE=", "USER=ann", "LANG=C.UTF-8", "COLORTERM=truecolor",
		raceOptions + "=" + os.Getenv(raceOptions),
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if p.command("has-session").Run() != nil {
			return // the test has ended it
		}
		if t.Failed() {
			t.Logf("the screen at the end:\n%s", p.screen())
		}
		left := p.children()
		p.run("kill-server")
		for _, pid := range left { // run --tui outlives its terminal
			syscall.Kill(pid, syscall.SIGTERM) //nolint:errcheck // it may have ended
		}
	})
	p.run("set", "-g", "status", "off", ";", "set", "-g", "escape-time", "0")
	p.resize(cols, rows)
	p.shows("$")
	return p
}

// children are the processes that the pane's shell has started and that are
// still there.
func (p *pane) children() (out []int) {
	shell := strings.TrimSpace(p.run("display", "-p", "#{pane_pid}"))
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		p.t.Error(err)
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid ...: the name may have anything in it.
		rest := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && len(rest) > 1 && rest[1] == shell {
			out = append(out, pid)
		}
	}
	return out
}

func (p *pane) command(args ...string) *exec.Cmd {
	return exec.Command(p.tmux, append([]string{"-u", "-S", p.socket}, args...)...)
}

// run gives tmux a command and returns what it prints.
func (p *pane) run(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Errorf("tmux %s: %v: %s", args[0], err, out)
	}
	return string(out)
}

// enter types a line for the shell, or for whoever reads.
func (p *pane) enter(line string) {
	p.t.Helper()
	p.text(line)
	p.keys("Enter")
}

// text types text.
func (p *pane) text(text string) {
	p.t.Helper()
	p.run("send-keys", "-l", text)
}

// keys presses keys, by tmux's names.
func (p *pane) keys(names ...string) {
	p.t.Helper()
	p.run(append([]string{"send-keys"}, names...)...)
}

func (p *pane) resize(cols, rows int) {
	p.t.Helper()
	p.run("resize-window", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows))
}

// screen is what the terminal shows, without blanks at the end of lines and
// without empty lines at its end.
func (p *pane) screen() string {
	p.t.Helper()
	return strings.TrimRight(p.run("capture-pane", "-p"), "\n") + "\n"
}

// wait waits until the screen is as it must be, and returns it.
func (p *pane) wait(what string, is func(screen string) bool) string {
	p.t.Helper()
	end := time.Now().Add(patience)
	for {
		screen := p.screen()
		if is(screen) {
			return screen
		}
		if time.Now().After(end) {
			p.t.Fatalf("the screen never %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// shows waits until all of these are on the screen.
func (p *pane) shows(texts ...string) string {
	p.t.Helper()
	return p.wait(fmt.Sprintf("shows %q", texts), func(screen string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) })
	})
}

// loses waits until none of these is on the screen any more.
func (p *pane) loses(texts ...string) string {
	p.t.Helper()
	return p.wait(fmt.Sprintf("loses %q", texts), func(screen string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(screen, text) })
	})
}

// exits waits for the exit code that a line ending in tellExit prints, and for
// the terminal to be as a shell needs it.
func (p *pane) exits(code int) string {
	p.t.Helper()
	screen := p.shows(fmt.Sprintf("exit %d\n", code))
	p.restored()
	return screen
}

const tellExit = `; echo "exit $?"`

// restored asserts that the shell has its terminal back.
func (p *pane) restored() {
	p.t.Helper()
	// mouse_any_flag: of any kind of mouse reports
	if got := strings.TrimSpace(p.run("display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")); got != "0 1 0" {
		p.t.Errorf("alternate screen, cursor, mouse are %s, want 0 1 0", got)
	}
	p.looks++
	name := fmt.Sprintf("stty-%d", p.looks)
	p.enter(fmt.Sprintf("stty -a | tr ' ;' '\\n\\n' > %s; echo 'see' %[1]s", name))
	p.shows("see " + name + "\n")
	words := strings.Fields(p.file(name))
	for _, mode := range []string{"echo", "icanon", "isig", "icrnl", "opost", "onlcr"} {
		if !slices.Contains(words, mode) {
			p.t.Errorf("the terminal is left without %s", mode)
		}
	}
}

// file reads a file of the shell's folder.
func (p *pane) file(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(p.run("display", "-p", "#{pane_current_path}")), name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// frames is a recording of a screen: the frames after each key, one after the
// other, against testdata/watch.
type frames struct {
	p    *pane
	path string
	want []string // nil: they are written
	got  []string
	look func() string
}

// between stands between a frame and the next; what led to that one follows.
const between = "\x0c== "

// record compares what look sees of the terminal.
func (p *pane) record(name string, look func() string) *frames {
	p.t.Helper()
	f := &frames{p: p, path: filepath.Join("testdata", "watch", name), look: look}
	if !*update {
		b, err := os.ReadFile(f.path)
		if err != nil {
			p.t.Fatalf("%v; -update writes it", err)
		}
		f.want = strings.Split(string(b), between)[1:]
	}
	p.t.Cleanup(f.close)
	return f
}

// frame compares the screen with the next frame, as soon as it is the same, or
// when it has had time enough.
func (f *frames) frame(after string) {
	f.p.t.Helper()
	if *update {
		f.got = append(f.got, after+"\n"+f.still())
		return
	}
	if len(f.got) == len(f.want) {
		f.p.t.Fatalf("%s has no frame after %s", f.path, after)
	}
	want := f.want[len(f.got)]
	got := ""
	for end := time.Now().Add(patience / 3); got != want; <-time.After(20 * time.Millisecond) {
		if got = after + "\n" + f.look(); time.Now().After(end) {
			f.p.t.Fatalf("%s, frame %d (-want +got):\n%s", f.path, len(f.got), cmp.Diff(want, got))
		}
	}
	f.got = append(f.got, got)
}

// still waits until the screen does not change any more.
func (f *frames) still() string {
	last, same := "", 0
	for same < 20 {
		<-time.After(20 * time.Millisecond)
		now := f.look()
		if same++; now != last {
			last, same = now, 0
		}
	}
	return last
}

// press presses a key and compares what comes of it.
func (f *frames) press(keys ...string) {
	f.p.t.Helper()
	for _, key := range keys {
		f.p.keys(key)
		f.frame(key)
	}
}

// close writes the frames, or demands that there were all of them.
func (f *frames) close() {
	switch {
	case f.p.t.Failed():
	case *update:
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			f.p.t.Error(err)
		}
		text := between + strings.Join(f.got, between)
		if err := os.WriteFile(f.path, []byte(text), 0o644); err != nil {
			f.p.t.Error(err)
		}
	case len(f.got) < len(f.want):
		f.p.t.Errorf("%s has %d frames, seen were %d", f.path, len(f.want), len(f.got))
	}
}

// styled is the screen with how it is drawn: {bold fg=5;78} before what is drawn
// so, {} before what is not drawn in any way.
func (p *pane) styled() string {
	p.t.Helper()
	return inWords(strings.TrimRight(p.run("capture-pane", "-p", "-e"), "\n")) + "\n"
}

var (
	sgr = regexp.MustCompile(`\x1b\[([0-9;:]*)m`)
)

// inWords replaces the sequences of Select Graphic Rendition (ECMA-48, 8.3.117)
// by what they lead to. How a style is reached differs from one tmux to another.
func inWords(text string) string {
	var b strings.Builder
	style, said, at := map[string]string{}, "{}", 0
	flush := func(plain string) {
		if plain == "" {
			return
		}
		if now := styleWords(style); now != said {
			b.WriteString(now)
			said = now
		}
		b.WriteString(plain)
	}
	for _, m := range sgr.FindAllStringSubmatchIndex(text, -1) {
		flush(text[at:m[0]])
		applySGR(style, strings.FieldsFunc(text[m[2]:m[3]], func(r rune) bool { return r == ';' || r == ':' }))
		at = m[1]
	}
	flush(text[at:])
	return b.String()
}

var styleOrder = []string{"bold", "faint", "italic", "underline", "blink", "reverse", "fg", "bg"}

func styleWords(style map[string]string) string {
	var words []string
	for _, name := range styleOrder {
		switch value, on := style[name]; {
		case on && value != "":
			words = append(words, name+"="+value)
		case on:
			words = append(words, name)
		}
	}
	return "{" + strings.Join(words, " ") + "}"
}

// applySGR changes a style by the parameters of a sequence.
func applySGR(style map[string]string, args []string) {
	if len(args) == 0 {
		args = []string{"0"}
	}
	on := map[int]string{1: "bold", 2: "faint", 3: "italic", 4: "underline", 5: "blink", 7: "reverse"}
	off := map[int][]string{22: {"bold", "faint"}, 23: {"italic"}, 24: {"underline"}, 25: {"blink"}, 27: {"reverse"}, 39: {"fg"}, 49: {"bg"}}
	for i := 0; i < len(args); i++ {
		n, _ := strconv.Atoi(args[i]) // digits, as the expression has it
		switch {
		case n == 0:
			clear(style)
		case on[n] != "":
			style[on[n]] = ""
		case off[n] != nil:
			for _, name := range off[n] {
				delete(style, name)
			}
		case n == 38 || n == 48:
			length := 3 // of 5;N
			if i+1 < len(args) && args[i+1] == "2" {
				length = 5 // of 2;R;G;B
			}
			end := min(i+length, len(args))
			style[map[int]string{38: "fg", 48: "bg"}[n]] = strings.Join(args[i+1:end], ";")
			i = end - 1
		case n >= 30 && n <= 37 || n >= 90 && n <= 97:
			style["fg"] = args[i]
		case n >= 40 && n <= 47 || n >= 100 && n <= 107:
			style["bg"] = args[i]
		}
	}
}

// TestStylesInWords holds the reading of escape sequences, on which other tests
// rest, against sequences of known meaning.
func TestStylesInWords(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "a b", "a b"},
		{"one colour of all", "a\x1b[38;2;255;107;107mb\x1b[39mc", "a{fg=2;255;107;107}b{}c"},
		{"of 256, and bold in the same sequence", "\x1b[1;38;5;78mb\x1b[0mc", "{bold fg=5;78}b{}c"},
		{"of 16", "\x1b[91mb\x1b[mc", "{fg=91}b{}c"},
		{"bold off leaves reverse", "\x1b[1m\x1b[7mb\x1b[22mc", "{bold reverse}b{reverse}c"},
		{"what nothing is drawn in is not said", "\x1b[1m\x1b[0ma", "a"},
		{"a background", "\x1b[48;5;1;2mb", "{faint bg=5;1}b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := inWords(tt.text); got != tt.want {
				t.Errorf("%q is %s, want %s", tt.text, got, tt.want)
			}
		})
	}
}
