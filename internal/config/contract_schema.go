package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/jsonschema"
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
	if loop := findLoop(schema); loop != nil {
		d.errorAt(locate(e, pointer(loop.Location)), ruleBadSchema, "let it refer to a schema that stands further in, as under properties or items", "schema: it refers to itself without an end, so that no answer can hold it")
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

// findLoop returns a schema that is held against a value only after itself was,
// or nil. Validation of such a value has no end.
func findLoop(root *jsonschema.Schema) *jsonschema.Schema {
	const open, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	var visit func(s *jsonschema.Schema) *jsonschema.Schema
	visit = func(s *jsonschema.Schema) *jsonschema.Schema {
		if s == nil || state[s] == done {
			return nil
		}
		if state[s] == open {
			return s
		}
		state[s] = open
		for _, next := range samePlace(s) {
			if loop := visit(next); loop != nil {
				return loop
			}
		}
		state[s] = done
		return nil
	}
	seen, queue := map[*jsonschema.Schema]bool{root: true}, []*jsonschema.Schema{root}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if loop := visit(s); loop != nil {
			return loop
		}
		for _, next := range append(samePlace(s), furtherIn(s)...) {
			if next != nil && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// samePlace lists the schemas that are held against the very value that s is.
func samePlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		out = append(out, s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		out = appendSchemas(out, s.Dependencies[name])
	}
	return out
}

// furtherIn lists the schemas that are held against what lies in the value.
func furtherIn(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems}, s.PrefixItems)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, s.Properties[name])
	}
	patterns := map[string]*jsonschema.Schema{}
	for re, of := range s.PatternProperties {
		patterns[re.String()] = of
	}
	for _, re := range slices.Sorted(maps.Keys(patterns)) {
		out = append(out, patterns[re])
	}
	for _, of := range [...]any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		out = appendSchemas(out, of)
	}
	return out
}

// appendSchemas adds what stands where a schema, a list of them or something
// else may.
func appendSchemas(out []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return append(out, v)
	case []*jsonschema.Schema:
		return append(out, v...)
	}
	return out
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

// schemaFormats are the formats that are checked.
var schemaFormats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period", "regex",
	"relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid",
}

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
		case k.Value == "format" && v.Kind == yaml.ScalarNode && !slices.Contains(schemaFormats, v.Value):
			d.warnAt(v, ruleUnknownKeyword, nearHint(v.Value, schemaFormats, "those that are checked are "+listing(schemaFormats)), "format %q is not known: it checks nothing", Short(v.Value))
		case !slices.Contains(schemaKeywords, k.Value) && !strings.HasPrefix(k.Value, "x-"):
			d.warnAt(k, ruleUnknownKeyword, nearHint(k.Value, schemaKeywords, "a note may begin with x-"), "%q is no keyword of JSON Schema: it checks nothing", Short(k.Value))
		}
	}
}

// nearHint asks whether a name that is nearly the one that stands there is
// meant, and gives another hint where there is none.
func nearHint(name string, known []string, other string) string {
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return other
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
		if at := findWord(e.value, "$ref", func(to string) bool { return to == "#"+fragment }); at != nil {
			d.errorAt(at, ruleBadSchema, "put it under $defs, or mend the name", "$ref: there is no %s in this schema", Short(at.Value))
			return
		}
	}
	if bad, ok := errors.AsType[*jsonschema.AnchorNotFoundError](err); ok {
		_, fragment, _ := strings.Cut(bad.Reference, "#")
		if at := findWord(e.value, "$ref", func(to string) bool { return to == "#"+fragment }); at != nil {
			d.errorAt(at, ruleBadSchema, "put it under $defs, or mend the name", "$ref: there is no %s in this schema", Short(at.Value))
			return
		}
	}
	if d.schemaElsewhere(e, err) {
		return
	}
	d.errorAt(e.key, ruleBadSchema, "it is JSON Schema, draft 2020-12; what it refers to stands in it under $defs", "schema: %s", Short(withoutURL(err.Error())))
}

// schemaElsewhere says of a schema that something is looked for in another
// file, if that is what is wrong with it.
func (d *document) schemaElsewhere(e entry, err error) bool {
	missing := ""
	if bad, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		missing = withoutURL(bad.URL)
	} else if bad, ok := errors.AsType[*jsonschema.UnsupportedDraftError](err); ok {
		missing = withoutURL(bad.URL)
	} else if bad, ok := errors.AsType[*jsonschema.InvalidMetaSchemaURLError](err); ok {
		missing = withoutURL(bad.URL)
	}
	if at := findWord(e.value, "$schema", func(to string) bool { return true }); at != nil && (missing == "" || strings.Contains(at.Value, missing) || strings.Contains(missing, at.Value)) {
		if !knownDraft(at.Value) {
			d.errorAt(at, ruleBadSchema, "leave it out, or write https://json-schema.org/draft/2020-12/schema", "$schema: %s is no draft that is known", Short(at.Value))
			return true
		}
	}
	if missing == "" {
		return false
	}
	at := findWord(e.value, "$ref", func(to string) bool { return !strings.HasPrefix(to, "#") && strings.HasPrefix(to, missing) })
	if at == nil {
		return false
	}
	d.errorAt(at, ruleBadSchema, "put it under $defs and refer to it with #/$defs/NAME", "$ref: %s does not stand in this file", Short(at.Value))
	return true
}

// knownDraft knows the names of the drafts, with or without a #, by http or
// https.
func knownDraft(url string) bool {
	_, name, ok := strings.Cut(strings.TrimSuffix(url, "#"), "://json-schema.org/")
	return ok && slices.Contains([]string{"draft/2020-12/schema", "draft/2019-09/schema", "draft-07/schema", "draft-06/schema", "draft-04/schema", "schema"}, name)
}

// withoutURL takes the name that the schema is compiled under out of a text.
func withoutURL(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, schemaURL, ""), strings.TrimSuffix(schemaURL, "schema.json"), "")
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

// findWord returns the first value of a keyword that is wanted, or nil.
func findWord(n *yaml.Node, keyword string, want func(string) bool) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == keyword && child.Kind == yaml.ScalarNode && want(child.Value) {
			return child
		}
		if found := findWord(child, keyword, want); found != nil {
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
