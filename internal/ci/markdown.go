package ci

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	maxRows = 100 // verdicts that are written
	maxCell = 300 // runes of a cell
)

// markdown is the summary that people read.
func markdown(o Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### canaryctl %s: %s\n\n", cell(o.Service), cell(o.Decision))
	if o.Reason != "" {
		fmt.Fprintf(&b, "%s\n\n", escape(cut(printable(o.Reason, false), maxText)))
	}
	b.WriteString("| step | weight | attempt | breaker | time left | release | exit code |\n|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %d of %d | %s | %d | %s | %s | %s | %d |\n\n", o.Step, o.Steps, percent(o.Pct), o.Attempt, cell(o.Breaker), left(o.RemainingS), cell(o.Release), o.ExitCode)
	if len(o.Verdicts) > 0 {
		b.WriteString("| signal | verdict | value | limit | samples | needed |\n|---|---|---:|---:|---:|---:|\n")
		for _, v := range o.Verdicts[:min(len(o.Verdicts), maxRows)] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", cell(v.Signal), cell(v.Verdict), float(v.Value), float(v.Limit), count(v.Samples), count(v.Needed))
		}
		b.WriteString("\n")
	}
	if r := o.Rollback; r != nil {
		b.WriteString(rollback(r))
	}
	if o.Next != "" {
		fmt.Fprintf(&b, "Next: %s\n\n", escape(cut(printable(o.Next, false), maxText)))
	}
	return b.String()
}

func rollback(r *Rollback) string {
	locked := ""
	if r.Locked {
		locked = " Locked until a person clears it."
	}
	return fmt.Sprintf("Rolled back at %s from %s by %s (value %s, limit %s) after %s canary requests.%s\n\n",
		r.Time.UTC().Format(time.RFC3339), percent(r.Pct), cell(r.Signal), float(r.Value), float(r.Limit), count(r.Requests), locked)
}

// cell is a text in a cell of a table; "-" for none.
func cell(s string) string {
	if s = cut(printable(s, false), maxCell); s == "" {
		return "-"
	}
	return escape(s)
}

// escape keeps a text from being Markdown, HTML or a formula.
var escape = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "|", `\|`, "*", `\*`, "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`, "!", `\!`, "$", `\$`, "&", "&amp;", "<", "&lt;", ">", "&gt;",
).Replace

func percent(share float64) string { return number(share*100) + " %" }

func float(f *float64) string {
	if f == nil {
		return "-"
	}
	return number(*f)
}

func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// left words a time in days, hours and minutes.
func left(seconds *int64) string {
	if seconds == nil {
		return "-"
	}
	minutes := (*seconds + 59) / 60
	switch {
	case minutes >= 48*60:
		return fmt.Sprintf("%d d %d h", minutes/(24*60), minutes%(24*60)/60)
	case minutes >= 60:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d min", minutes)
}
