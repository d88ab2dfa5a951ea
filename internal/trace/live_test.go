package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// TestLiveCountsAsTheWholeDoes feeds a log in pieces cut at random and expects
// the windows of ReadFiles, users apart.
func TestLiveCountsAsTheWholeDoes(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		var log strings.Builder
		csv := rapid.Bool().Draw(rt, "csv")
		if csv {
			log.WriteString("ts,version,user_id,latency_ms,cost_usd,solved,violation,note,ttft_ms,output_tokens,status\n")
		}
		for i := range rapid.IntRange(1, 60).Draw(rt, "records") {
			at := time.Date(2026, 5, 4, 12, 0, rapid.IntRange(0, 300).Draw(rt, "at"), i, time.UTC).Format(time.RFC3339Nano)
			arm := rapid.SampledFrom([]string{"stable", "canary"}).Draw(rt, "arm")
			latency, cost := rapid.IntRange(1, 999).Draw(rt, "latency"), rapid.IntRange(0, 9).Draw(rt, "cost")
			solved := rapid.SampledFrom([]string{"true", "false", "null"}).Draw(rt, "solved")
			ttft, tokens := rapid.IntRange(1, 999).Draw(rt, "ttft"), rapid.IntRange(0, 50).Draw(rt, "tokens")
			status := rapid.SampledFrom([]string{"200", "503", "429", "null"}).Draw(rt, "status")
			violation := rapid.SampledFrom([]string{"true", "false", "null"}).Draw(rt, "violation")
			if csv {
				note := rapid.SampledFrom([]string{"", `"a"`, "\"two\nlines\"", `"""`, "\"\n\n,\""}).Draw(rt, "note")
				if note == `"""` {
					note = `""""`
				}
				fmt.Fprintf(&log, "%s,%s,u%d,%d,%d,%s,%s,%s,%d,%d,%s\n", at, arm, i%5, latency, cost, solved, violation, note, ttft, tokens, status)
				continue
			}
			fmt.Fprintf(&log, `{"ts":%q,"version":%q,"user_id":"u%d","latency_ms":%d,"cost_usd":%d,"solved":%s,"violation":%s,"ttft_ms":%d,"output_tokens":%d,"status":%s}`+"\n", at, arm, i%5, latency, cost, solved, violation, ttft, tokens, status)
		}
		text := log.String()
		path := filepath.Join(dir, "log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			rt.Fatal(err)
		}
		opt := Options{SlowMS: 300, TTFTLimitMS: 500}
		want, err := ReadFiles(t.Context(), []string{path}, nil, opt, nil)
		if err != nil {
			rt.Fatal(err)
		}
		live := NewLive(Records, opt)
		file, at, err := live.Open("log", []byte(text[:strings.IndexByte(text, '\n')+1]))
		if err != nil {
			rt.Fatal(err)
		}
		for rest := text[at:]; rest != ""; {
			cut := rapid.IntRange(1, len(rest)).Draw(rt, "bytes")
			for cut < len(rest) && rest[cut-1] != '\n' {
				cut++
			}
			n, err := file.Feed([]byte(rest[:cut]), int64(at), cut == len(rest))
			if err != nil {
				rt.Fatal(err)
			}
			rest = rest[n:]
		}
		got := live.Windows(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
		for i := range got {
			if !got[i].Has(release.HasUsers) || got[i].Users < 1 || got[i].Users > 5 {
				rt.Fatalf("users of %+v", got[i])
			}
			got[i].Users, got[i].Known = 0, got[i].Known&^release.HasUsers
		}
		if diff := cmp.Diff(want.Windows, got); diff != "" {
			rt.Fatal(diff)
		}
		if c := live.Counts(); c.Bad > 0 || c.Late > 0 || c.Rows != want.Rows {
			rt.Fatalf("%+v of %d rows", c, want.Rows)
		}
	})
}

func TestLiveLeavesAnOpenQuoteForLater(t *testing.T) {
	live := NewLive(Records, Options{})
	const header, row = "ts,arm,note\n", "2026-05-04T12:00:00Z,canary,\"a\nb\"\n"
	file, at, err := live.Open("log", []byte(header))
	if err != nil || at != len(header) {
		t.Fatalf("%v, rows start at %d", err, at)
	}
	half := []byte(row[:strings.Index(row, "b")])
	if n, err := file.Feed(half, 0, false); n != 0 || err != nil {
		t.Errorf("read %d bytes of half a row: %v", n, err)
	}
	if n, err := file.Feed([]byte(row), 0, false); n != len(row) || err != nil || live.Counts().Rows != 1 {
		t.Errorf("read %d bytes of a row: %v", n, err)
	}
	if n, err := file.Feed(half, 0, true); n != len(half) || err != nil || live.Counts().Bad != 1 {
		t.Errorf("the last piece: read %d bytes: %v", n, err)
	}
}

func TestLiveForgets(t *testing.T) {
	live := NewLive(Records, Options{})
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	live.Forget(start)
	row := func(minute int) []byte {
		return fmt.Appendf(nil, `{"ts":%q,"arm":"canary","latency_ms":1}`+"\n", start.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339))
	}
	file, _, err := live.Open("log", row(0))
	if err != nil {
		t.Fatal(err)
	}
	feed := func(minutes ...int) {
		t.Helper()
		for _, m := range minutes {
			if _, err := file.Feed(row(m), 0, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	feed(-1, 0, 1, 2)
	if w := live.Windows(start.Add(2 * time.Minute)); len(w) != 2 || live.Counts().Late != 0 {
		t.Errorf("%v", w)
	}
	if n := live.Newest(start.Add(150 * time.Second)); !n.Equal(start.Add(2 * time.Minute)) {
		t.Errorf("newest %s", n)
	}
	live.Forget(start.Add(2 * time.Minute))
	feed(0, 1, 2, -5)
	if c := live.Counts(); c.Late != 2 {
		t.Errorf("%d late: those before the first time asked for are not", c.Late)
	}
	if w := live.Windows(start.Add(time.Hour)); len(w) != 1 || w[0].Total != 2 {
		t.Errorf("%v", w)
	}
}

func TestParseAnswerTellsErrorsFromDamage(t *testing.T) {
	_, err := ParseAnswer([]byte(`{"status":"error","errorType":"bad_data","error":"no"}`))
	if e, ok := errors.AsType[*AnswerError](err); !ok || e.Type != "bad_data" || e.Message != "no" {
		t.Errorf("%v", err)
	}
	for _, body := range []string{"", "{", "[]", `{"status":"success"}`, `{"status":"success","data":{"resultType":"matrix","result":null}}`, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[["x","1"]]}]}}`} {
		if _, err := ParseAnswer([]byte(body)); err == nil {
			t.Errorf("%q is taken for an answer", body)
		}
	}
}

func TestOpenTextUnpacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.zst")
	if err := os.WriteFile(path, zstded(t, "a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenText(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // only read
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, []byte("a\nb\n")) || !Packed(zstded(t, "a\nb\n")) || Packed([]byte("a")) {
		t.Errorf("%q, %v", got, err)
	}
}
