package target

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/canaryctl/canaryctl/internal/config"
)

const sceneWeights = `{"scenes": {
  "summaries": {"versions": {"stable": {"weight": 1}, "canary": {"weight": 0}}},
  "answers":   {"versions": {"stable": {"weight": 1}, "canary": {"weight": 0}}}
}}
`

// ofScene is the target of a scene whose weights stand in a document of all.
func ofScene(t *testing.T, dir, scene string) *file {
	t.Helper()
	at := "scenes." + scene + ".versions."
	made, err := New(&config.Target{Kind: "file", File: &config.FileTarget{
		Path: "weights.json", Canary: at + "canary.weight", Stable: at + "stable.weight",
	}}, Options{Service: "monolith/" + scene, Scene: scene, Ring: 100, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*file)
}

func twoScenes(t *testing.T) (summaries, answers *file) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weights.json"), []byte(sceneWeights), 0o640); err != nil {
		t.Fatal(err)
	}
	return ofScene(t, dir, "summaries"), ofScene(t, dir, "answers")
}

// TestScenesOfOneDocumentHaveTokensOfTheirOwn: what one scene has written since
// makes no lease of another too old.
func TestScenesOfOneDocumentHaveTokensOfTheirOwn(t *testing.T) {
	summaries, answers := twoScenes(t)
	write := func(f *file, slots int64, token uint64) error {
		return f.Write(t.Context(), mustRead(t, f), Change{To: weightOf(slots), Token: token})
	}
	if err := write(answers, 20, 9); err != nil {
		t.Fatal(err)
	}
	if err := write(summaries, 5, 7); err != nil {
		t.Errorf("the token of another scene refused it: %v", err)
	}
	if err := write(summaries, 10, 6); !isA[*ConflictError](err) {
		t.Errorf("a token older than its own was taken: %v", err)
	}
	if got := mustRead(t, summaries).Weight; got != weightOf(5) {
		t.Errorf("summaries are at %s", got)
	}
	if got := mustRead(t, answers).Weight; got != weightOf(20) {
		t.Errorf("answers are at %s", got)
	}
}

// TestScenesWriteOneDocumentAtOnce: no write of one is lost to another's.
func TestScenesWriteOneDocumentAtOnce(t *testing.T) {
	summaries, answers := twoScenes(t)
	var both sync.WaitGroup
	for i, f := range []*file{summaries, answers} {
		both.Go(func() {
			for n := range int64(20) {
				was, err := f.Read(t.Context())
				if err == nil {
					err = f.Write(t.Context(), was, Change{To: weightOf(n + 10*int64(i)), Token: uint64(n + 1)})
				}
				if err != nil {
					t.Errorf("%s: %v", f.scene, err)
					return
				}
			}
		})
	}
	both.Wait()
	if a, b := mustRead(t, summaries).Weight, mustRead(t, answers).Weight; a != weightOf(19) || b != weightOf(29) {
		t.Errorf("summaries %s, answers %s", a, b)
	}
}
