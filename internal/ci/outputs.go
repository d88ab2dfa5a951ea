package ci

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes that the CIs take. Of GitHub: a step's summary and a job's outputs
// have 1 MiB each; a file that is larger is refused whole, other steps' words
// with it. Of GitLab: a dotenv file of 5 KiB is refused.
const (
	maxSummary = 1 << 20
	maxOutputs = 1 << 20
	maxDotenv  = 5<<10 - 1

	maxText = 2000 // runes of one text in a place without such limits
)

type output struct{ name, value string }

// outputs are what later steps can use, in their order.
func outputs(o Outcome) []output {
	remaining := ""
	if o.RemainingS != nil {
		remaining = strconv.FormatInt(*o.RemainingS, 10)
	}
	return []output{
		{"decision", o.Decision},
		{"step", strconv.Itoa(o.Step)},
		{"pct", number(o.Pct)},
		{"attempt", strconv.Itoa(o.Attempt)},
		{"breaker", o.Breaker},
		{"exit_code", strconv.Itoa(o.ExitCode)},
		{"remaining_s", remaining},
		{"reason", o.Reason},
	}
}

// number prints six digits, without an exponent.
func number(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64) // reads what it has just written
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// githubOutputs are lines of name=value; a value of several lines stands
// between a delimiter that is none of its lines.
func githubOutputs(o Outcome) string {
	var b strings.Builder
	for _, out := range outputs(o) {
		value := cut(printable(out.value, true), maxText)
		if !strings.Contains(value, "\n") {
			fmt.Fprintf(&b, "%s=%s\n", out.name, value)
			continue
		}
		end := delimiter(value)
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", out.name, end, value, end)
	}
	return b.String()
}

// delimiter returns a text that does not occur in the value: the first of a
// row, so that the same value is always written the same.
func delimiter(value string) string {
	const word = "canaryctl_end"
	end := word
	for n := 1; strings.Contains(value, end); n++ {
		end = word + "_" + strconv.Itoa(n)
	}
	return end
}

// annotate prints one command that GitHub shows above the log.
func annotate(log io.Writer, o Outcome) error {
	title := "canaryctl"
	if o.Service != "" {
		title += " " + o.Service
	}
	text := o.Decision + ": " + o.Reason
	if o.Next != "" {
		text += "\n" + o.Next
	}
	_, err := fmt.Fprintf(log, "::%s title=%s::%s\n", level(o.ExitCode), property(cut(printable(title, false), maxText)), data(cut(printable(text, true), maxText)))
	return err
}

// level is how loud an exit code is: holds and progress are notices; an
// approval that is wanted, a source that could not be read and a command that
// was broken off are warnings; the rest are errors.
func level(exitCode int) string {
	switch exitCode {
	case 0, 3:
		return "notice"
	case 4, 9, 130, 143:
		return "warning"
	}
	return "error"
}

var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// data is a text as the last part of a workflow command.
func data(s string) string { return escapeData.Replace(s) }

// property is a text as a property of a workflow command.
func property(s string) string { return escapeProperty.Replace(s) }

// printable drops what does not print, terminal sequences and marks that turn
// the direction of writing among it; line breaks become \n, or blanks.
func printable(s string, lines bool) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "?"))
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// cut shortens a text to a number of runes.
func cut(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes]) + "..."
}
