package tui

// Glyphs are the marks of the view. Each says by its shape what the colour beside
// it says.
type Glyphs struct {
	Pass, Fail, Few, None, Unknown, Would, Off, Idle string // of verdicts, one column each

	Current, Arrow        string // of the ladder
	Full, Empty           string // of bars
	Spark                 []rune // from the lowest to the highest
	Canary, Stable        string // of charts
	Limit                 string
	Axis, Corner          string
	Rule                  string // of headings
	Chosen                string // before the row that keys act on
	More                  string // instead of what does not fit
	Dot                   string // between facts of a line
	Per                   string // multiplied by: the unit of ratios
	Up, Down, Left, Right string // keys
}

// Unicode is for terminals that show UTF-8.
var Unicode = Glyphs{
	Pass: "✓", Fail: "✗", Few: "?", None: "∅", Unknown: "!", Would: "~", Off: "-", Idle: "·",
	Current: "●", Arrow: "›", Full: "█", Empty: "░", Spark: []rune("▁▂▃▄▅▆▇█"),
	Canary: "●", Stable: "·", Limit: "─", Axis: "│", Corner: "└", Rule: "─",
	Chosen: "▸", More: "…", Dot: "·", Per: "×", Up: "↑", Down: "↓", Left: "←", Right: "→",
}

// ASCII is for those that do not.
var ASCII = Glyphs{
	Pass: "+", Fail: "x", Few: "?", None: "0", Unknown: "!", Would: "~", Off: "-", Idle: ".",
	Current: "*", Arrow: ">", Full: "#", Empty: ".", Spark: []rune("_.-:=+*#"),
	Canary: "o", Stable: ".", Limit: "-", Axis: "|", Corner: "+", Rule: "-",
	Chosen: ">", More: "~", Dot: "|", Per: "x", Up: "up", Down: "down", Left: "left", Right: "right",
}
