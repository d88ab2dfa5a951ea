// Package ci writes what a release did into the places that a CI has for it:
// a summary that people read, outputs that later steps use, and marks in the
// log.
//
//	if c := ci.Detect(os.Getenv); c != nil {
//		if err := c.Write(stderr, outcome); err != nil {
//			fmt.Fprintln(stderr, "canaryctl: warning:", err)
//		}
//	}
//
// Reasons carry texts from outside, of servers and of people: none of them can
// become a command, an output or a row of its own. A place that cannot be
// written is an error to warn of and never a reason for a release to fail.
package ci

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Outcome is what there is to say.
type Outcome struct {
	Time     time.Time // when it was decided
	Service  string
	Release  string // id, or its first digits
	Decision string // start, advance, hold, roll_back, probe, complete, await_approval, lock
	Reason   string
	Next     string // what happens next, or the command to give
	Step     int    // from 1; 0: before the first
	Steps    int
	Attempt  int
	Pct      float64 // the canary's weight, a fraction of 1 as in the JSON
	Breaker  string  // CLOSED, OPEN, HALF_OPEN

	RemainingS *int64 // seconds until it can change for the better; nil: nobody can say
	ExitCode   int
	Verdicts   []Verdict
	Rollback   *Rollback // nil: there was none
}

// Verdict is what the evidence says of one signal.
type Verdict struct {
	Signal, Verdict string
	Value, Limit    *float64 // nil: not known
	Samples, Needed *int64
}

// Rollback is what the rollback record says, in short.
type Rollback struct {
	Time     time.Time
	Signal   string
	Value    *float64
	Limit    *float64
	Pct      float64 // the weight at that moment, a fraction of 1
	Requests *int64  // that the canary served until then; nil: not known
	Locked   bool    // only a person clears it
}

// CI is the CI that canaryctl runs in.
type CI struct {
	Name   string // github, gitlab
	Actor  string // who started the run; "" where it does not say, as all below
	RunURL string // where people see the run
	Branch string // that the run is for; "" for a tag

	summary string // file of Markdown; "": no place
	outputs string // file of outputs; "": no place
}

// The files that GitLab's jobs name as artifacts.
const (
	dotenvFile  = "canaryctl.env"
	summaryFile = "canaryctl-summary.md"
)

// Detect returns the CI that the environment is of, or nil. Those that call
// themselves GitHub Actions, as Gitea and Forgejo do, are taken at their word.
func Detect(getenv func(string) string) *CI {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return github(getenv)
	case getenv("GITLAB_CI") == "true":
		return gitlab(getenv)
	}
	return nil
}

func github(getenv func(string) string) *CI {
	c := &CI{Name: "github", Actor: getenv("GITHUB_ACTOR"), summary: getenv("GITHUB_STEP_SUMMARY"), outputs: getenv("GITHUB_OUTPUT")}
	if server, repo, run := getenv("GITHUB_SERVER_URL"), getenv("GITHUB_REPOSITORY"), getenv("GITHUB_RUN_ID"); server != "" && repo != "" && run != "" {
		c.RunURL = server + "/" + repo + "/actions/runs/" + run
	}
	c.Branch = getenv("GITHUB_HEAD_REF") // of a pull request, whose GITHUB_REF_NAME is no branch
	if c.Branch == "" && getenv("GITHUB_REF_TYPE") != "tag" {
		c.Branch = getenv("GITHUB_REF_NAME")
	}
	return c
}

func gitlab(getenv func(string) string) *CI {
	first := func(names ...string) string {
		for _, name := range names {
			if v := getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	// the paths of artifacts are relative to the project's directory
	place := func(variable, file string) string {
		if v := getenv(variable); v != "" {
			return v
		}
		return filepath.Join(getenv("CI_PROJECT_DIR"), file)
	}
	return &CI{
		Name:    "gitlab",
		Actor:   getenv("GITLAB_USER_LOGIN"),
		RunURL:  first("CI_JOB_URL", "CI_PIPELINE_URL"),
		Branch:  first("CI_COMMIT_BRANCH", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
		summary: place("CANARYCTL_SUMMARY", summaryFile),
		outputs: place("CANARYCTL_DOTENV", dotenvFile),
	}
}

// Write writes an outcome to all places of the CI; log is what the CI keeps as
// the job's log. Each place is tried; the error joins those that failed.
func (c *CI) Write(log io.Writer, o Outcome) error {
	var errs []error
	try := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", what, c.Name, err))
		}
	}
	if c.summary != "" {
		try("summary", appendFile(c.summary, markdown(o), maxSummary))
	}
	if c.Name == "gitlab" {
		try("outputs", writeDotenv(c.outputs, o))
		try("log", section(log, o))
		return errors.Join(errs...)
	}
	if c.outputs != "" {
		try("outputs", appendFile(c.outputs, githubOutputs(o), maxOutputs))
	}
	try("log", annotate(log, o))
	return errors.Join(errs...)
}
