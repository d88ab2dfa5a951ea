package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// idle is a feed that has nothing new, and actions that nobody takes.
type idle struct{}

func (idle) Next(ctx context.Context) (watch.Snapshot, error) {
	<-ctx.Done()
	return watch.Snapshot{}, ctx.Err()
}

func (idle) Do(Action, *watch.Snapshot, string) (string, error) { return "", nil }

// liveModel is a view of a live release that has not been seen yet.
func liveModel() model {
	o := &Options{Feed: idle{}, Actions: idle{}, Now: func() time.Time { return noon }, Colors: termenv.Ascii, Dark: true}
	return newModel(context.Background(), o, o.theme())
}

// pressed is a model after keys, of which each comes when what the one before
// has led to could be read.
func pressed(m model, keys ...string) model {
	for _, k := range keys {
		next, _ := m.Update(keyMsg(k))
		m = hasRead(next.(model))
	}
	return m
}

// hasRead is a model whose question has stood there long enough.
func hasRead(m model) model {
	if m.asking == nil {
		return m
	}
	next, _ := m.Update(readMsg{m.asking})
	return next.(model)
}

// keyMsg is a key by its name.
func keyMsg(name string) tea.KeyMsg {
	special := map[string]tea.KeyType{
		"enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"home": tea.KeyHome, "end": tea.KeyEnd, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "ctrl+c": tea.KeyCtrlC, "ctrl+z": tea.KeyCtrlZ,
		"backspace": tea.KeyBackspace,
	}
	if t, ok := special[name]; ok {
		return tea.KeyMsg{Type: t}
	}
	if name == " " {
		return tea.KeyMsg{Type: tea.KeySpace, Runes: []rune(" ")}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// boxed puts a frame into a box of the terminal's size, so that a golden file
// shows where its edges are, and fails where a line does not fit.
func boxed(t *testing.T, frame string, w, h int) string {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > h {
		t.Errorf("%d lines in a terminal of %d", len(lines), h)
	}
	var b strings.Builder
	b.WriteString("+" + strings.Repeat("-", w) + "+\n")
	for _, line := range lines {
		width := ansi.StringWidth(line)
		if width > w {
			t.Errorf("a line of %d columns in a terminal of %d: %q", width, w, line)
		}
		b.WriteString("|" + line + strings.Repeat(" ", max(w-width, 0)) + "|\n")
	}
	b.WriteString("+" + strings.Repeat("-", w) + "+\n")
	return b.String()
}

func TestEveryStateHasItsFrame(t *testing.T) {
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range sizes {
				b.WriteString(sizeName(size.w, size.h) + "\n" + boxed(t, s.frame(size.w, size.h), size.w, size.h))
			}
			golden(t, "frames/"+s.name+".txt", b.String())
		})
	}
}

func TestEveryStateFitsEverySize(t *testing.T) {
	for _, s := range states {
		for w := 1; w <= 200; w += 7 {
			for _, h := range []int{1, 5, 11, 12, 13, 15, 19, 24, 25, 50, 90} {
				boxed(t, s.frame(w, h), w, h)
			}
		}
	}
}
