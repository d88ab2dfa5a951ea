package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpeeds(t *testing.T) {
	for _, tt := range []struct {
		text string
		want speedFlag // 0: refused
		as   string
	}{
		{text: "60x", want: 60, as: "60x"},
		{text: "60", want: 60, as: "60x"},
		{text: "0.5x", want: 0.5, as: "0.5x"},
		{text: "0.1", want: 0.1, as: "0.1x"},
		{text: "100000x", want: 100_000, as: "100000x"},
		{text: "1e3x", want: 1000, as: "1000x"},
		{text: "0.09x"}, {text: "100001x"}, {text: "0"}, {text: "-1x"}, {text: "NaN"}, {text: "Infx"}, {text: "fast"}, {text: "x"}, {text: ""}, {text: "60xx"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			s := speedFlag(7)
			err := s.Set(tt.text)
			if refused := tt.want == 0; refused != (err != nil) {
				t.Fatalf("Set(%q): error %v", tt.text, err)
			}
			if err != nil {
				if s != 7 || !strings.Contains(err.Error(), "such as 60x") {
					t.Errorf("Set(%q) left %v and says %v", tt.text, s, err)
				}
				return
			}
			if s != tt.want || s.String() != tt.as {
				t.Errorf("Set(%q) gave %v, %s; want %v, %s", tt.text, float64(s), s.String(), float64(tt.want), tt.as)
			}
		})
	}
}

const watchedConfig = `
canary:
  target_service: order-service
  steps:
    - { pct: 0.10, min_hold_min: %d, gate: [%s] }
    - { pct: 1.00, min_hold_min: 60, gate: [time, metric] }
versions:
  stable: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "41" }
  canary: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "42" }
source: { records: { path: records.jsonl, span_min: 0.02, settle_min: 0 } }
target: { file: { path: weights.json } }
`

// watched is a release in a folder of its own, which is the working directory of
// the test.
type watched struct {
	t        *testing.T
	app      *App
	out, err bytes.Buffer
}

// newWatched is a release whose first step waits for the gates.
func newWatched(t *testing.T, hold int, gates string) *watched {
	t.Helper()
	t.Chdir(t.TempDir())
	w := &watched{t: t}
	w.app = &App{Stdin: strings.NewReader(""), Stdout: &w.out, Stderr: &w.err, Getenv: func(string) string { return "" }}
	w.app.global.Config = "canary.yaml"
	w.put("canary.yaml", fmt.Sprintf(watchedConfig, hold, gates))
	w.put("weights.json", `{"versions":{"stable":{"weight":1},"canary":{"weight":0}}}`)
	var records strings.Builder
	for at := time.Now().Add(-20 * time.Second).Truncate(time.Second); at.Before(time.Now().Add(time.Minute)); at = at.Add(time.Second) {
		for i := range 40 {
			arm := "stable"
			if i < 4 {
				arm = "canary"
			}
			fmt.Fprintf(&records, `{"ts":%q,"arm":%q,"solved":true,"violation":false,"transfer":false}`+"\n", at.UTC().Format(time.RFC3339), arm)
		}
	}
	w.put("records.jsonl", records.String())
	return w
}

func (w *watched) put(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// give runs a command, and returns its exit code and what it printed.
func (w *watched) give(args ...string) (ExitCode, string) {
	w.t.Helper()
	w.out.Reset()
	w.err.Reset()
	app := *w.app
	app.global = globalFlags{}
	code := Main(args, &app)
	return code, w.out.String() + w.err.String()
}

// files are those of the folder, with what is in them.
func files(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			out[path] = ""
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWatchingWritesNothing(t *testing.T) {
	w := newWatched(t, 60, "time, metric")
	for _, release := range []bool{false, true} {
		if release {
			w.promote(ExitOK)
		}
		before := files(t)
		s := w.look()
		if started := !s.Weight.IsZero(); started != release {
			t.Errorf("release %v: weight %s", release, s.Weight)
		}
		if diff := cmp.Diff(before, files(t)); diff != "" {
			t.Errorf("release %v: files are not what they were:\n%s", release, diff)
		}
	}
}

// TestTheReferenceHasEveryKey holds the keys of the view's own help against the
// reference, in which they are a table.
func TestTheReferenceHasEveryKey(t *testing.T) {
	keys, err := os.ReadFile("../tui/keys.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	bound := boundKeys(string(keys))
	if len(bound) < 20 {
		t.Fatalf("only %d keys found in keys.go: it is read wrongly", len(bound))
	}
	for _, b := range bound {
		if row := "| `" + b.key + "` | " + b.does + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/reference/watch.md has no row %s", row)
		}
	}
}

// boundKey is a key as the view's help shows it.
type boundKey struct{ key, does string }

// boundKeys reads the calls of bind in keys.go: package cli cannot see the map
// itself.
func boundKeys(src string) []boundKey {
	shown := strings.NewReplacer("g.Up", `"↑"`, "g.Down", `"↓"`)
	var out []boundKey
	for _, call := range strings.Split(shown.Replace(src), "bind(")[1:] {
		parts := strings.Split(call, `"`)
		if len(parts) > 4 && parts[0] == "" {
			out = append(out, boundKey{parts[1], parts[3]})
		}
	}
	return out
}
