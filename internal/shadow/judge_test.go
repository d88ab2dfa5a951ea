package shadow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

func field(name string, weight int64, as shadow.As) shadow.Field {
	return shadow.Field{Path: []string{name}, Weight: release.NewRatio(weight, 1), As: as}
}

func judge(t *testing.T, c *shadow.Contract, stable, canary, gold string) shadow.Verdict {
	t.Helper()
	v, err := c.Judge(shadow.Case{Stable: json.RawMessage(stable), Canary: json.RawMessage(canary), Gold: json.RawMessage(gold)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Published: similarity >= 0.95 benign, >= 0.70 risk, below fatal.
func TestThresholdsOfSimilarity(t *testing.T) {
	for _, tt := range []struct {
		equal, of int64
		want      shadow.Grade
	}{
		{100, 100, shadow.Benign}, {95, 100, shadow.Benign}, {94, 100, shadow.Risk}, {70, 100, shadow.Risk}, {69, 100, shadow.Fatal},
		{8, 11, shadow.Risk}, {7, 10, shadow.Risk}, {19, 20, shadow.Benign}, {7, 11, shadow.Fatal}, {0, 11, shadow.Fatal},
	} {
		c := bare(field("a", tt.equal, shadow.Exact), field("b", tt.of-tt.equal, shadow.Exact))
		if v := judge(t, c, `{"a":1,"b":1}`, `{"a":1,"b":2}`, ""); v.Grade != tt.want || v.Level != shadow.Semantics {
			t.Errorf("%d/%d: %s by %s, want %s", tt.equal, tt.of, v.Grade, v.Level, tt.want)
		}
	}
}

func TestWeightsThatAreNoWholeNumbersAreExact(t *testing.T) {
	c := bare(shadow.Field{Path: []string{"a"}, Weight: release.MustRatio("0.1")}, shadow.Field{Path: []string{"b"}, Weight: release.MustRatio("0.2")},
		shadow.Field{Path: []string{"c"}, Weight: release.MustRatio("0.7")})
	// In floating point 1 - 0.1 - 0.2 is less than 0.7.
	if v := judge(t, c, `{"a":1,"b":1,"c":1}`, `{"a":2,"b":2,"c":1}`, ""); v.Grade != shadow.Risk {
		t.Errorf("0.7 of 1: %s, want risk", v.Grade)
	}
}

func TestFieldsAreComparedAsTheContractSays(t *testing.T) {
	for _, tt := range []struct {
		name           string
		as             shadow.As
		tolerance      string
		stable, canary string
		same           bool
	}{
		{"numbers by value", shadow.Exact, "0", `100`, `1e2`, true},
		{"numbers beyond a float64", shadow.Exact, "0", `9007199254740993`, `9007199254740992`, false},
		{"a number is no string", shadow.Exact, "0", `1`, `"1"`, false},
		{"lists in order", shadow.Exact, "0", `[1,2]`, `[2,1]`, false},
		{"lists in any order", shadow.Set, "0", `[1,2]`, `[2,1]`, true},
		{"items as often", shadow.Set, "0", `[1,1,2]`, `[1,2,2]`, false},
		{"a shorter list", shadow.Set, "0", `[1,1]`, `[1]`, false},
		{"items are equal as JSON", shadow.Set, "0", `[{"a":1,"b":[2.0]},null]`, `[null,{"b":[2],"a":1.0}]`, true},
		{"an item that is a string is not its text", shadow.Set, "0", `["1"]`, `[1]`, false},
		{"a set of no lists", shadow.Set, "0", `"x"`, `"x"`, true},
		{"objects whatever the order of keys", shadow.Exact, "0", `{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{"an object with a key more", shadow.Exact, "0", `{"a":1}`, `{"a":1,"b":null}`, false},
		{"exactly the tolerance", shadow.Number, "0.1", `0.3`, `0.2`, true},
		{"beyond the tolerance", shadow.Number, "0.1", `0.3000001`, `0.2`, false},
		{"without a tolerance", shadow.Number, "0", `1.0`, `1`, true},
		{"null is null", shadow.Exact, "0", `null`, `null`, true},
		{"null is not false", shadow.Exact, "0", `null`, `false`, false},
		{"a list is no object", shadow.Exact, "0", `[]`, `{}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := field("a", 1, tt.as)
			f.Tolerance = release.MustRatio(tt.tolerance)
			v := judge(t, bare(f), `{"a":`+tt.stable+`}`, `{"a":`+tt.canary+`}`, "")
			if same := v.Grade == shadow.Benign; same != tt.same {
				t.Errorf("same %t, want %t (%v)", same, tt.same, v.Reasons)
			}
		})
	}
}

func TestMissingFields(t *testing.T) {
	c := bare(field("a", 1, shadow.Exact))
	for _, tt := range []struct {
		stable, canary string
		want           shadow.Grade
	}{
		{`{}`, `{}`, shadow.Unjudged}, {`{"a":1}`, `{}`, shadow.Fatal}, {`{}`, `{"a":1}`, shadow.Fatal}, {`{"a":null}`, `{}`, shadow.Fatal}, {`[]`, `{"a":1}`, shadow.Fatal},
	} {
		if v := judge(t, c, tt.stable, tt.canary, ""); v.Grade != tt.want {
			t.Errorf("%s against %s: %s, want %s", tt.stable, tt.canary, v.Grade, tt.want)
		}
	}
}

func TestFieldsFurtherIn(t *testing.T) {
	f := shadow.Field{Path: []string{"customer", "name"}, Weight: release.NewRatio(1, 1)}
	v := judge(t, bare(f, field("a", 3, shadow.Exact)), `{"a":1,"customer":{"name":"x"}}`, `{"a":1,"customer":{"name":"y"}}`, "")
	want := []shadow.Reason{{Field: "customer.name", Text: "differs (weight 1)"}}
	if diff := cmp.Diff(want, v.Reasons); diff != "" || v.Grade != shadow.Risk {
		t.Errorf("%s: %s", v.Grade, diff)
	}
}

func TestGold(t *testing.T) {
	c := bare(field("a", 1, shadow.Exact), field("items", 1, shadow.Set))
	for _, tt := range []struct {
		name                 string
		stable, canary, gold string
		want                 shadow.Grade
		reasons              []shadow.Reason
	}{
		{"a conflict is fatal although stable says the same", `{"a":1}`, `{"a":1}`, `{"a":2}`, shadow.Fatal, []shadow.Reason{{Field: "a", Text: "is in conflict with gold"}}},
		{"right where stable is wrong", `{"a":1}`, `{"a":2}`, `{"a":2}`, shadow.Benign, nil},
		{"fields that gold does not give are stable's", `{"a":1,"items":[1]}`, `{"a":2,"items":[2]}`, `{"a":2}`, shadow.Fatal, []shadow.Reason{{Field: "items", Text: "differs (weight 1)"}}},
		{"a field without a weight counts", `{}`, `{"x":1}`, `{"x":2}`, shadow.Fatal, []shadow.Reason{{Field: "x", Text: "is in conflict with gold"}}},
		{"a field that is missing", `{}`, `{}`, `{"x":null}`, shadow.Fatal, []shadow.Reason{{Field: "x", Text: "is in conflict with gold"}}},
		{"compared as the field is", `{}`, `{"items":[2,1]}`, `{"items":[1,2]}`, shadow.Benign, nil},
		{"objects by the keys that gold has", `{"a":{"b":1,"c":9}}`, `{"a":{"b":1,"c":9}}`, `{"a":{"b":1}}`, shadow.Benign, nil},
		{"a conflict further in", `{}`, `{"a":{"b":1}}`, `{"a":{"b":2}}`, shadow.Fatal, []shadow.Reason{{Field: "a.b", Text: "is in conflict with gold"}}},
		{"an empty object in place of a value", `{"a":1}`, `{"a":1}`, `{"a":{}}`, shadow.Fatal, []shadow.Reason{{Field: "a", Text: "is in conflict with gold"}}},
		{"an empty object where an object is says nothing of its keys", `{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":{}}`, shadow.Benign, nil},
		{"gold in a string", `{"a":1}`, `{"a":1}`, `"{\"a\":1}"`, shadow.Benign, nil},
		{"null is no gold", `{"a":1}`, `{"a":1}`, `null`, shadow.Benign, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := judge(t, c, tt.stable, tt.canary, tt.gold)
			if diff := cmp.Diff(tt.reasons, v.Reasons); diff != "" || v.Grade != tt.want || v.Level != shadow.Semantics {
				t.Errorf("%s by %s, want %s: %s", v.Grade, v.Level, tt.want, diff)
			}
		})
	}
	for _, gold := range []string{`[]`, `1`, `{`, `"x"`} {
		if _, err := c.Judge(shadow.Case{Stable: json.RawMessage(`{}`), Canary: json.RawMessage(`{}`), Gold: json.RawMessage(gold)}); err == nil {
			t.Errorf("gold %s is taken", gold)
		}
	}
}

func TestTheFirstFatalLevelEndsTheJudgement(t *testing.T) {
	c := bare(field("a", 1, shadow.Exact))
	const leak = `{"a":"13800138000"}`
	if v := judge(t, c, `{"a":1}`, leak, `{"a":1}`); v.Level != shadow.Compliance || len(v.Reasons) != 1 {
		t.Errorf("a leak and a conflict: %s, %v; want compliance alone", v.Level, v.Reasons)
	}
	c.Structure = func(any) []shadow.Fault { return []shadow.Fault{{Path: []string{"a"}, Text: "is wrong"}} }
	if v := judge(t, c, `{"a":1}`, leak, ""); v.Level != shadow.Structure || len(v.Reasons) != 1 || v.Compared() {
		t.Errorf("a broken structure and a leak: %s, %v; want structure alone", v.Level, v.Reasons)
	}
}

// TestALeakThatStableHasTooIsFatal: what stable does wrong is no licence.
func TestALeakThatStableHasTooIsFatal(t *testing.T) {
	if v := judge(t, bare(), `{"a":"13800138000"}`, `{"a":"13800138000"}`, ""); v.Grade != shadow.Fatal || v.Level != shadow.Compliance {
		t.Errorf("%s by %s, want fatal by compliance", v.Grade, v.Level)
	}
}

func TestWhatHoldsTheAnswer(t *testing.T) {
	const fine = `{"a":1}`
	for _, tt := range []struct {
		name, canary string
		want         shadow.Grade
		reason       string
	}{
		{"a value", fine, shadow.Benign, ""},
		{"a string", `"{\"a\":1}"`, shadow.Benign, ""},
		{"a completion", completion(`{"content":"{\"a\":1}"}`), shadow.Benign, ""},
		{"the only tool call of a completion", completion(`{"content":null,"tool_calls":[` + call(`{"name":"save","arguments":"{\"a\":1}"}`) + `]}`), shadow.Benign, ""},
		{"two tool calls", completion(`{"tool_calls":[` + call(`{"name":"a","arguments":"{}"}`) + "," + call(`{"name":"b","arguments":"{}"}`) + `]}`), shadow.Fatal, "no answer: the completion has neither content nor a single tool call"},
		{"a string that holds a completion", `"{\"choices\":[{\"message\":{\"content\":\"{\\\"a\\\":1}\"}}]}"`, shadow.Benign, ""},
		{"a stream in a string", quoted(chunks(delta(`{"content":"{\"a\""}`, "null"), delta(`{"content":":1}"}`, `"stop"`), "[DONE]")), shadow.Benign, ""},
		{"the only tool call of a stream", quoted(chunks(delta(`{"tool_calls":[{"index":0,"function":{"name":"save","arguments":"{\"a\":1}"}}]}`, `"tool_calls"`), "[DONE]")), shadow.Benign, ""},
		{"a stream that broke off", quoted(chunks(delta(`{"content":"{\"a\":1}"}`, "null"))), shadow.Fatal, "no answer: the call failed"},
		{"an error", `{"error":{"message":"overloaded"}}`, shadow.Fatal, "no answer: the call failed"},
		{"null", `null`, shadow.Fatal, "no answer"},
		{"nothing", ``, shadow.Fatal, "no answer"},
		{"an empty string", `""`, shadow.Fatal, "no answer"},
		{"prose", `"Hello"`, shadow.Fatal, "not JSON"},
		{"a key that stands twice", `"{\"a\":1,\"a\":2}"`, shadow.Fatal, "not JSON: a key stands twice in an object"},
		{"two values", `"{} {}"`, shadow.Fatal, "not JSON: something follows the value"},
		{"a number beyond use", `"{\"a\":1e999999999}"`, shadow.Fatal, "a number with too many digits"},
		{"a field called choices", `{"a":1,"choices":["x"]}`, shadow.Benign, ""},
		{"a field called error", `{"a":1,"error":{"code":1}}`, shadow.Benign, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := judge(t, bare(), fine, tt.canary, "")
			said := ""
			if len(v.Reasons) > 0 {
				said = v.Reasons[0].Text
			}
			if v.Grade != tt.want || said != tt.reason {
				t.Errorf("%s %q, want %s %q", v.Grade, said, tt.want, tt.reason)
			}
		})
	}
}

// quoted writes a text as a JSON string.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestAStableThatCannotBeComparedBlamesNobody(t *testing.T) {
	for _, stable := range []string{`null`, `"Hello"`, `{"error":{"message":"x"}}`} {
		v := judge(t, bare(), stable, `{"a":1}`, "")
		if v.Grade != shadow.Unjudged || v.Compared() {
			t.Errorf("stable %s: %s, want no_data", stable, v.Grade)
		}
		if v := judge(t, bare(), stable, `{"a":"13800138000"}`, ""); v.Grade != shadow.Fatal {
			t.Errorf("stable %s: a leak of the canary is %s, want fatal", stable, v.Grade)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	many := map[string]any{}
	for i := range 30 {
		many[fmt.Sprint("f", i)] = "13800138000"
	}
	raw, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	if v := judge(t, bare(), `{}`, string(raw), ""); len(v.Reasons) != 20 || v.More != 10 {
		t.Errorf("%d reasons and %d more, want 20 and 10", len(v.Reasons), v.More)
	}
}

func TestWeightsThatAreOfNoUse(t *testing.T) {
	for _, tt := range []struct {
		name    string
		weights []string
		ok      bool
	}{
		{"whole numbers", []string{"1", "1", "3"}, true},
		{"decimals", []string{"0.5", "0.25"}, true},
		{"one of them zero", []string{"0", "1"}, true},
		{"all zero", []string{"0", "0"}, false},
		{"none", nil, false},
		{"sums that cannot be held", []string{"1e-18", "1000000"}, false},
	} {
		var c shadow.Contract
		for i, w := range tt.weights {
			c.Fields = append(c.Fields, shadow.Field{Path: []string{fmt.Sprint(i)}, Weight: release.MustRatio(w)})
		}
		if err := c.Check(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":[1,2]}`, `{"a":1}`)
	f.Add(`"{\"a\":1}"`, `{"choices":[{"message":{"content":"{}"}}]}`, `null`)
	f.Add(`[]`, `{"a":"13800138000"}`, `{"a":{"b":1}}`)
	c := bare(field("a", 1, shadow.Set), field("b", 2, shadow.Number))
	f.Fuzz(func(t *testing.T, stable, canary, gold string) {
		v, err := c.Judge(shadow.Case{Stable: json.RawMessage(stable), Canary: json.RawMessage(canary), Gold: json.RawMessage(gold)})
		if err != nil {
			return
		}
		again, _ := c.Judge(shadow.Case{Stable: json.RawMessage(stable), Canary: json.RawMessage(canary), Gold: json.RawMessage(gold)})
		if diff := cmp.Diff(v, again); diff != "" {
			t.Errorf("two verdicts: %s", diff)
		}
		if v.Grade != shadow.Benign && len(v.Reasons) == 0 {
			t.Errorf("%s without a reason", v.Grade)
		}
	})
}

// What neither answer has is no likeness: it is in neither sum.
func TestWhatNeitherHasIsNotCompared(t *testing.T) {
	c := bare(field("a", 1, shadow.Exact), field("b", 9, shadow.Exact), shadow.Field{Path: []string{"x", "y"}, Weight: release.NewRatio(1, 1)})
	for _, tt := range []struct{ stable, canary, gold, want string }{
		{`{"a":1}`, `{"a":2}`, "", "fatal 0/1"},
		{`{"a":1}`, `{"a":1}`, "", "benign 1/1"},
		{`{"a":1}`, `{"a":1,"b":null}`, "", "fatal 1/10"},
		{`{"c":1}`, `{"c":2}`, "", "no_data 0/0"},
		{`[1]`, `"x y"`, "", "fatal 0/0"}, // no JSON
		{`[1]`, `[2]`, "", "no_data 0/0"},
		{`{"x":{"y":1}}`, `{"x.y":1}`, "", "benign 1/1"},
		{`{"x":{"y":1}}`, `{"x.y":2}`, "", "fatal 0/1"},
		{`{}`, `{"x.y":2}`, `{"x.y":1}`, "fatal 0/0"},
		{`{}`, `{"x.y":1}`, `{"x.y":1}`, "benign 1/1"},
	} {
		v := judge(t, c, tt.stable, tt.canary, tt.gold)
		of := v.Of
		if of.IsZero() {
			of = release.Ratio{}
		}
		if got := fmt.Sprintf("%s %s/%s", v.Grade, v.Equal, of); got != tt.want {
			t.Errorf("%s against %s: %s, want %s", tt.stable, tt.canary, got, tt.want)
		}
	}
}
