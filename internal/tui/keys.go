package tui

import (
	"github.com/charmbracelet/bubbles/key"
)

// keyMap is every key of the view. The help, in the last line and on the whole
// screen, is generated from it.
type keyMap struct {
	Pause, Approve, RollBack key.Binding

	Next, Previous key.Binding // signal
	Later, Earlier key.Binding // event
	Unfold         key.Binding
	Pane           key.Binding // chart, events or both

	Play               key.Binding // of a replay
	Forward, Back      key.Binding
	NextMark, LastMark key.Binding
	Home, End          key.Binding
	Faster, Slower     key.Binding

	Confirm, Cancel key.Binding
	Help            key.Binding
	Suspend         key.Binding
	Quit            key.Binding
	Interrupt       key.Binding
}

func bind(help, does string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, does))
}

// newKeyMap is all keys, as they are without a release to act on.
func newKeyMap(g *Glyphs) keyMap {
	return keyMap{
		Pause:    bind("p", "pause", "p"),
		Approve:  bind("a", "approve", "a"),
		RollBack: bind("r", "roll back", "r"),

		Next: bind("j", "next signal", "j", "tab"), Previous: bind("k", "signal before", "k", "shift+tab"),
		Earlier: bind(g.Up, "event before", "up"), Later: bind(g.Down, "next event", "down"),
		Unfold: bind("enter", "unfold event", "enter"),
		Pane:   bind("c", "chart/events", "c"),

		Play: bind("space", "play/stop", " "), Forward: bind(g.Right, "next window", "right", "l"),
		Back: bind(g.Left, "back", "left", "h"), NextMark: bind("]", "next event", "]"),
		LastMark: bind("[", "event before", "["), Home: bind("home", "first window", "home", "g"),
		End: bind("end", "last window", "end", "G"), Faster: bind("+", "faster", "+", "="), Slower: bind("-", "slower", "-"),

		Confirm: bind("enter", "does it", "enter"), Cancel: bind("esc", "leaves it", "esc"),
		Help: bind("?", "all keys", "?"), Suspend: bind("ctrl+z", "to the shell", "ctrl+z"),
		Quit: bind("q", "quit", "q"), Interrupt: bind("ctrl+c", "interrupt", "ctrl+c"),
	}
}

// all is every key, in the order of the help.
func (k *keyMap) all() []key.Binding {
	return []key.Binding{
		k.Pause, k.Approve, k.RollBack,
		k.Play, k.Forward, k.Back, k.NextMark, k.LastMark, k.Home, k.End, k.Faster, k.Slower,
		k.Next, k.Previous, k.Earlier, k.Later, k.Unfold, k.Pane,
		k.Help, k.Suspend, k.Quit, k.Interrupt,
	}
}
