package ci

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// dotenvPrefix keeps the variables that later jobs get from hiding theirs.
const dotenvPrefix = "CANARYCTL_"

// writeDotenv puts the outputs into a dotenv file in place of those of an
// earlier command in the job: GitLab refuses a file with a variable twice.
// Other lines stay.
func writeDotenv(path string, o Outcome) error {
	old, info, err := readRegular(path, maxDotenv)
	if err != nil {
		return err
	}
	var b strings.Builder
	mine := map[string]bool{}
	for _, out := range outputs(o) {
		mine[dotenvPrefix+strings.ToUpper(out.name)] = true
	}
	for line := range strings.Lines(old) {
		if name, _, _ := strings.Cut(line, "="); !mine[strings.TrimSpace(name)] {
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	for _, out := range outputs(o) {
		name := dotenvPrefix + strings.ToUpper(out.name)
		room := maxDotenv - b.Len() - len(name) - len("=\n")
		if out.name != "reason" {
			fmt.Fprintf(&b, "%s=%s\n", name, dotenvValue(out.value, maxText))
		} else if room > 0 {
			fmt.Fprintf(&b, "%s=%s\n", name, dotenvValue(out.value, min(room, maxText)))
		}
	}
	if b.Len() > maxDotenv {
		return fmt.Errorf("%s: no room: it would have %d bytes, at most %d are taken", path, b.Len(), maxDotenv)
	}
	return replace(path, b.String(), info)
}

// dotenvValue is a value as GitLab reads it: the rest of the line as it
// stands. A dollar sign would be expanded in jobs that use the variable, and is
// left out; so are quotes and blanks at the ends.
func dotenvValue(s string, bytes int) string {
	s = strings.ReplaceAll(printable(s, false), "$", "")
	if len(s) > bytes {
		s = strings.ToValidUTF8(s[:max(bytes-len("..."), 0)], "") + "..."
		s = s[:min(len(s), bytes)]
	}
	return strings.Trim(s, " \"'`")
}

// section prints the outcome into the log, between marks that make GitLab fold
// it.
func section(log io.Writer, o Outcome) error {
	at := o.Time.Unix()
	name := fmt.Sprintf("canaryctl_%d", at)
	line := func(s string) string { return cut(printable(s, false), maxText) }
	var b strings.Builder
	fmt.Fprintf(&b, "\x1b[0Ksection_start:%d:%s\r\x1b[0K%s\n", at, name, line("canaryctl "+o.Service+": "+o.Decision))
	fmt.Fprintf(&b, "%s\n", line(o.Reason))
	for _, v := range o.Verdicts[:min(len(o.Verdicts), maxRows)] {
		fmt.Fprintf(&b, "  %-16s %-12s %s\n", line(v.Signal), line(v.Verdict), line(figures(v)))
	}
	if o.Next != "" {
		fmt.Fprintf(&b, "%s\n", line(o.Next))
	}
	fmt.Fprintf(&b, "\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", at, name)
	_, err := io.WriteString(log, b.String())
	return err
}

// figures are a verdict's figures in one line.
func figures(v Verdict) string {
	s := fmt.Sprintf("value %s, limit %s, samples %s", float(v.Value), float(v.Limit), count(v.Samples))
	if v.Needed != nil && *v.Needed > 0 {
		s += " of " + count(v.Needed)
	}
	return s
}

// replace writes a file aside and renames it into place.
func replace(path, text string, info os.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".canaryctl-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // is gone once it is renamed
	mode := os.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm()
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
