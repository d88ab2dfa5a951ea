//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

// A story is a guide whose ```sh blocks are one session of bash. What a block
// prints, errors too, is shown in the ```text block that follows it; a block
// without one prints nothing.
type story struct {
	t      *testing.T
	path   string
	lines  []string
	steps  []step
	env    []string
	tmp    string // where the session makes its folder
	output string
	kept   string // what the session's folder held before the last step
}

// step is a block, with the lines of the document that show its output.
type step struct {
	line     int // of the block's first command
	commands string
	shows    bool
	from, to int // lines of the output
}

func readStory(t *testing.T, name string) *story {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "guides", name)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, path: path, lines: strings.Split(string(src), "\n"), tmp: shortDir(t), kept: t.TempDir()}
	for i := 0; i < len(s.lines); i++ {
		language, fenced := strings.CutPrefix(s.lines[i], "```")
		if !fenced {
			continue
		}
		end := i + 1 + slices.Index(s.lines[i+1:], "```")
		switch {
		case language == "sh":
			s.steps = append(s.steps, step{line: i + 2, commands: strings.Join(s.lines[i+1:end], "\n")})
		case language == "text" && len(s.steps) > 0:
			last := &s.steps[len(s.steps)-1]
			last.shows, last.from, last.to = true, i+1, end
		}
		i = end
	}
	if len(s.steps) < 5 {
		t.Fatalf("%s: only %d blocks found", path, len(s.steps))
	}
	return s
}

// shortDir is a folder in which sockets may be: their paths have 108 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "story")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// needs finds a program, in PATH or beside it.
func (s *story) needs(programs map[string]string) {
	s.t.Helper()
	path := os.Getenv("PATH")
	for name, debian := range programs {
		dir := filepath.Dir(servertest.Program(s.t, name, debian))
		if !slices.Contains(filepath.SplitList(path), dir) {
			path += string(filepath.ListSeparator) + dir
		}
	}
	s.env = append(s.env, "PATH="+path)
}

// ports gives each name a port that is free.
func (s *story) ports(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.env = append(s.env, name+"="+strconv.Itoa(servertest.Port(s.t)))
	}
}

// mark separates the output of two steps.
const mark = "\x01step "

// run plays the story and holds what it prints against what the guide shows. It
// fails if anything is left of it: a process, or a file.
func (s *story) run(limit time.Duration) {
	s.t.Helper()
	var script strings.Builder
	script.WriteString("set -eu\n")
	for i, st := range s.steps {
		if i == len(s.steps)-1 {
			fmt.Fprintf(&script, "cp -R .canaryctl '%[1]s'; cp ./*.log '%[1]s' 2> '%[1]s/cp' || true\n", s.kept)
		}
		fmt.Fprintf(&script, "printf '%s%d\\n'\n%s\n", mark, i, st.commands)
	}
	fmt.Fprintf(&script, "printf '%s%d\\n'\n", mark, len(s.steps))
	file := filepath.Join(s.t.TempDir(), "story.sh")
	write(s.t, file, script.String())

	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", file)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(append(os.Environ(), "TMPDIR="+s.tmp, "GOFLAGS=-buildvcs=false", "LC_ALL=C"), s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	left := cmd.Process != nil && syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil
	s.output = out.String()
	s.compare(s.output)
	if err != nil {
		s.t.Fatalf("the session ended with %v in the block above%s", err, s.logs())
	}
	if left {
		s.t.Error("the guide leaves a process running")
	}
	if names, err := os.ReadDir(s.tmp); err != nil || len(names) > 0 {
		s.t.Errorf("the guide leaves %v behind, %v", names, err)
	}
}

// compare holds the output of each step against the guide; with -update it
// writes it there.
func (s *story) compare(out string) {
	s.t.Helper()
	parts := strings.Split(out, mark)[1:]
	for i := len(s.steps) - 1; i >= 0; i-- {
		st := s.steps[i]
		if i >= len(parts) {
			continue
		}
		_, text, _ := strings.Cut(parts[i], "\n")
		got := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if i == len(parts)-1 {
			s.t.Logf("%s:%d: the last block printed:\n%s", s.path, st.line, text)
		}
		var want []string
		if st.shows {
			want = s.lines[st.from:st.to]
		} else if text == "" {
			continue
		}
		if *update && st.shows && i < len(parts)-1 {
			s.lines = slices.Replace(s.lines, st.from, st.to, s.printable(got)...)
			continue
		}
		if diff := cmp.Diff(masked(want), masked(got)); diff != "" {
			s.t.Errorf("%s:%d: the block prints something else (-guide +session):\n%s", s.path, st.line, diff)
		}
	}
	if *update {
		write(s.t, s.path, strings.Join(s.lines, "\n"))
	}
}

// printable is output as the guide shows it: with the ports that its first
// block has by default, and nobody's name.
func (s *story) printable(lines []string) []string {
	pairs := []string{s.tmp + "/", "/tmp/"}
	for _, env := range s.env {
		name, value, _ := strings.Cut(env, "=")
		usual := regexp.MustCompile(name + `:-(\d+)}`).FindStringSubmatch(s.steps[0].commands)
		if usual != nil {
			pairs = append(pairs, ":"+value, ":"+usual[1])
		}
	}
	who := regexp.MustCompile(`\bby \w+@[\w.-]+:`)
	out := slices.Clone(lines)
	for i := range out {
		out[i] = who.ReplaceAllString(strings.NewReplacer(pairs...).Replace(out[i]), "by ann@laptop:")
	}
	return out
}

// masks are what differs between two runs of the same story.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`/\S+/story\d+/tmp\.\w+|/tmp/tmp\.\w+`), "WORK"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`"(value|requests)": [\d.]+`), `"$1": N`},
	{regexp.MustCompile(`\b[0-9a-f]{12,64}\b`), "ID"},
	{regexp.MustCompile(`\w+@[\w.-]+(:|$)`), "WHO$1"},
	{regexp.MustCompile(`^ +\d+  TIME`), "N  TIME"}, // of the journal: holds are lines as well
	{regexp.MustCompile(`/\d+\)$`), "/N)"},          // likewise
	{regexp.MustCompile(`\d+ (lines|decisions)`), "N $1"},
	{regexp.MustCompile(`\d+ of \d+ requests handed to a human in 6 seconds \([\d.]+ %\)`), "requests handed to a human in 6 seconds"},
	{regexp.MustCompile(`(exposure) [\d,]+ requests`), "$1 N requests"},
	{regexp.MustCompile(`(after|held) [\d.]+ seconds?`), "$1 N seconds"},
	{regexp.MustCompile(`left +\d+ seconds?`), "left N seconds"},
	{regexp.MustCompile(`, (newest window \d+ seconds? old|no window yet)`), ""},
	{regexp.MustCompile(`; the canary serves [\d.]+ % of [\d,]+ (requests|users a window)`), ""},
	{regexp.MustCompile(`\([0-9a-f]{8}: `), "(ID: "}, // a commit
	{regexp.MustCompile(`(last 15 windows): .*`), "$1"},
	{regexp.MustCompile(`^(  \w+ +pass +)[\d.,e-]+ against ([\d.,]+), [\d,]+ samples`), "$1 V against $2, N samples"},
	{regexp.MustCompile(`"ts":\d+|"latency_ms":\d+|"user_id":"C-\d+"`), "N"},
	{regexp.MustCompile(`@\[[\d.]+\]`), "@[TIME]"},
	// a hundredth at most: a busy machine cuts a connection off
	{regexp.MustCompile(`^\d{4,} requests, \d{1,2} of them not answered`), "N requests, few of them not answered"},
}

// masked is lines without what differs. Of run's lines it leaves out the holds:
// how many there are between two moves depends on how busy the machine is.
func masked(lines []string) []string {
	out := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, "Z  hold ") })
	for i := range out {
		for _, m := range masks {
			out[i] = m.pattern.ReplaceAllString(out[i], m.with)
		}
	}
	return out
}

// logs is what the session's own programs have written, for a failure.
func (s *story) logs() string {
	var b strings.Builder
	for _, pattern := range []string{"*.log", "*.err"} {
		paths, _ := filepath.Glob(filepath.Join(s.tmp, "*", pattern)) // the pattern is ours
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err == nil && len(text) > 0 {
				fmt.Fprintf(&b, "\n--- %s\n%s", filepath.Base(path), text[max(0, len(text)-4000):])
			}
		}
	}
	return b.String()
}

func TestTheReleaseGuideIsWhatHappens(t *testing.T) { // alone: it measures how fast a rollback is
	s := readStory(t, "release.md")
	s.needs(map[string]string{"haproxy": "haproxy", "prometheus": "prometheus", "promtool": "prometheus", "jq": "jq", "curl": "curl", "bash": "bash"})
	s.ports("GATEWAY", "STABLE", "CANARY", "INBOX", "PROMETHEUS", "METRICS")
	s.run(3 * time.Minute)
	s.tookTwoWindows(1500*time.Millisecond, 300*time.Millisecond)
}

// tookTwoWindows asserts that the rollback came of the window in which the
// canary turned bad or the next one, and that weight 0 was read back then.
func (s *story) tookTwoWindows(span, settle time.Duration) {
	s.t.Helper()
	const slack = 3 * time.Second // for a machine that is busy with other tests
	log, err := os.ReadFile(filepath.Join(s.kept, "canary.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	stamp, _, found := strings.Cut(string(log), " canary: latency 20ms, bad 0.5 as transfer")
	if !found {
		s.t.Fatalf("the canary never turned bad:\n%s", log)
	}
	turned, err := time.Parse("2006/01/02 15:04:05.999999", stamp[strings.LastIndex(stamp, "\n")+1:])
	if err != nil {
		s.t.Fatal(err)
	}
	var last, readBack time.Time
	path := filepath.Join(s.kept, ".canaryctl", "order-service", "journal.jsonl")
	err = journal.Read(s.t.Context(), path, journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		switch {
		case !readBack.IsZero():
		case e.Kind == journal.Decide && len(e.Decided.Canary) > 0:
			last = e.Decided.Canary[len(e.Decided.Canary)-1].T
		case e.Kind == journal.Write && e.Wrote.Move == release.RollBackMove && e.Wrote.ReadBack:
			readBack = e.Wrote.At
		}
		return nil
	})
	if err != nil || readBack.IsZero() {
		s.t.Fatalf("no rollback in the journal: %v", err)
	}
	if windows := 1 + int(last.Sub(turned.Truncate(span))/span); windows > 2 {
		s.t.Errorf("turned bad at %s, rolled back after the window of %s: %d windows", turned, last, windows)
	}
	if late := readBack.Sub(last.Add(span + settle)); late > slack {
		s.t.Errorf("weight 0 was read back %s after the window had settled", late)
	}
}

func TestTheGitGuideIsWhatHappens(t *testing.T) {
	t.Parallel()
	const password = "t0p-secret"
	s := readStory(t, "release-git.md")
	s.needs(map[string]string{"haproxy": "haproxy", "curl": "curl", "git": "git", "bash": "bash"})
	s.ports("GATEWAY", "STABLE", "CANARY", "ADMIN_PORT")
	remote, dir := servertest.Git(t, "ci", password)
	s.env = append(s.env, "LLM_REMOTE="+remote, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	s.run(3 * time.Minute)
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	moves := strings.Fields(git("log", "--format=%H", "--grep=Canaryctl-Move", "main", "--", "deploy/route.yaml"))
	if len(moves) != 5 {
		t.Errorf("%d commits have moved the weight, not 5", len(moves))
	}
	weight := regexp.MustCompile(`weight: \d+`)
	rivals := 0
	for _, id := range moves {
		route := func(rev string) string {
			return weight.ReplaceAllString(git("show", rev+":deploy/route.yaml"), "weight: N")
		}
		if before, after := route(id+"^"), route(id); before != after {
			t.Errorf("%s changes more than weights: %s", id, cmp.Diff(before, after))
		}
		if files := git("diff-tree", "--no-commit-id", "--name-only", "-r", id); files != ".canaryctl/order-service.json\ndeploy/route.yaml" {
			t.Errorf("%s changes %q", id, files)
		}
		if strings.HasPrefix(git("show", "-s", "--format=%s", id+"^"), "docs: ") {
			rivals++
		}
	}
	if rivals == 0 {
		t.Error("the rival never came in between")
	}
	entries, pushes := strings.Count(git("show", "main:CHANGES"), "\n")+1, strings.Count(git("log", "--format=%s", "main"), "docs: ")
	if entries != pushes || entries < 5 {
		t.Errorf("the rival has pushed %d times and %d entries are left of that", pushes, entries)
	}
	s.hides(password)
}

// hides asserts that a secret is in nothing that canaryctl has written.
func (s *story) hides(secret string) {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(s.kept, ".canaryctl"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(secret)) {
			s.t.Errorf("%s has the password in it, %v", path, err)
		}
		return nil
	})
	if err != nil {
		s.t.Error(err)
	}
	if strings.Contains(s.output, secret) {
		s.t.Error("the password was printed")
	}
}
