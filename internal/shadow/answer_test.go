package shadow_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/shadow"
)

// completion wraps a message as a chat.completion.
func completion(message string) string {
	return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
}

func call(function string) string {
	return `{"id":"call_1","type":"function","function":` + function + `}`
}

// Published: with tool calls every call has a name and an arguments string;
// else the content parses as JSON. Tool sequence: the chain of names.
func TestReadAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       shadow.Answer
	}{
		{"content that is an object", completion(`{"role":"assistant","content":"{\"a\":1}"}`), shadow.Answer{Parsed: true}},
		{"content that is any JSON value", completion(`{"content":" 42 "}`), shadow.Answer{Parsed: true}},
		{"content that is prose", completion(`{"content":"Hello."}`), shadow.Answer{}},
		{"content in a fence is prose", completion("{\"content\":\"```json\\n{}\\n```\"}"), shadow.Answer{}},
		{"content that is cut off", completion(`{"content":"{\"a\":"}`), shadow.Answer{}},
		{"null content without tool calls", completion(`{"content":null}`), shadow.Answer{}},
		{"empty content", completion(`{"content":""}`), shadow.Answer{}},
		{"no content at all", completion(`{"role":"assistant"}`), shadow.Answer{}},
		{"one call", completion(`{"content":null,"tool_calls":[` + call(`{"name":"search","arguments":"{}"}`) + `]}`), shadow.Answer{Parsed: true, Tools: []string{"search"}}},
		{"two calls in order", completion(`{"tool_calls":[` + call(`{"name":"b","arguments":"{}"}`) + "," + call(`{"name":"a","arguments":"{}"}`) + `]}`), shadow.Answer{Parsed: true, Tools: []string{"b", "a"}}},
		{"arguments are a string, whatever it holds", completion(`{"tool_calls":[` + call(`{"name":"a","arguments":"not json"}`) + `]}`), shadow.Answer{Parsed: true, Tools: []string{"a"}}},
		{"arguments that are an object", completion(`{"tool_calls":[` + call(`{"name":"a","arguments":{}}`) + `]}`), shadow.Answer{Tools: []string{"a"}}},
		{"a call without arguments", completion(`{"tool_calls":[` + call(`{"name":"a"}`) + `]}`), shadow.Answer{Tools: []string{"a"}}},
		{"a call without a name", completion(`{"tool_calls":[` + call(`{"arguments":"{}"}`) + `]}`), shadow.Answer{Tools: []string{""}}},
		{"a call with an empty name", completion(`{"tool_calls":[` + call(`{"name":"","arguments":"{}"}`) + `]}`), shadow.Answer{Tools: []string{""}}},
		{"one bad call of two", completion(`{"tool_calls":[` + call(`{"name":"a","arguments":"{}"}`) + "," + call(`{"name":"b"}`) + `]}`), shadow.Answer{Tools: []string{"a", "b"}}},
		{"an empty list of calls is none", completion(`{"content":"{}","tool_calls":[]}`), shadow.Answer{Parsed: true}},
		{"null calls are none", completion(`{"content":"{}","tool_calls":null}`), shadow.Answer{Parsed: true}},
		{"prose beside a call does not matter", completion(`{"content":"Let me see.","tool_calls":[` + call(`{"name":"a","arguments":"{}"}`) + `]}`), shadow.Answer{Parsed: true, Tools: []string{"a"}}},
		{"an error", `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, shadow.Answer{Failed: true}},
		{"no choices", `{"object":"chat.completion","choices":[]}`, shadow.Answer{Failed: true}},
		{"a choice without a message", `{"choices":[{}]}`, shadow.Answer{Failed: true}},
		{"nothing", ``, shadow.Answer{Failed: true}},
		{"null", `null`, shadow.Answer{Failed: true}},
		{"a page of a proxy", `<html>502</html>`, shadow.Answer{Failed: true}},
		{"a byte order mark", "\ufeff" + completion(`{"content":"{}"}`), shadow.Answer{Parsed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, shadow.ReadAnswer([]byte(tt.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// chunks writes data as server-sent events.
func chunks(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func delta(d, finish string) string {
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + d + `,"finish_reason":` + finish + `}]}`
}

func TestReadAnswerOfAStream(t *testing.T) {
	role := delta(`{"role":"assistant","content":""}`, "null")
	for _, tt := range []struct {
		name, body string
		want       shadow.Answer
	}{
		{"content in pieces", chunks(role, delta(`{"content":"{\"a\""}`, "null"), delta(`{"content":":1}"}`, "null"), delta(`{}`, `"stop"`), "[DONE]"), shadow.Answer{Parsed: true}},
		{"prose", chunks(role, delta(`{"content":"Hi"}`, `"stop"`), "[DONE]"), shadow.Answer{}},
		{"a call in pieces", chunks(role,
			delta(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}]}`, "null"),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}`, "null"),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"\"X\"}"}}]}`, `"tool_calls"`), "[DONE]"), shadow.Answer{Parsed: true, Tools: []string{"get_weather"}}},
		{"two calls", chunks(
			delta(`{"tool_calls":[{"index":1,"function":{"name":"b","arguments":"{}"}},{"index":0,"function":{"name":"a","arguments":"{}"}}]}`, `"tool_calls"`), "[DONE]"), shadow.Answer{Parsed: true, Tools: []string{"a", "b"}}},
		{"an index that is left out is a call without a name", chunks(delta(`{"tool_calls":[{"index":1,"function":{"name":"b","arguments":"{}"}}]}`, `"tool_calls"`)), shadow.Answer{Tools: []string{"", "b"}}},
		{"an error inside a 200 stream is an error", chunks(role, `{"error":{"message":"overloaded"}}`, "[DONE]"), shadow.Answer{Failed: true}},
		{"a stream that broke off", chunks(role, delta(`{"content":"{}"}`, "null")), shadow.Answer{Failed: true}},
		{"usage comes without choices", chunks(delta(`{"content":"{}"}`, `"stop"`), `{"choices":[],"usage":{"total_tokens":3}}`, "[DONE]"), shadow.Answer{Parsed: true}},
		{"carriage returns, comments and names of events", ": ping\r\nevent: message\r\ndata: " + delta(`{"content":"{}"}`, `"stop"`) + "\r\n\r\ndata: [DONE]\r\n\r\n", shadow.Answer{Parsed: true}},
		{"the last event needs no blank line", strings.TrimSpace(chunks(delta(`{"content":"{}"}`, `"stop"`))), shadow.Answer{Parsed: true}},
		{"an index beyond reason", chunks(delta(`{"tool_calls":[{"index":99999999,"function":{"name":"b"}}]}`, `"stop"`)), shadow.Answer{Failed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, shadow.ReadAnswer([]byte(tt.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(completion(`{"content":"{}"}`)))
	f.Add([]byte(completion(`{"tool_calls":[` + call(`{"name":"a","arguments":"{}"}`) + `]}`)))
	f.Add([]byte(chunks(delta(`{"content":"{}"}`, `"stop"`), "[DONE]")))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{}]}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a := shadow.ReadAnswer(body)
		if a.Failed && (a.Parsed || len(a.Tools) > 0) {
			t.Errorf("an answer that failed has contents: %+v", a)
		}
		if a.Timed {
			t.Error("a body says how long it took")
		}
	})
}

// TestTheLinesOfAStreamEndAsTheyMay has all three ends of a line (WHATWG HTML,
// section 9.2.6), and an event of two lines of data.
func TestTheLinesOfAStreamEndAsTheyMay(t *testing.T) {
	const body = "data: {\"choices\":[{\"index\":0,\n" + "data: \"delta\":{\"content\":\"{}\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for _, end := range []string{"\n", "\r", "\r\n"} {
		got := shadow.ReadAnswer([]byte(strings.ReplaceAll(body, "\n", end)))
		if got.Failed || !got.Parsed {
			t.Errorf("%q: %+v", end, got)
		}
	}
}
