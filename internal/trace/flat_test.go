package trace

import (
	"encoding/json"
	"testing"
)

func FuzzFlatObject(f *testing.F) {
	for _, s := range []string{`{"a":1}`, ` { "a" : -0.50 , "b":"x", "c" :true,"d":false,"e":null } `, `{}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1,}`, `{"a":"\n"}`, `{"a":tru}`, `{"a":1}x`, `{"a":1e5}`, "{\"a\":\"\xff\"}", "{\"a\":1}\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		if flatObject(s) && !json.Valid(s) {
			t.Errorf("%q is not valid JSON", s)
		}
	})
}

func TestFlatObjectKnowsWhatLogsAreMadeOf(t *testing.T) {
	for _, s := range []string{`{"ts":"2026-05-04T12:00:00Z","user_id":"u1","latency_ms":100,"cost_usd":0.0125,"solved":true,"violation":null}`, ` { "a" : -0.5 } `, `{"名":"值"}`} {
		if !flatObject([]byte(s)) {
			t.Errorf("%s", s)
		}
	}
}
