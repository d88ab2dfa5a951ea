package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// extent returns the bytes of a scalar that stands on one line, without its
// anchor and tag, or of a flow mapping or list with its brackets.
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
// -1 when its end cannot be told.
func flowEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0:
			return -1
		case (c == '"' || c == '\'') && strings.IndexByte(" \t\r\n,:[{", b[i-1]) >= 0:
			n := quotedEnd(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case c == '#' && strings.IndexByte(" \t\r\n", b[i-1]) >= 0:
			n := bytes.IndexAny(b[i:], "\r\n")
			if n < 0 {
				return -1
			}
			i += n
		}
	}
	return -1
}

// edits are the ways to write value at a place, the best first.
func (s *source) edits(at place, value string) ([]edit, error) {
	switch {
	case at.node == nil:
		return s.insertions(at.parent, at.rest, value)
	case len(at.rest) > 0:
		return s.nestings(at, value)
	}
	return s.replacements(at.parent, at.node, value)
}

// replacements are the ways to write value in the place of old, the best first.
func (s *source) replacements(parent, old *yaml.Node, value string) ([]edit, error) {
	if old.Tag == "!!null" && old.Value == "" && old.Style&^yaml.TaggedStyle == 0 {
		return s.fillings(parent, old, s.writings(value, 0))
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

// fillings are the ways to write a text where a key has no value yet: `key:`.
func (s *source) fillings(parent, old *yaml.Node, texts []string) ([]edit, error) {
	at, reason := s.behindColon(parent, old)
	if reason != nil {
		return nil, reason
	}
	var edits []edit
	for _, text := range texts {
		edits = append(edits, edit{at, at, " " + text})
	}
	return edits, nil
}

// behindColon returns where the colon of an entry ends.
func (s *source) behindColon(parent, value *yaml.Node) (int, error) {
	if parent.Kind != yaml.MappingNode {
		return 0, ErrUnsafe
	}
	for i := 1; i < len(parent.Content); i += 2 {
		if parent.Content[i] != value {
			continue
		}
		_, at, reason := s.extent(parent.Content[i-1])
		if reason != nil {
			return 0, reason
		}
		for at < len(s.src) && s.src[at] == ' ' {
			at++
		}
		if at >= len(s.src) || s.src[at] != ':' {
			return 0, ErrUnsafe
		}
		return at + 1, nil
	}
	return 0, ErrNotFound
}

// nestings are the ways to give a key without a value a mapping: below it
// where it stands in a block, else on its line.
func (s *source) nestings(at place, value string) ([]edit, error) {
	entries := s.entries(at.parent, at.rest, value)
	if at.node.Value != "" || at.node.Style&^yaml.TaggedStyle != 0 {
		from, to, reason := s.extent(at.node)
		var edits []edit
		for _, e := range entries {
			edits = append(edits, edit{from, to, s.braced(at.parent, e.inline(": "))})
		}
		return edits, reason
	}
	colon, reason := s.behindColon(at.parent, at.node)
	if reason != nil {
		return nil, reason
	}
	var edits []edit
	if at.parent.Style&yaml.FlowStyle == 0 {
		end, below := s.endOfLine(colon), s.lineEnd()+strings.Repeat(" ", at.parent.Content[0].Column-1)+s.step()
		for _, e := range entries {
			edits = append(edits, edit{end, end, below + strings.Join(e.block, below)})
		}
	}
	for _, e := range entries {
		edits = append(edits, edit{colon, colon, " " + s.braced(at.parent, e.inline(": "))})
	}
	return edits, nil
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

// entry is a new entry of a mapping in its two forms.
type entry struct {
	key, value string   // on one line
	block      []string // in lines, the inner ones indented
}

func (e *entry) inline(colon string) string { return e.key + colon + e.value }

// entries are the ways to write an entry of m with the mappings inside it, the
// best first.
func (s *source) entries(m *yaml.Node, path []string, value string) []entry {
	keyStyle := yaml.Style(0)
	if len(m.Content) > 0 {
		keyStyle = m.Content[0].Style
	}
	var all []entry
	for _, v := range s.writings(value, 0) {
		for _, k := range s.keys(path[len(path)-1], keyStyle) {
			all = append(all, entry{k, v, []string{k + ": " + v}})
		}
	}
	for i := len(path) - 2; i >= 0; i-- {
		var outer []entry
		for _, in := range all {
			for _, k := range s.keys(path[i], keyStyle) {
				block := []string{k + ":"}
				for _, line := range in.block {
					block = append(block, s.step()+line)
				}
				outer = append(outer, entry{k, s.braced(m, in.inline(": ")), block})
			}
		}
		all = outer
	}
	return all
}

// keys are the ways to write a key.
func (s *source) keys(key string, style yaml.Style) []string {
	if s.json {
		return []string{doubleQuoted(key)}
	}
	return s.writings(key, style)
}

// braced makes a flow mapping of an entry, spaced as m is or else as the first
// that the source has.
func (s *source) braced(m *yaml.Node, text string) string {
	if s.spaced(m) {
		return "{ " + text + " }"
	}
	return "{" + text + "}"
}

func (s *source) spaced(m *yaml.Node) bool {
	if is, known := s.spacing(m); known {
		return is
	}
	if is, known := s.firstSpacing(s.doc); known {
		return is
	}
	return !s.json
}

// firstSpacing looks for a flow mapping that shows its spacing.
func (s *source) firstSpacing(n *yaml.Node) (is, known bool) {
	if is, known = s.spacing(n); known {
		return is, known
	}
	for _, c := range n.Content {
		if is, known = s.firstSpacing(c); known {
			return is, known
		}
	}
	return false, false
}

// spacing reports whether a flow mapping has a blank behind its bracket. An
// empty one, and one with a line end there, tells nothing.
func (s *source) spacing(n *yaml.Node) (is, known bool) {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle == 0 || len(n.Content) == 0 {
		return false, false
	}
	at, ok := s.offset(n.Line, n.Column)
	if !ok {
		return false, false
	}
	at = s.skipProperties(at) + 1
	if at >= len(s.src) || s.src[at] == '\n' || s.src[at] == '\r' {
		return false, false
	}
	return s.src[at] == ' ', true
}

// step is the indentation of the first block mapping inside another, two
// blanks if there is none.
func (s *source) step() string {
	if n := stepOf(s.doc); n > 0 {
		return strings.Repeat(" ", n)
	}
	return "  "
}

func stepOf(n *yaml.Node) int {
	for i, c := range n.Content {
		block := n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.MappingNode && c.Style&yaml.FlowStyle == 0
		if block && len(c.Content) > 0 && c.Content[0].Column > n.Content[i-1].Column {
			return c.Content[0].Column - n.Content[i-1].Column
		}
		if inner := stepOf(c); inner > 0 {
			return inner
		}
	}
	return 0
}

// insertions are the ways to add an entry to a mapping.
func (s *source) insertions(m *yaml.Node, path []string, value string) ([]edit, error) {
	entries := s.entries(m, path, value)
	if m.Style&yaml.FlowStyle != 0 {
		return s.flowInsertions(m, entries)
	}
	return s.blockInsertions(m, entries)
}

// flowInsertions adds behind the last entry, with the separators that the
// entries before it have.
func (s *source) flowInsertions(m *yaml.Node, entries []entry) ([]edit, error) {
	at, ok := s.offset(m.Line, m.Column)
	if !ok {
		return nil, ErrUnsafe
	}
	at = s.skipProperties(at) + 1
	n := len(m.Content)
	if n == 0 {
		return s.emptyInsertions(m, at, entries), nil
	}
	keyFrom, keyTo, reason := s.extent(m.Content[n-2])
	if reason != nil {
		return nil, reason
	}
	from, to, reason := s.extent(m.Content[n-1])
	if reason != nil {
		return nil, reason
	}
	colon := separator(string(s.src[keyTo:max(from, keyTo)]), ":", ": ")
	between := ", "
	if n > 2 {
		if _, end, reason := s.extent(m.Content[n-3]); reason == nil {
			between = separator(string(s.src[end:max(keyFrom, end)]), ",", between)
		}
	} else if lead := string(s.src[at:max(keyFrom, at)]); strings.Trim(lead, " \t\r\n") == "" && strings.ContainsAny(lead, "\n") {
		between = "," + lead
	}
	var edits []edit
	for _, e := range entries {
		edits = append(edits, edit{to, to, between + e.inline(colon)})
	}
	return edits, nil
}

// emptyInsertions fills a flow mapping that has no entry and whose bracket
// ends at a place.
func (s *source) emptyInsertions(m *yaml.Node, at int, entries []entry) (edits []edit) {
	end := at
	for end < len(s.src) && s.src[end] == ' ' {
		end++
	}
	for _, e := range entries {
		if text := s.braced(m, e.inline(": ")); end < len(s.src) && s.src[end] == '}' {
			edits = append(edits, edit{at - 1, end + 1, text})
		}
		edits = append(edits, edit{at, at, e.inline(": ")}) // over several lines
	}
	return edits
}

// separator returns the text between two parts where it is the mark and blanks
// only, else the usual one. Blanks that only align are not repeated.
func separator(text, mark, usual string) string {
	if strings.Trim(text, " \t\r\n") != mark || strings.HasPrefix(text, mark+"  ") && !strings.ContainsAny(text, "\r\n") {
		return usual
	}
	return text
}

// blockInsertions adds lines of its own: a scalar behind the last entry that
// has no block inside, a mapping behind the last entry of all; where neither
// can be, in front of the first.
func (s *source) blockInsertions(m *yaml.Node, entries []entry) ([]edit, error) {
	if len(m.Content) == 0 {
		return nil, ErrUnsafe
	}
	first := m.Content[0]
	front, ok := s.offset(first.Line, first.Column)
	if !ok {
		return nil, ErrUnsafe
	}
	var ends []int
	if len(entries) > 0 && len(entries[0].block) > 1 {
		if _, to, reason := s.extent(lastLeaf(m)); reason == nil {
			ends = append(ends, s.endOfLine(to))
		}
	}
	for i := len(m.Content) - 1; i > 0; i -= 2 {
		if _, to, reason := s.extent(m.Content[i]); reason == nil && isLeaf(m.Content[i]) {
			ends = append(ends, s.endOfLine(to))
			break
		}
	}
	newLine := s.lineEnd() + strings.Repeat(" ", first.Column-1)
	var edits []edit
	for _, at := range ends {
		for _, e := range entries {
			edits = append(edits, edit{at, at, newLine + strings.Join(e.block, newLine)})
		}
	}
	for _, e := range entries {
		edits = append(edits, edit{front, front, strings.Join(e.block, newLine) + newLine})
	}
	return edits, nil
}

// isLeaf reports whether a node is a scalar or a flow mapping or list.
func isLeaf(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode || n.Style&yaml.FlowStyle != 0 }

// lastLeaf is where a block ends.
func lastLeaf(n *yaml.Node) *yaml.Node {
	for !isLeaf(n) && len(n.Content) > 0 {
		n = n.Content[len(n.Content)-1]
	}
	return n
}

// endOfLine returns where the line of a place ends, before the line end.
func (s *source) endOfLine(at int) int {
	if n := bytes.IndexAny(s.src[at:], "\r\n"); n >= 0 {
		return at + n
	}
	return len(s.src)
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
// is value in the second and may be missing in the first, with mappings on the
// way. A nil path means equal throughout.
func sameBut(a, b *yaml.Node, path []string, value string) bool {
	if path != nil && (len(path) == 0 || isNull(a) && b.Kind == yaml.MappingNode) {
		return isChain(b, path, value) && a.Anchor == b.Anchor
	}
	if a.Kind != b.Kind || a.Value != b.Value || a.Tag != b.Tag || a.Anchor != b.Anchor {
		return false
	}
	switch {
	case len(a.Content) == len(b.Content):
	case path != nil && a.Kind == yaml.MappingNode && len(b.Content) == len(a.Content)+2:
		return sameButNew(a, b, path, value)
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

// isChain reports whether a node is value inside mappings that hold nothing
// but the keys of path.
func isChain(n *yaml.Node, path []string, value string) bool {
	for _, key := range path {
		if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Kind != yaml.ScalarNode || n.Content[0].Value != key {
			return false
		}
		n = n.Content[1]
	}
	return n.Kind == yaml.ScalarNode && n.Value == value
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

// sameButNew reports whether mapping b is a with one entry more, which leads
// to value by path.
func sameButNew(a, b *yaml.Node, path []string, value string) bool {
	found, j := false, 0
	for i := 0; i+1 < len(b.Content); i += 2 {
		k, v := b.Content[i], b.Content[i+1]
		if !found && k.Kind == yaml.ScalarNode && k.Value == path[0] && isChain(v, path[1:], value) {
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
