package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runCLI runs a command line in this process and returns what it printed.
func runCLI(t *testing.T, args ...string) (stdout, stderr string, code ExitCode) {
	t.Helper()
	var out, errs bytes.Buffer
	app := &App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
	code = Main(args, app)
	return out.String(), errs.String(), code
}

func TestVectorsFileIsWhatTheCommandPrints(t *testing.T) {
	want, err := os.ReadFile("../../testdata/routing-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	got, stderr, code := runCLI(t, "route", "--vectors")
	if code != ExitOK || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	if got != string(want) {
		t.Error("testdata/routing-vectors.json is stale; write it with: canaryctl route --vectors > testdata/routing-vectors.json")
	}
}

// transcript returns the output that a page shows under "$ canaryctl ARGS".
func transcript(t *testing.T, page, args string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("../../docs/reference", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(src), "    $ canaryctl "+args+"\n")
	if !ok {
		t.Fatalf("%s does not show canaryctl %s", page, args)
	}
	var out strings.Builder
	for line := range strings.Lines(rest) {
		shown, ok := strings.CutPrefix(line, "    ")
		if !ok && line != "\n" || strings.HasPrefix(shown, "$ ") {
			break
		}
		out.WriteString(strings.TrimPrefix(line, "    "))
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func TestRoutingPageShowsWhatTheCommandPrints(t *testing.T) {
	dir := t.TempDir()
	plan := filepath.Join(dir, "canary.yaml")
	src := "canary:\n  target_service: order-service\n  steps:\n" +
		"    - { pct: 0.01, min_hold_min: 120 }\n    - { pct: 0.3, min_hold_min: 120 }\n    - { pct: 1.00, min_hold_min: 120 }\n" +
		"  exclude: { user_ids: [C-88001] }\n  include: { user_ids: [staff-1] }\n"
	if err := os.WriteFile(plan, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	args := "route C-1001 user-0001 C-88001 staff-1"
	got, stderr, code := runCLI(t, append(strings.Fields(args), "-c", plan)...)
	if code != ExitOK || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	if want := transcript(t, "routing.md", args); got != want {
		t.Errorf("docs/reference/routing.md shows\n%s\nthe command prints\n%s", want, got)
	}
}
