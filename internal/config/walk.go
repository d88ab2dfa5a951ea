package config

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// walk checks the tree below n against the table and keeps every value that is
// of its type under its path, such as canary.steps[0].pct.
func (d *document) walk(s *spec, path string, keyNode, n *yaml.Node) {
	d.broken[path] = true
	if d.unusable(n) {
		return
	}
	v := &value{spec: s, key: keyNode, node: n}
	switch s.kind {
	case kindMap, kindNames:
		if !d.wantKind(s, path, n, yaml.MappingNode) {
			return
		}
		if v.blank = s.blank && leftBlank(n); v.blank {
			break
		}
		d.walkMap(s, path, keyNode, n)
	case kindPairs:
		if !d.wantKind(s, path, n, yaml.MappingNode) {
			return
		}
		v.pairs = d.walkPairs(s, path, n)
	case kindList:
		if !d.wantKind(s, path, n, yaml.SequenceNode) {
			return
		}
		d.walkList(s, path, n)
	case kindFree:
		if !d.wantKind(s, path, n, yaml.MappingNode) {
			return
		}
		v.decoded = d.free(n)
	case kindPaths, kindUnit:
		if s.kind == kindPaths && n.Kind == yaml.SequenceNode {
			d.walkPaths(s, path, n)
			break
		}
		if s.kind == kindUnit && n.Kind == yaml.MappingNode {
			d.walkMap(s, path, keyNode, n)
			break
		}
		fallthrough
	default:
		if n.Kind != yaml.ScalarNode {
			d.errorAt(n, ruleWrongType, "", "%s: want %s, not %s", label(s, path), s.kind.want(), said(n))
			return
		}
		t, m := s.scalar(n)
		if m != nil {
			d.errorAt(n, m.rule, m.hint, "%s: %s", label(s, path), m.message)
			return
		}
		v.typed = t
	}
	d.values[path] = v
	delete(d.broken, path)
}

// label is how a message names a key: by its last part, or for an item by its
// list's.
func label(s *spec, path string) string {
	if s.name == "[]" {
		return label(s.parent, strings.TrimRight(path, "[]0123456789"))
	}
	if s.name == "*" {
		return path[strings.LastIndexByte(path, '.')+1:]
	}
	if s.name == "" {
		return "the file"
	}
	return s.name
}

// wantKind checks that a node is a mapping or a list.
func (d *document) wantKind(s *spec, path string, n *yaml.Node, want yaml.Kind) bool {
	if n.Kind == want {
		return true
	}
	what := "a mapping"
	if want == yaml.SequenceNode {
		what = "a list"
	}
	hint := ""
	switch {
	case n.Tag == "!!null" && n.Kind == yaml.ScalarNode:
		hint = "remove the key or give it a value"
	case s.path == "canary.max_pct":
		hint = fmt.Sprintf(`a ladder that ends early says why: max_pct: {pct: %s, because: "..."}`, Short(n.Value))
	case want == yaml.SequenceNode && n.Kind == yaml.ScalarNode:
		hint = fmt.Sprintf("write [%s]", Short(n.Value))
	case len(s.order) > 0 && want == yaml.MappingNode && s.children["*"] == nil:
		hint = "its keys are " + listing(s.order)
	}
	d.errorAt(n, ruleWrongType, hint, "%s: want %s, not %s", label(s, path), what, said(n))
	return false
}

// unusable refuses what would make a value depend on another place of the file
// or on a YAML reader's taste: aliases and tags.
func (d *document) unusable(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		d.errorAt(n, ruleYAMLAlias, "write the value out here as well", "alias *%s: aliases are not followed", Short(n.Value))
		return true
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.errorAt(n, ruleYAMLTag, "remove the tag", "tag %s: values have the type of their key", Short(n.Tag))
		return true
	}
	return false
}

// pairs yields the entries of a mapping whose keys are plain and not repeated.
func (d *document) pairs(n *yaml.Node, each func(k, v *yaml.Node)) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind == yaml.AliasNode || k.Tag == "!!merge":
			d.errorAt(k, ruleYAMLAlias, "write the keys out", "merge key: values are not merged in from elsewhere")
			continue
		case k.Kind != yaml.ScalarNode:
			d.errorAt(k, ruleWrongType, "", "a key is a word, not %s", said(k))
			continue
		case d.unusable(k):
			continue
		}
		if first := seen[k.Value]; first != nil {
			d.errorAt(k, ruleDuplicateKey, "keep one of them", "key %q stands twice in this mapping, first at line %d, column %d", Short(k.Value), first.Line, first.Column)
			continue
		}
		seen[k.Value] = k
		each(k, placed(k, v))
	}
}

// placed gives a value that is not written (`key:`) the place of its key.
func placed(k, v *yaml.Node) *yaml.Node {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!null" && v.Value == "" {
		c := *v
		c.Line, c.Column = k.Line, k.Column
		return &c
	}
	return v
}

// leftBlank reports whether a mapping is { ... }: still to be written.
func leftBlank(n *yaml.Node) bool {
	return len(n.Content) == 2 && n.Content[0].Value == "..." && n.Content[1].Tag == "!!null"
}

// entry is a key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

func (d *document) walkMap(s *spec, path string, keyNode, n *yaml.Node) {
	before := len(d.list)
	present := map[string]entry{}
	d.pairs(n, func(k, v *yaml.Node) {
		child := s.child(k.Value)
		if child == nil {
			d.unknownKey(s, path, k)
			return
		}
		present[k.Value] = entry{k, v}
		at := childPath(child, path, k.Value)
		if other := d.values[at]; other != nil {
			d.errorAt(k, ruleTwoPlaces, fmt.Sprintf("it also stands at line %d; keep one of them", other.key.Line),
				"%s stands both inside canary and beside it", k.Value)
			return
		}
		d.walk(child, at, k, v)
	})
	at := anchor(keyNode, n)
	for _, name := range s.order {
		child := s.children[name]
		if child.parent != s {
			continue
		}
		e, there := present[name]
		holds := child.when.holds(present)
		switch {
		case there && !holds:
			d.errorAt(e.key, ruleUnusedKey, "add that, or remove "+name, "%s has no effect without %s", name, child.when)
		case !there && holds && child.required && !merged(n) && !d.inScenes(child):
			d.errorAt(at, ruleMissingKey, aside(child.doc), "%s needs the key %q", label(s, path), name)
		}
	}
	if s.oneOf && (len(present) > 1 || len(present) == 0 && len(d.list) == before) {
		d.errorAt(at, ruleOneOf, "keep one of "+listing(s.order), "%s has %d of its keys, want exactly one", label(s, path), len(present))
	}
	_, url := present["url"]
	_, env := present["url_env"]
	if s.either() && url == env && !merged(n) {
		d.errorAt(at, ruleOneOf, "keep one of url or url_env", "%s needs exactly one of the keys url and url_env", label(s, path))
	}
}

// holds reports whether the mapping has what the condition asks for.
func (c *condition) holds(present map[string]entry) bool {
	if c == nil {
		return true
	}
	e, there := present[c.key]
	return there && (c.word == "" || e.value.Value == c.word)
}

// walkPairs returns a mapping of names to strings.
func (d *document) walkPairs(s *spec, path string, n *yaml.Node) map[string]string {
	out := map[string]string{}
	seen := map[string]bool{} // in lower case: names of headers have none
	d.pairs(n, func(k, v *yaml.Node) {
		switch {
		case !s.names.re.MatchString(k.Value):
			d.errorAt(k, ruleWrongType, s.names.hint, "%s: want %s", label(s, path), s.names.want)
			return
		case s.names == headerName && seen[strings.ToLower(k.Value)]:
			d.errorAt(k, ruleDuplicateKey, "keep one of them", "header %q stands twice: names of headers have no case", Short(k.Value))
			return
		case d.unusable(v):
			return
		case v.Kind != yaml.ScalarNode:
			d.errorAt(v, ruleWrongType, "", "%s: want a string, not %s", label(s, path), said(v))
			return
		}
		seen[strings.ToLower(k.Value)] = true
		t, m := s.scalar(v)
		if m != nil {
			d.errorAt(v, m.rule, m.hint, "%s: %s", label(s, path), m.message)
			return
		}
		out[k.Value] = t.text
	})
	return out
}

// aside turns a sentence of the table into a hint.
func aside(doc string) string {
	return strings.ToLower(doc[:1]) + strings.TrimSuffix(doc[1:], ".")
}

// merged reports whether a mapping has a merge key: what else it lacks is not
// known then.
func merged(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			return true
		}
	}
	return false
}

// child returns the form of a key of this mapping, or nil.
func (s *spec) child(name string) *spec {
	if s.kind == kindNames && s.names != nil {
		if s.names.re.MatchString(name) {
			return s.children["*"]
		}
		return nil
	}
	if s.kind == kindNames {
		for _, w := range s.words {
			if w == name {
				return s.children["*"]
			}
		}
		return nil
	}
	if name == "*" || name == "[]" {
		return nil
	}
	return s.children[name]
}

// childPath is where a key's value is kept. A key that may stand at the top
// level is kept where it stands in canary.
func childPath(child *spec, path, name string) string {
	if path == "" {
		return child.path
	}
	return path + "." + name
}

// anchor is the node to point at when something is missing in a mapping: its
// key, or where it begins.
func anchor(k, n *yaml.Node) *yaml.Node {
	if k != nil {
		return k
	}
	return n
}

func (d *document) walkList(s *spec, path string, n *yaml.Node) {
	if len(n.Content) < s.minItems {
		d.errorAt(n, ruleOutOfRange, aside(s.doc), "%s is empty", label(s, path))
	}
	seen := map[string]bool{}
	for i, item := range n.Content {
		d.walk(s.children["[]"], path+"["+strconv.Itoa(i)+"]", nil, item)
		if s.unique && item.Kind == yaml.ScalarNode {
			if seen[item.Value] {
				d.errorAt(item, ruleDuplicateItem, "keep one of them", "%s has %q twice", label(s, path), Short(item.Value))
			}
			seen[item.Value] = true
		}
	}
}

func (d *document) walkPaths(s *spec, path string, n *yaml.Node) {
	if len(n.Content) == 0 {
		d.errorAt(n, ruleOutOfRange, aside(s.doc), "%s is empty", label(s, path))
	}
	for i, item := range n.Content {
		if d.unusable(item) {
			continue
		}
		if item.Kind != yaml.ScalarNode {
			d.errorAt(item, ruleWrongType, "", "%s: want a path, not %s", label(s, path), said(item))
			continue
		}
		t, m := textOf(item)
		if m != nil {
			d.errorAt(item, m.rule, m.hint, "%s: %s", label(s, path), m.message)
			continue
		}
		d.values[path+"["+strconv.Itoa(i)+"]"] = &value{spec: s, node: item, typed: t}
	}
}

// free decodes a mapping of any form; only what no mapping may hold is refused.
// Numbers stay as written, as Number.
func (d *document) free(n *yaml.Node) any {
	if d.unusable(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		d.pairs(n, func(k, v *yaml.Node) { out[k.Value] = d.free(v) })
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, d.free(item))
		}
		return out
	}
	return d.freeScalar(n)
}

func (d *document) freeScalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
	case "!!int", "!!float":
		if isSpecial(n.Value) {
			d.errorAt(n, ruleNotFinite, "", "%s is not a finite number", n.Value)
			return nil
		}
		return Number(n.Value)
	}
	return n.Value
}

// unknownKey says where an unknown key might belong: under a name that is
// close, or elsewhere in the file.
func (d *document) unknownKey(s *spec, path string, k *yaml.Node) {
	names := s.order
	if s.kind == kindNames {
		names = s.words
	}
	hint := ""
	if s.kind == kindNames && s.names != nil {
		d.errorAt(k, ruleUnknownKey, s.names.hint, "%s: want %s", label(s, path), s.names.want)
		return
	}
	if near := diag.Nearest(k.Value, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if homes := homesOf(k.Value, path); len(homes) > 0 {
		hint = "it belongs under " + listing(homes)
	} else if len(names) > 0 {
		hint = "its keys are " + listing(names)
	}
	d.errorAt(k, ruleUnknownKey, hint, "unknown key %q in %s", Short(k.Value), label(s, path))
}

// known reports whether the table has a key of a name.
func known(name string) bool { return knownNames()[name] }

var knownNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, k := range keys() {
		if parent, last := splitPath(k.path); isHome(parent, "") {
			names[last] = true
		}
	}
	return names
})

// isHome reports whether a mapping of the table is named as the place of a key,
// to whoever wrote it at a path.
func isHome(parent, path string) bool {
	return parent != "" && !strings.Contains(parent, "limits") && (!strings.HasPrefix(parent, scenesPath) || strings.HasPrefix(path, scenesPath))
}

// maxHomes is how many places a hint names at most.
const maxHomes = 2

// homesOf returns the mappings that have a key of a name, as paths: those below
// or around a path where there are any, none where they are many.
func homesOf(name, path string) []string {
	var all, near []string
	top, _, _ := strings.Cut(index.ReplaceAllString(path, ""), ".")
	for i := range keys() {
		parent, last := splitPath(keys()[i].path)
		if last != name || !isHome(parent, path) {
			continue
		}
		home := strings.NewReplacer("[]", "", ".*", "").Replace(parent)
		all = append(all, home)
		if home == top || strings.HasPrefix(home, top+".") {
			near = append(near, home)
		}
	}
	if len(near) > 0 {
		all = near
	}
	if path != "" && len(all) > maxHomes {
		return nil
	}
	return all
}
