package config

import (
	_ "embed" // the contract that ships
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

//go:embed contract_order.yaml
var orderContract []byte

// ContractNames lists the contracts that ship.
func ContractNames() []string { return []string{"order"} }

// BuiltInContract returns the file of a contract that ships.
func BuiltInContract(name string) (src []byte, ok bool) {
	if name != "order" {
		return nil, false
	}
	return orderContract, true
}

// The rules that only contracts have; docs/reference/shadow.md explains them.
const (
	ruleBadSchema      = "bad-schema"
	ruleUnknownKeyword = "unknown-keyword"
	ruleBadPattern     = "bad-pattern"
	ruleUnknownField   = "unknown-field"
)

var (
	contractKeys  = []string{"contract", "about", "schema", "fields", "thresholds", "pii"}
	fieldKeys     = []string{"weight", "compare", "tolerance"}
	thresholdKeys = []string{"benign", "risk"}
	piiKeys       = []string{"kinds", "except", "patterns"}
	patternKeys   = []string{"name", "regex", "whole_digits"}
)

// ParseContract reads the YAML of a contract: its JSON Schema, weights,
// thresholds and what must not leak. name is how findings call the file. When
// the list has errors the contract is nil. The list is sorted.
func ParseContract(name string, src []byte) (*shadow.Contract, diag.List) {
	d := newDocument(name, src)
	c := d.contract()
	d.list.Sort()
	if d.list.HasErrors() {
		return nil, d.list
	}
	return c, d.list
}

func (d *document) contract() *shadow.Contract {
	c := &shadow.Contract{Kinds: shadow.BuiltInKinds()}
	c.Benign, c.Risk = shadow.DefaultThresholds()
	s := d.contractTree()
	if s == nil {
		return nil
	}
	if s.need("contract", "its name, as records and reports call it: order") {
		c.Name = s.text("contract", contractName)
	}
	s.text("about", nil)
	if s.need("schema", "the JSON Schema that every answer must hold") {
		c.Structure = d.contractSchema(s.entries["schema"])
	}
	if s.need("fields", "the fields that are compared with stable's, each with its weight") {
		c.Fields = d.contractFields(s)
	}
	d.contractThresholds(s, c)
	d.contractPII(s, c)
	return c
}

// contractTree returns the keys of the file, or says why there are none.
func (d *document) contractTree() *section {
	switch {
	case len(d.src) > MaxSource:
		d.add(diag.Finding{Line: 1, Col: 1, Rule: ruleYAMLDocument, Message: fmt.Sprintf("the file has more than %d bytes", MaxSource), Hint: "is this a contract?"})
		return nil
	case !d.readable():
		return nil
	case d.err != nil:
		d.syntaxError(d.err)
		return nil
	case len(d.docs) == 0 || empty(d.docs[0]):
		d.add(diag.Finding{Line: 1, Col: 1, Rule: ruleYAMLDocument, Message: "the file is empty", Hint: "canaryctl shadow compare --print-contract order writes one that is complete"})
		return nil
	case len(d.docs) > 1:
		d.errorAt(d.docs[1], ruleYAMLDocument, "put the other into a file of its own", "a second document begins before this line")
	}
	return d.section("the contract", nil, d.docs[0].Content[0], contractKeys)
}

// section is a mapping with known keys.
type section struct {
	d       *document
	name    string
	anchor  *yaml.Node
	entries map[string]entry
}

// section reads a mapping and refuses keys that it does not have; nil if the
// node is no mapping.
func (d *document) section(name string, keyNode, n *yaml.Node, keys []string) *section {
	if d.unusable(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.errorAt(n, ruleWrongType, "its keys are "+listing(keys), "%s: want a mapping, not %s", name, said(n))
		return nil
	}
	s := &section{d: d, name: name, anchor: anchor(keyNode, n), entries: map[string]entry{}}
	d.pairs(n, func(k, v *yaml.Node) {
		for _, known := range keys {
			if k.Value == known {
				s.entries[k.Value] = entry{k, v}
				return
			}
		}
		hint := "its keys are " + listing(keys)
		if near := diag.Nearest(k.Value, keys); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		d.errorAt(k, ruleUnknownKey, hint, "unknown key %q in %s", Short(k.Value), name)
	})
	return s
}

// need reports whether a key is there and says so if it is not.
func (s *section) need(key, hint string) bool {
	_, there := s.entries[key]
	if !there {
		s.d.errorAt(s.anchor, ruleMissingKey, hint, "%s needs the key %q", s.name, key)
	}
	return there
}

// read reads a scalar as the type of a row; ok is false if it is not there or
// not of the type.
func (s *section) read(name string, row key) (typed, bool) {
	e, there := s.entries[name]
	if !there {
		return typed{}, false
	}
	return s.d.scalarOf(name, e.value, row)
}

func (d *document) scalarOf(name string, n *yaml.Node, row key) (typed, bool) {
	if d.unusable(n) {
		return typed{}, false
	}
	if n.Kind != yaml.ScalarNode {
		d.errorAt(n, ruleWrongType, "", "%s: want %s, not %s", name, row.kind.want(), said(n))
		return typed{}, false
	}
	t, m := row.scalar(n)
	if m != nil {
		d.errorAt(n, m.rule, m.hint, "%s: %s", name, m.message)
		return typed{}, false
	}
	return t, true
}

func (s *section) text(name string, form *textForm) string {
	t, _ := s.read(name, key{kind: kindText, form: form})
	return t.text
}

// items returns the nodes of a list, with whether it is there.
func (s *section) items(name string) ([]*yaml.Node, bool) {
	e, there := s.entries[name]
	if !there || s.d.unusable(e.value) {
		return nil, false
	}
	if e.value.Kind != yaml.SequenceNode {
		s.d.errorAt(e.value, ruleWrongType, "", "%s: want a list, not %s", name, said(e.value))
		return nil, false
	}
	return e.value.Content, true
}

var (
	contractName = &textForm{pattern.New(`^[A-Za-z0-9_.-]{1,64}$`), "letters, digits, points, hyphens and underscores, at most 64", "such as order"}
	kindName     = &textForm{pattern.New(`^[a-z][a-z0-9_]{0,31}$`), "small letters, digits and underscores, at most 32", "such as email"}
	fieldPath    = &textForm{pattern.New(`^[^.\s\[\]]+(?:\.[^.\s\[\]]+)*$`), "the name of a field, of one further in with points", "such as customer.name; of a list the whole list is compared: name that"}
	piiPath      = &textForm{pattern.New(`^[^.\s\[\]]+(?:\[\])*(?:\.[^.\s\[\]]+(?:\[\])*)*$`), "a field", "such as order_id, or items[].note for a field of every item"}
)

// contractFields reads the weights, in the order of the file.
func (d *document) contractFields(s *section) (fields []shadow.Field) {
	e := s.entries["fields"]
	if d.unusable(e.value) {
		return nil
	}
	if e.value.Kind != yaml.MappingNode {
		d.errorAt(e.value, ruleWrongType, "name each field with its weight: status: 3", "fields: want a mapping, not %s", said(e.value))
		return nil
	}
	before := len(d.list)
	d.pairs(e.value, func(k, v *yaml.Node) {
		if !fieldPath.re.MatchString(k.Value) {
			d.errorAt(k, ruleWrongType, fieldPath.hint, "fields: want %s", fieldPath.want)
			return
		}
		fields = append(fields, d.contractField(k, v))
	})
	if len(d.list) > before {
		return fields
	}
	if err := (&shadow.Contract{Fields: fields}).Check(); err != nil {
		d.errorAt(e.key, ruleOutOfRange, "a weight is a number such as 1 or 0.5", "fields: %s", err)
	}
	d.warnOfStrangers(s)
	return fields
}

// contractField reads a weight, or the mapping with more.
func (d *document) contractField(k, v *yaml.Node) shadow.Field {
	f := shadow.Field{Path: strings.Split(k.Value, ".")}
	weight := key{kind: kindDecimal, min: "0", max: "1e6"}
	if v.Kind == yaml.ScalarNode {
		t, _ := d.scalarOf(Short(k.Value), v, weight)
		f.Weight = t.number
		return f
	}
	s := d.section(Short(k.Value), k, v, fieldKeys)
	if s == nil {
		return f
	}
	if s.need("weight", "how much the field counts, such as 1") {
		t, _ := s.read("weight", weight)
		f.Weight = t.number
	}
	if t, ok := s.read("compare", key{kind: kindEnum, words: shadow.AsNames()}); ok {
		f.As, _ = shadow.ParseAs(t.text)
	}
	t, ok := s.read("tolerance", key{kind: kindDecimal, min: "0", max: "1e15"})
	if f.Tolerance = t.number; ok && f.As != shadow.Number {
		d.errorAt(s.entries["tolerance"].key, ruleUnusedKey, "add that, or remove tolerance", "tolerance has no effect without compare: number")
	}
	return f
}

// warnOfStrangers says which fields the schema does not name: they may be missing
// on both sides, and then they say nothing.
func (d *document) warnOfStrangers(s *section) {
	schema, there := s.entries["schema"]
	if !there {
		return
	}
	properties := memberOf(schema.value, "properties")
	if properties == nil || properties.Kind != yaml.MappingNode {
		return
	}
	names := namesOf(properties)
	d.pairs(s.entries["fields"].value, func(k, _ *yaml.Node) {
		first, _, _ := strings.Cut(k.Value, ".")
		for _, name := range names {
			if name == first || name == k.Value {
				return
			}
		}
		hint := "name it in the schema, so that it is known to be there"
		if near := diag.Nearest(first, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		d.warnAt(k, ruleUnknownField, hint, "field %q is no property of the schema: where neither answer has it, it is not compared", Short(k.Value))
	})
}

// memberOf returns the value of a key of a mapping, or nil.
func memberOf(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func namesOf(n *yaml.Node) (names []string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		names = append(names, n.Content[i].Value)
	}
	return names
}

func (d *document) contractThresholds(s *section, c *shadow.Contract) {
	e, there := s.entries["thresholds"]
	if !there {
		return
	}
	in := d.section("thresholds", e.key, e.value, thresholdKeys)
	if in == nil {
		return
	}
	row := key{kind: kindDecimal, min: "0", max: "1"}
	if t, ok := in.read("benign", row); ok {
		c.Benign = t.number
	}
	if t, ok := in.read("risk", row); ok {
		c.Risk = t.number
	}
	if c.Risk.Rat().Cmp(c.Benign.Rat()) > 0 {
		d.errorAt(e.key, ruleOutOfRange, "what is benign is no risk: benign is the higher one", "thresholds: risk %s is above benign %s", c.Risk, c.Benign)
	}
}

func (d *document) contractPII(s *section, c *shadow.Contract) {
	e, there := s.entries["pii"]
	if !there {
		return
	}
	in := d.section("pii", e.key, e.value, piiKeys)
	if in == nil {
		return
	}
	if nodes, ok := in.items("kinds"); ok {
		c.Kinds = d.builtInKinds(nodes)
	}
	if nodes, ok := in.items("except"); ok {
		for _, n := range nodes {
			if t, ok := d.scalarOf("except", n, key{kind: kindText, form: piiPath}); ok {
				c.Except = append(c.Except, t.text)
			}
		}
	}
	nodes, _ := in.items("patterns")
	for _, n := range nodes {
		if kind, ok := d.pattern(n, c.Kinds); ok {
			c.Kinds = append(c.Kinds, kind)
		}
	}
}

// builtInKinds picks kinds by name.
func (d *document) builtInKinds(nodes []*yaml.Node) (kinds []shadow.Kind) {
	known := shadow.BuiltInKinds()
	var names []string
	for i := range known {
		names = append(names, known[i].Name)
	}
	for _, n := range nodes {
		t, ok := d.scalarOf("kinds", n, key{kind: kindEnum, words: names})
		if ok && named(kinds, t.text) {
			d.errorAt(n, ruleDuplicateItem, "keep one of them", "kinds has %q twice", t.text)
		}
		for i := range known {
			if ok && known[i].Name == t.text {
				kinds = append(kinds, known[i])
			}
		}
	}
	return kinds
}

func named(kinds []shadow.Kind, name string) bool {
	for i := range kinds {
		if kinds[i].Name == name {
			return true
		}
	}
	return false
}

// pattern reads a kind of the user's own.
func (d *document) pattern(n *yaml.Node, before []shadow.Kind) (kind shadow.Kind, ok bool) {
	s := d.section("a pattern", nil, n, patternKeys)
	if s == nil {
		return kind, false
	}
	if s.need("name", "what reasons call it, such as email") {
		kind.Name = s.text("name", kindName)
	}
	if kind.Name != "" && named(before, kind.Name) {
		d.errorAt(s.entries["name"].value, ruleDuplicateItem, "every kind has a name of its own", "patterns: there is a kind %q before", kind.Name)
	}
	whole, _ := s.read("whole_digits", key{kind: kindBool})
	kind.Whole = whole.flag
	if !s.need("regex", "what it looks like, in RE2 syntax") {
		return kind, false
	}
	text := s.text("regex", nil)
	if text == "" {
		return kind, false
	}
	re, err := regexp.Compile(text)
	if err != nil {
		d.errorAt(s.entries["regex"].value, ruleBadPattern, "RE2 has neither look-ahead nor look-behind; whole_digits: true refuses digits on both sides", "regex: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return kind, false
	}
	if re.MatchString("") {
		d.errorAt(s.entries["regex"].value, ruleBadPattern, "it would find nothing everywhere", "regex: it matches the empty text")
		return kind, false
	}
	kind.Find = re
	return kind, kind.Name != ""
}
