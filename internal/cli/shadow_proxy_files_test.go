package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/proxy"
)

func TestAFileThatIsSomethingElseGetsNoLines(t *testing.T) {
	for _, c := range []struct {
		name                     string
		records, attempts, pairs string
		taken                    string // what the error names; "": none
	}{
		{"apart", "requests.jsonl", "attempts.jsonl", "pairs.jsonl", ""},
		{"twice the same", "requests.jsonl", "requests.jsonl", "", "--records"},
		{"under another name", "requests.jsonl", "", "./sub/../requests.jsonl", "--records"},
		{"a link to it", "there.jsonl", "link.jsonl", "", "--records"},
		{"a hard link to it", "there.jsonl", "", "hard.jsonl", "--records"},
		{"a link to nothing yet", "new.jsonl", "to-new.jsonl", "", "--records"},
		{"the weights", "weights.json", "", "", "the weights"},
		{"the configuration", "", "sub/../canary.yaml", "", "the configuration"},
		{"a device", "/dev/null", "/dev/null", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range []string{"canary.yaml", "there.jsonl"} {
				if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Mkdir("sub", 0o700), os.Symlink("there.jsonl", "link.jsonl"), os.Link("there.jsonl", "hard.jsonl"), os.Symlink("new.jsonl", "to-new.jsonl")); err != nil {
				t.Fatal(err)
			}
			o := &shadowProxyOptions{app: &App{}, Records: c.records, Attempts: c.attempts, Pairs: c.pairs}
			o.app.global.Config = "canary.yaml"
			cfg := &config.Config{Target: &config.Target{File: &config.FileTarget{Path: "weights.json"}}}
			files, err := o.files(cfg, &proxy.Options{})
			defer closeAll(files) //nolint:errcheck // nothing was written
			taken, ok := errors.AsType[*takenError](err)
			switch {
			case c.taken == "" && err != nil:
				t.Error(err)
			case c.taken != "" && (!ok || taken.what != c.taken || codeOf(err) != ExitUsage):
				t.Errorf("%v, want %s", err, c.taken)
			}
			if text, err := os.ReadFile("canary.yaml"); err != nil || string(text) != "{}" {
				t.Errorf("the configuration was changed: %q %v", text, err)
			}
			if _, err := os.Stat("weights.json"); err == nil {
				t.Error("a file of weights was made")
			}
		})
	}
}

func TestAHalfLineIsEndedBeforeTheNextIsWritten(t *testing.T) {
	for was, want := range map[string]string{"": "x\n", "whole\n": "whole\nx\n", "whole\nhal": "whole\nhal\nx\n"} {
		path := filepath.Join(t.TempDir(), "lines.jsonl")
		if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := new(apart).open("--records", path, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("x\n")
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhatIsNoNameOfAHeaderIsRefused(t *testing.T) {
	for name, ok := range map[string]bool{"X User": false, "X-User:": false, "X-\u00dc": false, "a\r\nb": false, "X-User-Id": true, "": true} {
		o := &shadowProxyOptions{}
		for _, field := range []*string{&o.UserHeader, &o.SegmentHeader} {
			o.UserHeader, o.SegmentHeader = "", ""
			*field = name
			if err := o.checkHeaders(); (err == nil) != ok {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}
