package ci_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/ci"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func held() ci.Outcome {
	return ci.Outcome{
		Time: noon, Service: "order-service", Release: "3f9a12c04d7e", Decision: "hold",
		Reason: "140 of 200 judged; about 6 more minutes at the present 10 a minute", Next: "canaryctl promote in 6 minutes",
		Step: 2, Steps: 5, Attempt: 1, Pct: 0.05, Breaker: "CLOSED", RemainingS: new(int64(7500)), ExitCode: 3,
		Verdicts: []ci.Verdict{
			{Signal: "violations", Verdict: "pass", Value: new(0.0), Limit: new(3.0), Samples: new(int64(260)), Needed: new(int64(0))},
			{Signal: "cost", Verdict: "no_data", Limit: new(2.0)},
			{Signal: "solve_rate", Verdict: "insufficient", Value: new(0.9285714285714286), Limit: new(0.8), Samples: new(int64(140)), Needed: new(int64(200))},
		},
	}
}

func rolledBack() ci.Outcome {
	o := held()
	o.Decision, o.Reason, o.Next = "roll_back", "transfers 12 of 60 requests (20 %) >= 6 %, *not* a | <b>fluke</b> of $3", "look at the record: canaryctl history"
	o.Pct, o.Breaker, o.ExitCode, o.RemainingS = 0, "OPEN", 5, nil
	o.Rollback = &ci.Rollback{Time: noon.Add(-time.Minute), Signal: "transfers", Value: new(0.2), Limit: new(0.06), Pct: 0.1, Requests: new(int64(1234567)), Locked: true}
	return o
}

func githubAt(dir string) *ci.CI {
	return ci.Detect(env("GITHUB_ACTIONS", "true", "GITHUB_STEP_SUMMARY", filepath.Join(dir, "summary"), "GITHUB_OUTPUT", filepath.Join(dir, "output")))
}

func gitlabAt(dir string) *ci.CI { return ci.Detect(env("GITLAB_CI", "true", "CI_PROJECT_DIR", dir)) }

func TestOutcomesInEachCI(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    ci.Outcome
	}{{"held", held()}, {"rolled-back", rolledBack()}, {"least", ci.Outcome{Time: noon}}} {
		for _, c := range []struct {
			name  string
			at    func(string) *ci.CI
			files []string
		}{{"github", githubAt, []string{"summary", "output"}}, {"gitlab", gitlabAt, []string{"canaryctl-summary.md", "canaryctl.env"}}} {
			t.Run(c.name+" "+tc.name, func(t *testing.T) {
				dir := t.TempDir()
				var log bytes.Buffer
				if err := c.at(dir).Write(&log, tc.o); err != nil {
					t.Fatal(err)
				}
				var all strings.Builder
				all.WriteString("-- log --\n" + strings.NewReplacer("\x1b", `\e`, "\r", `\r`).Replace(log.String()))
				for _, file := range c.files {
					all.WriteString("-- " + file + " --\n" + read(t, filepath.Join(dir, file)))
				}
				golden(t, c.name+"-"+tc.name+".txt", all.String())
			})
		}
	}
}

func TestTheCIIsKnownByItsEnvironment(t *testing.T) {
	run := []string{"GITHUB_SERVER_URL", "https://github.example", "GITHUB_REPOSITORY", "shop/bot", "GITHUB_RUN_ID", "77", "GITHUB_ACTOR", "ana"}
	gitlab := []string{"GITLAB_CI", "true", "GITLAB_USER_LOGIN", "bo", "CI_PIPELINE_URL", "https://gitlab.example/p/1"}
	for _, tc := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"none", nil, ""},
		{"another CI", []string{"CI", "true"}, ""},
		{"not true", []string{"GITHUB_ACTIONS", "false"}, ""},
		{"push", append([]string{"GITHUB_ACTIONS", "true", "GITHUB_REF_NAME", "main", "GITHUB_REF_TYPE", "branch"}, run...), "github ana https://github.example/shop/bot/actions/runs/77 main"},
		{"pull request", append([]string{"GITHUB_ACTIONS", "true", "GITHUB_REF_NAME", "12/merge", "GITHUB_HEAD_REF", "topic"}, run...), "github ana https://github.example/shop/bot/actions/runs/77 topic"},
		{"tag", []string{"GITHUB_ACTIONS", "true", "GITHUB_REF_NAME", "v1", "GITHUB_REF_TYPE", "tag"}, "github   "},
		{"pipeline", append([]string{"CI_COMMIT_BRANCH", "main"}, gitlab...), "gitlab bo https://gitlab.example/p/1 main"},
		{"merge request", append([]string{"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "topic", "CI_JOB_URL", "https://gitlab.example/j/2"}, gitlab...), "gitlab bo https://gitlab.example/j/2 topic"},
	} {
		got := ""
		if c := ci.Detect(env(tc.pairs...)); c != nil {
			got = fmt.Sprintf("%s %s %s %s", c.Name, c.Actor, c.RunURL, c.Branch)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestHowLoudAnExitCodeIs(t *testing.T) {
	for code, want := range map[int]string{0: "notice", 3: "notice", 4: "warning", 9: "warning", 143: "warning", 1: "error", 2: "error", 5: "error", 6: "error", 7: "error", 8: "error"} {
		var log bytes.Buffer
		o := held()
		o.ExitCode = code
		if err := ci.Detect(env("GITHUB_ACTIONS", "true")).Write(&log, o); err != nil || !strings.HasPrefix(log.String(), "::"+want+" title=canaryctl order-service::") {
			t.Errorf("%d: %q, %v", code, log.String(), err)
		}
	}
}

func TestWhatAFileHoldsStays(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"summary": "# tests\n1 passed", "output": "image=abc", "canaryctl.env": "IMAGE=abc\nCANARYCTL_STEP=9\nTAG=1", "canaryctl-summary.md": "# tests\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, c := range []*ci.CI{githubAt(dir), gitlabAt(dir)} {
			if err := c.Write(io.Discard, held()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := read(t, filepath.Join(dir, "summary")); !strings.HasPrefix(got, "# tests\n1 passed\n### canaryctl") || strings.Count(got, "###") != 2 {
		t.Errorf("summary: %s", got)
	}
	if got := read(t, filepath.Join(dir, "output")); !strings.HasPrefix(got, "image=abc\ndecision=hold\n") {
		t.Errorf("output: %s", got)
	}
	if got := read(t, filepath.Join(dir, "canaryctl-summary.md")); !strings.HasPrefix(got, "# tests\n### canaryctl") {
		t.Errorf("summary: %s", got)
	}
	// GitLab refuses a dotenv file with a variable twice
	if got := read(t, filepath.Join(dir, "canaryctl.env")); !strings.HasPrefix(got, "IMAGE=abc\nTAG=1\nCANARYCTL_DECISION=hold\nCANARYCTL_STEP=2\n") || strings.Count(got, "CANARYCTL_STEP") != 1 {
		t.Errorf("dotenv: %s", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "canaryctl.env")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".canaryctl-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestPlacesCanBeNamed(t *testing.T) {
	dir := t.TempDir()
	c := ci.Detect(env("GITLAB_CI", "true", "CANARYCTL_DOTENV", filepath.Join(dir, "a.env"), "CANARYCTL_SUMMARY", filepath.Join(dir, "a.md")))
	if err := c.Write(io.Discard, held()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, filepath.Join(dir, "a.env")), "CANARYCTL_PCT=0.05\n") || !strings.Contains(read(t, filepath.Join(dir, "a.md")), "5 %") {
		t.Error("not written there")
	}
}

func TestAPlaceThatCannotBeWrittenLeavesTheOthers(t *testing.T) {
	dir := t.TempDir()
	for _, prepare := range []struct {
		name string
		do   func(path string) error
	}{
		{"a directory", func(p string) error { return os.Mkdir(p, 0o755) }},
		{"a link", func(p string) error { return os.Symlink(filepath.Join(dir, "victim"), p) }},
		{"a link to a file", func(p string) error { return os.Symlink(filepath.Join(dir, "there"), p) }},
		{"too large", func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("x"), 1<<20), 0o644) }},
	} {
		t.Run(prepare.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, "there"), []byte("mine"), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				at      func(string) *ci.CI
				bad, ok string
			}{{githubAt, "summary", "output"}, {githubAt, "output", "summary"}, {gitlabAt, "canaryctl.env", "canaryctl-summary.md"}, {gitlabAt, "canaryctl-summary.md", "canaryctl.env"}} {
				d := t.TempDir()
				if err := prepare.do(filepath.Join(d, c.bad)); err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				err := c.at(d).Write(&log, held())
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("%s: error %v", c.bad, err)
				}
				if log.Len() == 0 || !strings.Contains(read(t, filepath.Join(d, c.ok)), "hold") {
					t.Errorf("%s: the other places were not written", c.bad)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "victim")); err == nil || read(t, filepath.Join(dir, "there")) != "mine" {
				t.Error("a link was followed")
			}
		})
	}
	if err := githubAt(filepath.Join(dir, "nowhere")).Write(io.Discard, held()); err == nil {
		t.Error("a missing directory was not said")
	}
	if err := githubAt(t.TempDir()).Write(full{}, held()); err == nil {
		t.Error("a log that cannot be written was not said")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestTextsAreCutToWhatThePlacesTake(t *testing.T) {
	o := held()
	o.Reason = strings.Repeat("sehr viel zu früh ", 5000)
	for range 1000 {
		o.Verdicts = append(o.Verdicts, ci.Verdict{Signal: strings.Repeat("s", 1000), Verdict: "pass"})
	}
	dir := t.TempDir()
	var log bytes.Buffer
	if err := githubAt(dir).Write(&log, o); err != nil || log.Len() > 10<<10 {
		t.Errorf("%v, log %d", err, log.Len())
	}
	if n := len(read(t, filepath.Join(dir, "summary"))); n > 64<<10 {
		t.Errorf("summary of %d bytes", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "canaryctl.env"), []byte("X="+strings.Repeat("x", 4500)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := gitlabAt(dir).Write(io.Discard, o); err != nil {
		t.Fatal(err)
	}
	// "unless artifact.file.size < 5.kilobytes": parse_dotenv_artifact_service.rb of GitLab
	got := read(t, filepath.Join(dir, "canaryctl.env"))
	if len(got) >= 5<<10 || !strings.Contains(got, "CANARYCTL_REASON=sehr viel zu fr") || !strings.HasSuffix(got, "...\n") {
		t.Errorf("dotenv of %d bytes: %s", len(got), got[4500:])
	}
	before := "X=" + strings.Repeat("x", 5000) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "canaryctl.env"), []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := gitlabAt(dir).Write(io.Discard, o); err == nil || read(t, filepath.Join(dir, "canaryctl.env")) != before {
		t.Errorf("no room was left, and %v", err)
	}
}
