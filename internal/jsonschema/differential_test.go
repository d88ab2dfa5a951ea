package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	upstream "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/jsonschema"
)

// at is what the schemas of these tests are called.
const at = "https://schema.invalid/schema.json"

// nowhere loads nothing.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) { return nil, fmt.Errorf("no %s", url) }

// ours compiles a schema with this package and returns what it finds in values.
func ours(schema any, formats bool) (func(any) []string, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource(at, schema); err != nil {
		return nil, err
	}
	s, err := c.Compile(at)
	if err != nil {
		return nil, err
	}
	return func(v any) (found []string) {
		if err := s.Validate(v); err != nil {
			flattenOurs(err.(*jsonschema.ValidationError), &found)
		}
		slices.Sort(found)
		return found
	}, nil
}

// theirs does the same with the library.
func theirs(schema any, formats bool) (func(any) []string, error) {
	c := upstream.NewCompiler()
	c.UseLoader(nowhere{})
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource(at, schema); err != nil {
		return nil, err
	}
	s, err := c.Compile(at)
	if err != nil {
		return nil, err
	}
	return func(v any) (found []string) {
		if err := s.Validate(v); err != nil {
			flattenTheirs(err.(*upstream.ValidationError), &found)
		}
		slices.Sort(found)
		return found
	}, nil
}

// kindOf names a fault with its figures; lists in it have no order.
func kindOf(k any) string {
	v := reflect.ValueOf(k).Elem()
	text := v.Type().Name()
	for i := range v.NumField() {
		f := v.Field(i).Interface()
		if list, ok := f.([]string); ok {
			f = slices.Sorted(slices.Values(list))
		}
		text += fmt.Sprintf(" %v", f)
	}
	return text
}

func flattenOurs(e *jsonschema.ValidationError, out *[]string) {
	*out = append(*out, fmt.Sprintf("%q %s: %s", e.InstanceLocation, e.SchemaURL, kindOf(e.ErrorKind)))
	for _, cause := range e.Causes {
		flattenOurs(cause, out)
	}
}

func flattenTheirs(e *upstream.ValidationError, out *[]string) {
	*out = append(*out, fmt.Sprintf("%q %s: %s", e.InstanceLocation, e.SchemaURL, kindOf(e.ErrorKind)))
	for _, cause := range e.Causes {
		flattenTheirs(cause, out)
	}
}

// compare holds a schema and values against both.
func compare(t interface{ Fatalf(string, ...any) }, schema any, formats bool, values ...any) {
	mine, errMine := ours(schema, formats)
	their, errTheirs := theirs(schema, formats)
	name := func(err error) string { return strings.TrimPrefix(fmt.Sprintf("%T", err), "*jsonschema.") }
	if name(errMine) != name(errTheirs) {
		t.Fatalf("%v: refused with %v, by the library with %v", schema, errMine, errTheirs)
	}
	if errMine != nil {
		return
	}
	for _, v := range values {
		if a, b := mine(v), their(v); !slices.Equal(a, b) {
			t.Fatalf("schema %v, value %v:\n%s\nby the library:\n%s", schema, v, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
}

// drafts are the names of the drafts that a schema may give.
var drafts = []string{
	"", "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
	"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-04/schema#",
}

// value draws a value of JSON, of few letters so that schemas often meet it.
func value(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case kind == 0:
		return nil
	case kind == 1:
		return rapid.Bool().Draw(t, "bool")
	case kind <= 3 || depth == 0:
		return json.Number(rapid.SampledFrom([]string{"0", "1", "2", "-1", "1.5", "1e2", "100", "0.1", "12345678901234567890"}).Draw(t, "number"))
	case kind <= 5:
		return rapid.SampledFrom([]string{"", "a", "b", "ab", "2026-01-05", "2026-01-05T10:00:00Z", "a@example.org", "10.0.0.1", "::1", "/a/0", "[a", "1.2.3", "PT1H", "a.b-c", "{x}", "é"}).Draw(t, "string")
	case kind <= 7:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, value(t, depth-1))
		}
		return out
	}
	out := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		out[rapid.SampledFrom([]string{"a", "b", "ab", "c"}).Draw(t, "key")] = value(t, depth-1)
	}
	return out
}

var formatNames = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period", "regex",
	"relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid", "none",
}

// schema draws a schema, now and then one that is none.
func schema(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "bare") == 0 {
		return rapid.SampledFrom([]any{true, false, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"minLength": json.Number("1")}}).Draw(t, "leaf")
	}
	out := map[string]any{}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		keyword(t, out, depth-1)
	}
	return out
}

// Keywords by what stands behind them.
var (
	ofSchema  = []string{"items", "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	ofSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	ofNamed   = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	ofNumber  = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)

func keyword(t *rapid.T, out map[string]any, depth int) {
	names := []any{"a", "b", "ab"}
	pick := func(list []string) string { return rapid.SampledFrom(list).Draw(t, "keyword") }
	switch rapid.IntRange(0, 12).Draw(t, "group") {
	case 0, 1:
		out[pick(ofSchema)] = schema(t, depth)
	case 2, 3:
		list := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "schemas") {
			list = append(list, schema(t, depth))
		}
		out[pick(ofSchemas)] = list
	case 4, 5, 6:
		named := map[string]any{}
		for range rapid.IntRange(1, 3).Draw(t, "named") {
			named[pick([]string{"a", "b", "ab", "^a"})] = schema(t, depth)
		}
		out[pick(ofNamed)] = named
	case 7:
		out[pick(ofNumber)] = rapid.SampledFrom([]any{json.Number("0"), json.Number("1"), json.Number("2"), json.Number("0.5"), json.Number("-1"), true, "1"}).Draw(t, "bound")
	case 8:
		out["type"] = rapid.SampledFrom([]any{"string", "number", "integer", "object", "array", "null", "boolean", []any{"string", "null"}, []any{"integer", "object"}, "int"}).Draw(t, "type")
	case 9:
		out["format"] = pick(formatNames)
	case 10:
		switch pick([]string{"enum", "const", "pattern", "uniqueItems"}) {
		case "enum":
			out["enum"] = []any{value(t, 1), value(t, 2)}
		case "const":
			out["const"] = value(t, 2)
		case "pattern":
			out["pattern"] = pick([]string{"^a", "b$", "[a", "(?<!a)b"})
		case "uniqueItems":
			out["uniqueItems"] = true
		}
	case 11:
		out[pick([]string{"$ref", "$ref", "$dynamicRef", "$recursiveRef"})] = pick([]string{"#", "#/$defs/a", "#/definitions/a", "#/properties/a", "#x", "other.json", "#/properties/b/items"})
	case 12:
		switch pick([]string{"required", "dependentRequired", "anchor", "recursive"}) {
		case "required":
			out["required"] = names[:rapid.IntRange(1, 3).Draw(t, "required")]
		case "dependentRequired":
			out["dependentRequired"] = map[string]any{"a": names[1:]}
		case "anchor":
			out[pick([]string{"$anchor", "$dynamicAnchor", "$id"})] = pick([]string{"x", "#x", "sub.json"})
		case "recursive":
			out["$recursiveAnchor"] = true
		}
	}
}

// TestFindsWhatTheLibraryFinds draws schemas of every draft and values.
func TestFindsWhatTheLibraryFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schema(t, 3)
		if top, ok := s.(map[string]any); ok {
			if name := rapid.SampledFrom(drafts).Draw(t, "draft"); name != "" {
				top["$schema"] = name
			}
		}
		compare(t, s, rapid.Bool().Draw(t, "formats"), value(t, 3), value(t, 3), value(t, 3))
	})
}

// TestFormatsAreThoseOfTheLibrary draws texts that are nearly of a format.
func TestFormatsAreThoseOfTheLibrary(t *testing.T) {
	good := []string{
		"2026-02-28", "2026-02-28T23:59:60Z", "2026-01-05T10:00:00.5+01:00", "23:59:59-00:30", "P1Y2M3DT4H5M6S", "P4W", "2026-01-05T10:00:00Z/P1D",
		"a.b+c@example.org", "\"a b\"@[IPv6:::1]", "a@[10.0.0.1]", "xn--a.example", "255.0.0.1", "fe80::1:2", "http://user@[::1]:80/a?b#c", "urn:a:b", "../a%20b",
		"http://example.org/{id}{?q*}", "/a~0b/c~1d/-", "2/a", "0#", "123e4567-e89b-12d3-a456-426614174000", "1.0.0-rc.1+build.5", "^(a|b)+[0-9]{1,3}$",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(rapid.SampledFrom(good).Draw(t, "good"))
		for range rapid.IntRange(0, 3).Draw(t, "slips") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			switch put := rapid.RuneFrom([]rune("0159azZ:+-./@[]{}%~ \\\"#PTWé")).Draw(t, "put"); {
			case at == len(text) || rapid.Bool().Draw(t, "in between"):
				text = slices.Insert(text, at, put)
			case rapid.Bool().Draw(t, "out"):
				text = slices.Delete(text, at, at+1)
			default:
				text[at] = put
			}
		}
		for _, name := range formatNames {
			compare(t, map[string]any{"format": name}, true, string(text), json.Number("1"))
		}
	})
}

// TestHoldsTheSchemasOfTheDrafts holds each draft's own schema against itself and
// against what is none.
func TestHoldsTheSchemasOfTheDrafts(t *testing.T) {
	files, err := filepath.Glob("metaschemas/*/schema")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("metaschemas/draft/*/schema")
	if err != nil || len(files)+len(more) != 5 {
		t.Fatalf("%d drafts, %v", len(files)+len(more), err)
	}
	for _, file := range append(files, more...) {
		meta := read(t, file)
		refer := map[string]any{"$ref": strings.TrimSuffix(meta.(map[string]any)["$schema"].(string), "#")}
		compare(t, refer, true, meta, map[string]any{"type": "int"}, map[string]any{"minLength": json.Number("-1"), "required": []any{"a", "a"}}, []any{}, true)
	}
}

func read(t *testing.T, path string) any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// TestOfficialSuite runs the JSON-Schema-Test-Suite, which stands in the folder
// that JSON_SCHEMA_TEST_SUITE names as tests/DRAFT/*.json or DRAFT/*.json.
func TestOfficialSuite(t *testing.T) {
	dir := os.Getenv("JSON_SCHEMA_TEST_SUITE")
	if dir == "" {
		t.Skip("JSON_SCHEMA_TEST_SUITE does not name the folder of the suite")
	}
	if inner := filepath.Join(dir, "tests"); exists(inner) {
		dir = inner
	}
	run := 0
	for draft, of := range map[string]*jsonschema.Draft{
		"draft4": jsonschema.Draft4, "draft6": jsonschema.Draft6, "draft7": jsonschema.Draft7,
		"draft2019-09": jsonschema.Draft2019, "draft2020-12": jsonschema.Draft2020,
	} {
		files, err := filepath.Glob(filepath.Join(dir, draft, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			run += suiteFile(t, file, of, filepath.Join(filepath.Dir(dir), "remotes"), filepath.Join(dir, "remotes"))
		}
	}
	if run < 1000 {
		t.Errorf("only %d cases ran", run)
	}
	t.Logf("%d cases", run)
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// remotes loads what the suite calls http://localhost:1234.
type remotes []string

func (r remotes) Load(url string) (any, error) {
	path, ok := strings.CutPrefix(url, "http://localhost:1234/")
	for _, dir := range r {
		if f, err := os.Open(filepath.Join(dir, filepath.FromSlash(path))); ok && err == nil {
			defer f.Close()
			return jsonschema.UnmarshalJSON(f)
		}
	}
	return nil, fmt.Errorf("no %s", url)
}

func suiteFile(t *testing.T, file string, draft *jsonschema.Draft, where ...string) (run int) {
	for _, group := range read(t, file).([]any) {
		g := group.(map[string]any)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(draft)
		c.UseLoader(remotes(where))
		if err := c.AddResource(at, g["schema"]); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile(at)
		if err != nil {
			t.Errorf("%s: %s: %v", file, g["description"], err)
			continue
		}
		for _, one := range g["tests"].([]any) {
			test := one.(map[string]any)
			if err := s.Validate(test["data"]); (err == nil) != test["valid"].(bool) {
				t.Errorf("%s: %s: %s: %v", file, g["description"], test["description"], err)
			}
			run++
		}
	}
	return run
}
