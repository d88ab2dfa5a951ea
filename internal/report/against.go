package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Comparison is one feed under two configurations.
type Comparison struct {
	Name        string
	Scene       string // "": the whole service
	LeftConfig  string // what is in force: the scenario's plan or a file
	RightConfig string // --against
	Left, Right *simulate.Outcome
}

// Change is one thing that either replay did, or both at different minutes.
type Change struct {
	What  string `json:"what"`
	Left  *int   `json:"minute"`         // null: it did not happen there
	Right *int   `json:"against_minute"` // null: nor there
	Why   string `json:"why"`
}

// ComparisonJSON is the JSON form of a Comparison.
type ComparisonJSON struct {
	Schema   int            `json:"schema"`
	Scenario string         `json:"scenario"`
	Scene    string         `json:"scene,omitempty"`
	Config   string         `json:"config"`
	Against  string         `json:"against"`
	Same     bool           `json:"same"`
	Changes  []Change       `json:"changes"`
	Exposure [2]int64       `json:"exposure_requests"`
	Final    [2]comparedEnd `json:"final"`
}

type comparedEnd struct {
	State string  `json:"state"`
	Pct   float64 `json:"pct"`
	Step  int     `json:"step"`
}

// Changes lists what differs, in order of time: the n-th of a kind of move in
// one replay is held against the n-th in the other.
func (c *Comparison) Changes() []Change {
	left, right := movesOf(c.Left), movesOf(c.Right)
	out := []Change{}
	i, j := 0, 0
	for i < len(left) || j < len(right) {
		switch {
		case i < len(left) && j < len(right) && left[i].key() == right[j].key():
			if left[i].Minute != right[j].Minute {
				out = append(out, Change{What: left[i].key(), Left: &left[i].Minute, Right: &right[j].Minute, Why: right[j].Reason()})
			}
			i, j = i+1, j+1
		case j >= len(right) || i < len(left) && left[i].Minute <= right[j].Minute:
			out = append(out, Change{What: left[i].key(), Left: &left[i].Minute, Why: left[i].Reason()})
			i++
		default:
			out = append(out, Change{What: right[j].key(), Right: &right[j].Minute, Why: right[j].Reason()})
			j++
		}
	}
	return out
}

type keyedMove struct{ *simulate.Move }

func movesOf(o *simulate.Outcome) []keyedMove {
	out := make([]keyedMove, len(o.Moves))
	for i := range o.Moves {
		out[i] = keyedMove{&o.Moves[i]}
	}
	return out
}

// key names a move so that the same move of two replays is the same text.
func (m keyedMove) key() string {
	text := fmt.Sprintf("%s to %s", m.Move.Move, m.Weight)
	if m.Happened && m.Event.To == release.Open {
		text += " by " + m.Event.Finding.Signal.String()
	}
	return text
}

// JSON returns the document.
func (c *Comparison) JSON() ComparisonJSON {
	changes := c.Changes()
	doc := ComparisonJSON{
		Schema: schemaVersion, Scenario: c.Name, Scene: c.Scene, Config: c.LeftConfig, Against: c.RightConfig,
		Same: len(changes) == 0, Changes: changes,
		Exposure: [2]int64{c.Left.Exposure.Requests, c.Right.Exposure.Requests},
	}
	for i, o := range []*simulate.Outcome{c.Left, c.Right} {
		doc.Final[i] = comparedEnd{State: o.Last.Phase.String(), Pct: pct(o.Last.Weight), Step: o.Last.Step + 1}
	}
	return doc
}

// Text writes the differences side by side.
func (c *Comparison) Text(w io.Writer, style Style) error {
	var b strings.Builder
	changes := c.Changes()
	fmt.Fprintf(&b, "%s: %s against %s\n", style.paint(bold, plain(inScene(c.Name, c.Scene))), plain(c.LeftConfig), plain(c.RightConfig))
	if len(changes) == 0 {
		fmt.Fprintf(&b, "  no decision differs\n")
	} else {
		fmt.Fprintf(&b, "  %8s  %8s  decision\n", "minute", "against")
	}
	for i, ch := range changes {
		if i == shown {
			fmt.Fprintf(&b, "  ... %d more; -o json has them all\n", len(changes)-shown)
			break
		}
		fmt.Fprintf(&b, "  %8s  %8s  %s (%s)\n", minuteOrDash(ch.Left), minuteOrDash(ch.Right), ch.What, ch.Why)
	}
	fmt.Fprintf(&b, "  exposure  %s requests, against %s\n", thousands(c.Left.Exposure.Requests), thousands(c.Right.Exposure.Requests))
	for i, o := range []*simulate.Outcome{c.Left, c.Right} {
		fmt.Fprintf(&b, "  %-9s breaker %s, share %s, step %d of %d\n", []string{"at end", "against"}[i], o.Last.Phase, o.Last.Weight, o.Last.Step+1, o.Last.Steps)
	}
	return style.write(w, b.String())
}

func minuteOrDash(m *int) string {
	if m == nil {
		return "-"
	}
	return fmt.Sprint(*m)
}
