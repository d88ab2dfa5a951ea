package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// extent returns the bytes of a node that stands on one line: a scalar without
// its anchor and tag, or a flow mapping or list with its brackets.
func (s *source) extent(n *yaml.Node) (from, to int, reason error) {
	from, ok := s.offset(n.Line, n.Column)
	if !ok || from > len(s.src) {
		return 0, 0, ErrUnsafe
	}
	if n.Kind == yaml.ScalarNode || n.Style&yaml.FlowStyle != 0 {
		from = s.skipProperties(from)
	}
	rest := s.src[from:]
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 0, 0, ErrMultiLine
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		to = quotedEnd(rest)
	case n.Kind == yaml.ScalarNode:
		if !bytes.HasPrefix(rest, []byte(n.Value)) {
			return 0, 0, ErrMultiLine
		}
		return from, from + len(n.Value), nil
	default:
		to = flowEnd(rest)
	}
	if to < 0 {
		return 0, 0, ErrMultiLine
	}
	return from, from + to, nil
}

// skipProperties moves past an anchor and a tag in front of a value.
func (s *source) skipProperties(at int) int {
	for at < len(s.src) && (s.src[at] == '&' || s.src[at] == '!') {
		end := bytes.IndexAny(s.src[at:], " \t\r\n")
		if end < 0 {
			return at
		}
		at += end
		for at < len(s.src) && (s.src[at] == ' ' || s.src[at] == '\t') {
			at++
		}
	}
	return at
}

// quotedEnd returns the length of the quoted scalar at the start of b, or -1
// when it does not end on its line.
func quotedEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' {
		return -1
	}
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == '\n' || b[i] == '\r':
			return -1
		case b[0] == '"' && b[i] == '\\':
			i++
		case b[0] == '\'' && b[i] == '\'' && i+1 < len(b) && b[i+1] == '\'':
			i++
		case b[i] == b[0]:
			return i + 1
		}
	}
	return -1
}

// flowEnd returns the length of the flow mapping or list at the start of b, or
// -1 when it does not end on its line.
func flowEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\n' || c == '\r':
			return -1
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0:
			return -1
		case (c == '"' || c == '\'') && strings.IndexByte(" \t,:[{", b[i-1]) >= 0:
			n := quotedEnd(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// replacements are the ways to write value in the place of old, the best first.
func (s *source) replacements(parent, old *yaml.Node, value string) ([]edit, error) {
	if old.Tag == "!!null" && old.Value == "" && old.Style&^yaml.TaggedStyle == 0 {
		return s.fillings(parent, old, value)
	}
	from, to, reason := s.extent(old)
	if reason != nil {
		return nil, reason
	}
	var edits []edit
	texts := s.writings(value, old.Style)
	if old.Tag == "!!str" && old.Style&yaml.TaggedStyle == 0 && len(texts) == 2 && texts[0] == value && !isText(value) {
		texts[0], texts[1] = texts[1], texts[0] // a string stays a string
	}
	for _, text := range texts {
		edits = append(edits, edit{from, to, text})
	}
	return edits, nil
}

// isText reports whether a plain scalar reads as a string, not as a number, a
// truth value or nothing.
func isText(value string) bool {
	doc, err := parse([]byte(value))
	return err != nil || doc.Kind != yaml.ScalarNode || doc.Tag == "!!str"
}

// fillings are the ways to write value where a key has none yet: `key:`.
func (s *source) fillings(parent, old *yaml.Node, value string) ([]edit, error) {
	if parent.Kind != yaml.MappingNode {
		return nil, ErrUnsafe
	}
	for i := 1; i < len(parent.Content); i += 2 {
		if parent.Content[i] != old {
			continue
		}
		_, at, reason := s.extent(parent.Content[i-1])
		if reason != nil {
			return nil, reason
		}
		for at < len(s.src) && s.src[at] == ' ' {
			at++
		}
		if at >= len(s.src) || s.src[at] != ':' {
			return nil, ErrUnsafe
		}
		at++
		var edits []edit
		for _, text := range s.writings(value, 0) {
			edits = append(edits, edit{at, at, " " + text})
		}
		return edits, nil
	}
	return nil, ErrNotFound
}

// writings are the ways to write a value, the best first: in the old quotes if
// there were any, else plain, else in double quotes.
func (s *source) writings(value string, style yaml.Style) []string {
	double := doubleQuoted(value)
	single := "'" + strings.ReplaceAll(value, "'", "''") + "'"
	oneLine := !strings.ContainsAny(value, "\r\n\u0085\u2028\u2029")
	switch {
	case s.json && style&yaml.DoubleQuotedStyle == 0 && json.Valid([]byte(value)):
		return []string{value, double}
	case s.json, style&yaml.DoubleQuotedStyle != 0:
		return []string{double}
	case style&yaml.SingleQuotedStyle != 0 && oneLine:
		return []string{single, double}
	case oneLine && value != "":
		return []string{value, double}
	}
	return []string{double}
}

// doubleQuoted writes a string so that both YAML and JSON read it back.
func doubleQuoted(value string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic("splice: string that JSON cannot hold: " + err.Error()) // there is none
	}
	text := strings.TrimSuffix(b.String(), "\n")
	var out strings.Builder
	for _, r := range text { // JSON lets these stand, YAML does not
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&out, "\\u%04x", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// insertions are the ways to add an entry to a mapping.
func (s *source) insertions(m *yaml.Node, key, value string) ([]edit, error) {
	keyStyle := yaml.Style(0)
	if len(m.Content) > 0 {
		keyStyle = m.Content[0].Style
	}
	var texts [][2]string
	for _, k := range s.writings(key, keyStyle) {
		if s.json {
			k = doubleQuoted(key)
		}
		for _, v := range s.writings(value, 0) {
			texts = append(texts, [2]string{k, v})
		}
	}
	if m.Style&yaml.FlowStyle != 0 {
		return s.flowInsertions(m, texts)
	}
	return s.blockInsertions(m, texts)
}

// flowInsertions adds behind the last entry, with the separators that the
// entries before it have.
func (s *source) flowInsertions(m *yaml.Node, texts [][2]string) ([]edit, error) {
	at, ok := s.offset(m.Line, m.Column)
	if !ok {
		return nil, ErrUnsafe
	}
	at = s.skipProperties(at) + 1
	between, colon := "", ": "
	if n := len(m.Content); n > 0 {
		keyFrom, keyTo, reason := s.extent(m.Content[n-2])
		if reason != nil {
			return nil, reason
		}
		from, to, reason := s.extent(m.Content[n-1])
		if reason != nil {
			return nil, reason
		}
		colon = separator(string(s.src[keyTo:max(from, keyTo)]), ":", ": ")
		between = ", "
		if n > 2 {
			if _, end, reason := s.extent(m.Content[n-3]); reason == nil {
				between = separator(string(s.src[end:max(keyFrom, end)]), ",", between)
			}
		} else if lead := string(s.src[at:max(keyFrom, at)]); strings.Trim(lead, " \t\r\n") == "" && strings.ContainsAny(lead, "\n") {
			between = "," + lead
		}
		at = to
	}
	var edits []edit
	for _, t := range texts {
		edits = append(edits, edit{at, at, between + t[0] + colon + t[1]})
	}
	return edits, nil
}

// separator returns the text between two parts where it is the mark and blanks
// only, else the usual one.
func separator(text, mark, usual string) string {
	if strings.Trim(text, " \t\r\n") != mark {
		return usual
	}
	return text
}

// blockInsertions adds a line of its own: behind the last entry that stands on
// one line, else in front of the first.
func (s *source) blockInsertions(m *yaml.Node, texts [][2]string) ([]edit, error) {
	if len(m.Content) == 0 {
		return nil, ErrUnsafe
	}
	first := m.Content[0]
	front, ok := s.offset(first.Line, first.Column)
	if !ok {
		return nil, ErrUnsafe
	}
	indent, eol := strings.Repeat(" ", first.Column-1), s.lineEnd()
	var edits []edit
	for i := len(m.Content) - 1; i > 0; i -= 2 {
		_, to, reason := s.extent(m.Content[i])
		if reason != nil || m.Content[i].Kind != yaml.ScalarNode && m.Content[i].Style&yaml.FlowStyle == 0 {
			continue
		}
		if end := bytes.IndexAny(s.src[to:], "\r\n"); end >= 0 {
			to += end
		} else {
			to = len(s.src)
		}
		for _, t := range texts {
			edits = append(edits, edit{to, to, eol + indent + t[0] + ": " + t[1]})
		}
		break
	}
	for _, t := range texts {
		edits = append(edits, edit{front, front, t[0] + ": " + t[1] + eol + indent})
	}
	return edits, nil
}

// lineEnd returns the line end that the source begins with.
func (s *source) lineEnd() string {
	if i := bytes.IndexByte(s.src, '\n'); i > 0 && s.src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// onlyChange parses the result and reports whether the value at path is the
// only thing that became different. Comments need no look: their bytes are the
// same, and one that became part of a value, or the reverse, changed a value.
func (s *source) onlyChange(out []byte, path []string, value string) bool {
	if s.json && !json.Valid(out) || !utf8.Valid(out) {
		return false
	}
	doc, err := parse(out)
	return err == nil && holds(doc, path, value) && sameBut(s.doc, doc, path, value)
}

// holds reports whether the scalar at path is there and is value.
func holds(n *yaml.Node, path []string, value string) bool {
	for _, part := range path {
		next, err := child(n, part)
		if err != nil || next == nil {
			return false
		}
		n = next
	}
	return n.Kind == yaml.ScalarNode && n.Value == value
}

// sameBut reports whether two trees are equal but for the scalar at path, which
// is value in the second and may be missing in the first. A nil path means
// equal throughout.
func sameBut(a, b *yaml.Node, path []string, value string) bool {
	if path != nil && len(path) == 0 {
		return b.Kind == yaml.ScalarNode && b.Value == value && a.Anchor == b.Anchor
	}
	if a.Kind != b.Kind || a.Value != b.Value || a.Tag != b.Tag || a.Anchor != b.Anchor {
		return false
	}
	switch {
	case len(a.Content) == len(b.Content):
	case len(path) == 1 && a.Kind == yaml.MappingNode && len(b.Content) == len(a.Content)+2:
		return sameButNew(a, b, path[0], value)
	default:
		return false
	}
	for i := range a.Content {
		if !sameBut(a.Content[i], b.Content[i], below(a, i, path), value) {
			return false
		}
	}
	return true
}

// below returns the rest of the path where it leads through child i, else nil.
func below(n *yaml.Node, i int, path []string) []string {
	if path == nil {
		return nil
	}
	on, _ := child(n, path[0])
	if on != n.Content[i] || n.Kind == yaml.MappingNode && i%2 == 0 {
		return nil
	}
	return path[1:]
}

// sameButNew reports whether mapping b is a with one entry more.
func sameButNew(a, b *yaml.Node, key, value string) bool {
	found, j := false, 0
	for i := 0; i+1 < len(b.Content); i += 2 {
		k, v := b.Content[i], b.Content[i+1]
		if !found && k.Kind == yaml.ScalarNode && k.Value == key && v.Kind == yaml.ScalarNode && v.Value == value {
			found = true
			continue
		}
		if j+1 >= len(a.Content) || !sameBut(a.Content[j], k, nil, "") || !sameBut(a.Content[j+1], v, nil, "") {
			return false
		}
		j += 2
	}
	return found
}
