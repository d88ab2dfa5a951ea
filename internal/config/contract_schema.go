package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

// schemaURL is what a contract's schema is called while it is compiled.
const schemaURL = "https://contract.invalid/schema.json"

// contractSchema compiles the schema of a contract. Formats are asserted:
// whoever writes format: email means it.
func (d *document) contractSchema(e entry) func(any) []shadow.Fault {
	if d.unusable(e.value) {
		return nil
	}
	if e.value.Kind != yaml.MappingNode {
		d.errorAt(e.value, ruleWrongType, "write the JSON Schema as YAML, or paste it as JSON", "schema: want a mapping, not %s", said(e.value))
		return nil
	}
	before := d.list.Count(diag.Error)
	doc := d.schemaValue(e.value)
	d.checkKeywords(e.value)
	if d.list.Count(diag.Error) > before {
		return nil
	}
	schema, err := compileSchema(doc)
	if err != nil {
		d.schemaError(e, err)
		return nil
	}
	return func(answer any) []shadow.Fault {
		err := schema.Validate(answer)
		if err == nil {
			return nil
		}
		broken, ok := errors.AsType[*jsonschema.ValidationError](err)
		if !ok {
			return []shadow.Fault{{Text: "cannot be held against the schema"}}
		}
		return faults(nil, broken)
	}
}

func compileSchema(doc any) (_ *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil { // as with the YAML package: an input like any other
			err = fmt.Errorf("%v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// noLoader refuses what does not stand in the contract: neither files nor the
// network are read for it.
type noLoader struct{}

var errElsewhere = errors.New("it does not stand in this file")

// Load implements [jsonschema.URLLoader].
func (noLoader) Load(string) (any, error) { return nil, errElsewhere }

// schemaValue turns the YAML of a schema into the values of JSON.
func (d *document) schemaValue(n *yaml.Node) any {
	if d.unusable(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		d.pairs(n, func(k, v *yaml.Node) { out[k.Value] = d.schemaValue(v) })
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, d.schemaValue(item))
		}
		return out
	}
	v := d.freeScalar(n)
	number, ok := v.(Number)
	if !ok {
		return v
	}
	if decoded, err := shadow.Decode([]byte(number)); err == nil {
		if exact, ok := decoded.(json.Number); ok {
			return exact
		}
	}
	d.errorAt(n, ruleWrongType, "write digits, at most one point and no underscores or leading zeros", "%s is no number of JSON", Short(n.Value))
	return nil
}

// Where schemas stand inside schemas, by keyword.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaOnes  = []string{"items", "additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	// schemaRest are the other keywords of the drafts from 6 to 2020-12.
	schemaRest = []string{
		"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "$comment",
		"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
		"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
		"maxProperties", "minProperties", "required", "dependentRequired", "dependencies", "format",
		"contentEncoding", "contentMediaType", "title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples",
	}
	schemaKeywords = slices.Concat(schemaMaps, schemaLists, schemaOnes, schemaRest)
)

// checkKeywords warns of words that JSON Schema does not know and so ignores,
// and refuses references out of the file.
func (d *document) checkKeywords(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode { // items: [...] of older drafts
		for _, item := range n.Content {
			d.checkKeywords(item)
		}
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case slices.Contains(schemaMaps, k.Value) && v.Kind == yaml.MappingNode:
			for j := 1; j < len(v.Content); j += 2 {
				d.checkKeywords(v.Content[j])
			}
		case slices.Contains(schemaLists, k.Value) || slices.Contains(schemaOnes, k.Value):
			d.checkKeywords(v)
		case k.Value == "$ref" && v.Kind == yaml.ScalarNode && strings.Contains(v.Value, ":"):
			d.errorAt(v, ruleBadSchema, "put it under $defs and refer to it with #/$defs/NAME", "$ref: %s does not stand in this file", Short(v.Value))
		case !slices.Contains(schemaKeywords, k.Value) && !strings.HasPrefix(k.Value, "x-"):
			hint := "a note may begin with x-"
			if near := diag.Nearest(k.Value, schemaKeywords); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.warnAt(k, ruleUnknownKeyword, hint, "%q is no keyword of JSON Schema: it checks nothing", Short(k.Value))
		}
	}
}

// schemaError says where a schema is none.
func (d *document) schemaError(e entry, err error) {
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if broken, ok := errors.AsType[*jsonschema.ValidationError](bad.Err); ok {
			base := pointer(bad.URL)
			for _, f := range faults(nil, broken) {
				path := slices.Concat(base, f.Path)
				d.errorAt(locate(e, path), ruleBadSchema, schemaHint(lastOf(path, "")), "schema: %s %s", lastOf(path, "it"), f.Text)
			}
			return
		}
	}
	if bad, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		d.errorAt(locate(e, pointer(bad.URL)), ruleBadPattern, "RE2 has neither look-ahead nor look-behind", "schema: not a regular expression: %s", strings.TrimPrefix(bad.Err.Error(), "error parsing regexp: "))
		return
	}
	if bad, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		_, fragment, _ := strings.Cut(bad.URL, "#")
		if at := findRef(e.value, "#"+fragment); at != nil {
			d.errorAt(at, ruleBadSchema, "put it under $defs, or mend the name", "$ref: there is no %s in this schema", Short(at.Value))
			return
		}
	}
	d.errorAt(e.key, ruleBadSchema, "", "schema: %s", Short(strings.ReplaceAll(err.Error(), schemaURL, "")))
}

// schemaHint says what a keyword takes that is easily taken for something else.
func schemaHint(keyword string) string {
	switch keyword {
	case "type":
		return "the types are string, number, integer, boolean, array, object and null"
	case "pattern":
		return "patterns are in RE2 syntax, which has neither look-ahead nor look-behind"
	}
	return ""
}

// findRef returns the value of the first reference to a place, or nil.
func findRef(n *yaml.Node, to string) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "$ref" && child.Value == to {
			return child
		}
		if found := findRef(child, to); found != nil {
			return found
		}
	}
	return nil
}

// pointer returns the parts of the JSON pointer (RFC 6901) in a URL's fragment.
func pointer(url string) []string {
	_, fragment, _ := strings.Cut(url, "#")
	if fragment == "" {
		return nil
	}
	var parts []string
	for part := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		parts = append(parts, strings.NewReplacer("~1", "/", "~0", "~", "%24", "$").Replace(part))
	}
	return parts
}

// locate follows a path into the schema as far as it goes and returns the node
// that it ends at: the key of a value, where it has one.
func locate(e entry, path []string) *yaml.Node {
	at, n := e.key, e.value
	for _, part := range path {
		switch n.Kind {
		case yaml.MappingNode:
			found := false
			for i := 0; i+1 < len(n.Content) && !found; i += 2 {
				if found = n.Content[i].Value == part; found {
					at, n = n.Content[i], n.Content[i+1]
				}
			}
			if !found {
				return at
			}
		case yaml.SequenceNode:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n.Content) {
				return at
			}
			n = n.Content[i]
			at = n
		default:
			return at
		}
	}
	return at
}

func lastOf(path []string, none string) string {
	if len(path) == 0 {
		return none
	}
	return Short(path[len(path)-1])
}
