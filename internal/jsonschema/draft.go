// Changed from github.com/santhosh-tekuri/jsonschema v6.0.3: see README.md.

package jsonschema

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Draft represents json-schema specification.
type Draft struct {
	version       int
	url           string
	id            string   // property name used to represent id
	before        *Draft   // whose subschemas it has as well
	places        []string // locations of further subschemas
	vocabPrefix   string   // prefix used for vocabulary
	allVocabs     []string // names of supported vocabs
	defaultVocabs []string // names of default vocabs

	pathsOnce sync.Once
	paths     []SchemaPath
	metaOnce  sync.Once
	meta      *Schema
	vocabs    map[string]*Schema
}

// The drafts that are supported. What it takes to compile a schema is made for a
// draft when it is first asked for, as a program that compiles none should not
// wait for it.
var (
	Draft4 = &Draft{
		version: 4,
		url:     "http://json-schema.org/draft-04/schema",
		id:      "id",
		places: []string{
			// type agonistic
			"definitions/*", "not", "allOf/[]", "anyOf/[]", "oneOf/[]",
			// object
			"properties/*", "additionalProperties", "patternProperties/*",
			// array
			"items", "items/[]", "additionalItems", "dependencies/*",
		},
	}

	Draft6 = &Draft{
		version: 6,
		url:     "http://json-schema.org/draft-06/schema",
		id:      "$id",
		before:  Draft4,
		places:  []string{"propertyNames", "contains"},
	}

	Draft7 = &Draft{
		version: 7,
		url:     "http://json-schema.org/draft-07/schema",
		id:      "$id",
		before:  Draft6,
		places:  []string{"if", "then", "else"},
	}

	Draft2019 = &Draft{
		version:       2019,
		url:           "https://json-schema.org/draft/2019-09/schema",
		id:            "$id",
		before:        Draft7,
		places:        []string{"$defs/*", "dependentSchemas/*", "unevaluatedProperties", "unevaluatedItems", "contentSchema"},
		vocabPrefix:   "https://json-schema.org/draft/2019-09/vocab/",
		allVocabs:     []string{"core", "applicator", "validation", "meta-data", "format", "content"},
		defaultVocabs: []string{"core", "applicator", "validation"},
	}

	Draft2020 = &Draft{
		version:       2020,
		url:           "https://json-schema.org/draft/2020-12/schema",
		id:            "$id",
		before:        Draft2019,
		places:        []string{"prefixItems/[]"},
		vocabPrefix:   "https://json-schema.org/draft/2020-12/vocab/",
		allVocabs:     []string{"core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "format-assertion", "content"},
		defaultVocabs: []string{"core", "applicator", "unevaluated", "validation"},
	}

	draftLatest = Draft2020
)

// subschemas returns where subschemas stand.
func (d *Draft) subschemas() []SchemaPath {
	d.pathsOnce.Do(func() {
		if d.before != nil {
			d.paths = append(d.paths, d.before.subschemas()...)
		}
		for _, place := range d.places {
			d.paths = append(d.paths, schemaPath(place))
		}
	})
	return d.paths
}

// metaschema returns the schema of the draft's schemas and those of its
// vocabularies, by name.
func (d *Draft) metaschema() (*Schema, map[string]*Schema) {
	d.metaOnce.Do(func() {
		c := NewCompiler()
		c.AssertFormat()
		d.meta = mustCompile(c, d.url)
		d.vocabs = map[string]*Schema{}
		for _, name := range d.allVocabs {
			d.vocabs[name] = mustCompile(c, strings.TrimSuffix(d.url, "schema")+"meta/"+name)
		}
	})
	return d.meta, d.vocabs
}

// mustCompile compiles a schema that is embedded.
func mustCompile(c *Compiler, url string) *Schema {
	s, err := c.Compile(url)
	if err != nil {
		panic(fmt.Sprintf("jsonschema: %s: %v", url, err))
	}
	return s
}

func draftFromURL(url string) *Draft {
	u, frag := split(url)
	if frag != "" {
		return nil
	}
	u, ok := strings.CutPrefix(u, "http://")
	if !ok {
		u, _ = strings.CutPrefix(u, "https://")
	}
	switch u {
	case "json-schema.org/schema":
		return draftLatest
	case "json-schema.org/draft/2020-12/schema":
		return Draft2020
	case "json-schema.org/draft/2019-09/schema":
		return Draft2019
	case "json-schema.org/draft-07/schema":
		return Draft7
	case "json-schema.org/draft-06/schema":
		return Draft6
	case "json-schema.org/draft-04/schema":
		return Draft4
	default:
		return nil
	}
}

func (d *Draft) getID(obj map[string]any) string {
	if d.version < 2019 {
		if _, ok := obj["$ref"]; ok {
			// All other properties in a "$ref" object MUST be ignored
			return ""
		}
	}

	id, ok := strVal(obj, d.id)
	if !ok {
		return ""
	}
	id, _ = split(id) // ignore fragment
	return id
}

func (d *Draft) getVocabs(url url, doc any) ([]string, error) {
	if d.version < 2019 {
		return nil, nil
	}
	obj, ok := doc.(map[string]any)
	if !ok {
		return nil, nil
	}
	v, ok := obj["$vocabulary"]
	if !ok {
		return nil, nil
	}
	obj, ok = v.(map[string]any)
	if !ok {
		return nil, nil
	}

	var vocabs []string
	for vocab, reqd := range obj {
		if reqd, ok := reqd.(bool); !ok || !reqd {
			continue
		}
		name, ok := strings.CutPrefix(vocab, d.vocabPrefix)
		if !ok || !slices.Contains(d.allVocabs, name) {
			return nil, &UnsupportedVocabularyError{url.String(), vocab}
		}
		vocabs = append(vocabs, name)
	}
	if !slices.Contains(vocabs, "core") {
		vocabs = append(vocabs, "core")
	}
	return vocabs, nil
}

// --

type dialect struct {
	draft  *Draft
	vocabs []string // nil means use draft.defaultVocabs
}

func (d *dialect) hasVocab(name string) bool {
	if name == "core" || d.draft.version < 2019 {
		return true
	}
	if d.vocabs != nil {
		return slices.Contains(d.vocabs, name)
	}
	return slices.Contains(d.draft.defaultVocabs, name)
}

func (d *dialect) getSchema() *Schema {
	meta, all := d.draft.metaschema()
	if d.vocabs == nil {
		return meta
	}
	var allOf []*Schema
	for _, vocab := range d.vocabs {
		if sch := all[vocab]; sch != nil {
			allOf = append(allOf, sch)
		}
	}
	if !slices.Contains(d.vocabs, "core") {
		sch := all["core"]
		if sch == nil {
			sch = meta
		}
		allOf = append(allOf, sch)
	}
	sch := &Schema{
		Location:     "urn:mem:metaschema",
		up:           urlPtr{url("urn:mem:metaschema"), ""},
		DraftVersion: d.draft.version,
		AllOf:        allOf,
	}
	sch.resource = sch
	if sch.DraftVersion >= 2020 {
		sch.DynamicAnchor = "meta"
		sch.dynamicAnchors = map[string]*Schema{
			"meta": sch,
		}
	}
	return sch
}

// --

type ParseIDError struct {
	URL string
}

func (e *ParseIDError) Error() string {
	return fmt.Sprintf("error in parsing id at %q", e.URL)
}

// --

type ParseAnchorError struct {
	URL string
}

func (e *ParseAnchorError) Error() string {
	return fmt.Sprintf("error in parsing anchor at %q", e.URL)
}

// --

type DuplicateIDError struct {
	ID   string
	URL  string
	Ptr1 string
	Ptr2 string
}

func (e *DuplicateIDError) Error() string {
	return fmt.Sprintf("duplicate id %q in %q at %q and %q", e.ID, e.URL, e.Ptr1, e.Ptr2)
}

// --

type DuplicateAnchorError struct {
	Anchor string
	URL    string
	Ptr1   string
	Ptr2   string
}

func (e *DuplicateAnchorError) Error() string {
	return fmt.Sprintf("duplicate anchor %q in %q at %q and %q", e.Anchor, e.URL, e.Ptr1, e.Ptr2)
}
