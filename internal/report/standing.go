package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Standing is where a live release stands after a command: its JSON is that of
// `promote`, `status` and the other commands that move or show a release.
type Standing struct {
	Schema   int           `json:"schema"`
	Command  string        `json:"command"`
	Service  string        `json:"service"`         // of a scene SERVICE/SCENE
	Scene    string        `json:"scene,omitempty"` // "": the whole service
	Release  string        `json:"release"`         // id, the first 12 digits
	Decision string        `json:"decision"`
	Why      string        `json:"why"`
	Step     int           `json:"step"` // from 1; 0: not started
	Steps    int           `json:"steps"`
	Pct      float64       `json:"pct"` // weight to be in force after the decision, as a fraction of 1
	Attempt  int           `json:"attempt"`
	Breaker  string        `json:"breaker"`
	Stage    string        `json:"stage"`
	Locked   bool          `json:"locked"`
	Paused   bool          `json:"paused"`
	Verdict  *string       `json:"verdict"` // the gate's; null: nothing was judged
	Verdicts []VerdictJSON `json:"verdicts"`
	Reason   string        `json:"reason"`
	Left     *int64        `json:"remaining_s"` // null: nobody can say
	Held     int64         `json:"held_s"`
	Hold     int64         `json:"min_hold_s"`
	Overdue  bool          `json:"overdue"`
	Next     string        `json:"next"`
	Exit     int           `json:"exit_code"`
	DryRun   bool          `json:"dry_run,omitempty"`

	Target   *Reading         `json:"target"`
	Share    *ShareSeen       `json:"share"`
	Source   *SourceSeen      `json:"source"`
	Wrote    *Written         `json:"write"`
	Exposure release.Exposure `json:"exposure"` // of the present attempt
	Rollback any              `json:"rollback"` // the newest record, null: none
	Error    string           `json:"error,omitempty"`
	Notes    []string         `json:"notes,omitempty"`
}

// Reading is the target's weight as last read.
type Reading struct {
	Name  string   `json:"name"`
	Pct   *float64 `json:"pct"` // null: not read
	At    string   `json:"at,omitempty"`
	By    string   `json:"moved_by,omitempty"`
	Error string   `json:"error,omitempty"`
}

// ShareSeen is what both arms were seen to serve under the weight in force.
type ShareSeen struct {
	Pct      float64 `json:"pct"`
	Of       int64   `json:"of"`
	Users    bool    `json:"users"`
	Mismatch bool    `json:"mismatch"`
}

// SourceSeen is how fresh the source is.
type SourceSeen struct {
	Name   string `json:"name"`
	Newest string `json:"newest,omitempty"` // end of the newest window with requests
	AgeS   *int64 `json:"age_s"`
	Error  string `json:"error,omitempty"`
}

// Written is what came of a write.
type Written struct {
	Pct      float64 `json:"pct"`
	ReadBack bool    `json:"read_back"`
	At       string  `json:"at,omitempty"`
	Tries    int     `json:"tries"`
	Error    string  `json:"error,omitempty"`
}

// Text writes the standing for a person: what was decided and why in the first
// two lines, then the figures, then what comes next.
func (s *Standing) Text(w io.Writer, style Style) error {
	var b strings.Builder
	s.headline(&b, style)
	fmt.Fprintf(&b, "  %s\n", plain(s.Reason))
	if s.Error != "" {
		fmt.Fprintf(&b, "  %s %s\n", style.paint(red, "error:"), plain(s.Error))
	}
	s.seen(&b)
	s.table(&b, style)
	if s.Left != nil {
		fmt.Fprintf(&b, "  left     %s\n", release.Minutes(roughly(time.Duration(*s.Left)*time.Second)))
	}
	fmt.Fprintf(&b, "  next     %s\n", plain(s.Next))
	return style.write(w, b.String())
}

// headline is the whole in one line.
func (s *Standing) headline(b *strings.Builder, style Style) {
	fmt.Fprintf(b, "%s %s: ", style.paint(bold, plain(s.Service)), s.Release)
	what := s.Decision
	if s.DryRun {
		what = "would " + what
	}
	if s.Wrote != nil && !s.Wrote.ReadBack {
		what += ", not read back"
	}
	fmt.Fprintf(b, "%s, step %d of %d at %s %%, attempt %d, breaker %s", style.paint(s.color(), what), s.Step, s.Steps, figure(100*s.Pct), s.Attempt, s.Breaker)
	for _, flag := range []struct {
		is   bool
		text string
	}{{s.Locked, "locked"}, {s.Paused, "paused"}, {s.Overdue, "overdue"}} {
		if flag.is {
			b.WriteString(", " + flag.text)
		}
	}
	b.WriteString("\n")
}

// roughly leaves the seconds out of what takes hours.
func roughly(d time.Duration) time.Duration {
	if d > time.Hour {
		return d.Round(time.Minute)
	}
	return d
}

func (s *Standing) color() string {
	switch s.Decision {
	case "roll_back", "lock":
		return red
	case "start", "advance", "complete":
		return green
	}
	return yellow
}

// seen prints what target and source told.
func (s *Standing) seen(b *strings.Builder) {
	if t := s.Target; t != nil {
		fmt.Fprintf(b, "  target   %s", plain(t.Name))
		switch {
		case t.Error != "":
			fmt.Fprintf(b, ": %s", plain(t.Error))
		case t.Pct != nil:
			fmt.Fprintf(b, " holds %s %%", figure(100**t.Pct))
		}
		if s.Share != nil && s.Share.Of > 0 {
			what := "requests"
			if s.Share.Users {
				what = "users a window"
			}
			fmt.Fprintf(b, "; the canary serves %.3g %% of %s %s", 100*s.Share.Pct, thousands(s.Share.Of), what)
		}
		b.WriteString("\n")
	}
	if x := s.Source; x != nil {
		fmt.Fprintf(b, "  source   %s", plain(x.Name))
		switch {
		case x.Error != "":
			fmt.Fprintf(b, ": %s", plain(x.Error))
		case x.AgeS != nil:
			fmt.Fprintf(b, ", newest window %s old", release.Minutes(time.Duration(*x.AgeS)*time.Second))
		default:
			b.WriteString(", no window yet")
		}
		b.WriteString("\n")
	}
}

// signalColumn is how wide the names of the signals are at least.
const signalColumn = 12

// table prints a line for each signal.
func (s *Standing) table(b *strings.Builder, style Style) {
	width := signalColumn
	for i := range s.Verdicts {
		width = max(width, len(s.Verdicts[i].Signal))
	}
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		value := "-"
		if v.Value != nil {
			value = figure(*v.Value)
		}
		word := v.Verdict
		if v.WouldFail {
			word = "would_fail"
		}
		pad := strings.Repeat(" ", max(12-len(word), 0))
		fmt.Fprintf(b, "  %-*s %s%s %s against %s, %s samples of %d needed\n", width, v.Signal, style.paint(verdictColor(word), word), pad, value, figure(v.Limit), thousands(v.Samples), v.Needed)
	}
}

func verdictColor(word string) string {
	switch word {
	case "pass":
		return green
	case "fail":
		return red
	}
	return yellow
}
