package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// FuzzObject holds the reading of objects against encoding/json, whose rules
// it keeps: exact keys, the last duplicate wins.
func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"a":1,"a":{"b":[1,"}",{}]},"\u0061":"\"","c\\":null, "d" : -1e5 }`))
	f.Add([]byte("{\"\xff\":\"\xfe\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		err := json.Unmarshal(text, &want)
		text = bytes.TrimSpace(text)
		if valid := json.Valid(text); !valid || text[0] != '{' {
			if err == nil && want != nil {
				t.Fatalf("encoding/json reads %q", text)
			}
			return
		}
		got := map[string]string{}
		jsonscan.EachMember(text, func(k, v []byte) { got[string(k)] = string(v) })
		if len(got) != len(want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		for k, v := range want {
			if got[k] != string(v) {
				t.Fatalf("%q: %s is %q, want %q", text, k, got[k], v)
			}
			if m, ok := member(text, k); !ok || string(m) != string(v) {
				t.Fatalf("%q: member %q is %q", text, k, m)
			}
		}
	})
}

// FuzzCSVRecords holds the splitting of CSV against encoding/csv, up to the
// first record that it refuses.
func FuzzCSVRecords(f *testing.F) {
	f.Add([]byte("a,b,c\r\n1,\"2\n3\",\"\"\"\"\n,,\n\"x\",y,\"z\""))
	f.Add([]byte("a,b\"c\n"))
	f.Add([]byte("\"a\"b\n\"open\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ref := csv.NewReader(bytes.NewReader(text))
		ref.FieldsPerRecord = -1
		c := &csvReader{lines: newLineReader(bufio.NewReader(bytes.NewReader(text)))}
		for {
			var r row
			gotErr := c.record(&r)
			want, err := ref.Read()
			// A line of blanks alone is skipped here and a record there.
			for err == nil && len(want) == 1 && blank([]byte(want[0])) && !bytes.ContainsAny(text, "\"") {
				want, err = ref.Read()
			}
			switch {
			case errors.Is(err, io.EOF) && errors.Is(gotErr, io.EOF):
				return
			case err != nil && gotErr != nil:
				return
			case (err == nil) != (gotErr == nil):
				if err == nil && len(want) == 1 && blank([]byte(want[0])) {
					return
				}
				t.Fatalf("%q: %v, encoding/csv %v", text, gotErr, err)
			}
			got := make([]string, len(c.fields))
			for i, f := range c.fields {
				got[i] = string(f)
			}
			if !slices.Equal(got, want) && !(len(want) == 1 && blank([]byte(want[0]))) {
				t.Fatalf("%q: %q, encoding/csv %q", text, got, want)
			}
		}
	})
}
