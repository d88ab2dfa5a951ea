package trace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
)

const sceneRecords = `{"ts":"2026-05-04T00:00:00Z","arm":"canary","scene":"chat","user_id":"a"}
{"ts":"2026-05-04T00:00:01Z","arm":"canary","scene":"chat","user_id":"b"}
{"ts":"2026-05-04T00:00:02Z","arm":"canary","scene":"summary","user_id":"a"}
{"ts":"2026-05-04T00:00:03Z","arm":"canary","scene":{"odd":1},"user_id":"a"}
{"ts":"2026-05-04T00:00:04Z","arm":"canary","user_id":"a"}
`

func TestOnlyTheSceneAskedForCounts(t *testing.T) {
	d := mustRead(t, sceneRecords, Options{Scene: "chat"})
	if d.Windows[0].Total != 2 || d.OtherScenes != 1 || d.Sceneless != 2 || !noted(d, "1 row of another scene was left out") || !noted(d, "2 rows name no scene and were left out") {
		t.Errorf("%+v", d)
	}
	if diff := cmp.Diff(map[string]int64{"chat": 2, "summary": 1}, d.Scenes); diff != "" {
		t.Error(diff)
	}
	d = mustRead(t, sceneRecords, Options{})
	if d.Windows[0].Total != 5 || d.OtherScenes != 0 || d.Sceneless != 0 || len(d.Scenes) != 2 || len(d.Notes) != 0 {
		t.Errorf("%+v", d)
	}
	_, err := read(sceneRecords, Options{Scene: "chaat"})
	if err == nil || !strings.Contains(err.Error(), "none of its 5 rows makes a window") {
		t.Error(err)
	}
}

// A column of something else that is called scene does not fill the memory.
func TestScenesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("ts,scene\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "2026-05-04T00:00:00Z,s%d\n", i)
	}
	if d := mustRead(t, b.String(), Options{Scene: "s3"}); len(d.Scenes) != maxScenes || d.Windows[0].Total != 1 || d.OtherScenes != 999 {
		t.Errorf("%d scenes, %+v", len(d.Scenes), d.Windows)
	}
	windows := strings.ReplaceAll(strings.Replace(b.String(), "ts,scene", "t,scene,total,span", 1), "\n2", ",1,1m\n2")
	windows = strings.Replace(windows, "span,1,1m", "span", 1) + ""
	if _, err := read(strings.TrimSuffix(windows, "\n")+",1,1m\n", Options{}); err == nil || !strings.Contains(err.Error(), "more than 64 different scenes") {
		t.Error(err)
	}
}

const sceneWindows = `t,span,arm,scene,total,violations,errors
2026-05-04T00:00:00Z,1m,canary,chat,10,1,2
2026-05-04T00:00:00Z,1m,canary,summary,5,0,1
2026-05-04T00:00:00Z,1m,stable,chat,90,0,0
2026-05-04T00:01:00Z,1m,canary,chat,20,0,3
`

func TestWindowsOfAScene(t *testing.T) {
	d := mustRead(t, sceneWindows, Options{Scene: "chat"})
	wantTable(t, d, "2026-05-04T00:00:00Z,canary,10,,,1,,,,", "2026-05-04T00:00:00Z,stable,90,,,0,,,,", "2026-05-04T00:01:00Z,canary,20,,,0,,,,")
	if d.OtherScenes != 1 {
		t.Errorf("%+v", d)
	}
	d = mustRead(t, sceneWindows, Options{})
	wantTable(t, d, "2026-05-04T00:00:00Z,canary,15,,,1,,,,", "2026-05-04T00:00:00Z,stable,90,,,0,,,,", "2026-05-04T00:01:00Z,canary,20,,,0,,,,")
	if w := d.Windows[0]; w.Errors != 3 || w.StatusOf != 15 || !noted(d, "the windows of all scenes are added up: chat, summary") {
		t.Errorf("%+v, %q", w, d.Notes)
	}
	d = mustRead(t, strings.ReplaceAll(sceneWindows, ",summary,", ",,"), Options{})
	if !noted(d, "1 row without a scene is added to them") {
		t.Errorf("%q", d.Notes)
	}
	d = mustRead(t, strings.ReplaceAll(sceneWindows, ",summary,5", ",chat,10"), Options{SumDuplicates: true})
	if d.Windows[0].Total != 20 {
		t.Errorf("%+v", d.Windows[0])
	}
}

func TestLiveScenes(t *testing.T) {
	minute := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	feed := func(kind Kind, text, scene string) (*Live, []release.Window) {
		l := NewLive(kind, Options{Span: time.Minute, InputSpan: time.Minute, Scene: scene})
		f, at, err := l.Open("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Feed([]byte(text[at:]), int64(at), true); err != nil {
			t.Fatal(err)
		}
		return l, l.Windows(minute.Add(time.Hour))
	}
	l, got := feed(Records, sceneRecords, "chat")
	if c := l.Counts(); len(got) != 1 || got[0].Total != 2 || got[0].Users != 2 || c.OtherScenes != 1 || c.Sceneless != 2 {
		t.Errorf("%+v, %+v", got, c)
	}
	if c := l.Counts(); c.OtherScenes != 0 || c.Sceneless != 0 {
		t.Errorf("counted twice: %+v", c)
	}
	if _, got = feed(Windows, sceneWindows, "summary"); len(got) != 1 || got[0].Total != 5 || got[0].Errors != 1 {
		t.Errorf("%+v", got)
	}
	if _, got = feed(Windows, sceneWindows, ""); len(got) != 3 || got[0].Total != 15 || got[0].Errors != 3 || got[0].Arm != "canary" || !got[0].T.Equal(minute) || got[0].Span != time.Minute {
		t.Errorf("%+v", got)
	}
}

func TestLiveRecordsCarryFiguresOfStreams(t *testing.T) {
	const text = `{"ts":"2026-05-04T00:00:00Z","arm":"canary","ttft_ms":3500,"itl_ms":20,"status":"weird","stream_aborted":true}
{"ts":"2026-05-04T00:00:01Z","arm":"canary","ttft_ms":100,"latency_ms":1100,"output_tokens":11,"status":503,"stream_aborted":false}
`
	l := NewLive(Records, Options{Span: time.Minute, TTFTLimitMS: 3000})
	f, _, err := l.Open("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Feed([]byte(text), 0, false); err != nil {
		t.Fatal(err)
	}
	until := time.Date(2026, 5, 4, 1, 0, 0, 0, time.UTC)
	for range 2 { // handed out again as they were
		w := l.Windows(until)
		const want = "ttft_of 2 ttft_p99_ms 3500 ttft_slow 1 itl_of 2 itl_ms 60 streams 2 aborted 1 status_of 2 errors 2 server_errors 1"
		if len(w) != 1 || streamFigures(t, w[0]) != want {
			t.Fatalf("%+v", w)
		}
	}
	if c := l.Counts(); len(c.Strange) != 1 || c.Strange[0] != "weird" {
		t.Errorf("%+v", c)
	}
}
