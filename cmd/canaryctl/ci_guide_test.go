//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// The pipelines of docs/guides/ci.md, as far as a shell runs them.

type githubStep struct {
	Name, ID, If, Uses, Run string
	Env                     map[string]string
	Continue                bool `yaml:"continue-on-error"`
}

type githubJob struct {
	If          string
	Environment string
	Env         map[string]string
	Outputs     map[string]string
	Steps       []githubStep
}

type gitlabJob struct {
	Extends      string
	Stage        string
	When         string
	Needs        []string
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	AfterScript  []string `yaml:"after_script"`
	AllowFailure struct {
		ExitCodes []int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
	Artifacts struct {
		When    string
		Paths   []string
		Reports map[string]string
	}
}

// guideBlocks are the fenced YAML blocks of the guide, by their first word that
// names them: a file behind the language, or in a comment on the first line.
func guideBlocks(t *testing.T) map[string]string {
	t.Helper()
	src, err := os.ReadFile("../../docs/guides/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```yaml ?([^\n]*)\n(.*?)^```$").FindAllStringSubmatch(string(src), -1) {
		name := m[1]
		if name == "" {
			first, _, _ := strings.Cut(m[2], "\n")
			name = strings.TrimPrefix(first, "# ")
		}
		blocks[name] = m[2]
	}
	return blocks
}

func parseYAML(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// forge is a CI with its runners, the config API that all of them share, and a
// gate before that API at which a write can be held up.
type forge struct {
	t      *testing.T
	api    *served
	url    string // of the document, through the gate
	hook   string
	bin    string // programs of the runners' image
	config string // canary.yaml, as checked out
	load   scriptLoad
	wait   string       // for the guide's 8 minutes
	told   atomic.Int64 // messages that arrived
	// onPut is asked at each write; pass lets it through.
	onPut atomic.Pointer[func(r *http.Request, pass func())]
}

const forgeToken = "token-of-the-forge"

// newForge starts the API with a document at 0 %. The guide's canary.yaml gets
// records in place of Prometheus, and other holds.
func newForge(t *testing.T, hold string) *forge {
	t.Helper()
	f := &forge{t: t, bin: t.TempDir(), load: usualLoad(), wait: "4s"} // held all the time
	f.api = startServe(t, []string{"API_TOKEN=" + forgeToken}, "--dir", t.TempDir(), "--token-env", "API_TOKEN")
	f.put(`{"versions":{"stable":{"weight":1},"canary":{"weight":0}}}`, "If-None-Match: *")
	to, err := url.Parse(f.api.url)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if held := f.onPut.Load(); held != nil && r.Method == http.MethodPut {
			(*held)(r, func() { through.ServeHTTP(w, r) })
			return
		}
		through.ServeHTTP(w, r)
	}))
	inbox := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.told.Add(1) }))
	t.Cleanup(gate.Close)
	t.Cleanup(inbox.Close)
	f.url, f.hook = gate.URL+"/v1/services/order-service", inbox.URL
	if err := os.WriteFile(filepath.Join(f.bin, "go"), []byte("#!/bin/sh\necho go \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.config = guideBlocks(t)["canary.yaml"]
	f.edit(`min_hold_min: \d+`, "min_hold_min: "+hold)
	if hold == "0" {
		f.edit(`gate: \[time, metric`, "gate: [time")
		f.wait = "30s" // something is decided long before
	}
	f.edit(`(?s)source:.*?target:`, "source: { records: { path: records.jsonl, span_min: 0.02, settle_min: 0 } }\ntarget:")
	f.edit(`  steps:`, "  include: { user_ids: [C-1] }\n  steps:") // the share that is seen may be above the weight's
	return f
}

func (f *forge) edit(what, as string) {
	f.t.Helper()
	was := f.config
	if f.config = regexp.MustCompile(what).ReplaceAllString(was, as); f.config == was {
		f.t.Fatalf("the guide's canary.yaml has no %s", what)
	}
}

func (f *forge) put(document string, headers ...string) {
	f.t.Helper()
	headers = append(headers, "Authorization: Bearer "+forgeToken)
	if code, _, body := f.api.do(f.t, "PUT", "/v1/services/order-service", document, headers...); code/100 != 2 {
		f.t.Fatalf("PUT: %d %s", code, body)
	}
}

// document returns what the API holds, and its ETag.
func (f *forge) document() (weight float64, text, etag string) {
	f.t.Helper()
	_, header, text := f.api.do(f.t, "GET", "/v1/services/order-service", "", "Authorization: Bearer "+forgeToken)
	var doc struct {
		Versions map[string]struct{ Weight float64 }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
	return doc.Versions["canary"].Weight, text, header.Get("ETag")
}

func (f *forge) wantWeight(want float64) {
	f.t.Helper()
	if got, text, _ := f.document(); got != want {
		f.t.Errorf("the API holds %v, want %v: %s", got, want, text)
	}
}

// machine is a runner's fresh checkout: nothing but what the repository has, and
// the service's records.
func (f *forge) machine() string {
	f.t.Helper()
	dir := f.t.TempDir()
	for name, text := range map[string]string{"canary.yaml": f.config, "records.jsonl": f.load.text(time.Now())} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	return dir
}

// vars are the forge's variables and secrets.
func (f *forge) vars() map[string]string {
	return map[string]string{
		"CONFIG_API_URL": f.url, "CONFIG_API_TOKEN": forgeToken, "CANARY_WEBHOOK": f.hook, "PROMETHEUS_URL": "", "PROMETHEUS_TOKEN": "",
	}
}

// signalled are what happens to a step while it writes.
type signalled struct {
	step   string
	signal syscall.Signal
}

// shell runs a script as the forges do, and returns its exit code and output.
func (f *forge) shell(dir, script string, env map[string]string, kill *syscall.Signal) (int, string) {
	f.t.Helper()
	script = strings.ReplaceAll(script, "--timeout 8m", "--timeout "+f.wait)
	file := filepath.Join(f.t.TempDir(), "step.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.CommandContext(f.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + f.bin + ":" + os.Getenv("PATH"), "HOME=" + dir, raceOptions + "=" + os.Getenv(raceOptions)}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var process atomic.Pointer[os.Process]
	if kill != nil {
		f.killAtWrite(&process, *kill)
		defer f.onPut.Store(nil)
	}
	err := cmd.Start()
	if err == nil {
		process.Store(cmd.Process)
		err = cmd.Wait()
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if code = exit.ExitCode(); code < 0 {
			code = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
		}
	} else if err != nil {
		f.t.Fatal(err)
	}
	if strings.Contains(out.String(), forgeToken) {
		f.t.Errorf("the log shows the token: %s", out.String())
	}
	return code, out.String()
}

// killAtWrite signals the step's process when its write has come to the API,
// and lets the write through. A process that was killed gets no answer.
func (f *forge) killAtWrite(process *atomic.Pointer[os.Process], signal syscall.Signal) {
	var once atomic.Bool
	held := func(r *http.Request, pass func()) {
		if once.Swap(true) {
			pass()
			return
		}
		pass()
		_ = process.Load().Signal(signal) // it is there: it has just written
		if signal == syscall.SIGKILL {
			<-r.Context().Done()
		}
	}
	f.onPut.Store(&held)
}

// ran is what came of a job.
type ran struct {
	failed  bool
	code    int               // of the step that failed it
	outputs map[string]string // of the job, or its dotenv variables
	log     map[string]string // by step
	summary string
	killed  int // exit code of the step that was signalled
}

// github runs a job on a machine.
func (f *forge) github(dir string, job *githubJob, event string, needs map[string]string, kill *signalled) *ran {
	f.t.Helper()
	r := &ran{outputs: map[string]string{}, log: map[string]string{}}
	known := map[string]string{}
	for name, value := range f.vars() {
		known["vars."+name], known["secrets."+name] = value, value
	}
	for name, value := range needs {
		known["needs.promote.outputs."+name] = value
	}
	summary := filepath.Join(f.t.TempDir(), "summary")
	cancelled := false
	for _, s := range job.Steps {
		goes, ok := map[string]bool{"": !r.failed && !cancelled, "always()": true, "github.event_name == 'push'": !r.failed && !cancelled && event == "push"}[s.If]
		if !ok {
			f.t.Fatalf("step %s: condition %q is not one that this test knows", s.Name, s.If)
		}
		if !goes || s.Run == "" {
			known["steps."+s.ID+".outcome"] = "skipped"
			continue
		}
		output := filepath.Join(f.t.TempDir(), "output")
		env := map[string]string{
			"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary, "GITHUB_ACTOR": "ana", "GITHUB_RUN_ID": "77",
			"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "shop/bot",
		}
		for _, vars := range []map[string]string{job.Env, s.Env} {
			for name, value := range vars {
				env[name] = f.expand(value, known)
			}
		}
		var signal *syscall.Signal
		if kill != nil && kill.step == s.Name {
			signal = &kill.signal
			cancelled = true
		}
		code, out := f.shell(dir, s.Run, env, signal)
		r.log[s.Name] = out
		for name, value := range outputsIn(output) {
			known["steps."+s.ID+".outputs."+name] = value
		}
		known["steps."+s.ID+".outcome"] = map[bool]string{true: "success", false: "failure"}[code == 0]
		if signal != nil {
			known["steps."+s.ID+".outcome"] = "cancelled"
		}
		if code != 0 && !s.Continue && !r.failed {
			r.failed, r.code = true, code
		}
		if signal != nil {
			r.killed = code
		}
	}
	for name, value := range job.Outputs {
		r.outputs[name] = f.expand(value, known)
	}
	text, _ := os.ReadFile(summary) // it may not be there
	r.summary = string(text)
	return r
}

// expand fills in ${{ }}; what is not known is empty, as with GitHub.
func (f *forge) expand(text string, known map[string]string) string {
	return regexp.MustCompile(`\$\{\{ ([a-zA-Z0-9_.]+) \}\}`).ReplaceAllStringFunc(text, func(m string) string {
		return known[strings.TrimSuffix(strings.TrimPrefix(m, "${{ "), " }}")]
	})
}

// outputsIn reads a file of name=value.
func outputsIn(path string) map[string]string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		out[name] = value
	}
	return out
}

// gitlab runs a job on a machine: before_script and script in one shell,
// after_script in another, whose exit code does not count.
func (f *forge) gitlab(dir string, jobs map[string]*gitlabJob, name string, needs map[string]string, kill *signalled) *ran {
	f.t.Helper()
	job := jobs[name]
	base := jobs[job.Extends]
	env := map[string]string{"GITLAB_CI": "true", "CI_PROJECT_DIR": dir, "GITLAB_USER_LOGIN": "bo", "CI_JOB_URL": "https://gitlab.example/j/2"}
	maps.Copy(env, f.vars())
	maps.Copy(env, needs)
	var signal *syscall.Signal
	if kill != nil {
		signal = &kill.signal
	}
	r := &ran{log: map[string]string{}}
	r.code, r.log["script"] = f.shell(dir, strings.Join(append(slices.Clone(base.BeforeScript), job.Script...), "\n"), env, signal)
	if len(job.AfterScript) > 0 {
		_, r.log["after_script"] = f.shell(dir, strings.Join(job.AfterScript, "\n"), env, nil)
	}
	r.failed = r.code != 0 && !slices.Contains(job.AllowFailure.ExitCodes, r.code)
	r.outputs = outputsIn(filepath.Join(dir, base.Artifacts.Reports["dotenv"]))
	text, _ := os.ReadFile(filepath.Join(dir, base.Artifacts.Paths[0])) // it may not be there
	r.summary = string(text)
	return r
}

func (f *forge) want(r *ran, failed bool, code int, outputs map[string]string) {
	f.t.Helper()
	if r.failed != failed || failed && r.code != code {
		f.t.Errorf("the job failed %v with %d, want %v with %d\n%s", r.failed, r.code, failed, code, r)
	}
	for name, value := range outputs {
		if r.outputs[name] != value {
			f.t.Errorf("%s is %q, want %q\n%s", name, r.outputs[name], value, r)
		}
	}
}

func (f *forge) wantText(where, text string, wants ...string) {
	f.t.Helper()
	for _, want := range wants {
		if !regexp.MustCompile(want).MatchString(text) {
			f.t.Errorf("%s has no %q:\n%s", where, want, text)
		}
	}
}

// String is a job's log.
func (r *ran) String() string {
	var b strings.Builder
	for _, step := range slices.Sorted(maps.Keys(r.log)) {
		fmt.Fprintf(&b, "--- %s\n%s", step, r.log[step])
	}
	return b.String()
}

// githubJobs are those of the guide.
func githubJobs(t *testing.T) (promote, approve *githubJob) {
	t.Helper()
	var w struct{ Jobs map[string]*githubJob }
	parseYAML(t, guideBlocks(t)[".github/workflows/canary.yml"], &w)
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			if strings.Contains(s.Run, "${{") {
				t.Errorf("job %s, step %s: an expression in run", name, s.Name)
			}
		}
	}
	if promote, approve = w.Jobs["promote"], w.Jobs["approve"]; promote == nil || approve == nil || len(w.Jobs) != 2 {
		t.Fatalf("jobs %v", w.Jobs)
	}
	if approve.If != "always() && needs.promote.outputs.exit_code == '4'" || approve.Environment == "" {
		t.Fatalf("approve runs if %q in environment %q", approve.If, approve.Environment)
	}
	return promote, approve
}

// needBash also lets the tests run beside each other: they mostly wait.
func needBash(t *testing.T) {
	t.Helper()
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
}

func TestGitHubMergeStartsAndTheNextLookHolds(t *testing.T) {
	needBash(t)
	promote, _ := githubJobs(t)
	f := newForge(t, "60")
	r := f.github(f.machine(), promote, "push", nil, nil)
	f.want(r, false, 0, map[string]string{"exit_code": "3", "step": "1"})
	f.wantWeight(0.01)
	f.wantText("install", r.log["install"], "^go install ")
	f.wantText("preflight", r.log["preflight"], "(?m)^ok +target: config api .* holds 0 %$")
	f.wantText("start", r.log["start"], "(?m)^::notice title=canaryctl order-service::start: release starts at step 1 of 4")
	f.wantText("promote", r.log["promote"], "(?m)^::notice title=canaryctl order-service::hold: held .* of 1 hour")
	f.wantText("recover", r.log["recover"], "nothing was left undone")
	f.wantText("judge", r.log["judge"], "held at step 1: the next run looks again")
	f.wantText("summary", r.summary, "(?m)^### canaryctl order-service: start$", "(?m)^### canaryctl order-service: hold$", `\| 1 of 4 \| 1 % \| 1 \| CLOSED \|`)
	if f.told.Load() == 0 {
		t.Error("nobody was told of the start")
	}
	// a merge while it is under way does not push it on
	r = f.github(f.machine(), promote, "push", nil, nil)
	f.want(r, true, 8, map[string]string{"exit_code": "", "step": ""})
	f.wantText("start", r.log["start"], "the release is at step 1, not 0: nothing was done", "(?m)^::error::a release is under way")
	f.wantText("judge", r.log["judge"], "a step before promote has failed")
	f.wantWeight(0.01)
}

// TestGitHubTheNextRelease: a merge that comes too early fails and says why; the
// workflow of the guide makes room for it.
func TestGitHubTheNextRelease(t *testing.T) {
	needBash(t)
	promote, _ := githubJobs(t)
	var w struct{ Jobs map[string]*githubJob }
	parseYAML(t, guideBlocks(t)[".github/workflows/canary-room.yml"], &w)
	room := w.Jobs["room"]
	if room == nil {
		t.Fatal("the guide has no workflow that makes room")
	}
	f := newForge(t, "0")
	f.edit(`, approval\]`, "]")
	f.want(f.github(f.machine(), promote, "push", nil, nil), false, 0, map[string]string{"step": "2"})
	for range 3 {
		f.want(f.github(f.machine(), promote, "schedule", nil, nil), false, 0, nil)
	}
	f.wantWeight(1)
	was := f.config
	f.edit(`"42"`, `"43"`)
	f.edit(`"41"`, `"42"`)
	next := f.config
	r := f.github(f.machine(), promote, "push", nil, nil)
	f.want(r, true, 7, nil)
	f.wantText("start", r.log["start"], "the target holds 100 % and no release has put it there", "(?m)^::error::the last release holds the weight")
	f.wantWeight(1)

	f.config = was
	r = f.github(f.machine(), room, "workflow_dispatch", nil, nil)
	f.want(r, false, 0, nil)
	f.wantWeight(0)
	f.want(f.github(f.machine(), promote, "schedule", nil, nil), true, 5, nil)
	f.config = next
	r = f.github(f.machine(), promote, "push", nil, nil)
	f.want(r, false, 0, map[string]string{"step": "2"})
	f.wantText("start", r.log["start"], "(?m)^::notice title=canaryctl order-service::start: release starts at step 1 of 4")
	f.wantWeight(0.1)
}

func TestGitHubScheduleAdvancesAndAPersonApproves(t *testing.T) {
	needBash(t)
	promote, approve := githubJobs(t)
	f := newForge(t, "0")
	r := f.github(f.machine(), promote, "push", nil, nil)
	f.want(r, false, 0, map[string]string{"exit_code": "0", "step": "2"})
	f.wantText("promote", r.log["promote"], "(?m)^::notice .*::advance: all gates of step 1 passed")
	f.wantWeight(0.1)

	r = f.github(f.machine(), promote, "schedule", nil, nil)
	f.want(r, false, 0, map[string]string{"exit_code": "4", "step": "2"})
	f.wantText("promote", r.log["promote"], "(?m)^::warning .*::await_approval: step 2 waits for a person's approval")
	f.wantText("judge", r.log["judge"], "step 2 waits for the job approve")
	f.wantWeight(0.1)

	r = f.github(f.machine(), approve, "schedule", r.outputs, nil)
	f.want(r, false, 0, nil)
	f.wantText("approve", r.log["approve"], "approved by ana@.*: approved in https://github.example/shop/bot/actions/runs/77")
	f.wantText("advance", r.log["advance"], ": advance, step 3 of 4 at 50 %")
	f.wantWeight(0.5)

	// the approval of a step that has been taken is not given twice
	r = f.github(f.machine(), approve, "schedule", map[string]string{"step": "2"}, nil)
	f.want(r, true, 8, nil)
	f.wantWeight(0.5)
}

func TestGitHubBadCanaryFailsTheJob(t *testing.T) {
	needBash(t)
	promote, _ := githubJobs(t)
	f := newForge(t, "60")
	f.load.violations, f.wait = 4, "30s"
	r := f.github(f.machine(), promote, "push", nil, nil)
	f.want(r, true, 5, map[string]string{"exit_code": "5"})
	f.wantWeight(0)
	f.wantText("promote", r.log["promote"], "(?m)^::error title=canaryctl order-service::roll_back: .* violations in 5 minutes, limit 3")
	f.wantText("judge", r.log["judge"], "(?m)^::error::rolled back")
	f.wantText("summary", r.summary, `Rolled back at \S+ from 1 % by violations`)
}

func TestGitHubOtherOutcomes(t *testing.T) {
	needBash(t)
	promote, _ := githubJobs(t)
	for _, test := range []struct {
		name string
		make func(f *forge) string // and the machine
		code int
		log  string
	}{
		{"drift", func(f *forge) string {
			_, text, etag := f.document()
			text = strings.NewReplacer(`"weight":0.01`, `"weight":0.3`, `"weight":0.99`, `"weight":0.7`).Replace(text)
			f.put(text, "If-Match: "+etag)
			return f.machine()
		}, 7, "somebody else has moved the weight"},
		{"another candidate", func(f *forge) string {
			f.edit(`prompt_version: "42"`, `prompt_version: "43"`)
			return f.machine()
		}, 8, "another candidate's release is not finished"},
		{"no source", func(f *forge) string {
			dir := f.machine()
			if err := os.Remove(filepath.Join(dir, "records.jsonl")); err != nil {
				f.t.Fatal(err)
			}
			return dir
		}, 9, "the source could not be read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newForge(t, "60")
			f.want(f.github(f.machine(), promote, "push", nil, nil), false, 0, nil)
			dir := test.make(f)
			before, _, _ := f.document()
			r := f.github(dir, promote, "schedule", nil, nil)
			f.want(r, true, test.code, map[string]string{"exit_code": fmt.Sprint(test.code)})
			f.wantText("promote", r.log["promote"], test.log)
			f.wantWeight(before)
		})
	}
}

func TestGitHubEveryExitCodeIsJudged(t *testing.T) {
	needBash(t)
	promote, _ := githubJobs(t)
	i := slices.IndexFunc(promote.Steps, func(s githubStep) bool { return s.Name == "judge" })
	f := &forge{t: t, bin: t.TempDir()}
	for code, want := range map[string]int{"0": 0, "3": 0, "4": 0, "5": 5, "6": 6, "7": 7, "8": 8, "9": 9, "1": 1, "2": 2, "143": 143, "": 1} {
		if got, out := f.shell(t.TempDir(), promote.Steps[i].Run, map[string]string{"CODE": code, "STEP": "2"}, nil); got != want {
			t.Errorf("code %q: exit %d, want %d: %s", code, got, want, out)
		}
	}
}

// TestGitHubCancelledInTheMiddle: a write is under way when the run is
// cancelled, or the process is killed; the step recover settles it.
func TestGitHubCancelledInTheMiddle(t *testing.T) {
	needBash(t)
	promote, _ := githubJobs(t)
	for _, test := range []struct {
		signal  syscall.Signal
		code    int
		recover string
	}{
		{syscall.SIGTERM, 143, "nothing was left undone"},
		{syscall.SIGINT, 130, "nothing was left undone"},
		{syscall.SIGKILL, 137, "step 2 of 4 at 10 %"},
	} {
		t.Run(test.signal.String(), func(t *testing.T) {
			t.Parallel()
			f := newForge(t, "0")
			dir := f.machine()
			if code, out := f.shell(dir, "canaryctl promote", f.vars(), nil); code != 0 {
				t.Fatalf("start: %d %s", code, out)
			}
			r := f.github(dir, promote, "schedule", nil, &signalled{"promote", test.signal})
			if r.killed != test.code {
				t.Errorf("exit %d, want %d\n%s", r.killed, test.code, r)
			}
			f.wantText("recover", r.log["recover"], test.recover)
			f.wantWeight(0.1)
			// the next run, on another machine, goes on from there
			r = f.github(f.machine(), promote, "schedule", nil, nil)
			f.want(r, false, 0, map[string]string{"exit_code": "4", "step": "2"})
		})
	}
}

// gitlabJobs are those of the guide.
func gitlabJobs(t *testing.T) map[string]*gitlabJob {
	t.Helper()
	var all map[string]yaml.Node
	parseYAML(t, guideBlocks(t)[".gitlab-ci.yml"], &all)
	jobs := map[string]*gitlabJob{}
	for name, node := range all {
		if name == "stages" {
			continue
		}
		// allow_failure may be a plain true inside rules only
		var job gitlabJob
		if err := node.Decode(&job); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		jobs[name] = &job
	}
	if base := jobs[".canaryctl"]; base == nil || base.Artifacts.When != "always" || len(base.Artifacts.Paths) == 0 {
		t.Fatalf("jobs %v", jobs)
	}
	return jobs
}

func TestGitLabFromMergeToApproval(t *testing.T) {
	needBash(t)
	jobs := gitlabJobs(t)
	f := newForge(t, "0")
	r := f.gitlab(f.machine(), jobs, "preflight", nil, nil)
	f.want(r, false, 0, nil)
	r = f.gitlab(f.machine(), jobs, "start", nil, nil)
	f.want(r, false, 0, map[string]string{"CANARYCTL_DECISION": "start", "CANARYCTL_STEP": "1", "CANARYCTL_PCT": "0.01", "CANARYCTL_EXIT_CODE": "0"})
	f.wantText("log", r.log["script"], "^go install ", `section_start:\d+:canaryctl_\d+`)
	f.wantText("after_script", r.log["after_script"], "nothing was left undone")

	r = f.gitlab(f.machine(), jobs, "promote", nil, nil)
	f.want(r, false, 0, map[string]string{"CANARYCTL_DECISION": "advance", "CANARYCTL_STEP": "2"})
	f.wantWeight(0.1)
	// nothing waits yet: the manual job does nothing
	early := f.gitlab(f.machine(), jobs, "approve", r.outputs, nil)
	f.want(early, false, 0, nil)
	f.wantText("approve", early.log["script"], "no step waits for an approval")

	r = f.gitlab(f.machine(), jobs, "promote", nil, nil)
	f.want(r, false, 4, map[string]string{"CANARYCTL_DECISION": "await_approval", "CANARYCTL_EXIT_CODE": "4", "CANARYCTL_STEP": "2"})
	f.wantText("summary", r.summary, "(?m)^### canaryctl order-service: await_approval$")
	r = f.gitlab(f.machine(), jobs, "approve", r.outputs, nil)
	f.want(r, false, 0, map[string]string{"CANARYCTL_DECISION": "advance", "CANARYCTL_STEP": "3"})
	f.wantText("approve", r.log["script"], "approved by bo@.*: approved in https://gitlab.example/j/2")
	f.wantWeight(0.5)
}

func TestGitLabHeldIsAWarningAndABadCanaryFails(t *testing.T) {
	needBash(t)
	jobs := gitlabJobs(t)
	f := newForge(t, "60")
	f.want(f.gitlab(f.machine(), jobs, "start", nil, nil), false, 0, nil)
	r := f.gitlab(f.machine(), jobs, "promote", nil, nil)
	if r.code != 3 {
		t.Errorf("exit %d, want 3\n%s", r.code, r)
	}
	f.want(r, false, 3, map[string]string{"CANARYCTL_DECISION": "hold", "CANARYCTL_EXIT_CODE": "3"})
	f.load.violations, f.wait = 4, "30s"
	r = f.gitlab(f.machine(), jobs, "promote", nil, nil)
	f.want(r, true, 5, map[string]string{"CANARYCTL_DECISION": "roll_back", "CANARYCTL_PCT": "0", "CANARYCTL_BREAKER": "OPEN"})
	f.wantText("summary", r.summary, `Rolled back at \S+ from 1 % by violations`)
	f.wantWeight(0)
}

// TestGitLabKilledInTheMiddle: after_script settles the write on the same
// machine; where that is gone too, the job recover does on another.
func TestGitLabKilledInTheMiddle(t *testing.T) {
	needBash(t)
	jobs := gitlabJobs(t)
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("machine gone %v", gone), func(t *testing.T) {
			t.Parallel()
			f := newForge(t, "0")
			f.want(f.gitlab(f.machine(), jobs, "start", nil, nil), false, 0, nil)
			dir, kill := f.machine(), syscall.SIGKILL
			if code, out := f.shell(dir, "exec "+jobs["promote"].Script[0], f.vars(), &kill); code != 137 {
				t.Fatalf("exit %d, want 137: %s", code, out)
			}
			after, name := jobs["promote"].AfterScript, "after_script"
			if gone {
				dir, after, name = f.machine(), jobs["recover"].Script, "recover"
			}
			env := f.vars()
			env["GITLAB_CI"], env["CI_PROJECT_DIR"] = "true", dir
			code, out := f.shell(dir, strings.Join(after, "\n"), env, nil)
			if code != 0 {
				t.Errorf("%s: exit %d: %s", name, code, out)
			}
			f.wantText(name, out, "step 2 of 4 at 10 %")
			f.wantWeight(0.1)
			r := f.gitlab(f.machine(), jobs, "promote", nil, nil)
			f.want(r, false, 4, map[string]string{"CANARYCTL_EXIT_CODE": "4", "CANARYCTL_STEP": "2"})
		})
	}
}
