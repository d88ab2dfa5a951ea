// Screencast records a terminal program as an animated SVG: it runs the program
// in tmux, presses keys, takes the screen after each of them, and writes what was
// seen one after the other. The picture of the README is made by it:
//
//	go run ./examples/screencast -size 100x30 -out docs/watch.svg \
//	    -keys "home:2 right:3 enter:4 enter:1 right:1" -- bin/canaryctl watch --replay incident-0217
//
// A key is one as tmux names it, and for how many seconds its screen is shown.
// The same program and keys give the same picture: nothing is taken by the clock,
// but when the screen has stopped changing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	size := flag.String("size", "100x30", "columns and rows of the terminal")
	out := flag.String("out", "", "file to write")
	keys := flag.String("keys", "", "keys and the seconds that each screen is shown, such as \"right:0.5 q:1\"")
	title := flag.String("title", "", "what the picture shows, for those who cannot see it")
	flag.Parse()
	if err := record(*size, *keys, *title, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "screencast:", err)
		os.Exit(1)
	}
}

// screen is what was seen after a key.
type screen struct {
	lines   []string // with their escape sequences
	seconds float64
}

func record(size, keys, title, out string, program []string) error {
	cols, rows, err := sizeOf(size)
	if err != nil {
		return err
	}
	if out == "" || len(program) == 0 {
		return errors.New("give -out FILE and the program behind --")
	}
	t, err := start(cols, rows, program)
	if err != nil {
		return err
	}
	defer t.stop()
	var screens []screen
	for _, k := range strings.Fields(keys) {
		name, text, _ := strings.Cut(k, ":")
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds <= 0 {
			return fmt.Errorf("key %q: for how many seconds is it shown?", k)
		}
		lines, err := t.press(name)
		if err != nil {
			return err
		}
		screens = append(screens, screen{lines, seconds})
	}
	picture := draw(screens, cols, rows, title)
	aside := out + ".part"
	if err := os.WriteFile(aside, []byte(picture), 0o644); err != nil {
		return err
	}
	return os.Rename(aside, out)
}

func sizeOf(text string) (cols, rows int, err error) {
	if _, err := fmt.Sscanf(text, "%dx%d", &cols, &rows); err != nil || cols < 10 || rows < 2 {
		return 0, 0, fmt.Errorf("-size %s: columns and rows, such as 100x30", text)
	}
	return cols, rows, nil
}

// terminal is a tmux server with one window, of its own.
type terminal struct {
	socket string
}

func start(cols, rows int, program []string) (*terminal, error) {
	dir, err := os.MkdirTemp("", "screencast-")
	if err != nil {
		return nil, err
	}
	t := &terminal{socket: filepath.Join(dir, "tmux")}
	args := append([]string{"-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows),
		"-e", "COLORTERM=truecolor", "-e", "LANG=C.UTF-8", "-e", "LC_ALL=C.UTF-8"}, program...)
	if _, err := t.tmux(args...); err != nil {
		return nil, err
	}
	if _, err := t.tmux("set", "-g", "status", "off", ";", "set", "-sa", "terminal-overrides", ",*:RGB"); err != nil {
		return nil, err
	}
	if _, err := t.tmux("resize-window", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows)); err != nil {
		return nil, err
	}
	_, err = t.still()
	return t, err
}

// stop ends the server and takes its socket away.
func (t *terminal) stop() {
	t.tmux("kill-server") //nolint:errcheck // it may have ended with the program
	os.RemoveAll(filepath.Dir(t.socket))
}

func (t *terminal) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", t.socket}, args...)...)
	b, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, strings.TrimSpace(string(b)))
	}
	return string(b), nil
}

// press presses a key and returns the screen that it leads to.
func (t *terminal) press(key string) ([]string, error) {
	if _, err := t.tmux("send-keys", key); err != nil {
		return nil, err
	}
	text, err := t.still()
	return strings.Split(strings.TrimRight(text, "\n"), "\n"), err
}

// still waits until the screen has stopped changing, for up to ten seconds.
func (t *terminal) still() (string, error) {
	last := ""
	same := 0
	for range 100 {
		time.Sleep(100 * time.Millisecond)
		text, err := t.tmux("capture-pane", "-e", "-p")
		if err != nil {
			return "", err
		}
		if same++; text != last || strings.TrimSpace(text) == "" {
			same = 0
		}
		if last = text; same == 3 {
			return text, nil
		}
	}
	return "", errors.New("the screen does not stop changing")
}
