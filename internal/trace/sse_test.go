package trace

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chunksOf reads a capture that holds one chunk a line.
func chunksOf(t *testing.T, text string) *SSE {
	t.Helper()
	s := NewSSE()
	for line := range strings.Lines(text) {
		s.Event([]byte(line))
	}
	return s
}

func TestASharedStreamOf303ChunksUses316Tokens(t *testing.T) {
	text, err := os.ReadFile(shared(t, "openai-sse/vercel-ai/openai-text.chunks.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := chunksOf(t, string(text))
	u, ok := s.Usage()
	if s.Events() != 303 || !ok || u != (Usage{16, 300, 316}) {
		t.Errorf("%d events, usage %v %v", s.Events(), u, ok)
	}
	if !s.FirstToken() || s.Finish() != "stop" || s.Err() != "" || s.Done() || s.Model() != "gpt-4.1-nano-2025-04-14" || s.Created() != 1770933892 {
		t.Errorf("%+v", s.answer)
	}
}

func TestAnErrorInsideA200StreamIsAnError(t *testing.T) {
	text, err := os.ReadFile(shared(t, "openai-sse/vercel-ai/openai-error.1.chunks.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := chunksOf(t, string(text))
	if s.Err() != "insufficient_quota" || s.FirstToken() || !s.Done() || s.Finish() != "failed" || s.Created() != 1763474589 {
		t.Errorf("%+v", s.answer)
	}
	body, err := os.ReadFile(shared(t, "openai-sse/vercel-ai/openai-error.1.json"))
	if err != nil {
		t.Fatal(err)
	}
	s = NewSSE()
	s.Event(body)
	if s.Err() != "insufficient_quota" || s.Done() {
		t.Errorf("%+v", s.answer)
	}
}

// sse joins chunks as a server sends them.
func sse(chunks ...string) string { return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n" }

const (
	roleChunk = `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}`
	textChunk = `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi"}}]}`
	stopChunk = `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

func TestWhatAStreamSays(t *testing.T) {
	const tool = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"function":{"name":%q,"arguments":""}}]}}]}`
	call := func(index int, id, name string) string { return fmt.Sprintf(tool, index, id, name) }
	args := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]}}]}`
	for name, c := range map[string]struct {
		text  string
		token bool
		done  bool
		err   string
		tools string
	}{
		"nothing":                                {"", false, false, "", ""},
		"the role alone is no token":             {sse(roleChunk), false, false, "", ""},
		"text is one":                            {sse(roleChunk, textChunk), true, false, "", ""},
		"reasoning is one":                       {sse(`{"choices":[{"delta":{"reasoning_content":"Well"}}]}`), true, false, "", ""},
		"empty reasoning is none":                {sse(`{"choices":[{"delta":{"content":null,"reasoning_content":""}}]}`), false, false, "", ""},
		"a tool call is one":                     {sse(call(0, "a", "get_weather")), true, false, "", "get_weather"},
		"arguments belong to their call":         {sse(call(0, "a", "get_weather"), args, args), true, false, "", "get_weather"},
		"two calls":                              {sse(call(0, "a", "one"), args, call(1, "b", "two")), true, false, "", "one two"},
		"two calls at the same place":            {sse(call(0, "a", "one"), call(0, "b", "one")), true, false, "", "one one"},
		"a name that is repeated is one call":    {sse(call(0, "a", "one"), call(0, "a", "one")), true, false, "", "one"},
		"the older function call":                {sse(`{"choices":[{"delta":{"function_call":{"name":"one","arguments":""}}}]}`), true, false, "", "one"},
		"a completion's text":                    {sse(`{"object":"text_completion","choices":[{"text":"Hi","finish_reason":null}]}`), true, false, "", ""},
		"the end":                                {sse(roleChunk, textChunk, stopChunk, "[DONE]"), true, true, "", ""},
		"an error in the middle":                 {sse(roleChunk, `{"error":{"message":"m","type":"server_error","code":null}}`), false, false, "server_error", ""},
		"an error with a code":                   {sse(`{"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}}`), false, false, "rate_limit_exceeded", ""},
		"a code that is a number":                {sse(`{"error":{"message":"m","code":429}}`), false, false, "429", ""},
		"an error that is a text is not quoted":  {sse(`{"error":"the prompt 'my secret' is too long"}`), false, false, "error", ""},
		"an error of a choice":                   {sse(`{"choices":[{"error":{"code":502},"finish_reason":"error"}]}`), false, false, "502", ""},
		"a reason that is an error":              {sse(`{"choices":[{"delta":{},"finish_reason":"error"}]}`), false, false, "error", ""},
		"no error":                               {sse(`{"error":null,"choices":[]}`), false, false, "", ""},
		"an object that is an error":             {sse(`{"object":"error","message":"m","type":"BadRequestError","code":400}`), false, false, "400", ""},
		"an event of the name error":             {"event: error\ndata: {\"message\":\"m\"}\n\n", false, false, "error", ""},
		"comments and other fields are skipped":  {": PROCESSING\n\nid: 7\nretry: 10\n" + sse(textChunk), true, false, "", ""},
		"carriage returns":                       {strings.ReplaceAll(sse(textChunk, "[DONE]"), "\n", "\r\n"), true, true, "", ""},
		"carriage returns alone":                 {strings.ReplaceAll(sse(textChunk, "[DONE]"), "\n", "\r"), true, true, "", ""},
		"a chunk over several data lines":        {"data: {\"choices\":[{\"delta\":\ndata:{\"content\":\"Hi\"}}]}\n\n", true, false, "", ""},
		"the last event without a blank line":    {"data: " + textChunk + "\n\ndata: [DONE]", true, true, "", ""},
		"a byte order mark":                      {"\xef\xbb\xbf" + sse(textChunk), true, false, "", ""},
		"a responses delta":                      {sse(`{"type":"response.output_text.delta","delta":"Hi"}`), true, false, "", ""},
		"a responses tool call":                  {sse(`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"one"}}`), true, false, "", "one"},
		"the end of responses":                   {sse(`{"type":"response.completed","response":{"status":"completed"}}`), false, true, "", ""},
		"responses that failed":                  {sse(`{"type":"response.failed","response":{"status":"failed","error":null}}`), false, true, "error", ""},
		"an error event of responses":            {sse(`{"type":"error","code":"server_error","message":"m"}`), false, false, "server_error", ""},
		"a body that is not streamed":            {sse(`{"object":"chat.completion","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`), true, true, "", ""},
		"a body of responses":                    {sse(`{"object":"response","status":"completed","output":[{"type":"message","content":[{"text":"Hi"}]},{"type":"function_call","name":"one"}]}`), true, true, "", "one"},
		"types that nobody expects are no panic": {sse(`{"choices":{"a":1},"usage":7,"model":[],"error":[]}`, `{"choices":[7,{"delta":[],"index":"x"}]}`), false, false, "error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{len(c.text) + 1, 1, 7} {
				s := NewSSE()
				for part := range slices.Chunk([]byte(c.text), piece) {
					if n, err := s.Write(part); n != len(part) || err != nil {
						t.Fatal(n, err)
					}
				}
				s.Close()
				if s.FirstToken() != c.token || s.Done() != c.done || s.Err() != c.err || strings.Join(s.ToolNames(), " ") != c.tools || s.Skipped() != 0 {
					t.Errorf("in pieces of %d: %+v", piece, s.answer)
				}
			}
		})
	}
}

func TestAnEventThatIsTooLongIsSkippedAndTheNextIsRead(t *testing.T) {
	long := "data: " + strings.Repeat("x", maxEvent+10)
	many := strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100)
	for _, bad := range []string{long + "\n\n", long + "\r\n\r\n", many + "\n", "data: not JSON\n\n", "data: [1]\n\n"} {
		for _, piece := range []int{1 << 22, 4096, 1001} {
			s := NewSSE()
			for part := range slices.Chunk([]byte(bad+sse(textChunk)), piece) {
				s.Write(part)
				if cap(s.line)+cap(s.events.data) > 4*maxEvent {
					t.Fatalf("holds %d bytes", cap(s.line)+cap(s.events.data))
				}
			}
			if s.Skipped() != 1 || s.Events() != 1 || !s.FirstToken() {
				t.Errorf("%q in pieces of %d: %d skipped, %d read", bad[:20], piece, s.Skipped(), s.Events())
			}
		}
	}
}

func TestToolCallsOfOneAnswerAreBounded(t *testing.T) {
	s := NewSSE()
	for i := range 2 * maxCalls {
		s.Event(fmt.Appendf(nil, `{"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"name":%q}}]}}]}`, i, strings.Repeat("n", 1000)))
	}
	if names := s.ToolNames(); len(names) != maxCalls || len(names[0]) != maxName {
		t.Errorf("%d names of %d bytes", len(names), len(names[0]))
	}
}

func TestWhereAStreamIsCutDoesNotMatter(t *testing.T) {
	text := []byte(":c\r\n\r\n" + sse(roleChunk, textChunk, stopChunk) + "event: x\r\ndata: {\"usage\":\rdata: {\"prompt_tokens\":1,\"completion_tokens\":2}}\r\r" + sse("[DONE]"))
	whole := NewSSE()
	whole.Write(text)
	if u, ok := whole.Usage(); !ok || u != (Usage{1, 2, 3}) || !whole.Done() {
		t.Fatalf("%+v", whole.answer)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := NewSSE()
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
			s.Write(rest[:n])
			rest = rest[n:]
		}
		if fmt.Sprint(s.answer) != fmt.Sprint(whole.answer) {
			t.Fatalf("%+v", s.answer)
		}
	})
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte(sse(roleChunk, textChunk, stopChunk, "[DONE]")), 3)
	f.Add([]byte("event: error\r\ndata: {\"error\":{}}\r\n\r\n"), 1)
	f.Add([]byte("data: {\"type\":\"response.output_text.delta\",\"delta\":\"\\ud800\"}\n\n"), 5)
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"a\"}}]}}]}"), 2)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		whole, cut := NewSSE(), NewSSE()
		whole.Write(text)
		for part := range slices.Chunk(text, min(max(piece, 1), len(text)+1)) {
			cut.Write(bytes.Clone(part))
		}
		whole.Close()
		cut.Close()
		if fmt.Sprint(whole.answer) != fmt.Sprint(cut.answer) {
			t.Errorf("%+v\n%+v", whole.answer, cut.answer)
		}
	})
}

func BenchmarkSSE(b *testing.B) {
	event := []byte(sse(`{"id":"chatcmpl-D8Z5oo6uDh67AD85p73ksdT1KxhE0","object":"chat.completion.chunk","created":1770933892,"model":"gpt-4.1-nano-2025-04-14","service_tier":"default","system_fingerprint":"fp_de604bd877","choices":[{"index":0,"delta":{"content":"Holiday"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"dTh"}`))
	s := NewSSE()
	b.ReportAllocs()
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		s.Write(event)
	}
}
