package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/pattern"
)

// MaxSource is how many bytes a configuration file may have at most.
const MaxSource = 8 << 20

// document is a file being read: its tree, its typed values and what there is
// to say about it.
type document struct {
	name   string
	src    []byte // without byte order mark
	lines  []string
	tree   *yaml.Node // the root mapping; nil when there is none
	before *yaml.Node // the tree before {scene} was filled in; nil where there is no scene
	merged bool       // the tree is a scene's, made from that of the file
	values map[string]*value
	broken map[string]bool // paths whose value was refused
	secret *secrets
	docs   []*yaml.Node // what could be parsed
	err    error        // why no more could be
	list   diag.List
}

// value is a key that was found and is of its type.
type value struct {
	spec  *spec
	key   *yaml.Node // nil for an item of a list
	node  *yaml.Node
	blank bool // a mapping that is still to be written
	typed
}

func newDocument(name string, src []byte) *document {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	d := &document{name: name, src: src, values: map[string]*value{}, broken: map[string]bool{}, secret: &secrets{}}
	d.lines = strings.Split(string(src), "\n")
	for i, line := range d.lines {
		d.lines[i] = strings.TrimSuffix(line, "\r")
	}
	if len(src) <= MaxSource {
		d.docs, d.err = Documents(src)
		d.secret = findSecrets(d.lines, d.docs, d.err == nil)
	}
	return d
}

// add notes a finding with its place moved inside the source and its secrets
// masked.
func (d *document) add(f diag.Finding) {
	f.File = d.name
	f.Line = min(max(f.Line, 1), len(d.lines))
	width := utf8.RuneCountInString(d.lines[f.Line-1])
	f.Col = min(max(f.Col, 1), width+1)
	f.EndCol = min(max(f.EndCol, f.Col+1), max(width+1, f.Col+1))
	f.Message, f.Hint = d.secret.maskText(f.Message), d.secret.maskText(f.Hint)
	d.list.Add(f)
}

// errorAt notes an error at a node.
func (d *document) errorAt(n *yaml.Node, rule, hint, format string, args ...any) {
	d.at(n, diag.Error, rule, hint, format, args...)
}

// warnAt notes a warning at a node.
func (d *document) warnAt(n *yaml.Node, rule, hint, format string, args ...any) {
	d.at(n, diag.Warning, rule, hint, format, args...)
}

func (d *document) at(n *yaml.Node, sev diag.Severity, rule, hint, format string, args ...any) {
	line, col := n.Line, n.Column
	d.add(diag.Finding{
		Line: line, Col: col, EndCol: d.endCol(n), Severity: sev, Rule: rule,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// endCol returns the column after a node's text on its first line.
func (d *document) endCol(n *yaml.Node) int {
	if n.Kind != yaml.ScalarNode || n.Line < 1 || n.Line > len(d.lines) {
		return n.Column + 1
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 {
		return n.Column + utf8.RuneCountInString(n.Value)
	}
	line := []rune(d.lines[n.Line-1])
	if n.Column-1 >= len(line) {
		return n.Column + 1
	}
	text := string(line[max(n.Column-1, 0):])
	return n.Column + utf8.RuneCountInString(text[:quotedLen(text)])
}

// quotedLen returns the length in bytes of the quoted scalar at the start of s,
// or of what there is of it on the line.
func quotedLen(s string) int {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case quote == '"' && s[i] == '\\':
			i++
		case quote == '\'' && s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

// read parses the source into d.tree, or says why it cannot.
func (d *document) read() {
	if !d.readable() {
		return
	}
	if d.err != nil {
		d.syntaxError(d.err)
		return
	}
	docs := d.docs
	if len(docs) == 0 || empty(docs[0]) {
		d.add(diag.Finding{
			Line: 1, Col: 1, Rule: ruleYAMLDocument, Message: "the file is empty",
			Hint: "`canaryctl init` writes a commented canary.yaml",
		})
		return
	}
	if len(docs) > 1 {
		n := docs[1]
		if len(n.Content) > 0 {
			n = n.Content[0]
		}
		d.errorAt(n, ruleYAMLDocument, "a canary.yaml holds one release; put the other into a file of its own", "a second document begins before this line")
	}
	d.tree = docs[0].Content[0]
}

func empty(doc *yaml.Node) bool {
	if len(doc.Content) == 0 {
		return true
	}
	n := doc.Content[0]
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// readable refuses what is no text, and line breaks that YAML counts and
// editors do not: positions would be wrong.
func (d *document) readable() bool {
	if len(d.src) > MaxSource {
		d.add(diag.Finding{
			Line: 1, Col: 1, Rule: ruleYAMLDocument,
			Message: fmt.Sprintf("the file has more than %d bytes", MaxSource), Hint: "is this a canary.yaml?",
		})
		return false
	}
	for i, line := range d.lines {
		col := 0
		for _, r := range validRunes(line) {
			col++
			if what := unreadable(r); what != "" {
				d.add(diag.Finding{
					Line: i + 1, Col: col, Rule: ruleYAMLEncoding,
					Message: what, Hint: "save the file as UTF-8 text with LF or CRLF line ends",
				})
				return false
			}
		}
	}
	return true
}

// validRunes returns the runes of s with -1 for each byte that is not UTF-8.
func validRunes(s string) []rune {
	out := make([]rune, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			r = -1
		}
		out = append(out, r)
		i += n
	}
	return out
}

func unreadable(r rune) string {
	switch {
	case r == -1:
		return "the file is not UTF-8"
	case r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029:
		return fmt.Sprintf("line break U+%04X that editors do not count", r)
	case r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff:
		return fmt.Sprintf("character U+%04X, which YAML does not allow", r)
	}
	return ""
}

// Documents parses all documents of a YAML file; with an error it returns those
// before it. The YAML package panics on some broken inputs; that is a syntax
// error like any other.
func Documents(src []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return docs, err
		}
		docs = append(docs, &n)
	}
}

var yamlLine = pattern.New(`^(?:yaml: )?(?:line (\d+): )?`)

// syntaxError says where the source stops being YAML. The YAML package names a
// line at best, and often the one after; so the place is found by trying: the
// last line up to which the file parses, and in the line after it the last rune.
func (d *document) syntaxError(err error) {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1])
	text = text[len(m[0]):]
	col := 1
	if l, c, ok := d.firstBroken(); ok {
		line, col = l, c
	} else if line = min(max(line, 1), len(d.lines)); line > 0 {
		col = indent(d.lines[line-1]) + 1
	}
	hint := ""
	if at := d.lines[min(max(line, 1), len(d.lines))-1]; strings.HasPrefix(strings.TrimLeft(at, " "), "\t") {
		text, hint, col = "a tab cannot indent", "indent with spaces", strings.IndexByte(at, '\t')+1
	}
	if strings.Contains(text, "mapping values are not allowed") {
		hint = "is a value missing its quotes, or a line its indentation?"
	}
	d.add(diag.Finding{Line: line, Col: col, Rule: ruleYAMLSyntax, Message: "not YAML: " + text, Hint: hint})
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// maxSearch bounds the search for the broken place, in lines and in runes of a
// line; each costs a parse.
const maxSearch = 400

func (d *document) firstBroken() (line, col int, ok bool) {
	if len(d.lines) > maxSearch || len(d.src) > maxSearch*100 {
		return 0, 0, false
	}
	good := len(d.lines) - 1
	for good > 0 && !parses(strings.Join(d.lines[:good], "\n")+"\n") {
		good--
	}
	broken := []rune(d.lines[good])
	if len(broken) > maxSearch {
		return good + 1, indent(d.lines[good]) + 1, true
	}
	before := strings.Join(d.lines[:good], "\n") + "\n"
	if good == 0 {
		before = ""
	}
	n := len(broken)
	for n > 0 && !parses(before+string(broken[:n])) {
		n--
	}
	if n == len(broken) { // the line is whole, what follows it is missing
		n = indent(d.lines[good])
	}
	return good + 1, n + 1, true
}

func parses(s string) bool {
	_, err := Documents([]byte(s))
	return err == nil
}
