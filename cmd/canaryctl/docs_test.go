package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block is one step of a document: a command with the output that the document
// shows, or a file that it has the reader write.
type block struct {
	line int
	args []string
	into string   // file that takes the output: "> FILE"
	exit int      // what "$ echo $?" below it says, else 0
	want []string // output, or the lines of file
	file string   // "```yaml FILE"
}

// consoleBlocks reads the fenced blocks of a document that do something.
//
// In console blocks a line "$ canaryctl ..." is a command and what follows its
// output, where "..." stands for any number of lines; "> FILE" at its end puts
// the output there, and "$ echo $?" below says how it exits. Any other block with
// a name behind its language is the file of that name.
func consoleBlocks(t *testing.T, path string) (blocks []block) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inside, fenced, status := false, false, false
	for i, line := range strings.Split(string(src), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ canaryctl ")
		switch {
		case strings.HasPrefix(line, "```"):
			language, name, named := strings.Cut(strings.TrimPrefix(line, "```"), " ")
			fenced = !fenced
			inside = fenced && (language == "console" || named)
			if fenced && named {
				blocks = append(blocks, block{line: i + 1, file: name})
			}
		case inside && isCommand:
			blocks, status = append(blocks, newCommand(i+1, command)), false
		case inside && line == "$ echo $?":
			status = true
		case inside && len(blocks) > 0:
			last := &blocks[len(blocks)-1]
			if !status {
				last.want = append(last.want, line)
			} else if last.exit, err = strconv.Atoi(line); err != nil {
				t.Fatalf("%s:%d: %v", path, i+1, err)
			}
		}
	}
	return blocks
}

// newCommand splits a command line at its spaces.
func newCommand(line int, command string) block {
	command, into, _ := strings.Cut(command, " > ")
	return block{line: line, args: strings.Fields(command), into: into}
}

// stories are the guides that tests of their own run as sessions of a shell.
var stories = []string{"release.md", "release-git.md", "proxy.md"}

// TestDocumentsShowWhatHappens runs the README and the guides, each in a folder
// of its own with the samples, block by block.
func TestDocumentsShowWhatHappens(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(guides) < 2 {
		t.Fatalf("only %d guides found", len(guides))
	}
	command := canaryctl(t)
	for _, path := range append([]string{filepath.Join(root, "README.md")}, guides...) {
		if slices.Contains(stories, filepath.Base(path)) {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			blocks := consoleBlocks(t, path)
			if len(blocks) < 3 {
				t.Fatalf("only %d blocks found", len(blocks))
			}
			samples := filepath.Join("testdata", "samples")
			t.Chdir(t.TempDir())
			if err := os.CopyFS(samples, os.DirFS(filepath.Join(root, samples))); err != nil {
				t.Fatal(err)
			}
			for _, b := range blocks {
				runBlock(t, command, path, b)
			}
		})
	}
}

// runBlock does what a block says in the present folder, by a command with nothing
// in its environment.
func runBlock(t *testing.T, command, path string, b block) {
	t.Helper()
	if b.file != "" {
		write(t, b.file, strings.Join(b.want, "\n")+"\n")
		return
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(command, b.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != b.exit {
		t.Errorf("%s:%d: canaryctl %s: %v, the document says %d: %s", path, b.line, strings.Join(b.args, " "), err, b.exit, stderr.String())
		return
	}
	if b.into != "" {
		write(t, b.into, stdout.String())
		stdout.Reset()
	}
	got := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
	if !matches(b.want, got) {
		t.Errorf("%s:%d: canaryctl %s prints something else (-document +command):\n%s", path, b.line, strings.Join(b.args, " "), cmp.Diff(b.want, got))
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// matches holds output against a document's lines; "..." is any number of
// lines.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0 || len(got) == 1 && got[0] == ""
	}
	if want[0] == "..." {
		for skip := range len(got) + 1 {
			if len(want) == 1 || matches(want[1:], got[skip:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}

// TestLinksOfDocumentsLeadSomewhere follows the relative links of every
// document.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range strings.Split(string(src), "](")[1:] {
			target, _, ok := strings.Cut(part, ")")
			target, _, _ = strings.Cut(target, "#")
			if !ok || target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
