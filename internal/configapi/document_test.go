package configapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDocumentsAreChecked(t *testing.T) {
	nested := func(n int) string {
		return `{"versions":{},"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	weights := func(stable, canary string) string {
		return `{"versions":{"stable":{"weight":` + stable + `},"canary":{"weight":` + canary + `}}}`
	}
	for _, tt := range []struct {
		name, body string
		kind       string // "": it is taken
		detail     string // a part of it
	}{
		{name: "published weights", body: one},
		{name: "no arms", body: `{"versions":{}}`},
		{name: "one weight", body: `{"versions":{"canary":{"weight":0.3},"stable":{}}}`},
		{name: "weights 0 and 1", body: weights("1", "0")},
		{name: "weights written otherwise", body: weights("9.9E-1", "0.010")},
		{name: "a third, in decimals that add up", body: weights("0.6666666666666667", "0.3333333333333333")},
		{name: "0.1 and 0.9, whose doubles do not matter", body: weights("0.9", "0.1")},
		{name: "0.7 and 0.1 and 0.2 as doubles would add up, decimals do not", body: weights("0.79999999999999999", "0.2"), kind: "invalid-document", detail: "add up to 0.99999999999999999, not to 1"},
		{name: "a sum above 1", body: weights("0.99", "0.02"), kind: "invalid-document", detail: "add up to 1.01"},
		{name: "a weight above 1", body: weights("0", "1.5"), kind: "invalid-document", detail: "versions.canary.weight is 1.5, not between 0 and 1"},
		{name: "a weight above 1 by less than a double tells", body: `{"versions":{"canary":{"weight":1.00000000000000001}}}`, kind: "invalid-document", detail: "not between 0 and 1"},
		{name: "a percentage", body: weights("99", "1"), kind: "invalid-document", detail: "versions.stable.weight is 99"},
		{name: "a negative weight", body: weights("1.01", "-0.01"), kind: "invalid-document", detail: "not between 0 and 1"},
		{name: "a weight in quotes", body: weights("0.99", `"0.01"`), kind: "invalid-document", detail: "not a number"},
		{name: "a weight of null", body: weights("0.99", "null"), kind: "invalid-document", detail: "not a number"},
		{name: "a tiny weight", body: weights("1", "1e-1000000"), kind: "invalid-document", detail: "too many digits"},
		{name: "a huge exponent", body: weights("1", "1e999999999"), kind: "invalid-document", detail: "not between 0 and 1"},
		{name: "a weight of many digits", body: weights("1", "0."+strings.Repeat("1", 100000)), kind: "invalid-document", detail: "too many digits"},
		{name: "NaN", body: weights("1", "NaN"), kind: "invalid-json", detail: "at byte"},
		{name: "no versions", body: `{"version":{}}`, kind: "invalid-document", detail: `"versions"`},
		{name: "Versions, which some readers take for versions", body: `{"Versions":{}}`, kind: "invalid-document", detail: `"versions"`},
		{name: "versions as a list", body: `{"versions":[]}`, kind: "invalid-document", detail: "versions is not an object"},
		{name: "versions of null", body: `{"versions":null}`, kind: "invalid-document", detail: "versions is not an object"},
		{name: "an arm as a number", body: `{"versions":{"canary":0.1}}`, kind: "invalid-document", detail: "versions.canary is not an object"},
		{name: "a state that is a text", body: `{"versions":{},"state":""}`},
		{name: "a state that is none", body: `{"versions":{},"state":{}}`, kind: "invalid-document", detail: "state is not a text"},
		{name: "a key twice", body: `{"versions":{},"versions":{}}`, kind: "invalid-document", detail: "versions: the key is there twice"},
		{name: "a key twice inside", body: `{"versions":{"canary":{"weight":0.1,"x":1,"weight":0.2}}}`, kind: "invalid-document", detail: "versions.canary.weight: the key is there twice"},
		{name: "a key twice in an array", body: `{"versions":{},"l":[{"a":1},{"a":1,"b":[],"a":2}]}`, kind: "invalid-document", detail: "l.a: the key is there twice"},
		{name: "a key twice, once escaped", body: `{"versions":{},"x":{"a":1,"\u0061":2}}`, kind: "invalid-document", detail: "x.a: the key is there twice"},
		{name: "the same key at different places", body: `{"versions":{},"a":{"a":{"a":1},"b":"a"},"b":["a","a"]}`},
		{name: "nested as deep as may be", body: nested(MaxDepth - 1)},
		{name: "nested deeper", body: nested(MaxDepth), kind: "invalid-document", detail: "x is nested deeper than 32 levels"},
		{name: "nested without end", body: nested(200000), kind: "invalid-json"},
		{name: "nothing", body: "", kind: "invalid-json"},
		{name: "blanks", body: " \n", kind: "invalid-json"},
		{name: "an array", body: "[]", kind: "invalid-json", detail: "not a JSON object"},
		{name: "a string", body: `"{}"`, kind: "invalid-json", detail: "not a JSON object"},
		{name: "null", body: "null", kind: "invalid-json", detail: "not a JSON object"},
		{name: "two documents", body: one + one, kind: "invalid-json", detail: "at byte 65"},
		{name: "a comma too many", body: `{"versions":{},}`, kind: "invalid-json"},
		{name: "a comment", body: `{"versions":{}} // mine`, kind: "invalid-json"},
		{name: "a byte order mark", body: "\uFEFF" + one, kind: "invalid-json"},
		{name: "bytes that are no text", body: `{"versions":{},"x":"` + "\xff" + `"}`, kind: "invalid-json", detail: "UTF-8"},
		{name: "YAML", body: "versions: {}", kind: "invalid-json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			canary, err := inspect([]byte(tt.body))
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
			if tt.kind == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if has := strings.Contains(tt.body, `"canary":{"weight"`); has == math.IsNaN(canary) {
					t.Errorf("the canary's weight is read as %v", canary)
				}
				return
			}
			p, ok := errors.AsType[*problem](err)
			if !ok || p.Type != typeBase+tt.kind || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("got %v (%+v), want %s with %q", err, p, tt.kind, tt.detail)
			}
			if len(p.Detail) > 500 {
				t.Errorf("the detail has %d bytes", len(p.Detail))
			}
		})
	}
}

// FuzzPut sends any body: it is refused with a problem, or it is read back byte
// for byte, survives a restart, and its weights are what they should be.
func FuzzPut(f *testing.F) {
	for _, seed := range []string{
		one, five, "", "{}", "[]", `{"versions":{}}`, `{"versions":{"canary":{"weight":1e-2}},"state":"x"}`,
		`{"versions":{"stable":{"weight":0.5},"canary":{"weight":0.5,"weight":0.5}}}`, `{"versions":{"canary":{"weight":-0}}}`,
		`{"versions":{"canary":{"weight":1e-999999999}}}`, "{\"versions\":{},\"\xff\":1}", `{"versions":{},"x":[[[[{"a":[]}]]]]}`,
		`{"versions":{},"\ud800":1,"\udfff":2}`,
	} {
		f.Add([]byte(seed))
	}
	c := local(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		c.t = t
		r := c.do(http.MethodPut, "/v1/services/s", string(body), "If-Match: *", "If-None-Match:  \"0000\"")
		if r.StatusCode == http.StatusPreconditionFailed {
			r = c.do(http.MethodPut, "/v1/services/s", string(body), "If-None-Match: *")
		}
		if r.StatusCode >= 500 || len(c.reports()) > 0 {
			t.Fatalf("%d %s: %v", r.StatusCode, r.body, c.reports())
		}
		if r.StatusCode >= 400 {
			if r.kind() == "" {
				t.Fatalf("%d without a problem: %s", r.StatusCode, r.body)
			}
			return
		}
		if got := c.stored("s"); got != string(body) {
			t.Fatalf("put %q, read %q", body, got)
		}
		data, err := fileOf(c.server.store.get("s"))
		if err != nil {
			t.Fatal(err)
		}
		if doc, err := parseFile(data); err != nil || string(doc.body) != string(body) {
			t.Fatalf("from the file: %+v, %v", doc, err)
		}
		doc, versions := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		if err := errors.Join(json.Unmarshal(body, &doc), json.Unmarshal(doc["versions"], &versions)); err != nil {
			t.Fatalf("taken, but not readable: %v", err)
		}
		sum, known := 0.0, 0
		for _, arm := range []string{"stable", "canary"} {
			fields := map[string]json.RawMessage{}
			if versions[arm] == nil {
				continue
			}
			if err := json.Unmarshal(versions[arm], &fields); err != nil {
				t.Fatalf("taken, but %s is not readable: %v", arm, err)
			}
			raw, ok := fields["weight"]
			if !ok {
				continue
			}
			var w float64
			if err := json.Unmarshal(raw, &w); err != nil || w < 0 || w > 1 {
				t.Fatalf("%s has weight %s", arm, raw)
			}
			sum += w
			known++
		}
		if known == 2 && math.Abs(sum-1) > 1e-9 {
			t.Fatalf("weights add up to %v", sum)
		}
	})
}
