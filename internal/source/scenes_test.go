package source

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestRowsOfOtherScenesDoNotCount, and rows that name none neither.
func TestRowsOfOtherScenesDoNotCount(t *testing.T) {
	for kind, rows := range map[string]string{
		"records": `{"ts":"2026-03-02T09:00:10Z","arm":"canary","scene":"summaries","violation":true}
{"ts":"2026-03-02T09:00:20Z","arm":"canary","scene":"answers","violation":false}
{"ts":"2026-03-02T09:00:30Z","arm":"canary","scene":"answers","violation":false}
{"ts":"2026-03-02T09:00:40Z","arm":"canary","violation":true}
`,
		"windows": `{"t":"2026-03-02T09:00:00Z","arm":"canary","scene":"summaries","total":1,"violations":1}
{"t":"2026-03-02T09:00:00Z","arm":"canary","scene":"answers","total":2,"violations":0}
{"t":"2026-03-02T09:00:00Z","arm":"canary","total":1,"violations":1}
`,
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "log.jsonl"), rows)
			for scene, want := range map[string][2]int64{"summaries": {1, 1}, "answers": {2, 0}} {
				s, err := New(&config.Source{Kind: kind, Paths: []string{"log.jsonl"}, Span: time.Minute, Scene: scene}, Options{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
				b, err := s.Read(t.Context(), at, at.Add(10*time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				if len(b.Windows) != 1 || b.Windows[0].Arm != release.Canary || b.Windows[0].Total != want[0] || b.Windows[0].Violations != want[1] {
					t.Errorf("%s: %+v, want %d requests and %d violations", scene, b.Windows, want[0], want[1])
				}
			}
		})
	}
}
