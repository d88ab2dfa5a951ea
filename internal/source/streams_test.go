package source

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

const streamLog = `{"ts":"2026-05-04T12:00:01Z","arm":"canary","scene":"chat","ttft_ms":900,"latency_ms":1900,"output_tokens":11,"status":200,"stream_aborted":false}
{"ts":"2026-05-04T12:00:02Z","arm":"canary","scene":"chat","ttft_ms":3500,"status":"weird","stream_aborted":true}
{"ts":"2026-05-04T12:00:03Z","arm":"canary","scene":"summaries","status":503}
{"ts":"2026-05-04T12:00:04Z","arm":"canary","status":503}
`

// sceneSource is a source of records of one scene, with the limit of ttft_slow.
func sceneSource(t *testing.T, dir, scene string) Source {
	t.Helper()
	s, err := New(&config.Source{Kind: "records", Paths: []string{"app.log"}, Span: time.Minute, Scene: scene}, Options{Dir: dir, TTFTLimitMS: 3000})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRecordFilesCarryStreamsAndStatuses(t *testing.T) {
	dir, from := t.TempDir(), time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	write(t, filepath.Join(dir, "app.log"), streamLog)
	s := sceneSource(t, dir, "")
	b := read(t, s, from, from.Add(5*time.Minute))
	if len(b.Windows) != 1 {
		t.Fatalf("%+v", b)
	}
	w := b.Windows[0]
	if w.TTFTOf != 2 || w.TTFTSlow != 1 || w.TTFTP99MS != 3500 || w.ITLOf != 1 || w.ITLMS != 100 || w.Streams != 2 || w.Aborted != 1 ||
		w.StatusOf != 4 || w.Errors != 3 || w.ServerErrors != 2 || !w.Has(release.HasTTFT|release.HasTTFTSlow|release.HasITL|release.HasAborts|release.HasErrors|release.HasServerErrors) {
		t.Errorf("%+v", w)
	}
	const note = "a status that is not known counts as an error (weird)"
	if notes := strings.Join(b.Notes, "\n"); strings.Count(notes, note) != 1 {
		t.Errorf("%q", notes)
	}
	appendTo(t, filepath.Join(dir, "app.log"), strings.ReplaceAll(streamLog, "12:00", "12:06"))
	if b := read(t, s, from, from.Add(8*time.Minute)); len(b.Windows) != 2 || strings.Contains(strings.Join(b.Notes, "\n"), note) {
		t.Errorf("said twice: %+v", b)
	}
}

func TestRecordFilesOfAScene(t *testing.T) {
	dir, from := t.TempDir(), time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	write(t, filepath.Join(dir, "app.log"), streamLog)
	for scene, want := range map[string]struct {
		total int64
		note  string
	}{
		"summaries": {1, "rows that name no scene are left out: which of them are of summaries is not known"},
		"chat":      {2, "rows that name no scene are left out"},
	} {
		b := read(t, sceneSource(t, dir, scene), from, from.Add(5*time.Minute))
		if requests(b) != want.total || !strings.Contains(strings.Join(b.Notes, "\n"), want.note) {
			t.Errorf("%s: %+v", scene, b)
		}
	}
	write(t, filepath.Join(dir, "app.log"), strings.Join(strings.SplitAfter(streamLog, "\n")[:3], ""))
	b := read(t, sceneSource(t, dir, "chats"), from, from.Add(5*time.Minute))
	if requests(b) != 0 || !strings.Contains(strings.Join(b.Notes, "\n"), "none of the 3 rows read is of the scene chats; is its name right?") {
		t.Errorf("%+v", b)
	}
	if b = read(t, sceneSource(t, dir, "chat"), from, from.Add(5*time.Minute)); len(b.Notes) != 1 { // the odd status
		t.Errorf("that other scenes have rows is no news: %q", b.Notes)
	}
}
