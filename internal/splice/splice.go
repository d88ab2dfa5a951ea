// Package splice changes one value in a YAML or JSON file and no other byte:
// comments, quoting, indentation and line ends stay as they were.
//
//	out, err := splice.Set(src, []string{"canary", "metrics", "fast_layer", "p99_baseline_ms"}, "412")
//
// The result is parsed again and compared with the source before it is
// returned, so that what cannot be changed safely is an error, never a broken
// file. Set adds no structure: a missing key is inserted only into a mapping
// that is there. Put adds the mappings on the way as well.
//
// [Get] and [SetAll] find values by names, [Selector], in one document of a
// file with several, and add nothing:
//
//	at, err := splice.ParseSelector("spec.rules[0].backendRefs[name=canary].weight")
//	doc, err := splice.ParseDocument("kind=HTTPRoute,metadata.name=llm")
//	out, err := splice.SetAll(src, doc, []splice.Edit{{At: at, Value: "5"}})
package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// The reasons why a value cannot be set; match them with [errors.Is].
var (
	// ErrSyntax says that the source is not one YAML or JSON document.
	ErrSyntax = errors.New("not one YAML or JSON document")
	// ErrNotFound says that a mapping or an item on the way is not there.
	ErrNotFound = errors.New("not found")
	// ErrNotScalar says that the path leads to a mapping or a list.
	ErrNotScalar = errors.New("not a single value")
	// ErrAlias says that the value is shared with another place by an anchor.
	ErrAlias = errors.New("shared by an anchor")
	// ErrMultiLine says that the value stands on more than one line.
	ErrMultiLine = errors.New("stands on more than one line")
	// ErrDuplicate says that a key on the way stands twice in its mapping.
	ErrDuplicate = errors.New("key stands twice")
	// ErrUnsafe says that no way of writing the value left the rest as it was.
	ErrUnsafe = errors.New("cannot be written without changing more")
)

// Error is every error of this package: where, and one of the reasons.
type Error struct {
	Path   []string // keys, or one selector
	Line   int      // of the source, 0 when unknown
	Reason error
	Detail string // more about the reason, or ""
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(strings.Join(e.Path, "."))
	if e.Line > 0 {
		fmt.Fprintf(&b, " (line %d)", e.Line)
	}
	fmt.Fprintf(&b, ": %v", e.Reason)
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// Set returns src with the scalar at path set to value and every other byte as
// it was. The parts of the path are keys of mappings, and positions from 0 in
// lists. The value keeps the old value's quotes. Without any it is written
// plain, unless that would not read back as itself or would make a string a
// number; then in double quotes. When only the last key is missing, one entry is added to its mapping in the
// mapping's style. An error is an [Error].
func Set(src []byte, path []string, value string) ([]byte, error) {
	return change(src, path, value, false)
}

// Put is [Set] for a path whose mappings may be missing: it adds them, each
// with its one entry, in the style of the place, a block in a block and one
// line in a flow mapping. Items of lists are not added. A key without a value
// counts as a mapping that is missing.
func Put(src []byte, path []string, value string) ([]byte, error) {
	return change(src, path, value, true)
}

func change(src []byte, path []string, value string, deep bool) ([]byte, error) {
	if len(path) == 0 {
		return nil, &Error{Reason: ErrNotFound}
	}
	s, err := newSource(src)
	if err != nil {
		return nil, &Error{Path: path, Reason: ErrSyntax, Detail: err.Error()}
	}
	at, line, reason := s.find(path)
	if reason == nil && !deep && len(at.rest) > 0 && (at.node != nil || len(at.rest) > 1) {
		line, reason = at.line(), ErrNotFound
	}
	if reason != nil {
		return nil, &Error{Path: path, Reason: reason, Line: line}
	}
	edits, reason := s.edits(at, value)
	if reason != nil {
		return nil, &Error{Path: path, Reason: reason, Line: at.line()}
	}
	for _, e := range edits {
		out := slices.Concat(src[:e.from], []byte(e.text), src[e.to:])
		if s.onlyChange(out, path, value) {
			return out, nil
		}
	}
	return nil, &Error{Path: path, Reason: ErrUnsafe, Line: at.line()}
}

// edit replaces src[from:to].
type edit struct {
	from, to int
	text     string
}

// source is a file with the places of its nodes.
type source struct {
	src    []byte
	doc    *yaml.Node
	starts []int // byte offsets of the lines as YAML counts them
	json   bool
	shared map[*yaml.Node]bool // nodes that an alias stands for
}

func newSource(src []byte) (*source, error) {
	if !utf8.Valid(src) {
		return nil, errors.New("not UTF-8")
	}
	doc, err := parse(src)
	if err != nil {
		return nil, err
	}
	s := &source{src: src, doc: doc, json: json.Valid(src), shared: map[*yaml.Node]bool{}}
	s.index()
	s.findShared(doc)
	return s, nil
}

// parse reads exactly one document. The YAML package panics on some broken
// inputs.
func parse(src []byte) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("yaml: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var first, second yaml.Node
	if err := dec.Decode(&first); err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("more than one document")
		}
		return nil, err
	}
	if len(first.Content) == 0 {
		return nil, errors.New("empty")
	}
	return first.Content[0], nil
}

// index notes where lines start: after LF, CRLF, CR and Unicode's own breaks.
func (s *source) index() {
	i := len(s.src) - len(bytes.TrimPrefix(s.src, []byte("\xef\xbb\xbf")))
	s.starts = []int{i}
	for i < len(s.src) {
		r, n := utf8.DecodeRune(s.src[i:])
		i += n
		switch r {
		case '\r':
			if i < len(s.src) && s.src[i] == '\n' {
				i++
			}
		case '\n', 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		s.starts = append(s.starts, i)
	}
}

// offset returns the byte offset of a place, and whether the source has it.
func (s *source) offset(line, col int) (int, bool) {
	if line < 1 || line > len(s.starts) {
		return 0, false
	}
	at := s.starts[line-1]
	for range col - 1 {
		if at >= len(s.src) {
			return 0, false
		}
		_, n := utf8.DecodeRune(s.src[at:])
		at += n
	}
	return at, true
}

func (s *source) findShared(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		s.shared[n.Alias] = true
		return
	}
	for _, c := range n.Content {
		s.findShared(c)
	}
}

// place is where a path leads.
type place struct {
	parent *yaml.Node // the mapping or list of node, or the mapping that lacks rest
	node   *yaml.Node // nil: missing
	rest   []string   // keys that are missing: below node, which has no value, or below parent
}

// line is where the place is in the source.
func (p *place) line() int {
	if p.node == nil {
		return p.parent.Line
	}
	return p.node.Line
}

// find follows the path as far as it goes. With an error comes its line.
func (s *source) find(path []string) (at place, line int, reason error) {
	n := s.doc
	var parent *yaml.Node
	for i, part := range path {
		if n.Kind == yaml.AliasNode || s.shared[n] {
			return place{}, n.Line, ErrAlias
		}
		if parent != nil && isNull(n) {
			return place{parent, n, path[i:]}, 0, nil
		}
		next, reason := child(n, part)
		if reason != nil {
			return place{}, n.Line, reason
		}
		if next == nil {
			if n.Kind != yaml.MappingNode {
				return place{}, n.Line, ErrNotFound
			}
			return place{n, nil, path[i:]}, 0, nil
		}
		parent, n = n, next
	}
	switch {
	case n.Kind == yaml.AliasNode || s.shared[n]:
		return place{}, n.Line, ErrAlias
	case n.Kind != yaml.ScalarNode:
		return place{}, n.Line, ErrNotScalar
	}
	return place{parent: parent, node: n}, 0, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// child returns an entry of a mapping or an item of a list, or nil.
func child(n *yaml.Node, part string) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.MappingNode:
		var found *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value == part {
				if found != nil {
					return nil, ErrDuplicate
				}
				found = n.Content[i+1]
			}
		}
		return found, nil
	case yaml.SequenceNode:
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i >= len(n.Content) || strconv.Itoa(i) != part {
			return nil, nil
		}
		return n.Content[i], nil
	}
	return nil, nil
}
