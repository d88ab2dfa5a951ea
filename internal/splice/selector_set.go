package splice

import (
	"bytes"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

// Edit is a new text for the scalar at a selector.
type Edit struct {
	At    Selector
	Value string
}

// SetAll returns src with the scalars of one document set and every other byte
// as it was, in all documents. It adds nothing: what is not there is
// [ErrNotFound]. A scalar keeps its quotes, its anchor and its tag; a number
// stays a number, so that its new value must be one. An error is an [*Error],
// and then nothing is changed.
func SetAll(src []byte, doc Document, edits []Edit) ([]byte, error) {
	f, err := readFile(src)
	if err != nil {
		return nil, &Error{Path: selectors(edits), Reason: ErrSyntax, Detail: err.Error()}
	}
	wanted := map[*yaml.Node]string{}
	var cuts []edit
	for _, e := range edits {
		n, err := f.scalar(doc, e.At)
		if err != nil {
			return nil, err
		}
		if _, twice := wanted[n]; twice {
			return nil, &Error{Path: []string{e.At.String()}, Line: n.Line, Reason: ErrAmbiguous, Detail: "two edits of the same value"}
		}
		wanted[n] = e.Value
		cut, err := f.cut(n, e)
		if err != nil {
			return nil, err
		}
		cuts = append(cuts, cut)
	}
	out := apply(src, cuts)
	if after, err := readFile(out); err != nil || !f.onlyChanged(after, wanted) {
		return nil, &Error{Path: selectors(edits), Reason: ErrUnsafe}
	}
	return out, nil
}

func selectors(edits []Edit) (names []string) {
	for _, e := range edits {
		names = append(names, e.At.String())
	}
	return []string{strings.Join(names, ", ")}
}

// apply makes replacements that do not overlap.
func apply(src []byte, cuts []edit) []byte {
	slices.SortFunc(cuts, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, c := range cuts {
		out = append(append(out, src[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, src[at:]...)
}

// cut is the replacement that writes a value in the place of a scalar.
func (f *file) cut(n *yaml.Node, e Edit) (edit, error) {
	from, to, reason := f.extentOf(n)
	if reason == nil && isNull(n) && from == to {
		return edit{}, &Error{Path: []string{e.At.String()}, Line: n.Line, Reason: ErrNotFound, Detail: "it has no value"}
	}
	text, detail := f.spell(n, e.Value)
	if reason == nil && detail != "" {
		reason = ErrUnsafe
	}
	if reason != nil {
		return edit{}, &Error{Path: []string{e.At.String()}, Line: n.Line, Reason: reason, Detail: detail}
	}
	return edit{from, to, text}, nil
}

var (
	// decimal is a number that YAML and JSON read alike.
	decimal = pattern.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	// plainText is safe without quotes wherever a scalar may stand.
	plainText = pattern.New(`^[A-Za-z][A-Za-z0-9_./-]*$`)
)

// spell writes a value as the scalar was written, or says why it cannot.
func (f *file) spell(n *yaml.Node, value string) (text, wrong string) {
	if value == n.Value && !isNull(n) {
		from, to, _ := f.extentOf(n) // the caller has asked
		return string(f.src[from:to]), ""
	}
	isNumber := n.Tag == "!!int" || n.Tag == "!!float"
	switch number := decimal.MatchString(value); {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return doubleQuoted(value), ""
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.ContainsAny(value, "\r\n\t\u0085\u2028\u2029"):
		return "'" + strings.ReplaceAll(value, "'", "''") + "'", ""
	case n.Tag == "!!str" && n.Style&yaml.TaggedStyle == 0 && plainText.MatchString(value) && isText(value):
		return value, ""
	case n.Tag == "!!str":
		return doubleQuoted(value), ""
	case n.Tag == "!!int" && n.Style&yaml.TaggedStyle != 0 && strings.Contains(value, "."):
		return "", "its tag !!int allows no decimals"
	case number && (isNumber || isNull(n)):
		return value, ""
	case isNull(n):
		return doubleQuoted(value), ""
	case isNumber:
		return "", "a number stands there, " + doubleQuoted(value) + " is none"
	}
	return "", "neither a number nor a text stands there"
}

// onlyChanged reports whether another reading of the file differs in the
// wanted values alone. Comments need no look: their bytes are the same, and
// one that became part of a value, or the reverse, changed a value.
func (f *file) onlyChanged(after *file, wanted map[*yaml.Node]string) bool {
	if f.json != after.json && f.json || len(f.docs) != len(after.docs) {
		return false
	}
	for i := range f.docs {
		if !sameBeside(f.docs[i], after.docs[i], wanted) {
			return false
		}
	}
	return bytes.HasPrefix(f.src, byteOrderMark) == bytes.HasPrefix(after.src, byteOrderMark)
}

// sameBeside reports whether two trees are equal but for the wanted values,
// and those are what they should be, of the same kind as before.
func sameBeside(a, b *yaml.Node, wanted map[*yaml.Node]string) bool {
	if a.Kind != b.Kind || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	if value, ok := wanted[a]; ok {
		return b.Kind == yaml.ScalarNode && b.Value == value && (isNull(a) || kindOfScalar(a) == kindOfScalar(b))
	}
	if a.Value != b.Value || a.Tag != b.Tag {
		return false
	}
	for i := range a.Content {
		if !sameBeside(a.Content[i], b.Content[i], wanted) {
			return false
		}
	}
	return true
}

// kindOfScalar returns a scalar's tag, one for all numbers.
func kindOfScalar(n *yaml.Node) string {
	if n.Tag == "!!int" || n.Tag == "!!float" {
		return "number"
	}
	return n.Tag
}
