package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
)

// maxSource bounds a scenario file: a person writes it.
const maxSource = 1 << 20

// reader walks the nodes of a scenario file and gathers what there is to say
// about them.
type reader struct {
	name  string
	src   []byte // without byte order mark
	lines []string
	list  diag.List
}

func newReader(name string, src []byte) *reader {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	return &reader{name: name, src: src, lines: strings.Split(string(src), "\n")}
}

// root returns the file's mapping, or nil if it has none.
func (r *reader) root() *yaml.Node {
	if len(r.src) > maxSource {
		r.addAt(1, 1, "yaml-document", "is this a scenario?", fmt.Sprintf("the file has %d bytes, more than %d", len(r.src), maxSource))
		return nil
	}
	if r.unreadable() {
		return nil
	}
	docs, err := config.Documents(r.src)
	if err != nil { // unreadable would have said where
		r.addAt(1, 1, "yaml-syntax", "", "not YAML: "+err.Error())
		return nil
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || docs[0].Content[0].Tag == "!!null" {
		r.addAt(1, 1, "yaml-document", "", "the file is empty")
		return nil
	}
	if len(docs) > 1 {
		n := docs[1]
		if len(n.Content) > 0 {
			n = n.Content[0]
		}
		r.addAt(n.Line, n.Column, "yaml-document", "a file holds one scenario; put the other into a file of its own", "a second document begins before this line")
	}
	n := docs[0].Content[0]
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle != 0 {
		r.at(n, "wrong-type", "write it in block style, one key a line: scenario, about, plan, feed, expect", "a scenario is a mapping of keys in block style")
		return nil
	}
	return n
}

// unreadable looks for what is no text or no YAML with the eyes of package
// config, whose findings about that fit any YAML file.
func (r *reader) unreadable() bool {
	_, list := config.Parse(r.name, r.src)
	for _, f := range list {
		if f.Rule == "yaml-encoding" || f.Rule == "yaml-syntax" {
			r.list.Add(f)
		}
	}
	return len(r.list) > 0
}

// addAt notes an error at a place, moved inside the source.
func (r *reader) addAt(line, col int, rule, hint, message string) {
	line = min(max(line, 1), len(r.lines))
	width := utf8.RuneCountInString(strings.TrimSuffix(r.lines[line-1], "\r"))
	col = min(max(col, 1), width+1)
	r.list.Add(diag.Finding{File: r.name, Line: line, Col: col, EndCol: col + 1, Rule: rule, Message: message, Hint: hint})
}

// at notes an error at a node.
func (r *reader) at(n *yaml.Node, rule, hint, format string, args ...any) {
	r.addAt(n.Line, n.Column, rule, hint, fmt.Sprintf(format, args...))
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		f := &r.list[len(r.list)-1]
		quotes := 0
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			quotes = 2
		}
		width := utf8.RuneCountInString(strings.TrimSuffix(r.lines[f.Line-1], "\r"))
		f.EndCol = max(min(f.Col+utf8.RuneCountInString(n.Value)+quotes, width+1), f.Col+1)
	}
}

// plain refuses what makes a value depend on another place of the file.
func (r *reader) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.at(n, "yaml-alias", "write the value out here as well", "alias *%s: aliases are not followed", n.Value)
	case n.Style&yaml.TaggedStyle != 0:
		r.at(n, "yaml-tag", "remove the tag", "tag %s: values have the type of their key", n.Tag)
	default:
		return true
	}
	return false
}

// section is a mapping whose keys are known, being read.
type section struct {
	r     *reader
	label string
	node  *yaml.Node            // where to point when something is missing
	vals  map[string]*yaml.Node // values by key
	keys  map[string]*yaml.Node
	bad   bool // something about it has been refused
}

// section reads a mapping and refuses unknown and repeated keys. at is where
// to point when something is missing; nil means the mapping itself.
func (r *reader) section(n, at *yaml.Node, label string, known ...string) *section {
	s := &section{r: r, label: label, node: at, vals: map[string]*yaml.Node{}, keys: map[string]*yaml.Node{}}
	if s.node == nil {
		s.node = n
	}
	if !r.plain(n) {
		s.bad = true
		return s
	}
	if n.Kind != yaml.MappingNode {
		s.bad = true
		r.at(n, "wrong-type", "its keys are "+listing(known), "%s: want a mapping, not %s", label, said(n))
		return s
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		s.take(n.Content[i], n.Content[i+1], known)
	}
	return s
}

func (s *section) take(k, v *yaml.Node, known []string) {
	refuse := func(rule, hint, format string, args ...any) {
		s.bad = true
		s.r.at(k, rule, hint, format, args...)
	}
	switch {
	case k.Kind == yaml.AliasNode || k.Tag == "!!merge":
		refuse("yaml-alias", "write the keys out", "merge key: values are not merged in from elsewhere")
	case k.Kind != yaml.ScalarNode:
		refuse("wrong-type", "", "a key is a word, not %s", said(k))
	case !s.r.plain(k):
		s.bad = true
	case s.keys[k.Value] != nil:
		first := s.keys[k.Value]
		refuse("duplicate-key", "keep one of them", "key %q stands twice in this mapping, first at line %d, column %d", k.Value, first.Line, first.Column)
	case !slices.Contains(known, k.Value):
		hint := "its keys are " + listing(known)
		if near := diag.Nearest(k.Value, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		refuse("unknown-key", hint, "unknown key %q in %s", config.Short(k.Value), s.label)
	default:
		s.keys[k.Value] = k
		if v.Kind == yaml.ScalarNode && v.Tag == "!!null" && v.Value == "" {
			c := *v // `key:` without a value has the place of its key
			c.Line, c.Column = k.Line, k.Column
			v = &c
		}
		s.vals[k.Value] = v
	}
}

// has reports whether the key is there.
func (s *section) has(key string) bool { return s.vals[key] != nil }

// refuse notes an error at a key's value, or at the section.
func (s *section) refuse(key, rule, hint, format string, args ...any) {
	n := s.vals[key]
	if n == nil {
		n = s.node
	}
	s.bad = true
	s.r.at(n, rule, hint, format, args...)
}

// need refuses a section without the key.
func (s *section) need(key, hint string) bool {
	if s.has(key) {
		return true
	}
	if !s.bad {
		s.r.at(s.node, "missing-key", hint, "%s needs the key %q", s.label, key)
	}
	s.bad = true
	return false
}

// one returns which one of the keys is there; none or several are refused.
func (s *section) one(hint string, keys ...string) string {
	var there []string
	for _, k := range keys {
		if s.has(k) {
			there = append(there, k)
		}
	}
	if len(there) == 1 {
		return there[0]
	}
	if !s.bad {
		s.r.at(s.node, "one-of", hint, "%s has %d of the keys %s, want exactly one", s.label, len(there), listing(keys))
	}
	s.bad = true
	return ""
}

var decimal = pattern.New(`^(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// ratio reads a decimal number between bounds.
func (s *section) ratio(key string, low, high float64) (release.Ratio, bool) {
	n := s.vals[key]
	if n == nil || !s.scalar(key, n, "a number") {
		return release.Ratio{}, false
	}
	if n.Tag == "!!float" && strings.ContainsAny(strings.ToLower(n.Value), "ni") && !decimal.MatchString(n.Value) {
		s.refuse(key, "not-finite", "", "%s: %s is not a finite number", key, config.Short(n.Value))
		return release.Ratio{}, false
	}
	if strings.HasPrefix(n.Value, "-") && (n.Tag == "!!int" || n.Tag == "!!float") {
		s.refuse(key, "out-of-range", "", "%s: %s is negative", key, config.Short(n.Value))
		return release.Ratio{}, false
	}
	if n.Tag != "!!int" && n.Tag != "!!float" || !decimal.MatchString(n.Value) {
		s.refuse(key, "wrong-type", "write it in decimal digits, such as 0.02 or 600", "%s: want a number, not %s", key, said(n))
		return release.Ratio{}, false
	}
	r, err := release.ParseRatio(n.Value)
	if err != nil {
		s.refuse(key, "out-of-range", "", "%s: %v", key, err)
		return release.Ratio{}, false
	}
	if f := r.Float64(); f < low || f > high {
		s.refuse(key, "out-of-range", "", "%s: %s is not between %g and %g", key, n.Value, low, high)
		return release.Ratio{}, false
	}
	return r, true
}

// number is ratio as a float.
func (s *section) number(key string, low, high float64) (float64, bool) {
	r, ok := s.ratio(key, low, high)
	return r.Float64(), ok
}

// count reads a whole number.
func (s *section) count(key string, low, high int64) (int64, bool) {
	r, ok := s.ratio(key, float64(low), float64(high))
	if !ok {
		return 0, false
	}
	if r.Den != 1 {
		s.refuse(key, "wrong-type", "", "%s: want a whole number, not %s", key, s.vals[key].Value)
		return 0, false
	}
	return r.Num, true
}

// text reads a string that is not empty.
func (s *section) text(key string) (string, bool) {
	n := s.vals[key]
	if n == nil || !s.scalar(key, n, "a text") {
		return "", false
	}
	if n.Tag != "!!str" && n.Tag != "!!timestamp" || strings.TrimSpace(n.Value) == "" {
		s.refuse(key, "wrong-type", "", "%s: want a text, not %s", key, said(n))
		return "", false
	}
	return n.Value, true
}

// word reads one of a few words.
func (s *section) word(key string, words ...string) (string, bool) {
	n := s.vals[key]
	if n == nil || !s.scalar(key, n, "a word") {
		return "", false
	}
	if !slices.Contains(words, n.Value) {
		hint := "it is one of " + listing(words)
		if near := diag.Nearest(n.Value, words); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		s.refuse(key, "unknown-word", hint, "%s: %s is not known", key, said(n))
		return "", false
	}
	return n.Value, true
}

// flag reads true or false.
func (s *section) flag(key string) (value, ok bool) {
	n := s.vals[key]
	if n == nil || !s.scalar(key, n, "true or false") {
		return false, false
	}
	if n.Value != "true" && n.Value != "false" || n.Tag != "!!bool" {
		s.refuse(key, "wrong-type", "", "%s: want true or false, not %s", key, said(n))
		return false, false
	}
	return n.Value == "true", true
}

func (s *section) scalar(key string, n *yaml.Node, want string) bool {
	if !s.r.plain(n) {
		s.bad = true
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		s.refuse(key, "wrong-type", "", "%s: want %s, not %s", key, want, said(n))
		return false
	}
	return true
}

// items returns the items of a list.
func (s *section) items(key string) []*yaml.Node {
	n := s.vals[key]
	if n == nil {
		return nil
	}
	if !s.r.plain(n) {
		s.bad = true
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		s.refuse(key, "wrong-type", "", "%s: want a list, not %s", key, said(n))
		return nil
	}
	return n.Content
}

// said words a node for a message.
func said(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", config.Short(n.Value))
}

func listing(words []string) string { return strings.Join(words, ", ") }
