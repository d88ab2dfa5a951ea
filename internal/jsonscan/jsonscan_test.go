package jsonscan_test

import (
	"encoding/json"
	"testing"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// FuzzEachMember holds the walk against encoding/json: the last of two equal
// keys, and every value as written.
func FuzzEachMember(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, ` {"a" : [1,{"b":"]"}] , "a":"\\\"" }`, `{"\u0061":null,"é":{"x":"}"},"t":true}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		object := text[jsonscan.SkipSpace(text, 0):]
		got := map[string]string{}
		jsonscan.EachMember(object, func(key, value []byte) { got[string(key)] = string(value) })
		if len(got) != len(want) {
			t.Fatalf("%d keys, want %d: %q", len(got), len(want), text)
		}
		for key, value := range want {
			if got[key] != string(value) {
				t.Errorf("%q is %q, want %q", key, got[key], value)
			}
		}
	})
}
