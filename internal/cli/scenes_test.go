package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
)

// TestTheWorstOfScenesIsTheMostSevere, in the order that the help tells.
func TestTheWorstOfScenesIsTheMostSevere(t *testing.T) {
	order := []ExitCode{ExitIncomplete, ExitRolledBack, ExitDrift, ExitConflict, ExitSource, ExitFailed, ExitUsage, ExitApproval, ExitHeld, ExitOK}
	for i, bad := range order {
		for _, good := range order[i+1:] {
			ends := []sceneEnd{{name: "good", err: silent(good)}, {name: "bad", err: silent(bad)}}
			if got := worstOf(ends); got.name != "bad" {
				t.Errorf("%d counts as worse than %d", good, bad)
			}
		}
	}
	var said []string
	for _, code := range order {
		said = append(said, fmt.Sprint(int(code)))
	}
	if !strings.Contains(scenesHelp, strings.Join(said, ", ")) {
		t.Errorf("the help has another order: %s", scenesHelp)
	}
}

// scenesApp is a command line of which both streams are kept.
func scenesApp(output string) (app *App, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	app = &App{Stdout: stdout, Stderr: stderr, Getenv: func(string) string { return "" }}
	app.global.Output, app.global.Config = output, "canary.yaml"
	return app, stdout, stderr
}

func sceneConfigs(t *testing.T) []*config.Config {
	t.Helper()
	cfg, list := config.Parse("canary.yaml", []byte("canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}\nscenes: {a: {}, b: {}, c: {}}\n"))
	if cfg == nil {
		t.Fatal(list)
	}
	return []*config.Config{cfg.OfScene("a"), cfg.OfScene("b"), cfg.OfScene("c")}
}

// TestOneSceneThatFailsStopsNoOther: each is done, shown in its place, and what
// it says names it.
func TestOneSceneThatFailsStopsNoOther(t *testing.T) {
	app, stdout, stderr := scenesApp("")
	err := app.eachScene(sceneConfigs(t), func(x inScene) error {
		if x.cfg.Scene == "b" {
			return &Error{Code: ExitConflict, Err: errors.New("somebody else moved"), Hint: "look"}
		}
		x.app.say("a note")
		fmt.Fprintln(x.app.Stdout, "did", x.cfg.Scene)
		return nil
	})
	if codeOf(err) != ExitConflict {
		t.Errorf("exit code %d", codeOf(err))
	}
	if want := "did a\n\ndid c\n\n3 scenes: conflict in b, exit code 8\n"; stdout.String() != want {
		t.Errorf("%q, want %q", stdout, want)
	}
	for _, want := range []string{"canaryctl: a: a note\n", "canaryctl: c: a note\n", "canaryctl: b: error: somebody else moved\n", "canaryctl: b: hint: look\n"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is missing in %q", want, stderr)
		}
	}
}

// TestDocumentOfScenes: a scene that has nothing to show has its error, and
// what is worst is told.
func TestDocumentOfScenes(t *testing.T) {
	app, stdout, _ := scenesApp("json")
	err := app.eachScene(sceneConfigs(t), func(x inScene) error {
		switch x.cfg.Scene {
		case "a":
			return errors.New("broken")
		case "b":
			fmt.Fprintln(x.app.Stdout, `{"schema": 1, "scene": "b", "decision": "roll_back", "reason": "3 violations"}`)
			return silent(ExitRolledBack)
		}
		fmt.Fprintln(x.app.Stdout, `{"schema": 1, "scene": "c", "decision": "hold", "reason": "time"}`)
		return silent(ExitHeld)
	})
	if codeOf(err) != ExitRolledBack {
		t.Errorf("exit code %d", codeOf(err))
	}
	var doc struct {
		Schema int
		Scenes []struct {
			Scene, Decision, Error string
			ExitCode               int `json:"exit_code"`
		}
		Overall overallJSON
	}
	if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if len(doc.Scenes) != 3 || doc.Scenes[0].Error != "broken" || doc.Scenes[0].ExitCode != 1 || doc.Scenes[1].Decision != "roll_back" {
		t.Errorf("%+v", doc.Scenes)
	}
	if want := (overallJSON{ExitCode: 5, Scene: "b", Decision: "roll_back", Reason: "3 violations"}); doc.Overall != want {
		t.Errorf("%+v, want %+v", doc.Overall, want)
	}
}

// TestWhatTheCIKeepsIsTheWorst: outputs of one name are overwritten, so the
// worst is written last.
func TestWhatTheCIKeepsIsTheWorst(t *testing.T) {
	app, _, _ := scenesApp("")
	for _, tc := range []struct {
		codes map[string]ExitCode
		last  string
	}{
		{map[string]ExitCode{"a": ExitHeld, "b": ExitIncomplete, "c": ExitOK}, "b"},
		{map[string]ExitCode{"a": ExitHeld, "b": ExitHeld, "c": ExitHeld}, "a"}, // as overall has it
	} {
		var told []string
		_ = app.eachScene(sceneConfigs(t), func(x inScene) error {
			code := tc.codes[x.cfg.Scene]
			x.later(code, func() { told = append(told, x.cfg.Scene) })
			return silent(code)
		})
		if len(told) != 3 || told[2] != tc.last {
			t.Errorf("%v: told in the order %v", tc.codes, told)
		}
	}
}

// TestASignalEndsAllScenes with what each has shown so far.
func TestASignalEndsAllScenes(t *testing.T) {
	app, stdout, stderr := scenesApp("")
	err := app.eachScene(sceneConfigs(t), func(x inScene) error {
		if x.cfg.Scene == "a" {
			fmt.Fprintln(x.app.Stdout, "done")
			return nil
		}
		return fmt.Errorf("wait: %w", context.Canceled)
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(stdout.String(), "done") || stderr.Len() != 0 {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
}

// TestWhichScenesAreMeant: all, the one that is named, and never a guess.
func TestWhichScenesAreMeant(t *testing.T) {
	several, _ := config.Parse("c.yaml", []byte("canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}\nscenes: {a: {}, b: {}}\n"))
	single, _ := config.Parse("c.yaml", []byte("canary: {target_service: s, scene: a, steps: [{pct: 1, min_hold_min: 0}]}\n"))
	none, _ := config.Parse("c.yaml", []byte("canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}\n"))
	for _, tc := range []struct {
		name  string
		cfg   *config.Config
		scene string
		all   []string // names of the releases; nil: refused
		one   string   // "": refused
	}{
		{"several, none named", several, "", []string{"s/a", "s/b"}, ""},
		{"several, one named", several, "b", []string{"s/b"}, "s/b"},
		{"several, another named", several, "c", nil, ""},
		{"a file of one", single, "", []string{"s/a"}, "s/a"},
		{"a file of one, named", single, "a", []string{"s/a"}, "s/a"},
		{"a file of another", single, "b", nil, ""},
		{"no scenes", none, "", []string{"s"}, "s"},
		{"no scenes and one named", none, "a", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app, _, _ := scenesApp("")
			app.scene = tc.scene
			all, err := app.scenesOf(tc.cfg)
			var names []string
			for _, cfg := range all {
				names = append(names, cfg.ServiceName())
			}
			if err != nil {
				names = nil
			}
			if !slices.Equal(names, tc.all) || (err == nil) != (tc.all != nil) {
				t.Errorf("all: %v %v", names, err)
			}
			one, err := app.oneOf(tc.cfg)
			if (err == nil) != (tc.one != "") || err == nil && one.ServiceName() != tc.one || err != nil && codeOf(err) != ExitUsage {
				t.Errorf("one: %v %v", one, err)
			}
		})
	}
}

// TestJournalsThatARollbackMayGoBy: one service's, or all of one service's
// scenes, and none where it is not plain which are meant.
func TestJournalsThatARollbackMayGoBy(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []string
		scene string
		want  int
	}{
		{"none", nil, "", 0},
		{"a service", []string{"s/journal.jsonl"}, "", 1},
		{"two services", []string{"s/journal.jsonl", "t/journal.jsonl"}, "", 0},
		{"scenes of a service", []string{"s/scenes/a/journal.jsonl", "s/scenes/b/journal.jsonl"}, "", 2},
		{"one of them", []string{"s/scenes/a/journal.jsonl", "s/scenes/b/journal.jsonl"}, "b", 1},
		{"scenes of two services", []string{"s/scenes/a/journal.jsonl", "t/scenes/a/journal.jsonl"}, "", 0},
		{"a service and its scenes", []string{"s/journal.jsonl", "s/scenes/a/journal.jsonl"}, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range tc.files {
				path := filepath.Join(".canaryctl", filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			app, _, _ := scenesApp("")
			app.scene = tc.scene
			if got := app.journals(); len(got) != tc.want {
				t.Errorf("%v, want %d", got, tc.want)
			}
		})
	}
}

// TestNoiseTableOfLongNames keeps its columns.
func TestNoiseTableOfLongNames(t *testing.T) {
	doc := sceneCalibrations{Scenes: []*calibrate.Report{{Scene: "a"}, {Scene: "answers-to-customers"}}}
	var at []int
	for line := range strings.Lines(noiseTable(&doc)) {
		at = append(at, len(line))
	}
	if len(at) != 3 || at[0] != at[1] || at[1] != at[2] {
		t.Errorf("lines of %v bytes:\n%s", at, noiseTable(&doc))
	}
}
