package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// More reasons, of selectors; match them with [errors.Is].
var (
	// ErrSelector says that a text is no selector.
	ErrSelector = errors.New("not a selector")
	// ErrAmbiguous says that several items or documents fit, or that a file has
	// several documents and none is named.
	ErrAmbiguous = errors.New("more than one fits")
	// ErrTemplate says that a template's placeholder stands there: what it
	// becomes is decided elsewhere.
	ErrTemplate = errors.New("a template, not a value")
)

// Get returns the text of the scalar at a selector, without quotes. An error is
// an [*Error]; null and an empty entry are [ErrNotFound].
func Get(src []byte, doc Document, at Selector) (value string, err error) {
	f, err := readFile(src)
	if err != nil {
		return "", &Error{Path: []string{at.String()}, Reason: ErrSyntax, Detail: err.Error()}
	}
	n, err := f.scalar(doc, at)
	if err != nil {
		return "", err
	}
	if isNull(n) {
		return "", &Error{Path: []string{at.String()}, Line: n.Line, Reason: ErrNotFound, Detail: "it has no value"}
	}
	return n.Value, nil
}

// file is a text with one document or several. The documents of a JSON file
// are trees of the same kind, with the places of their values in spans: the
// YAML package refuses some JSON texts, such as "\/" and surrogates.
type file struct {
	source
	docs  []*yaml.Node
	spans map[*yaml.Node]span // JSON only
}

// span is src[from:to].
type span struct{ from, to int }

var byteOrderMark = []byte("\xef\xbb\xbf")

func readFile(src []byte) (*file, error) {
	if !utf8.Valid(src) {
		return nil, errors.New("not UTF-8")
	}
	f := &file{source: source{src: src, shared: map[*yaml.Node]bool{}}}
	if json.Valid(bytes.TrimPrefix(src, byteOrderMark)) {
		f.json = true
		return f, f.readJSON()
	}
	if err := f.readYAML(); err != nil {
		if bytes.Contains(src, []byte("{{")) {
			err = fmt.Errorf("%w; it looks like a template: name the file that its values come from", err)
		}
		return nil, err
	}
	f.index()
	for _, d := range f.docs {
		f.findShared(d)
	}
	return f, nil
}

// readYAML reads all documents but the empty ones. The YAML package panics on
// some broken inputs.
func (f *file) readYAML() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(f.src))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(n.Content) > 0 && !(isNull(n.Content[0]) && n.Content[0].Value == "") {
			f.docs = append(f.docs, n.Content[0])
		}
	}
	if len(f.docs) == 0 {
		return errors.New("empty")
	}
	return nil
}

// readJSON reads the one value of a JSON text that is known to be valid.
func (f *file) readJSON() error {
	f.spans = map[*yaml.Node]span{}
	base := len(f.src) - len(bytes.TrimPrefix(f.src, byteOrderMark))
	dec := json.NewDecoder(bytes.NewReader(f.src[base:]))
	dec.UseNumber()
	r := jsonReader{file: f, dec: dec, base: base, end: base, line: 1}
	root, err := r.value()
	f.docs = []*yaml.Node{root}
	return err
}

// jsonReader walks the tokens of a JSON text and notes where they stand.
type jsonReader struct {
	*file
	dec  *json.Decoder
	base int // bytes before the text
	end  int // of the last token
	line int // in which it ended
}

// token returns the next token and the line and place where it stands.
func (r *jsonReader) token() (json.Token, int, span, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, 0, span{}, err
	}
	to := r.base + int(r.dec.InputOffset())
	gap := r.src[r.end:to]
	from := r.end + len(gap) - len(bytes.TrimLeft(gap, " \t\r\n:,"))
	r.line += bytes.Count(r.src[r.end:from], []byte("\n")) // no token goes over a line end
	r.end = to
	return t, r.line, span{from, to}, nil
}

func (r *jsonReader) value() (*yaml.Node, error) {
	t, line, at, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: line, Value: string(r.src[at.from:at.to])}
	r.spans[n] = at
	switch t := t.(type) {
	case json.Delim:
		return r.collection(n, t)
	case string:
		n.Tag, n.Value, n.Style = "!!str", t, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag = "!!int"
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag = "!!bool"
	default:
		n.Tag = "!!null"
	}
	return n, nil
}

// collection reads the rest of an object or an array. The keys of an object
// are strings, so that both read one value after the other.
func (r *jsonReader) collection(n *yaml.Node, open json.Delim) (*yaml.Node, error) {
	n.Kind, n.Value, n.Style = yaml.SequenceNode, "", yaml.FlowStyle
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for r.dec.More() {
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	_, _, _, err := r.token() // the closing bracket
	return n, err
}

// extentOf returns where a scalar stands.
func (f *file) extentOf(n *yaml.Node) (from, to int, reason error) {
	if f.json {
		at := f.spans[n]
		return at.from, at.to, nil
	}
	return f.extent(n)
}

// scalar returns the node of a selector's value.
func (f *file) scalar(doc Document, at Selector) (*yaml.Node, error) {
	n, err := f.document(doc, at)
	if err != nil {
		return nil, err
	}
	for i := range at.steps {
		var reason error
		next, detail := (*yaml.Node)(nil), ""
		if reason = f.untouchable(n); reason == nil {
			next, detail, reason = at.steps[i].follow(n)
		}
		if reason != nil {
			upTo := Selector{steps: at.steps[:i]}
			if upTo.IsZero() || detail == "" {
				return nil, &Error{Path: []string{at.String()}, Line: n.Line, Reason: reason, Detail: detail}
			}
			return nil, &Error{Path: []string{at.String()}, Line: n.Line, Reason: reason, Detail: "in " + upTo.String() + " " + detail}
		}
		n = next
	}
	if reason := f.writable(n); reason != nil {
		return nil, &Error{Path: []string{at.String()}, Line: n.Line, Reason: reason}
	}
	return n, nil
}

// untouchable returns why nothing may be changed in or below a node.
func (f *file) untouchable(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode || f.shared[n]:
		return ErrAlias
	case isTemplate(n):
		return ErrTemplate
	}
	return nil
}

// writable returns why a node is no scalar that stands for itself.
func (f *file) writable(n *yaml.Node) error {
	if reason := f.untouchable(n); reason != nil {
		return reason
	}
	if n.Kind != yaml.ScalarNode {
		return ErrNotScalar
	}
	_, _, reason := f.extentOf(n)
	return reason
}

// isTemplate reports whether a node is a placeholder: {{ .x }} reads as a flow
// mapping inside another, and "{{ .x }}" as a text.
func isTemplate(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return strings.Contains(n.Value, "{{") && !json.Valid([]byte(n.Value))
	}
	return n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode
}

// document returns the root of the document that is meant.
func (f *file) document(doc Document, at Selector) (*yaml.Node, error) {
	var fit []*yaml.Node
	for _, d := range f.docs {
		if ok, err := fits(d, doc.where); err != nil {
			return nil, &Error{Path: []string{at.String()}, Line: d.Line, Reason: err}
		} else if ok {
			fit = append(fit, d)
		}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	e := &Error{Path: []string{at.String()}, Reason: ErrNotFound, Detail: "no document has " + doc.String()}
	if len(fit) > 1 {
		e.Reason, e.Detail = ErrAmbiguous, fmt.Sprintf("%d documents have %s", len(fit), doc)
		if len(doc.where) == 0 {
			e.Detail = fmt.Sprintf("the file has %d documents, say which", len(fit))
		}
	}
	var names []string
	for _, d := range f.docs {
		names = append(names, described(d, [][]string{{"kind"}, {"metadata", "name"}}))
	}
	e.Detail += "; there are " + listed(names)
	return nil, e
}

// follow returns where a step leads from a node, or why it leads nowhere with
// more about it.
func (s step) follow(n *yaml.Node) (next *yaml.Node, detail string, reason error) {
	switch {
	case s.kind == byKey && n.Kind == yaml.SequenceNode:
		return nil, fmt.Sprintf("a list has no key %q: write [0] or [name=...]", s.key), ErrNotFound
	case s.kind == byKey && n.Kind == yaml.MappingNode:
		return s.entry(n)
	case s.kind == byIndex && n.Kind == yaml.SequenceNode:
		if s.index >= len(n.Content) {
			return nil, fmt.Sprintf("there is no item [%d]: the list has %d", s.index, len(n.Content)), ErrNotFound
		}
		return n.Content[s.index], "", nil
	case s.kind == byConditions && n.Kind == yaml.SequenceNode:
		return s.item(n)
	case n.Kind == yaml.MappingNode:
		return nil, "a mapping stands there, not a list", ErrNotFound
	}
	return nil, "a single value stands there, nothing is below it", ErrNotFound
}

func (s step) entry(n *yaml.Node) (next *yaml.Node, detail string, reason error) {
	next, reason = child(n, s.key)
	if next != nil || reason != nil {
		return next, "", reason
	}
	var keys []string
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			return nil, fmt.Sprintf("key %q may come in by <<", s.key), ErrAlias
		}
		keys = append(keys, bareOrQuoted(n.Content[i].Value))
	}
	return nil, fmt.Sprintf("there is no key %q; there are %s", s.key, listed(keys)), ErrNotFound
}

// item returns the one item of a list that meets the conditions.
func (s step) item(n *yaml.Node) (next *yaml.Node, detail string, reason error) {
	var fit []*yaml.Node
	var names []string
	var paths [][]string
	for _, c := range s.where {
		paths = append(paths, c.keys)
	}
	for _, item := range n.Content {
		ok, err := fits(item, s.where)
		if err != nil {
			return nil, "", err
		}
		if ok {
			fit = append(fit, item)
		}
		names = append(names, described(item, paths))
	}
	switch len(fit) {
	case 1:
		return fit[0], "", nil
	case 0:
		return nil, fmt.Sprintf("no item has %s; there are %s", conditionsText(s.where), listed(names)), ErrNotFound
	}
	return nil, fmt.Sprintf("%d items have %s", len(fit), conditionsText(s.where)), ErrAmbiguous
}

// fits reports whether a node meets all conditions.
func fits(n *yaml.Node, where []condition) (bool, error) {
	for _, c := range where {
		v, err := lookUp(n, c.keys)
		if err != nil {
			return false, err
		}
		if v == nil || v.Value != c.text {
			return false, nil
		}
	}
	return true, nil
}

// lookUp returns the scalar at a path of keys, through aliases, or nil.
func lookUp(n *yaml.Node, keys []string) (*yaml.Node, error) {
	n = resolved(n)
	for _, k := range keys {
		if n.Kind != yaml.MappingNode {
			return nil, nil
		}
		next, err := child(n, k)
		if next == nil || err != nil {
			return nil, err
		}
		n = resolved(next)
	}
	if n.Kind != yaml.ScalarNode {
		return nil, nil
	}
	return n, nil
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// described returns what a node has at paths: "kind=HTTPRoute,metadata.name=llm".
func described(n *yaml.Node, paths [][]string) string {
	var have []condition
	for _, keys := range paths {
		if v, err := lookUp(n, keys); err == nil && v != nil {
			have = append(have, condition{keys, v.Value})
		}
	}
	if len(have) == 0 {
		return "one without " + condition{keys: paths[0]}.path()
	}
	return conditionsText(have)
}

// shownNames bounds how much of a file an error repeats.
const shownNames = 12

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if len(names) > shownNames {
		names = append(slices.Clone(names[:shownNames]), "...")
	}
	return strings.Join(names, " and ")
}
