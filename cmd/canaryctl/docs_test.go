package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/cli"
	"github.com/canaryctl/canaryctl/scenarios"
)

// block is one command of a document with the output that the document shows.
type block struct {
	file string
	line int
	args []string
	want []string
}

// consoleBlocks reads the fenced console blocks of a document: a line
// "$ canaryctl ..." and the output below it, where "..." stands for any number
// of lines.
func consoleBlocks(t *testing.T, path string) (blocks []block) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for i, line := range strings.Split(string(src), "\n") {
		command, isCommand := strings.CutPrefix(line, "$ canaryctl ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && isCommand:
			blocks = append(blocks, block{file: path, line: i + 1, args: strings.Fields(command)})
		case inside && len(blocks) > 0:
			last := &blocks[len(blocks)-1]
			last.want = append(last.want, line)
		}
	}
	return blocks
}

// TestDocumentsShowWhatHappens runs every console block of the README and the
// guides, in order, in a folder with the samples.
func TestDocumentsShowWhatHappens(t *testing.T) {
	docs := []string{filepath.Join("..", "..", "README.md")}
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, path := range append(docs, guides...) {
		blocks = append(blocks, consoleBlocks(t, path)...)
	}
	if len(blocks) < 6 {
		t.Fatalf("only %d console blocks found", len(blocks))
	}
	samples, err := filepath.Abs(filepath.Join("..", "..", "testdata", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS(filepath.Join("testdata", "samples"), os.DirFS(samples)); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		var stdout, stderr bytes.Buffer
		app := &cli.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }, Scenarios: scenarios.FS}
		if code := cli.Main(b.args, app); code != cli.ExitOK {
			t.Errorf("%s:%d: canaryctl %s: exit %d: %s", b.file, b.line, strings.Join(b.args, " "), code, stderr.String())
			continue
		}
		got := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
		if !matches(b.want, got) {
			t.Errorf("%s:%d: canaryctl %s prints something else (-document +command):\n%s", b.file, b.line, strings.Join(b.args, " "), cmp.Diff(b.want, got))
		}
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
