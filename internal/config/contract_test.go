package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

func orderContract(t testing.TB) *shadow.Contract {
	t.Helper()
	src, ok := config.BuiltInContract("order")
	if !ok {
		t.Fatal("the order contract does not ship")
	}
	c, list := config.ParseContract("order.yaml", src)
	if c == nil || len(list) > 0 {
		t.Fatal(list)
	}
	return c
}

// The four published samples: benign; status wrong, 8/11 = 0.727, a risk; a
// mobile number in the name and a wrong amount, fatal by personal data; a
// missing field, fatal by structure.
func TestThePublishedSamples(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "..", "testdata", "samples", "order-pairs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	c := orderContract(t)
	var got []string
	for line := range bytes.Lines(src) {
		var p struct {
			Stable, Canary, Gold json.RawMessage
		}
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		v, err := c.Judge(shadow.Case{Stable: p.Stable, Canary: p.Canary, Gold: p.Gold})
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(v.Grade, " ", v.Level, " ", v.Reasons)
		if v.Compared() {
			said += fmt.Sprintf(" %s/%s = %.3f", v.Equal, v.Of, v.Similarity())
		}
		got = append(got, said)
	}
	want := []string{
		"benign semantics [] 11/11 = 1.000",
		"risk semantics [status differs (weight 3)] 8/11 = 0.727",
		"fatal compliance [customer_name holds personal data (mobile)]",
		"fatal structure [customer_name is missing]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The published order contract: order_id at least 6 characters, customer_name
// non-empty, status, items of {product_id ^SKU-\d{6}$, quantity 1 to 999,
// unit_price_cents >= 0}, at least one, total_cents >= 0.
func TestTheOrderContract(t *testing.T) {
	const order = `{"order_id":"ORD-01","customer_name":"Li","status":"paid","items":[{"product_id":"SKU-123456","quantity":1,"unit_price_cents":0}],"total_cents":0}`
	c := orderContract(t)
	for _, tt := range []struct {
		name     string
		old, new string
		want     string // "" if the order holds
	}{
		{"as it is", "", "", ""},
		{"an order_id of 5 characters", "ORD-01", "ORD-1", "[order_id is shorter than 6 characters]"},
		{"an order_id of 6 characters that are more bytes", "ORD-01", "订单一二三四", ""},
		{"an order_id that is a number", `"ORD-01"`, `123456`, "[order_id is of type number, want string]"},
		{"an empty name", `"Li"`, `""`, "[customer_name is shorter than 1 characters]"},
		{"no status", `"status":"paid",`, ``, "[status is missing]"},
		{"a status that is null", `"paid"`, `null`, "[status is of type null, want string]"},
		{"no items", `{"product_id":"SKU-123456","quantity":1,"unit_price_cents":0}`, ``, "[items has 0 items, want at least 1]"},
		{"a product of 5 digits", "SKU-123456", "SKU-12345", `[items[0].product_id does not match ^SKU-\d{6}$]`},
		{"a product of 7 digits", "SKU-123456", "SKU-1234567", `[items[0].product_id does not match ^SKU-\d{6}$]`},
		{"a product with a line break", "SKU-123456", `SKU-123456\n`, `[items[0].product_id does not match ^SKU-\d{6}$]`},
		{"quantity 0", `"quantity":1`, `"quantity":0`, "[items[0].quantity is below 1]"},
		{"quantity 999", `"quantity":1`, `"quantity":999`, ""},
		{"quantity 1000", `"quantity":1`, `"quantity":1000`, "[items[0].quantity is above 999]"},
		{"quantity 1.5", `"quantity":1`, `"quantity":1.5`, "[items[0].quantity is of type number, want integer]"},
		{"a negative price", `"unit_price_cents":0`, `"unit_price_cents":-1`, "[items[0].unit_price_cents is below 0]"},
		{"an item without a price", `,"unit_price_cents":0`, ``, "[items[0].unit_price_cents is missing]"},
		{"a negative total", `"total_cents":0`, `"total_cents":-1`, "[total_cents is below 0]"},
		{"a total that is a string", `"total_cents":0`, `"total_cents":"0"`, "[total_cents is of type string, want integer]"},
		{"a key more", `{"order_id"`, `{"note":"x","order_id"`, ""},
		{"two faults in the order of the fields", `"Li","status":"paid"`, `""`, "[customer_name is shorter than 1 characters status is missing]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			canary := strings.Replace(order, tt.old, tt.new, 1)
			v, err := c.Judge(shadow.Case{Stable: json.RawMessage(order), Canary: json.RawMessage(canary)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if v.Level == shadow.Structure {
				got = fmt.Sprint(v.Reasons)
			}
			if got != tt.want {
				t.Errorf("%s %s, want %q", v.Grade, got, tt.want)
			}
		})
	}
	v, _ := c.Judge(shadow.Case{Stable: json.RawMessage(order), Canary: json.RawMessage(`[` + order + `]`)})
	if got := fmt.Sprint(v.Reasons); got != "[is of type array, want object]" {
		t.Errorf("a list of orders: %s", got)
	}
}

// small is a contract that is complete.
const small = `contract: small
schema:
  type: object
  properties:
    a: { type: string }
    b: { type: integer, minimum: 1 }
fields:
  a: 1
  b: { weight: 2.5, compare: number, tolerance: 0.5 }
thresholds: { benign: 0.9, risk: 0.5 }
pii:
  kinds: [mobile]
  except: ["a", "items[].ref"]
  patterns:
    - { name: email, regex: '[a-z]+@[a-z]+', whole_digits: true }
`

func TestParseContract(t *testing.T) {
	c, list := config.ParseContract("small.yaml", []byte(small))
	if c == nil || len(list) > 0 {
		t.Fatal(list)
	}
	got := fmt.Sprintln(c.Name, c.Benign, c.Risk, c.Except, len(c.Kinds), c.Kinds[0].Name, c.Kinds[1].Name, c.Kinds[1].Find, c.Kinds[1].Whole)
	for _, f := range c.Fields {
		got += fmt.Sprintln(f.Path, f.Weight, f.As, f.Tolerance)
	}
	want := "small 0.9 0.5 [a items[].ref] 2 mobile email [a-z]+@[a-z]+ true\n[a] 1 exact 0\n[b] 2.5 number 0.5\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatContractsAreRefusedFor(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, new string
		want     []string
	}{
		{"nothing in the file", small, "", []string{"c.yaml:1:1: the file is empty [yaml-document]"}},
		{"no YAML", small, "a: [", []string{"c.yaml:1:4: not YAML: did not find expected node content [yaml-syntax]"}},
		{"a list", small, "- a", []string{"c.yaml:1:1: the contract: want a mapping, not a list [wrong-type]"}},
		{"a second document", small, small + "---\nb: 1\n", []string{"c.yaml:16:1: a second document begins before this line [yaml-document]"}},
		{"keys that are missing", small, "about: x\n", []string{
			`c.yaml:1:1: the contract needs the key "contract" [missing-key]`, `c.yaml:1:1: the contract needs the key "fields" [missing-key]`, `c.yaml:1:1: the contract needs the key "schema" [missing-key]`}},
		{"a key that is unknown", "thresholds:", "threshold:", []string{`c.yaml:10:1: unknown key "threshold" in the contract [unknown-key]`}},
		{"a key twice", "pii:", "contract: x\npii:", []string{`c.yaml:11:1: key "contract" stands twice in this mapping, first at line 1, column 1 [duplicate-key]`}},
		{"a name with a blank", "contract: small", "contract: a b", []string{"c.yaml:1:11: contract: want letters, digits, points, hyphens and underscores, at most 64 [wrong-type]"}},
		{"a schema that is no mapping", "schema:\n  type: object\n  properties:\n    a: { type: string }\n    b: { type: integer, minimum: 1 }", "schema: x.json", []string{`c.yaml:2:9: schema: want a mapping, not the string "x.json" [wrong-type]`}},
		{"a type that there is not", "type: integer", "type: int", []string{"c.yaml:6:10: schema: type does not hold anyOf [bad-schema]"}},
		{"a bound that is a string", "minimum: 1", "minimum: one", []string{"c.yaml:6:25: schema: minimum is of type string, want number [bad-schema]"}},
		{"a pattern with look-behind", "type: string", "pattern: '(?<!x)a'", []string{"c.yaml:5:10: schema: pattern is no regex [bad-schema]"}},
		{"a reference into the network", "type: string", "$ref: 'https://example.org/a.json'", []string{"c.yaml:5:16: $ref: https://example.org/a.json does not stand in this file [bad-schema]"}},
		{"a reference to a file", "type: string", "$ref: 'file:///etc/passwd'", []string{"c.yaml:5:16: $ref: file:///etc/passwd does not stand in this file [bad-schema]"}},
		{"a reference to nothing", "type: string", "$ref: '#/$defs/x'", []string{"c.yaml:5:16: $ref: there is no #/$defs/x in this schema [bad-schema]"}},
		{"a reference to a file beside it", "type: string", "$ref: 'other.yaml#/x'", []string{"c.yaml:5:16: $ref: other.yaml#/x does not stand in this file [bad-schema]"}},
		{"a reference to an anchor that there is not", "type: string", "$ref: '#x'", []string{"c.yaml:5:16: $ref: there is no #x in this schema [bad-schema]"}},
		{"a draft that there is not", "type: string", "$schema: http://example.org/x", []string{"c.yaml:5:19: $schema: http://example.org/x is no draft that is known [bad-schema]"}},
		{"a schema that is itself", "  type: object", "  $ref: '#'", []string{"c.yaml:2:1: schema: it refers to itself without an end, so that no answer can hold it [bad-schema]"}},
		{"a schema that holds itself", "  type: object", "  allOf: [{ $ref: '#' }]", []string{"c.yaml:2:1: schema: it refers to itself without an end, so that no answer can hold it [bad-schema]"}},
		{"a circle of schemas further in", "type: string", "$ref: '#/$defs/x' }\n  $defs:\n    x: { not: { $ref: '#/$defs/y' } }\n    y: { if: { $ref: '#/$defs/x' }", []string{
			"c.yaml:7:5: schema: it refers to itself without an end, so that no answer can hold it [bad-schema]",
			`c.yaml:12:3: warning: field "b" is no property of the schema: where neither answer has it, it is not compared [unknown-field]`}},
		{"a circle through a dependent schema", "type: string", "dependentSchemas: { p: { $ref: '#/properties/a' } }", []string{"c.yaml:5:5: schema: it refers to itself without an end, so that no answer can hold it [bad-schema]"}},
		{"a tree is no circle", "type: string", "items: { $ref: '#' }, additionalProperties: { $ref: '#' }, anyOf: [{ properties: { z: { $ref: '#' } } }]", nil},
		{"a format that is misspelt", "type: string", "format: emial", []string{`c.yaml:5:18: warning: format "emial" is not known: it checks nothing [unknown-keyword]`}},
		{"an item of a list as a field", "a: 1", "'a[0].x': 1", []string{"c.yaml:8:3: fields: want the name of a field, of one further in with points [wrong-type]"}},
		{"a keyword that is misspelt", "minimum: 1", "minimun: 1", []string{`c.yaml:6:25: warning: "minimun" is no keyword of JSON Schema: it checks nothing [unknown-keyword]`}},
		{"a number in octal", "minimum: 1", "minimum: 0o17", []string{"c.yaml:6:34: 0o17 is no number of JSON [wrong-type]"}},
		{"an alias", "a: { type: string }", "a: &x { type: string }\n    c: *x", []string{"c.yaml:6:8: alias *x: aliases are not followed [yaml-alias]"}},
		{"no field", "fields:\n  a: 1\n  b: { weight: 2.5, compare: number, tolerance: 0.5 }", "fields: {}", []string{"c.yaml:7:1: fields: the weights must add up to a number above 0 that can be held exactly [out-of-range]"}},
		{"fields as a list", "fields:\n  a: 1\n  b: { weight: 2.5, compare: number, tolerance: 0.5 }", "fields: [a]", []string{"c.yaml:7:9: fields: want a mapping, not a list [wrong-type]"}},
		{"a negative weight", "a: 1", "a: -1", []string{"c.yaml:8:6: a: -1 is negative [out-of-range]"}},
		{"a weight beyond all numbers", "a: 1", "a: 1e999999999", []string{"c.yaml:8:6: a: want a number, not 1e999999999, which is too large for a number [wrong-type]"}},
		{"a weight that is a word", "a: 1", "a: high", []string{`c.yaml:8:6: a: want a number, not the string "high" [wrong-type]`}},
		{"a way to compare that there is not", "compare: number", "compare: numbr", []string{`c.yaml:9:30: compare: the string "numbr" is none of exact, set or number [unknown-word]`, "c.yaml:9:37: tolerance has no effect without compare: number [unused-key]"}},
		{"a tolerance without effect", "compare: number, ", "", []string{"c.yaml:9:21: tolerance has no effect without compare: number [unused-key]"}},
		{"a field that the schema does not name", "a: 1", "aa: 1", []string{`c.yaml:8:3: warning: field "aa" is no property of the schema: where neither answer has it, it is not compared [unknown-field]`}},
		{"thresholds the wrong way round", "benign: 0.9, risk: 0.5", "benign: 0.5, risk: 0.9", []string{"c.yaml:10:1: thresholds: risk 0.9 is above benign 0.5 [out-of-range]"}},
		{"a threshold in percent", "benign: 0.9", "benign: 90%", []string{`c.yaml:10:23: benign: want a number, not the string "90%" [wrong-unit]`}},
		{"a kind that there is not", "kinds: [mobile]", "kinds: [mobil]", []string{`c.yaml:12:11: kinds: the string "mobil" is none of id_18, id_15 or mobile [unknown-word]`}},
		{"a kind twice", "kinds: [mobile]", "kinds: [mobile, mobile]", []string{`c.yaml:12:19: kinds has "mobile" twice [duplicate-item]`}},
		{"a pattern with the name of a kind", "name: email", "name: mobile", []string{`c.yaml:15:15: patterns: there is a kind "mobile" before [duplicate-item]`}},
		{"a regex that is none", "regex: '[a-z]+@[a-z]+'", "regex: '[a-z'", []string{"c.yaml:15:29: regex: missing closing ]: `[a-z` [bad-pattern]"}},
		{"a regex that matches nothing", "regex: '[a-z]+@[a-z]+'", "regex: '[a-z]*'", []string{"c.yaml:15:29: regex: it matches the empty text [bad-pattern]"}},
		{"an exception that is no path", `"items[].ref"`, `"items[0].ref"`, []string{"c.yaml:13:17: except: want a field [wrong-type]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := strings.Replace(small, tt.old, tt.new, 1)
			if src == small {
				t.Fatal("nothing was replaced")
			}
			c, list := config.ParseContract("c.yaml", []byte(src))
			if (c == nil) != list.HasErrors() {
				t.Errorf("contract %v with errors %v", c, list)
			}
			var got []string
			for _, f := range list {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStructureNamesEveryKindOfFault goes through the keywords: each has a
// reason in words that quotes no value.
func TestStructureNamesEveryKindOfFault(t *testing.T) {
	for _, tt := range []struct{ schema, answer, want string }{
		{`{enum: [x, z]}`, `"secret"`, "is none of the values that are allowed"},
		{`{const: x}`, `"secret"`, "is not the value that it must be"},
		{`{format: email}`, `"secret"`, "is no email"},
		{`{maxLength: 2}`, `"secret"`, "is longer than 2 characters"},
		{`{maxItems: 0}`, `["secret"]`, "has 1 items, want at most 0"},
		{`{minProperties: 2}`, `{"secret":1}`, "has 1 keys, want at least 2"},
		{`{maxProperties: 0}`, `{"secret":1}`, "has 1 keys, want at most 0"},
		{`{uniqueItems: true}`, `["secret","secret"]`, "has the same item twice, at 0 and 1"},
		{`{items: false}`, `["secret"]`, "a[0] is not allowed"},
		{`{additionalProperties: false}`, `{"x":1}`, "a.x is not allowed"},
		{`{exclusiveMinimum: 1}`, `1`, "is not above 1"},
		{`{exclusiveMaximum: 1.5}`, `2`, "is not below 1.5"},
		{`{multipleOf: 0.5}`, `0.3`, "is no multiple of 0.5"},
		{`{anyOf: [{type: number}, {type: "null"}]}`, `"secret"`, "does not hold anyOf"},
		{`{oneOf: [{type: number}, {type: "null"}]}`, `"secret"`, "does not hold oneOf"},
		{`{oneOf: [{type: string}, {minLength: 1}]}`, `"secret"`, "does not hold oneOf"},
		{`{not: {type: string}}`, `"secret"`, "is what it must not be"},
		{`{allOf: [{type: number}]}`, `"secret"`, "is of type string, want number"},
		{`{contains: {type: number}}`, `["secret"]`, "does not hold contains"},
		{`{propertyNames: {maxLength: 1}}`, `{"secret":1}`, "does not hold propertyNames"},
		{`{dependentRequired: {x: [y]}}`, `{"x":1}`, "a.y is missing, which another field asks for"},
		{`{if: {type: string}, then: {maxLength: 1}}`, `"secret"`, "is longer than 1 characters"},
		{`{type: [number, "null"]}`, `"secret"`, "is of type string, want null or number"},
	} {
		src := "contract: c\nschema: {properties: {a: " + tt.schema + "}}\nfields: {a: 1}\n"
		c, list := config.ParseContract("c.yaml", []byte(src))
		if c == nil {
			t.Errorf("%s: %v", tt.schema, list)
			continue
		}
		v, err := c.Judge(shadow.Case{Stable: json.RawMessage(`{}`), Canary: json.RawMessage(`{"a":` + tt.answer + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		want := tt.want
		if !strings.HasPrefix(want, "a") {
			want = "a " + want
		}
		if got := fmt.Sprint(v.Reasons); got != "["+want+"]" || v.Level != shadow.Structure || strings.Contains(got, "secret") {
			t.Errorf("%s of %s: %s by %s, want %s", tt.schema, tt.answer, got, v.Level, want)
		}
	}
}

func FuzzParseContract(f *testing.F) {
	f.Add(small)
	src, _ := config.BuiltInContract("order")
	f.Add(string(src))
	f.Add("contract: c\nschema: {$ref: '#'}\nfields: {a: 1}\n")
	f.Add("contract: c\nschema: {allOf: [{$ref: '#/$defs/x'}], $defs: {x: {$dynamicRef: '#y'}}}\nfields: {a: 1}\n")
	f.Fuzz(func(t *testing.T, src string) {
		c, list := config.ParseContract("c.yaml", []byte(src))
		if (c == nil) != list.HasErrors() {
			t.Fatalf("contract %v with %v", c, list)
		}
		lines := strings.Count(src, "\n") + 1
		for _, finding := range list {
			if finding.Line < 1 || finding.Line > lines || finding.Col < 1 {
				t.Errorf("%s stands outside the file", finding)
			}
		}
		if c == nil {
			return
		}
		if _, err := c.Judge(shadow.Case{Stable: json.RawMessage(`{"a":1}`), Canary: json.RawMessage(`{"a":[1,"x"]}`)}); err != nil {
			t.Error(err)
		}
	})
}
