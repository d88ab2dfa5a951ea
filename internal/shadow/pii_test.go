package shadow_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

// bare is a contract without a schema: whatever is JSON holds.
func bare(fields ...shadow.Field) *shadow.Contract {
	if fields == nil {
		fields = []shadow.Field{{Path: []string{"a"}, Weight: release.NewRatio(1, 1)}}
	}
	c := &shadow.Contract{Name: "bare", Structure: func(any) []shadow.Fault { return nil }, Fields: fields, Kinds: shadow.BuiltInKinds()}
	c.Benign, c.Risk = shadow.DefaultThresholds()
	return c
}

// leaksOf returns the reasons of compliance for an answer.
func leaksOf(t interface{ Fatal(...any) }, c *shadow.Contract, canary any) (out []string) {
	raw, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Judge(shadow.Case{Stable: json.RawMessage(`{}`), Canary: raw})
	if err != nil {
		t.Fatal(err)
	}
	if v.Level != shadow.Compliance {
		return nil
	}
	if v.Grade != shadow.Fatal {
		t.Fatal("a leak that is not fatal")
	}
	for _, r := range v.Reasons {
		out = append(out, r.String())
	}
	return out
}

// Published: identity numbers of 18 and 15 digits and mobile numbers of 11,
// not inside longer runs of digits.
func TestPersonalDataInText(t *testing.T) {
	const mobile, id15, id18 = "mobile", "id_15", "id_18"
	for _, tt := range []struct {
		text string
		want string // "" for none
	}{
		{"13800138000", mobile}, {"call 13800138000 now", mobile}, {"a13800138000b", mobile}, {"+8613800138000", ""},
		{"+86 13800138000", mobile}, {"19912345678", mobile}, {"12912345678", ""}, {"1380013800", ""}, {"138001380000", ""},
		{"23800138000", ""}, {"138-0013-8000", ""}, {"张三13800138000", mobile}, {"１３８００１３８０００", mobile}, {"1３800138000", mobile},
		{"110105491231002", id15}, {"1101054912310021", ""}, {"11010549123100", ""}, {"号110105491231002。", id15},
		{"11010519491231002X", id18}, {"11010519491231002x", id18}, {"110105194912310028", id18}, {"1101051949123100281", ""},
		{"11010519491231002", ""}, {"11010519491231002X1", ""}, {"111010519491231002X", id18}, {"1111010519491231002X", ""}, {"１１０１０５１９４９１２３１００２Ｘ", id18},
		{"X110105194912310028X", id18}, {"110105491231002X", id15}, {"13800138000X", mobile},
		{"", ""}, {"SKU-123456", ""}, {"6222021234567890123", ""},
	} {
		got := leaksOf(t, bare(), map[string]any{"a": tt.text})
		var want []string
		if tt.want != "" {
			want = []string{"a holds personal data (" + tt.want + ")"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

func TestPersonalDataIsNamedByField(t *testing.T) {
	number := json.Number("13800138000")
	for _, tt := range []struct {
		name   string
		answer any
		want   []string
	}{
		{"a field", map[string]any{"customer_name": "Li 13800138000"}, []string{"customer_name holds personal data (mobile)"}},
		{"an item's field", map[string]any{"items": []any{1, map[string]any{"name": "13800138000"}}}, []string{"items[1].name holds personal data (mobile)"}},
		{"a number", map[string]any{"a": number}, []string{"a holds personal data (mobile)"}},
		{"a number in another form", map[string]any{"a": json.Number("1.3800138e10")}, []string{"a holds personal data (mobile)"}},
		{"the digits behind a point are none", map[string]any{"a": json.Number("0.13800138000")}, nil},
		{"a negative number", map[string]any{"a": json.Number("-13800138000")}, []string{"a holds personal data (mobile)"}},
		{"a key", map[string]any{"13800138000": "x"}, []string{"<key> holds personal data (mobile)"}},
		{"below such a key", map[string]any{"n13800138000": []any{"110105194912310028"}}, []string{"<key> holds personal data (mobile)", "<key>[0] holds personal data (id_18)"}},
		{"the answer itself", "13800138000 ", []string{"holds personal data (mobile)"}},
		{"two kinds in one field", map[string]any{"a": "13800138000, 110105491231002"}, []string{"a holds personal data (id_15)", "a holds personal data (mobile)"}},
		{"two fields in the order of their names", map[string]any{"b": "13800138000", "a": "13800138000"}, []string{"a holds personal data (mobile)", "b holds personal data (mobile)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "the answer itself" { // a string holds JSON, so it stands in a list of its own
				tt.answer, tt.want = []any{tt.answer}, []string{"[0] holds personal data (mobile)"}
			}
			if diff := cmp.Diff(tt.want, leaksOf(t, bare(), tt.answer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMoreKindsAndExceptions(t *testing.T) {
	c := bare()
	c.Kinds = []shadow.Kind{{Name: "card", Find: regexp.MustCompile(`\d{16}`), Whole: true}, {Name: "email", Find: regexp.MustCompile(`[a-z]+@[a-z]+\.[a-z]+`)}}
	c.Except = []string{"order_id", "items[].ref"}
	for _, tt := range []struct {
		answer string
		want   []string
	}{
		{`{"a":"6222021234567890"}`, []string{"a holds personal data (card)"}},
		{`{"a":"62220212345678901"}`, nil},
		{`{"a":"62220212345678901 6222021234567890"}`, []string{"a holds personal data (card)"}},
		{`{"a":"x6222021234567890y"}`, []string{"a holds personal data (card)"}},
		{`{"a":"٦6222021234567890"}`, nil}, // a digit of another script is one
		{`{"a":"mail li@example.org"}`, []string{"a holds personal data (email)"}},
		{`{"order_id":"6222021234567890"}`, nil},
		{`{"items":[{"ref":"6222021234567890"},{"ref":{"deep":"6222021234567890"}}]}`, nil},
		{`{"items":[{"note":"6222021234567890"}]}`, []string{"items[0].note holds personal data (card)"}},
		{`{"ref":"6222021234567890"}`, []string{"ref holds personal data (card)"}},
		{`{"a":"13800138000"}`, nil}, // the built-in kinds are not among these
	} {
		if diff := cmp.Diff(tt.want, leaksOf(t, c, json.RawMessage(tt.answer))); diff != "" {
			t.Errorf("%s: %s", tt.answer, diff)
		}
	}
}

// TestRunsOfDigits holds the search against its definition, written with the
// look-around that RE2 has not.
func TestRunsOfDigits(t *testing.T) {
	starts := map[string]*regexp.Regexp{
		"mobile": regexp.MustCompile(`^1[3-9][0-9]{9}(?:[^0-9]|$)`),
		"id_15":  regexp.MustCompile(`^[0-9]{15}(?:[^0-9]|$)`),
		"id_18":  regexp.MustCompile(`^[0-9]{17}[0-9Xx](?:[^0-9]|$)`),
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ax 1-9]{0,3}(1[3-9])?[0-9]{9,18}[Xx]?){1,3}[ax 0-9]{0,3}`).Draw(t, "text")
		want := map[string]bool{}
		for i := range text {
			for name, re := range starts {
				if (i == 0 || text[i-1] < '0' || text[i-1] > '9') && re.MatchString(text[i:]) {
					want[name] = true
				}
			}
		}
		got := map[string]bool{}
		for _, reason := range leaksOf(t, bare(), map[string]any{"a": text}) {
			got[strings.TrimSuffix(strings.TrimPrefix(reason, "a holds personal data ("), ")")] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	})
}

// TestPersonalDataIsNeverQuoted plants a number anywhere in an answer and looks
// for it in everything that a verdict says.
func TestPersonalDataIsNeverQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom([]string{"13800138000", "110105491231002", "11010519491231002X"}).Draw(t, "secret")
		template := rapid.SampledFrom([]string{
			`{"a":"%s"}`, `{"%s":1}`, `{"a":{"%s":{"b":2}}}`, `[["%s"]]`, `{"a":"x","b":["%s"]}`, `"%s`, `{"a":%s`, `{"a":"%s","a":1}`, `not json %s`,
		}).Draw(t, "template")
		text := fmt.Sprintf(template, secret)
		for _, c := range []shadow.Case{
			{Stable: json.RawMessage(text), Canary: json.RawMessage(text)},
			{Stable: json.RawMessage(text), Canary: json.RawMessage(`{"a":1}`)},
			{Stable: json.RawMessage(`{}`), Canary: json.RawMessage(text)},
			{Stable: json.RawMessage(`{}`), Canary: json.RawMessage(`{}`), Gold: json.RawMessage(text)},
		} {
			v, err := bare().Judge(c)
			if said := fmt.Sprint(v, err); strings.Contains(said, secret) || strings.Contains(said, secret[:11]) {
				t.Fatalf("%s: the verdict says %s", text, said)
			}
		}
	})
}

// A reason shows no key that may be somebody: an address, or a run of digits of
// whatever kind.
func TestKeysThatMayBeSomebodyAreMasked(t *testing.T) {
	for key, want := range map[string]string{
		"li@example.com": "<key>", "acct 12345": "<key>", "１２３４５": "<key>", "a\u202eb": "<key>", "sku_1234": "sku_1234", "名前": "名前",
	} {
		c := &shadow.Contract{Structure: func(any) []shadow.Fault { return []shadow.Fault{{Path: []string{key}, Text: "is not allowed"}} }}
		v := judge(t, c, `{}`, `{"a":1}`, "")
		if len(v.Reasons) != 1 || v.Reasons[0].Field != want {
			t.Errorf("%q: %v, want %s", key, v.Reasons, want)
		}
	}
}

// Excepted fields are excepted in the JSON of other choices too, and nowhere
// else.
func TestTextsBesideTheAnswer(t *testing.T) {
	c := bare(field("a", 1, shadow.Exact))
	c.Kinds, c.Except = shadow.BuiltInKinds(), []string{"order"}
	for name, tt := range map[string]struct {
		beside string
		want   string
	}{
		"an excepted field of a second choice": {`{"index":1,"message":{"content":"{\"order\":\"123456789012345678\"}"}}`, ""},
		"another field of a second choice":     {`{"index":1,"message":{"content":"{\"note\":\"123456789012345678\"}"}}`, "choices[1].message.content.note"},
		"the same text as prose":               {`{"index":1,"message":{"content":"order 123456789012345678"}}`, "choices[1].message.content"},
		"digits of an id":                      {`{"index":1,"message":{"content":"ok","tool_calls":[{"id":"13800138000"}]}}`, ""},
		"what tokens cost":                     {`{"index":1,"logprobs":{"content":[{"token":"13800138000"}]}}`, ""},
		"a key that is a number, masked":       {`{"index":1,"message":{"13800138000":"13800138001"}}`, "choices[1].message.<key>"},
		"arguments of a second choice's call":  {`{"index":1,"message":{"tool_calls":[{"function":{"arguments":"{\"to\":13800138000}"}}]}}`, "choices[1].message.tool_calls[0].function.arguments.to"},
		"a refusal":                            {`{"index":1,"message":{"refusal":"not 13800138000"}}`, "choices[1].message.refusal"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(t, c, `{"a":1}`, `{"choices":[{"message":{"content":"{\"a\":1}"}},`+tt.beside+`]}`, "")
			got := ""
			for _, r := range v.Reasons {
				got += r.Field
			}
			if got != tt.want || (v.Grade == shadow.Fatal) != (tt.want != "") {
				t.Errorf("%s at %q, want %q", v.Grade, got, tt.want)
			}
		})
	}
}
