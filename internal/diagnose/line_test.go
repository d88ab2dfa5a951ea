package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestThePublishedLine reads the line of the published log.
func TestThePublishedLine(t *testing.T) {
	a, err := (&Names{}).Attempt([]byte(`{"ts":"2026-03-02T02:17:05.812Z","trace_id":"t-1","upstream_request_id":"req_9","endpoint":"chat.completions","model":"m",
		"attempt":3,"status":429,"retry_after_ms":1000,"breaker_state":"CLOSED","inflight":78,"prompt_tokens":1200,"stream":true,"elapsed_ms":812,"error_code":"rate_limit_exceeded"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.has = 0
	want := Attempt{
		At: time.Date(2026, 3, 2, 2, 17, 5, 812e6, time.UTC), Trace: "t-1", UpstreamID: "req_9", Number: 3, Status: 429, Code: "rate_limit_exceeded",
		RetryAfter: time.Second, RetryAfterKnown: true, Phase: release.Closed, PhaseKnown: true,
		InFlight: 78, InFlightKnown: true, Tokens: 1200, TokensKnown: true, Elapsed: 812 * time.Millisecond, ElapsedKnown: true,
	}
	if a != want {
		t.Errorf("%+v\nwant %+v", a, want)
	}
}

func TestLinesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"status":429`:                       "not valid JSON",
		`[1]`:                                 "not a JSON object",
		`null`:                                "not a JSON object",
		`{"status":42}`:                       "no HTTP status",
		`{"status":200.5}`:                    "no HTTP status",
		`{"status":{"code":200}}`:             "is an object",
		`{"status":200,"attempt":0}`:          "attempts count from 1",
		`{"status":200,"attempt":1.5}`:        "no count",
		`{"status":200,"attempt":-1}`:         "no number of at least 0",
		`{"status":200,"inflight":"many"}`:    "no number of at least 0",
		`{"status":200,"inflight":1e300}`:     "no count",
		`{"status":200,"elapsed_ms":1e300}`:   "out of range",
		`{"status":200,"elapsed_ms":"NaN"}`:   "no number of at least 0",
		`{"status":200,"ts":"yesterday"}`:     "neither a time",
		`{"status":200,"breaker_state":"on"}`: "neither CLOSED",
		`{"status":429,"status":200}`:         "status stands twice",
		`{"status":200,"stat\u0075s":200}`:    "status stands twice",
		`{"time":1,"time":2,"status":200}`:    "ts stands twice",
	} {
		if _, err := (&Names{}).Attempt([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestMissingIsNotZero(t *testing.T) {
	for _, text := range []string{`{}`, `{"status":null,"inflight":null,"prompt_tokens":"","retry_after_ms":null,"elapsed_ms":null,"breaker_state":null,"attempt":null,"ts":null}`} {
		a, err := (&Names{}).Attempt([]byte(text))
		if err != nil || a != (Attempt{}) {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	d := logOf(t, `{"inflight":3}`)
	if d.Unknown != 1 || d.Attempts != 0 || d.RateLimited.Known() {
		t.Errorf("%+v", d)
	}
	b, err := json.Marshal(d.RateLimited)
	if err != nil || string(b) != `{"count":0,"of":0,"share":null}` {
		t.Errorf("%s, %v", b, err)
	}
}

func TestMappedNames(t *testing.T) {
	n, err := ParseNames([]string{"status=http.code, elapsed_ms=took:s", "ts=at:ns"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"http":{"code":"503"},"took":1.5,"at":1772417825000000000}`, `{"http.code":503,"took":"1.5","at":"1772417825000000000"}`} {
		a, err := n.Attempt([]byte(text))
		if err != nil || a.Status != 503 || a.Elapsed != 1500*time.Millisecond || a.At.Unix() != 1772417825 {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	for text, want := range map[string]string{
		"statu=code": "did you mean status", "status": "want FIELD=KEY", "status=a,status=b": "mapped twice",
		"status=a:s": "no unit of status", "elapsed_ms=a:h": "no unit of elapsed_ms",
	} {
		_, err := ParseNames([]string{text})
		if e, ok := errors.AsType[*NameError](err); !ok || !strings.Contains(e.Error()+e.Hint(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestTimesInNumbersAreOfThisCentury(t *testing.T) {
	for _, text := range []string{"1772417825", "1772417825.000", "1772417825000", "1772417825000000", "1772417825000000000"} {
		a, err := (&Names{}).Attempt([]byte(`{"ts":` + text + `}`))
		if err != nil || a.At.Unix() != 1772417825 {
			t.Errorf("%s: %v, %v", text, a.At, err)
		}
	}
}

func FuzzAttempt(f *testing.F) {
	f.Add([]byte(`{"ts":1772417825,"attempt":2,"status":"429","breaker_state":"half-open","inflight":3,"error_code":"timeout"}`))
	f.Add([]byte(`{"ts":"2026-03-02T02:17:05Z","status":{"a":1}}`))
	f.Add([]byte(`{"status":1e309,"elapsed_ms":-0}`))
	f.Add([]byte(` { "a\u0062" : [ {"x":"}"} , "]" ] , "status" : 429 , "status" : 200 , "n" : {} }`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := (&Names{}).Attempt(text)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q is read, and is no object: %v", text, err)
		}
		got := map[string]string{}
		jsonscan.EachMember(bytes.TrimSpace(text), func(k, v []byte) { got[string(k)] = string(v) })
		for k, v := range want {
			if got[k] != string(v) || len(got) != len(want) {
				t.Fatalf("%q: key %q is %q, want %q", text, k, got[k], v)
			}
		}
		tally := NewTally()
		tally.Add(&a)
		d := tally.Diagnosis()
		if d.Lines != 1 || d.Attempts+d.Unknown != 1 {
			t.Errorf("%q: %d attempts, %d unknown of one line", text, d.Attempts, d.Unknown)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Error(err)
		}
	})
}

// A key on the way to a mapped field counts like the field, and keys that are
// not read do not matter.
func TestMappedKeysThatStandTwice(t *testing.T) {
	n, err := ParseNames([]string{"status=http.code"})
	if err != nil {
		t.Fatal(err)
	}
	for text, twice := range map[string]bool{
		`{"http":{"code":429,"code":200}}`: true, `{"http":{"code":429},"http":{"code":200}}`: true, `{"http.code":429,"http.code":200}`: true,
		`{"http":{"code":200},"msg":1,"msg":2}`: false, `{"timestamp":1,"ts":1767225600,"http":{"code":200}}`: false, `{"http":{"code":200},"http":{"x":1}}`: false,
	} {
		if _, err := n.Attempt([]byte(text)); (err != nil) != twice {
			t.Errorf("%s: %v", text, err)
		}
	}
}
