package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// TestShadowPageIsTrue runs the commands of the page about shadow over the
// files that it shows.
func TestShadowPageIsTrue(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "shadow.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	blocks := fence.FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		if name := block[2]; name != "" {
			if err := os.WriteFile(name, []byte(block[3]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ran := 0
	for _, block := range blocks {
		if block[1] != "console" {
			continue
		}
		ran++
		line, want, _ := strings.Cut(strings.TrimPrefix(block[3], "$ "), "\n")
		want, code, exits := strings.Cut(want, "$ echo $?\n")
		got, stdout, stderr := runLine(t, line)
		if stdout != want || exits && strings.TrimSpace(code) != strconv.Itoa(int(got)) {
			t.Errorf("%s: exit %d\n%s%s\nthe page says\n%s%s", line, got, stdout, stderr, want, code)
		}
	}
	if ran != 4 {
		t.Errorf("%d commands on the page", ran)
	}
	if code, out, stderr := runLine(t, "canaryctl shadow compare --contract ticket.yaml pairs.jsonl"); code != ExitFailed || stderr != "" {
		t.Errorf("the contract of the page: exit %d\n%s%s", code, out, stderr)
	}
}

// FuzzReadPair reads lines of pairs: none may stop the program, and what is
// wrong with one is said without its text.
func FuzzReadPair(f *testing.F) {
	for _, line := range []string{
		`{"request_id":1,"stable":{"a":1},"canary":"{}"}`,
		`{"stable":{"body":{"choices":[]},"latency_ms":3},"canary":{"parsed":true,"tools":["a"],"failed":false,"status":"ok"}}`,
		`{"stable":null,"canary":{"body":"data: {}\n\ndata: [DONE]\n\n","temperature":0.70}}`,
		`{"stable":{"status":13800138000},"canary":{"latency_ms":"13800138000"}}`, `{"id":[13800138000]}`, `[]`, `null`, `{`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		const secret = "13800138000"
		p, err := readPair(trace.Line{Text: []byte(line), Number: 1})
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error quotes the line: %v", err)
			}
			return
		}
		p.versions()
		if a := p.canary.answer(); a.Failed && a.Parsed && p.canary.judged == nil {
			t.Errorf("%s: an answer that failed parses", line)
		}
	})
}

func TestSidesOfAPair(t *testing.T) {
	for _, tt := range []struct {
		name, side string
		want       shadow.Answer
	}{
		{"a status that is not ok", `{"status":503,"latency_ms":9}`, shadow.Answer{Failed: true, LatencyMS: 9, Timed: true}},
		{"a word that is not ok", `{"status":"timeout","latency_ms":1}`, shadow.Answer{Failed: true, LatencyMS: 1, Timed: true}},
		{"ok in capitals", `{"status":"OK","parsed":true,"tools":[]}`, shadow.Answer{Parsed: true, Tools: []string{}}},
		{"success", `{"status":"success","parsed":true}`, shadow.Answer{Parsed: true, ToolsUnknown: true}},
		{"ok without an answer is a slip", `{"status":"ok","latency_ms":1}`, shadow.Answer{}},
		{"an error", `{"error":"reset","parsed":false}`, shadow.Answer{Failed: true}},
		{"no error", `{"error":null,"parsed":true,"tools":null}`, shadow.Answer{Parsed: true, ToolsUnknown: true}},
		{"a body of an answer that failed is not read", `{"failed":true,"body":{"choices":[{"message":{"content":"{}"}}]}}`, shadow.Answer{Failed: true}},
		{"a redirect is ok, as in records", `{"status":302,"parsed":true,"tools":["a"]}`, shadow.Answer{Parsed: true, Tools: []string{"a"}}},
		{"0 is ok, as in records", `{"status":0,"parsed":true,"tools":["a"]}`, shadow.Answer{Parsed: true, Tools: []string{"a"}}},
		{"completed is ok, as in records", `{"status":"completed","parsed":true,"tools":["a"]}`, shadow.Answer{Parsed: true, Tools: []string{"a"}}},
		{"more is known of the call", `{"body":{"choices":[{"message":{"content":"{}"}}]},"latency_ms":5,"ttft_ms":4,"region":"eu"}`, shadow.Answer{Parsed: true, LatencyMS: 5, Timed: true}},
		{"content with a key twice is no JSON", `{"choices":[{"message":{"content":"{\"a\":1,\"a\":2}"}}]}`, shadow.Answer{}},
		{"null", `null`, shadow.Answer{Failed: true}},
		{"a body that is null", `{"body":null,"latency_ms":1}`, shadow.Answer{Failed: true, LatencyMS: 1, Timed: true}},
		{"an answer whose fields are called like ours is the answer", `{"status":"paid","total":3}`, shadow.Answer{Failed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := readSide([]byte(tt.side))
			if err != nil {
				if tt.name != "ok without an answer is a slip" {
					t.Error(err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, s.answer()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A key that stands twice is read differently by different readers: whatever
// the line says by it, nobody knows what the other reader saw.
func TestAKeyThatStandsTwiceMakesALineBad(t *testing.T) {
	for _, line := range []string{
		`{"stable":{"a":1},"canary":{"a":"13800138000"},"canary":{"a":1}}`,
		`{"stable":{"a":1},"stable":{"a":1},"canary":{"a":1}}`,
		`{"stable":{"a":1},"canary":{"body":{"a":"13800138000"},"body":{"a":1}}}`,
		`{"stable":{"parsed":true,"parsed":false},"canary":{"parsed":true}}`,
		`{"stable":null,"canary":null,"cana\u0072y":{"a":1}}`,
	} {
		if _, err := readPair(trace.Line{Text: []byte(line), Number: 1}); err == nil || !strings.Contains(err.Error(), "stands twice") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A client that hung up says nothing of the answer that it did not wait for.
func TestAnAnswerThatNobodyWaitedForIsLeftOut(t *testing.T) {
	for side, gone := range map[string]bool{
		`{"status":499,"latency_ms":5}`: true, `{"status":"client_cancelled","latency_ms":5}`: true, `{"status":499,"failed":true}`: false, `{"status":500,"latency_ms":1}`: false,
	} {
		if s, err := readSide([]byte(side)); err != nil || s.gone != gone || s.failed == gone {
			t.Errorf("%s: gone %t, failed %t: %v", side, s.gone, s.failed, err)
		}
	}
}
