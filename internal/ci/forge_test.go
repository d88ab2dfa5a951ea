package ci_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/ci"
)

// runnerOutputs reads a file of outputs by the rules of GitHub's runner:
// name=value, or name<<END, lines, END, whichever sign comes first.
func runnerOutputs(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		eq, here := strings.Index(lines[i], "="), strings.Index(lines[i], "<<")
		if here >= 0 && (eq < 0 || here < eq) {
			name, end := lines[i][:here], lines[i][here+2:]
			var value []string
			for i++; i < len(lines) && lines[i] != end; i++ {
				value = append(value, lines[i])
			}
			if i == len(lines) {
				t.Fatalf("matching delimiter %q not found in %q", end, text)
			}
			out[name] = strings.Join(value, "\n")
			continue
		}
		if eq < 0 {
			t.Fatalf("invalid format %q in %q", lines[i], text)
		}
		out[lines[i][:eq]] = lines[i][eq+1:]
	}
	return out
}

// dotenv reads a dotenv file by the rules of GitLab: every line is
// ^(.*?)=(.*)$, blanks at the ends of both parts taken off, no name twice.
func dotenv(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if _, twice := out[name]; !ok || twice {
			t.Fatalf("invalid format or twice: %q in %q", line, text)
		}
		out[name] = strings.TrimSpace(value)
	}
	return out
}

var (
	unescapeData = strings.NewReplacer("%25", "%", "%0D", "\r", "%0A", "\n")
	names        = []string{"decision", "step", "pct", "attempt", "breaker", "exit_code", "remaining_s", "reason"}
)

func FuzzNoTextBecomesACommandOrAnOutput(f *testing.F) {
	for _, s := range []string{
		"plain", "::error::you are fired", "x\n::set-output name=decision::complete", "x\r\n::stop-commands::y", "##[error]x", "a\ndecision=complete", "a\nreason<<EOF\nEOF",
		"a\ncanaryctl_end\ndecision=complete", "canaryctl_end\ncanaryctl_end_1\n", "<<x", "=", "\n", " \n ", "a|b|c\n|---|", "`x`", "\\|", "<script>", "%0A::error::x", "\x1b[0Ksection_end:1:canaryctl\r\x1b[0K",
		"\u2028::error::x", "\u0085x=y", "\u202eabc", "\xff\xfe", "\"quoted\"", "$CI_JOB_TOKEN", strings.Repeat("long\n", 3000), "title,file=x:y",
	} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, reason, service, signal string) {
		o := held()
		o.Reason, o.Next, o.Service, o.Release, o.Breaker = reason, reason, service, service, service
		o.Verdicts = []ci.Verdict{{Signal: signal, Verdict: reason}}
		dir := t.TempDir()
		var log bytes.Buffer
		if err := githubAt(dir).Write(&log, o); err != nil {
			t.Fatal(err)
		}
		command := log.String()
		if strings.Count(command, "\n") != 1 || strings.Contains(command, "\r") || !strings.HasPrefix(command, "::notice title=canaryctl") {
			t.Errorf("log %q", command)
		}
		properties, message, _ := strings.Cut(strings.TrimPrefix(command, "::notice "), "::")
		if strings.Count(properties, "=")-strings.Count(service, "=") > 1 || strings.ContainsAny(properties, ",") {
			t.Errorf("properties %q", properties)
		}
		if got := unescapeData.Replace(message); !strings.HasPrefix(got, "hold:") || !utf8.ValidString(got) {
			t.Errorf("message %q", got)
		}
		out := runnerOutputs(t, read(t, filepath.Join(dir, "output")))
		if len(out) != len(names) || out["decision"] != "hold" || out["step"] != "2" || out["exit_code"] != "3" {
			t.Errorf("outputs %q", out)
		}
		rows := 0
		for line := range strings.SplitSeq(read(t, filepath.Join(dir, "summary")), "\n") {
			if strings.HasPrefix(line, "|") {
				rows++
				cells := strings.ReplaceAll(line, `\\`, "")
				if n := strings.Count(strings.ReplaceAll(cells, `\|`, ""), "|"); n != 7 && n != 8 {
					t.Errorf("%d bars in %q", n, line)
				}
			}
		}
		if rows != 6 {
			t.Errorf("%d rows", rows)
		}
		log.Reset()
		if err := gitlabAt(dir).Write(&log, o); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "\x1b[0K"); n != 4 || strings.Count(log.String(), "\r") != 2 {
			t.Errorf("log %q", log.String())
		}
		variables := dotenv(t, read(t, filepath.Join(dir, "canaryctl.env")))
		if len(variables) != len(names) || variables["CANARYCTL_DECISION"] != "hold" || strings.Contains(variables["CANARYCTL_REASON"], "$") {
			t.Errorf("variables %q", variables)
		}
	})
}

func TestALongReasonInLinesIsAnOutputOfLines(t *testing.T) {
	o := held()
	o.Reason = "first\r\nsecond\ncanaryctl_end\ncanaryctl_end_1 and more"
	dir := t.TempDir()
	if err := githubAt(dir).Write(&bytes.Buffer{}, o); err != nil {
		t.Fatal(err)
	}
	if got := runnerOutputs(t, read(t, filepath.Join(dir, "output")))["reason"]; got != "first\nsecond\ncanaryctl_end\ncanaryctl_end_1 and more" {
		t.Errorf("reason %q", got)
	}
}
