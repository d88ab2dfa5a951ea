package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"gopkg.in/yaml.v3"
)

// Schema returns the JSON Schema (draft 2020-12) of a canary.yaml, read off the
// table of keys. It says what the structure may be; what keys mean together is
// the parser's to judge.
func Schema() []byte {
	doc := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "canary.yaml"},
		{"description", "How far a new version of a service may go, on what evidence, and what takes it back."},
	}
	doc = append(doc, root().schema()...)
	doc = append(doc, member{"not", eitherPlace()}, member{"allOf", []any{stepsSchema()}})
	raw, err := json.Marshal(doc)
	if err != nil {
		panic("config: schema: " + err.Error())
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		panic("config: schema: " + err.Error())
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// eitherPlace matches files in which a key stands both inside canary and
// beside it.
func eitherPlace() object {
	var both []any
	for i := range keys() {
		if k := &keys()[i]; k.anywhere {
			_, name := splitPath(k.path)
			both = append(both, object{
				{"required", []string{"canary", name}},
				{"properties", object{{"canary", object{{"type", "object"}, {"required", []string{name}}}}}},
			})
		}
	}
	return object{{"anyOf", both}}
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schema returns the members of a key's schema.
func (s *spec) schema() object {
	var o object
	if s.doc != "" {
		o = append(o, member{"description", s.doc})
	}
	switch s.kind {
	case kindMap, kindUnit:
		o = append(o, s.mapSchema()...)
	case kindNames:
		names := object{{"enum", s.words}}
		if s.names != nil {
			names = object{{"pattern", s.names.re.String()}}
		}
		o = append(o, member{"type", "object"}, member{"propertyNames", names},
			member{"additionalProperties", s.children["*"].schema()})
	case kindList:
		o = append(o, member{"type", "array"}, member{"items", s.children["[]"].schema()})
		if s.minItems > 0 {
			o = append(o, member{"minItems", s.minItems})
		}
		if s.unique {
			o = append(o, member{"uniqueItems", true})
		}
	default:
		o = append(o, s.scalarSchema()...)
	}
	if s.def != "" {
		o = append(o, member{"default", s.defaultJSON()})
	}
	return o
}

func (s *spec) mapSchema() object {
	var properties, rules object
	var required []string
	var conditions []any
	for _, name := range s.order {
		child := s.children[name]
		properties = append(properties, member{name, child.schema()})
		switch {
		case child.parent != s:
		case child.when != nil:
			conditions = append(conditions, child.conditionSchema())
		case child.required && child.path != "canary.steps":
			required = append(required, name)
		}
	}
	if required != nil {
		rules = append(rules, member{"required", required})
	}
	if s.either() {
		rules = append(rules, member{"oneOf", []any{requires("url"), requires("url_env")}})
	}
	if conditions != nil {
		rules = append(rules, member{"allOf", conditions})
	}
	rules = append(rules, s.ownSchema()...)
	if s.blank {
		properties = append(properties, member{"...", object{{"type", "null"}, {"description", "Still to be written."}}})
		rules = object{{"if", requires("...")}, {"then", object{{"maxProperties", 1}}}, {"else", rules}}
	}
	o := object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if s.kind == kindUnit { // a mapping, or one of the words
		o = object{{"anyOf", []any{object{{"type", "object"}}, object{{"enum", s.words}}}}, {"properties", properties}, {"additionalProperties", false}}
	}
	o = append(o, rules...)
	if s.oneOf {
		o = append(o, member{"minProperties", 1}, member{"maxProperties", 1})
	}
	return o
}

func requires(names ...string) object { return object{{"required", names}} }

// conditionSchema says that a key stands only beside another, and must where
// it is required.
func (s *spec) conditionSchema() object {
	beside := requires(s.when.key)
	if s.when.word != "" {
		beside = append(beside, member{"properties", object{{s.when.key, object{{"const", s.when.word}}}}})
	}
	o := object{{"if", beside}}
	if s.required {
		o = append(o, member{"then", requires(s.name)})
	}
	return append(o, member{"else", object{{"not", requires(s.name)}}})
}

// ownSchema is what a mapping demands that the table does not say.
func (s *spec) ownSchema() object {
	switch s.path {
	case "canary.steps[]", scenesPath + ".*.steps[]":
		return object{{"anyOf", []any{ // a time gate, the default, needs its time
			requires("min_hold_min"),
			object{{"required", []string{"gate"}}, {"properties", object{{"gate", object{{"not", object{{"contains", object{{"const", "time"}}}}}}}}}},
		}}}
	case promPath: // a preset, or queries of one's own with a total
		return object{{"anyOf", []any{
			requires("preset"),
			object{{"required", []string{"queries"}}, {"properties", object{{"queries", object{
				{"required", []string{"canary"}},
				{"additionalProperties", requires("total")},
			}}}}},
		}}}
	}
	return nil
}

func (s *spec) scalarSchema() object {
	switch s.kind {
	case kindEnum:
		return object{{"enum", s.words}}
	case kindBool:
		return object{{"type", "boolean"}}
	case kindCount:
		return append(object{{"type", "integer"}}, s.bounds()...)
	case kindDecimal, kindMinutes, kindSeconds:
		return append(object{{"type", "number"}}, s.bounds()...)
	case kindFree:
		return object{{"type", "object"}}
	case kindPairs:
		return object{{"type", "object"}, {"propertyNames", object{{"pattern", s.names.re.String()}}}, {"additionalProperties", s.textSchema()}}
	case kindPaths:
		path := textSchema()
		return object{{"oneOf", []any{path, object{{"type", "array"}, {"items", path}, {"minItems", 1}}}}}
	case kindClock:
		return object{{"type", "string"}, {"pattern", "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"}}
	case kindZone:
		return object{{"type", "string"}, {"minLength", 1}}
	}
	return s.textSchema()
}

// textSchema is a text in the form of its key.
func (s *spec) textSchema() object {
	if s.form == nil {
		return textSchema()
	}
	pattern := s.form.re.String()
	if !s.form.re.MatchString("0") { // nor any other number
		return object{{"type", "string"}, {"pattern", pattern}}
	}
	return append(textSchema(), member{"allOf", []any{object{{"pattern", pattern}}}})
}

// textSchema is a text as written: YAML reads 88001 as a number.
func textSchema() object {
	return object{{"type", []string{"string", "number"}}, {"pattern", `\S`}}
}

func (s *spec) bounds() object {
	var o object
	if low, exclusive := strings.CutPrefix(s.min, ">"); exclusive {
		o = append(o, member{"exclusiveMinimum", json.Number(low)})
	} else if low != "" {
		o = append(o, member{"minimum", json.Number(low)})
	}
	if high, exclusive := strings.CutPrefix(s.max, "<"); exclusive {
		o = append(o, member{"exclusiveMaximum", json.Number(high)})
	} else if high != "" {
		o = append(o, member{"maximum", json.Number(decimal(bound(high)))})
	} else if s.kind == kindMinutes {
		o = append(o, member{"maximum", maxMinutes})
	}
	return o
}

// defaultJSON is the default as JSON has it.
func (s *spec) defaultJSON() any {
	switch s.kind {
	case kindBool:
		return s.def == "true"
	case kindCount, kindDecimal, kindMinutes, kindSeconds:
		return json.Number(decimal(bound(s.def)))
	case kindText, kindEnum, kindZone, kindUnit:
		return s.def
	}
	var v any
	if err := yaml.Unmarshal([]byte(s.def), &v); err != nil {
		panic("config: default of " + s.path)
	}
	return v
}
