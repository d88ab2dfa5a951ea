package trace

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "write the golden files anew")

// shapeFile is a file written for these tests.
func shapeFile(name string) string { return filepath.Join("testdata", "shapes", name) }

// listRecords reads a file of some shape and lists what its records say, in
// nanoseconds and milliseconds, whatever the units of the file.
func listRecords(t *testing.T, path, maps string, scores *scoreBook) string {
	t.Helper()
	src, err := open(t.Context(), path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	f := newFeed(options(t, maps))
	f.scores = scores
	format, err := src.detect(&f.opt)
	if err != nil {
		return err.Error() + "\n"
	}
	if format != formatShaped {
		t.Fatalf("%s has no shape", path)
	}
	run := &fileRun{name: path}
	run.reader = f.readerOf(format, src, run)
	var out strings.Builder
	for r := (row{}); ; {
		err := run.reader.next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		fmt.Fprintf(&out, "%d:", r.line)
		if err != nil {
			fmt.Fprintf(&out, " %v\n", err)
			if _, bad := errors.AsType[*badRow](err); !bad {
				break
			}
			continue
		}
		for f := range numRead {
			if c := r.cells[f]; c.kind != absent {
				fmt.Fprintf(&out, " %s=%s", f, listCell(f, c))
			}
		}
		out.WriteByte('\n')
	}
	return out.String() + run.reader.(*shapedReader).note(filepath.Base(path)) + "\n"
}

func listCell(f Field, c cell) string {
	if c.kind == null {
		return "null"
	}
	n, fig := parseNumber(c.text)
	switch {
	case fig != finite:
	case f == FieldTS:
		ns, _ := n.floor(0)
		return instantOf(ns).Format(time.RFC3339Nano)
	case f.value() == latencyValue:
		ms, _ := n.float(c.text, 0)
		return fmt.Sprint(ms)
	}
	return string(c.text)
}

// TestSamplesAreReadAsTheirShape compares what each sample says with what was
// looked over by a person. `go test -run Samples -update` writes it anew.
func TestSamplesAreReadAsTheirShape(t *testing.T) {
	files, err := filepath.Glob(shapeFile("*"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, path := range files {
		if base := filepath.Base(path); filepath.Ext(base) != ".golden" && base != "langfuse-scores.jsonl" {
			fmt.Fprintf(&got, "== %s\n%s\n", base, listRecords(t, path, "", nil))
		}
	}
	golden := shapeFile("records.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		wanted := strings.Split(string(want), "\n")
		for i, line := range strings.Split(got.String(), "\n") {
			if i >= len(wanted) || line != wanted[i] {
				t.Errorf("line %d is\n%s, want\n%s", i+1, line, wanted[min(i, len(wanted)-1)])
			}
		}
	}
	if strings.Contains(got.String(), "private") {
		t.Error("the text of an answer is in a record")
	}
}

// recordOf reads one line of some shape and lists what it says.
func recordOf(t *testing.T, line, maps string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, _ := strings.Cut(listRecords(t, path, maps, nil), "\n")
	return got
}

// spanLine is a line of OTLP with one span that took 1.526 seconds.
func spanLine(attributes ...string) string {
	return `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.version","value":{"stringValue":"v2"}}]},"scopeSpans":[{"spans":[{` +
		`"startTimeUnixNano":"1795982400123456789","endTimeUnixNano":"1795982401649456789","attributes":[` + strings.Join(attributes, ",") + `]}]}]}]}`
}

func attribute(key, value string) string { return fmt.Sprintf(`{"key":%q,"value":%s}`, key, value) }

const litellmLine = `{"call_type":"acompletion","stream":%s,"status":"success","startTime":1795982400.12,"completionStartTime":%s,"endTime":1795982401.65,"response_time":0.42,"total_tokens":99,"response_cost":%s,"model":"m"}`

const langfuseLine = `{"id":"o","trace_id":"t","type":"GENERATION","parent_observation_id":"","start_time":"2026-11-29 20:00:00.123456","end_time":"2026-11-29 20:00:01.623456","completion_start_time":%q,"latency":%s,"time_to_first_token":%s,"version":%q,"total_cost":%s,"cost_details":%s}`

const envoyLine = `{"start_time":"2025-08-30T16:51:37.894Z","duration":1526,"x-envoy-upstream-service-time":"451","response_code":%s,"response_flags":%q,"gen_ai.usage.output_tokens":%s}`

const nginxLine = `{"time_iso8601":"2026-11-29T20:00:02+00:00","status":%q,"request_time":"1.250","upstream_response_time":"0.1, 1.1","remote_addr":"x"}`

// TestUnitsAndMeaningsOfOthers holds each trap of a foreign format, named by
// what comes out.
func TestUnitsAndMeaningsOfOthers(t *testing.T) {
	chat := attribute("gen_ai.operation.name", `{"stringValue":"chat"}`)
	const at = "1: ts=2026-11-29T20:00:00.123456789Z version=v2 latency_ms=1526 status=ok"
	for name, c := range map[string]struct{ line, want string }{
		"nanoseconds of OTLP keep their last digit":                              {spanLine(chat), at},
		"an integer of OTLP may be a text":                                       {spanLine(chat, attribute("gen_ai.usage.output_tokens", `{"intValue":"17"}`)), at + " output_tokens=17"},
		"an integer of OTLP may be a number":                                     {spanLine(chat, attribute("gen_ai.usage.output_tokens", `{"intValue":17}`)), at + " output_tokens=17"},
		"the first token of gen_ai is in seconds":                                {spanLine(chat, attribute("gen_ai.response.time_to_first_chunk", `{"doubleValue":0.42}`)), at + " ttft_ms=420 stream_aborted=false"},
		"the first token of vLLM is in seconds":                                  {spanLine(chat, attribute("gen_ai.latency.time_to_first_token", `{"doubleValue":4.2e-1}`)), at + " ttft_ms=420 stream_aborted=false"},
		"without a first token none is made up":                                  {spanLine(chat, attribute("gen_ai.request.stream", `{"boolValue":true}`)), at + " stream_aborted=false"},
		"an answer that was not streamed has no first token":                     {spanLine(chat, attribute("gen_ai.request.stream", `{"boolValue":false}`), attribute("gen_ai.response.time_to_first_chunk", `{"doubleValue":1.5}`)), at},
		"OpenInference counts by its own names":                                  {spanLine(attribute("openinference.span.kind", `{"stringValue":"LLM"}`), attribute("llm.token_count.completion", `{"intValue":17}`), attribute("llm.model_name", `{"stringValue":"m"}`)), strings.Replace(at, "latency", "model=m latency", 1) + " output_tokens=17"},
		"a wait of a client that left is no error":                               {spanLine(chat, attribute("error.type", `{"stringValue":"asyncio.exceptions.CancelledError"}`)), strings.Replace(at, "status=ok", "status=499", 1)},
		"an HTTP status says more than an error's class":                         {spanLine(chat, attribute("error.type", `{"stringValue":"_OTHER"}`), attribute("http.response.status_code", `{"intValue":"503"}`)), strings.Replace(at, "status=ok", "status=503", 1)},
		"response_time of LiteLLM is the first token and not read":               {fmt.Sprintf(litellmLine, "true", "1795982400.54", "0.5"), "1: ts=2026-11-29T20:00:00.12Z model=m latency_ms=1530 cost_usd=0.5 status=ok ttft_ms=420 stream_aborted=false"},
		"LiteLLM writes the end where nothing was streamed":                      {fmt.Sprintf(litellmLine, "false", "1795982401.65", "0.5"), "1: ts=2026-11-29T20:00:00.12Z model=m latency_ms=1530 cost_usd=0.5 status=ok"},
		"a row of LiteLLM's spend logs":                                          {`{"call_type":"acompletion","startTime":"2026-11-29T20:00:00.12Z","endTime":"2026-11-29T20:00:01.65Z","spend":0.5,"model":"m","model_group":"g","user":"u","cache_hit":"None","status":"success"}`, "1: ts=2026-11-29T20:00:00.12Z version=g model=m user_id=u latency_ms=1530 cost_usd=0.5 status=ok"},
		"a cost of 0.0 of LiteLLM is missing":                                    {fmt.Sprintf(litellmLine, "false", "null", "0.0"), "1: ts=2026-11-29T20:00:00.12Z model=m latency_ms=1530 status=ok"},
		"seconds of Langfuse come from its times":                                {fmt.Sprintf(langfuseLine, "2026-11-29 20:00:00.523456", "1.5", "0.4", "v2", "0.5", "{}"), "1: ts=2026-11-29T20:00:00.123456Z version=v2 latency_ms=1500 cost_usd=0.5 status=ok ttft_ms=400 stream_aborted=false"},
		"milliseconds of Langfuse come from its times":                           {fmt.Sprintf(langfuseLine, "2026-11-29 20:00:00.523456", "1500", "400", "v2", "0.5", "{}"), "1: ts=2026-11-29T20:00:00.123456Z version=v2 latency_ms=1500 cost_usd=0.5 status=ok ttft_ms=400 stream_aborted=false"},
		"an empty text of Langfuse is missing":                                   {fmt.Sprintf(langfuseLine, "", "1.5", "0.4", "", "0", "{}"), "1: ts=2026-11-29T20:00:00.123456Z latency_ms=1500 status=ok"},
		"Langfuse writes the end where nothing was streamed":                     {fmt.Sprintf(langfuseLine, "2026-11-29 20:00:01.623456", "1.5", "1.5", "v2", "0", `{"input":0}`), "1: ts=2026-11-29T20:00:00.123456Z version=v2 latency_ms=1500 cost_usd=0 status=ok"},
		"delay_ms of Helicone is in milliseconds":                                {`{"request_created_at":"2026-11-29T20:00:00Z","response_status":200,"delay_ms":1500,"time_to_first_token":400}`, "1: ts=2026-11-29T20:00:00Z latency_ms=1500 status=200 ttft_ms=400 stream_aborted=false"},
		"duration of Envoy is in milliseconds and its upstream's no first token": {fmt.Sprintf(envoyLine, "200", "-", "7"), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=200 output_tokens=7"},
		"numbers of Envoy may be texts":                                          {fmt.Sprintf(envoyLine, `"200"`, "", `"7"`), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=200 output_tokens=7"},
		"numbers of Envoy may be missing":                                        {fmt.Sprintf(envoyLine, `null`, "-", `"-"`), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526"},
		"a client of Envoy that left is no error":                                {fmt.Sprintf(envoyLine, `200`, "DC", "null"), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=499"},
		"a client of Envoy that left before the answer is none":                  {fmt.Sprintf(envoyLine, `0`, "DC", "null"), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=499"},
		"nothing sent by Envoy is an error":                                      {fmt.Sprintf(envoyLine, `0`, "-", "null"), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=error"},
		"a 200 of Envoy that broke off is an error":                              {fmt.Sprintf(envoyLine, `200`, "UC", "null"), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=error stream_aborted=true"},
		"an upstream time-out of Envoy is its status":                            {fmt.Sprintf(envoyLine, `504`, "UT", "null"), "1: ts=2025-08-30T16:51:37.894Z latency_ms=1526 status=504"},
		"request_time of nginx is how long it took, in seconds":                  {fmt.Sprintf(nginxLine, "200"), "1: ts=2026-11-29T20:00:00.75Z latency_ms=1250 status=200"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := recordOf(t, c.line, ""); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestAMappingHasTheLastWordOverAShape(t *testing.T) {
	chat := attribute("gen_ai.operation.name", `{"stringValue":"chat"}`)
	for name, c := range map[string]struct{ line, maps, want string }{
		"by an attribute":      {spanLine(chat, attribute("app.tier", `{"stringValue":"gold"}`)), "version=app.tier", "version=gold"},
		"by the resource":      {spanLine(chat), `model=resource.service.version`, "model=v2"},
		"by the span itself":   {spanLine(chat), "ts=span.endTimeUnixNano:ns", "ts=2026-11-29T20:00:01.649456789Z"},
		"with its own unit":    {fmt.Sprintf(litellmLine, "true", "1795982400.54", "0.5"), "latency_ms=response_time:s", "latency_ms=0.42"},
		"from a header's time": {fmt.Sprintf(envoyLine, "200", "-", "7"), "ttft_ms=x-envoy-upstream-service-time", "ttft_ms=451"},
		"to something missing": {fmt.Sprintf(envoyLine, "200", "-", "7"), "latency_ms=nothing", ""},
		"into an object":       {`{"request_created_at":"2026-11-29T20:00:00Z","response_status":200,"request_properties":{"Tier":"gold"}}`, "scene=request_properties.Tier", "scene=gold"},
		"to a score":           {spanLine(chat) + "", "solved=scores.nothing", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := recordOf(t, c.line, c.maps)
			field, _, _ := strings.Cut(c.maps, "=")
			if c.want == "" && strings.Contains(got, " "+field+"=") || !strings.Contains(got+" ", c.want+" ") {
				t.Errorf("%s", got)
			}
		})
	}
	// Rows that the user says are windows are no requests of any shape.
	d, err := read(`{"start_time":"2026-11-29T20:00:00Z","duration":60,"response_code":200,"n":5}`+"\n", func() Options {
		o := options(t, "t=start_time,total=n")
		o.InputSpan = time.Minute
		return o
	}())
	if err != nil || d.Kind != Windows || totalOf(d.Windows) != 5 {
		t.Errorf("%v %+v", err, d.Windows)
	}
}

func TestWhatIsCanaryctlsOwnIsNoShape(t *testing.T) {
	for name, line := range map[string]string{
		"records with names of a gateway":       `{"ts":"2026-11-29T20:00:00Z","start_time":"2020-01-01T00:00:00Z","duration":7,"response_code":500,"response_flags":"UF","status":"ok","latency_ms":5}`,
		"records with names of nginx":           `{"ts":"2026-11-29T20:00:00Z","msec":"1","request_time":1,"status":"ok","remote_addr":"x","latency_ms":5}`,
		"records with names of a tracer":        `{"ts":"2026-11-29T20:00:00Z","trace_id":"x","type":"SPAN","start_time":"x","usage_details":{},"status":"ok","latency_ms":5}`,
		"records with names of a proxy":         `{"ts":"2026-11-29T20:00:00Z","call_type":"aembedding","startTime":1,"response_cost":0,"status":"ok","latency_ms":5}`,
		"a time by another name":                `{"timestamp":"2026-11-29T20:00:00Z","request_time":7,"status":"ok","remote_addr":"x","latency_ms":5}`,
		"records with a request and a response": `{"ts":"2026-11-29T20:00:00Z","request":"GET /","response":"200","status":"ok","latency_ms":5}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, line+"\n", Options{})
			if len(d.Windows) != 1 || d.Windows[0].P99MS != 5 || !d.Windows[0].T.Equal(time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)) || noted(d, " 1 request read") {
				t.Errorf("%+v %q", d.Windows, d.Notes)
			}
		})
	}
}

func TestAShapeIsFoundBehindWhatIsInTheWay(t *testing.T) {
	line := fmt.Sprintf(litellmLine, "true", "1795982400.54", "0.5")
	for name, text := range map[string]string{
		"a byte order mark":       "\xef\xbb\xbf" + line + "\n",
		"blank lines":             "\n\r\n" + line + "\n",
		"a damaged first line":    `{"call_type":"acompl` + "\n" + line + "\n",
		"a first line of 200 KiB": `{"messages":"` + strings.Repeat("x", 200<<10) + `",` + line[1:] + "\n",
		"an array":                "[\n" + line + ",\n" + line + "]",
		"a list named data":       `{"data":[` + line + `],"error":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := mustRead(t, text, Options{MaxBad: anyBad})
			if len(d.Windows) != 1 || d.Windows[0].TTFTP99MS != 420 || !noted(d, "litellm: ") {
				t.Errorf("%+v %q", d.Windows, d.Notes)
			}
		})
	}
}

// TestStreamsOfServersThatDifferAreRead: a first chunk with nothing in it, as
// Azure and others send it, no time at all, and nothing that says the end.
func TestStreamsOfServersThatDifferAreRead(t *testing.T) {
	placeholder := `{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}` + "\n" +
		`{"choices":[{"delta":{"content":"Hi"},"finish_reason":null,"index":0}],"created":1700000000,"id":"c","model":"m","object":"chat.completion.chunk"}` + "\n" +
		`{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"created":1700000000,"id":"c","model":"m","object":"chat.completion.chunk"}` + "\n" +
		`{"choices":[],"created":1700000000,"id":"c","model":"m","object":"chat.completion.chunk","usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`
	if got, want := recordOf(t, placeholder, ""), "1: ts=2023-11-14T22:13:20Z model=m status=ok output_tokens=1 stream_aborted=false"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	timeless := sse(`{"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}`)
	if got, want := recordOf(t, timeless, ""), "1: model=m status=ok stream_aborted=true"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	w, _, err := ReadWhole(t.Context(), "-", strings.NewReader(timeless), Options{})
	if err != nil || w.Total != 1 || w.Aborted != 1 {
		t.Errorf("%v %+v", err, w)
	}
	if _, err := read(timeless, Options{}); err == nil {
		t.Error("a stream without a time has a window")
	}
}

// What is no generation is left out, and what a batch could not run is a request
// that failed, also where it is all that a file holds.
func TestWhatIsNoGenerationAndWhatNeverRan(t *testing.T) {
	for _, kind := range []string{"aembedding", "arerank", "moderation", "atranscription", "speech", "aimage_generation", "image_edit"} {
		if got := recordOf(t, `{"call_type":"`+kind+`","startTime":1795982400,"response_cost":0,"model":"m"}`, ""); got != "in: litellm: 0 calls read, 1 other left out" {
			t.Errorf("%s: %s", kind, got)
		}
	}
	const line = `{"id":"batch_req_1","custom_id":"r1","response":null,"error":{"code":"batch_expired","message":"private"}}`
	if got := recordOf(t, line, ""); got != "1: status=batch_expired" && got != "1: status=error" {
		t.Errorf("%s", got)
	}
	if w, _, err := readWhole(t, line+"\n"+line+"\n", Options{}); err != nil || w.Total != 2 || w.Errors != 2 {
		t.Errorf("%v %+v", err, w)
	}
	if got := recordOf(t, spanLine(attribute("gen_ai.usage.cost", `{"doubleValue":1}`)), ""); got != "in: otlp: 0 spans of gen_ai read, 1 other left out" {
		t.Errorf("a cost alone is no call: %s", got)
	}
}

func TestARequestWithoutAResponseFailed(t *testing.T) {
	const capture = `{"request":{},"response":{"choices":[]},"ts":"2026-11-29T20:00:00Z","status":"ok"}` + "\n"
	for line, want := range map[string]string{
		`{"request":{},"response":null,"error":{"code":"server_error","message":"private"},"ts":"2026-11-29T20:00:00Z"}`: "status=server_error",
		`{"request":{},"response":null,"ts":"2026-11-29T20:00:00Z"}`:                                                     "status=",
		`{"request":{},"response":null,"ts":"2026-11-29T20:00:00Z","status":"timeout"}`:                                  "status=timeout",
	} {
		path := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(path, []byte(capture+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := strings.Split(listRecords(t, path, "", nil), "\n")[1]
		if !strings.Contains(got, "2: ts=2026-11-29T20:00:00Z") || strings.Contains(got, "status=") != (want != "status=") || want != "status=" && !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestTheSameSpanTwiceIsOneCall(t *testing.T) {
	const text = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"0102030405060708","startTimeUnixNano":%s,"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}]}]}]}` + "\n"
	d := mustRead(t, fmt.Sprintf(text, "5b8e010203040506070809000000ABCD", `"1795982400123456789"`)+fmt.Sprintf(text, "5b8e010203040506070809000000abcd", `1795982400123456789`), Options{})
	if totalOf(d.Windows) != 1 || d.Duplicates != 1 || d.Windows[0].T.Second() != 0 {
		t.Errorf("%+v, %d twice", d.Windows, d.Duplicates)
	}
}

// Ids that are shorter than OTLP has them are ids all the same; zeros are none.
func TestASpanIsKnownByItsIDWhateverItLooksLike(t *testing.T) {
	line := func(trace, span, more string) string {
		return fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":%q,"spanId":%q,"startTimeUnixNano":"1795982400123456789",%s"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}]}]}]}`+"\n", trace, span, more)
	}
	for _, c := range []struct {
		name, first, second string
		total               int64
	}{
		{"short ids", line("t1", "s1", ""), line("t1", "s1", ""), 1},
		{"exported again with its status", line("t1", "s1", ""), line("t1", "s1", `"status":{"code":2},`), 1},
		{"base64", line("W47/AQIDBAUGBwgJAAAA", "AQIDBAUGBwg=", ""), line("W47/AQIDBAUGBwgJAAAA", "AQIDBAUGBwg=", ""), 1},
		{"base64 minds its case", line("W47x", "AQID", ""), line("W47X", "AQID", ""), 2},
		{"another span of the trace", line("t1", "s1", ""), line("t1", "s2", ""), 2},
		{"the same letters, cut elsewhere", line("t1", "1s1", ""), line("t11", "s1", ""), 2},
		{"zeros", line("00000000000000000000000000000000", "0000000000000000", ""), line("00000000000000000000000000000000", "0000000000000000", ""), 2},
		{"no ids", line("", "", ""), line("", "", ""), 2},
	} {
		if d := mustRead(t, c.first+c.second, Options{}); totalOf(d.Windows) != c.total || d.Duplicates != 2-c.total {
			t.Errorf("%s: %d requests, %d twice", c.name, totalOf(d.Windows), d.Duplicates)
		}
	}
}

func TestOTLPThatHoldsNoRequestsIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"resourceMetrics":[]}`:   "OTLP JSON of metrics (resourceMetrics), in which there are no requests",
		`{"resourceLogs":[]}`:      "OTLP JSON of logs",
		"\x00\x00\x01\x00\x0a\xfd": "OTLP in protobuf",
		`{"resourceSpans":[]}`:     "there are no rows",
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"GET /"},{"name":"POST /"}]}]}]}`: "otlp: 0 spans of gen_ai read, 2 others left out",
		`{"resourceSpans":7}`:         "there are no rows",
		"{\n\"resourceSpans\": [\n{}": "cut off: the JSON does not end",
		"{\n\"resourceSpans\": {\n}}": "resourceSpans is no list",
	} {
		d, err := read(text, Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %q", text, err, d.Notes)
		}
		if e, ok := errors.AsType[Hinter](err); !ok || strings.Contains(want, "OTLP") && e.Hint() == "" {
			t.Errorf("%q: no hint with %v", text, err)
		}
	}
}

// TestMessagesThatTheCollectorCompressedAreRead reads what its file exporter
// writes with compression: zstd, each message by itself.
func TestMessagesThatTheCollectorCompressedAreRead(t *testing.T) {
	plain, err := os.ReadFile(shapeFile("otlp.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var packed []byte
	for line := range strings.Lines(string(plain)) {
		message := enc.EncodeAll([]byte(strings.TrimSpace(line)), nil)
		packed = binary.BigEndian.AppendUint32(packed, uint32(len(message)))
		packed = append(packed, message...)
	}
	want := mustRead(t, string(plain)+"\n", Options{MaxBad: anyBad})
	got := mustRead(t, string(packed), Options{MaxBad: anyBad})
	if diff := cmp.Diff(want.Windows, got.Windows); diff != "" || got.Bad != want.Bad || got.Bad == 0 {
		t.Errorf("%d bad, %s", got.Bad, diff)
	}
	for name, bad := range map[string]string{
		"cut off: message 7 does not end":           string(packed[:len(packed)-30]),
		"cut off: message 8 does not end":           string(packed) + "\x00\x00",
		"message 1: the compressed data is damaged": string(packed[:8]) + "........" + string(packed[16:]),
		"damaged: message 8 is 4294967295 bytes":    string(packed) + "\xff\xff\xff\xff",
	} {
		if _, err := read(bad, Options{MaxBad: anyBad}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %s: %v", name, err)
		}
	}
}

func TestScoresOfLangfuseAreJoinedOnce(t *testing.T) {
	f := newFeed(Options{})
	rest, err := f.takeScores(t.Context(), []string{shapeFile("langfuse.jsonl"), shapeFile("langfuse-scores.jsonl")}, nil)
	if err != nil || len(rest) != 1 {
		t.Fatal(rest, err)
	}
	book := f.scores
	got := strings.Split(listRecords(t, shapeFile("langfuse.jsonl"), "", book), "\n")
	for i, want := range []string{"solved=true", "", "solved=false transfer=true", "solved=false"} {
		if has := strings.Contains(got[i], "solved"); has != (want != "") || !strings.Contains(got[i], want) {
			t.Errorf("%s, want %s", got[i], want)
		}
	}
	if book.read != 8 || book.unknown != 2 || book.joined != 4 {
		t.Errorf("%+v", book)
	}
}

func TestScoresAndObservationsComeInAnyOrderAndFormat(t *testing.T) {
	scores, observations := shapeFile("langfuse-scores.jsonl"), shapeFile("langfuse.jsonl")
	want, err := ReadFiles(t.Context(), []string{observations, scores}, nil, Options{MergeArms: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTable(t, want, "2026-11-29T20:00:00Z,all,3,2,1,,1,,0.0005,1500", "2026-11-29T20:01:00Z,all,1,1,0,,0,,0.0005,")
	if !noted(want, "langfuse: 4 of 8 scores joined; 2 say neither yes nor no") {
		t.Errorf("%q", want.Notes)
	}
	for _, paths := range [][]string{{scores, observations}, {scores, shapeFile("langfuse.csv")}, {shapeFile("langfuse.csv"), scores}} {
		got, err := ReadFiles(t.Context(), paths, nil, Options{MergeArms: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Windows, got.Windows); diff != "" {
			t.Errorf("%q: %s", paths, diff)
		}
	}
	file, err := os.Open(observations)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := ReadFiles(t.Context(), []string{"-", scores}, file, Options{MergeArms: true}, nil)
	if err != nil || !cmp.Equal(want.Windows, got.Windows) {
		t.Errorf("by standard input: %v", err)
	}
	for _, paths := range [][]string{{scores}, {scores, copyOf(t, scores)}} {
		if _, err := ReadFiles(t.Context(), paths, nil, Options{}, nil); err == nil || !strings.Contains(err.Error(), "scores of Langfuse, which are no requests") {
			t.Errorf("%q: %v", paths, err)
		}
	}
}

func copyOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestTracesOfLangfuseAreNoRequests(t *testing.T) {
	const header, row = "id,timestamp,name,user_id,session_id,public,bookmarked", "t1,2026-11-29 20:00:00.0,chat,u,s,false,false"
	_, err := read(header+"\n"+row+"\n", Options{})
	if e, ok := errors.AsType[*InputError](err); !ok || !strings.Contains(err.Error(), "traces of Langfuse, which are no requests") || e.Hint() == "" {
		t.Errorf("%v", err)
	}
}

func TestMoreScoresThanAreHeldAreRefused(t *testing.T) {
	book := newScoreBook(2)
	var err error
	for i := range 3 {
		var b bag
		b.reset()
		b.object(fmt.Appendf(nil, `{"name":"solved","value":1,"trace_id":"t%d","data_type":"BOOLEAN","timestamp":"2026-11-29 20:00:00.0"}`, i))
		if err = book.add(&b); i < 2 && err != nil {
			t.Fatal(err)
		}
	}
	if e, ok := errors.AsType[*InputError](err); !ok || e.Hint() == "" || book.held != 2 {
		t.Errorf("%v", err)
	}
}

func TestAScoreSaysYesOrNoOrNothing(t *testing.T) {
	for _, c := range []struct {
		label, value string
		want         string
	}{
		{"pass", "0", "true"}, {"FAIL", "1", "false"}, {"", "0.5", "true"}, {"", "0.49", "false"}, {"", "1", "true"}, {"", "0", "false"},
		{"relevant", "0.9", "true"}, {"relevant", "", ""}, {"", "4", ""}, {"", "-1", ""}, {"", "NaN", ""}, {"", "", ""}, {"maybe", "x", ""},
	} {
		var b bag
		b.reset()
		var r row
		(&score{name: []byte("Hand-Off"), label: []byte(c.label), value: []byte(c.value)}).judge(&b, &r)
		if got := string(r.cells[FieldTransfer].text); got != c.want || string(b.text("scores.Hand-Off")) != c.want {
			t.Errorf("%q %q: %q, want %q", c.label, c.value, got, c.want)
		}
	}
}
