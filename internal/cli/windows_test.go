package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runLine runs a command line, split at blanks outside single quotes, and returns
// its exit code and streams.
func runLine(t *testing.T, line string) (code ExitCode, stdout, stderr string) {
	t.Helper()
	var args []string
	for i, part := range strings.Split(strings.TrimPrefix(line, "canaryctl "), "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	var out, errs bytes.Buffer
	app := &App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
	code = Main(args, app)
	return code, out.String(), errs.String()
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```$")

// TestInputPagesAreTrue runs the commands of the pages about input over the files
// that they show.
func TestInputPagesAreTrue(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, commands := range map[string]int{"input.md": 4, "input-formats.md": 1, "exposition.md": 1} {
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile(filepath.Join(root, "docs", "reference", name))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			if ran := runPage(t, string(page)); ran != commands {
				t.Errorf("%d commands on the page", ran)
			}
		})
	}
}

// runPage runs the commands of a page and returns how many there are.
func runPage(t *testing.T, page string) (ran int) {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		kind, name, text := block[1], block[2], block[3]
		if name != "" {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if kind != "console" {
			continue
		}
		ran++
		line, want, _ := strings.Cut(strings.TrimPrefix(text, "$ "), "\n")
		code, got, stderr := runLine(t, line)
		if code != ExitOK || got != want {
			t.Errorf("%s: exit %d\n%s%s\nthe page says\n%s", line, code, got, stderr, want)
		}
	}
	return ran
}

func TestInputThatCannotBeUsedIsExit2(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"bad.jsonl": "{\n", "empty.csv": "", "flat.csv": "timestamp,value\n2014-04-01 00:00:00,45.0\n", "runs.csv": "task_id\n1\n",
		"twice.csv": "t,total,span\n2026-05-04T00:00:00Z,1,1m\n2026-05-04T00:00:00Z,2,1m\n", "nospan.csv": "t,total\n2026-05-04T00:00:00Z,1\n",
		"good.csv": "ts\n2026-05-04T00:00:00Z\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"", "nowhere.csv", "bad.jsonl", "empty.csv", "flat.csv", "runs.csv", "twice.csv", "nospan.csv", "good.csv good.csv", "--map x=y good.csv",
		"--map ts=nope good.csv", "--columns x good.csv", "--span 5 good.csv", "--input-span -1m good.csv", "--max-bad 101% good.csv", "--epoch m good.csv",
		"--arm x=y good.csv", "-o yaml good.csv", "--nonsense good.csv",
	} {
		if code, out, stderr := runLine(t, "canaryctl windows "+line); code != ExitUsage || out != "" || !strings.Contains(stderr, "canaryctl: error: ") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", line, code, out, stderr)
		}
	}
	if code, out, _ := runLine(t, "canaryctl windows good.csv"); code != ExitOK || out == "" {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestSharesAreExact(t *testing.T) {
	for text, want := range map[string]string{"0.001": "0.001", "0.1%": "0.001", "0": "0", "1": "1", "100%": "1", "2.5 %": "0.025"} {
		var s shareFlag
		if err := s.Set(text); err != nil || s.String() != want {
			t.Errorf("%s: %s, %v", text, s.String(), err)
		}
	}
	for _, text := range []string{"", "-1", "1.1", "101%", "%", "NaN", "x"} {
		var s shareFlag
		if err := s.Set(text); err == nil {
			t.Errorf("%q was accepted as %s", text, s.String())
		}
	}
}
