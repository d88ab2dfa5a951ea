package splice

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Selector is a path to one value by names:
//
//	versions.canary.weight
//	spec.rules[0].backendRefs[name=canary].weight
//	spec.http[0].route[destination.subset=canary].weight
//	metadata.annotations."example.com/weight"
//	flags.llm.targeting.fractional[1][1]
//
// Keys stand between dots; one with a dot, a bracket or a blank in it stands in
// double quotes, as in JSON. [0] is a position in a list. [name=canary] is the
// one item of a list whose name is canary; several conditions stand between
// commas, and a condition may itself be a path of keys.
type Selector struct {
	steps []step
}

// step is a key, a position, or conditions.
type step struct {
	key   string
	index int // of a list where isIndex
	where []condition
	kind  stepKind
}

type stepKind int

const (
	byKey stepKind = iota
	byIndex
	byConditions
)

// condition says that the value at a path of keys is a text.
type condition struct {
	keys []string
	text string
}

// Document says which document of a YAML file with several:
// kind=HTTPRoute,metadata.name=llm. The zero value is the only document that
// there is.
type Document struct {
	where []condition
}

// IsZero reports whether the selector is empty.
func (s Selector) IsZero() bool { return len(s.steps) == 0 }

// ParseSelector reads a selector. Its error is an [*Error] of [ErrSelector].
func ParseSelector(text string) (Selector, error) {
	p := selectorParser{text: text}
	if !utf8.ValidString(text) {
		return Selector{}, p.wrong("it is not UTF-8")
	}
	var s Selector
	for first := true; first || p.at < len(text); first = false {
		st, err := p.step(first)
		if err != nil {
			return Selector{}, err
		}
		s.steps = append(s.steps, st)
	}
	return s, nil
}

// ParseDocument reads which document is meant; "" is the only one.
func ParseDocument(text string) (Document, error) {
	if text == "" {
		return Document{}, nil
	}
	p := selectorParser{text: text}
	if !utf8.ValidString(text) {
		return Document{}, p.wrong("it is not UTF-8")
	}
	where, err := p.conditions()
	if err == nil && p.at < len(text) {
		err = p.wrong("a comma or the end is expected")
	}
	if err != nil {
		return Document{}, err
	}
	return Document{where: where}, nil
}

// String returns the selector as [ParseSelector] reads it.
func (s Selector) String() string {
	var b strings.Builder
	for i, st := range s.steps {
		switch st.kind {
		case byIndex:
			fmt.Fprintf(&b, "[%d]", st.index)
		case byConditions:
			b.WriteString("[" + conditionsText(st.where) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(bareOrQuoted(st.key))
		}
	}
	return b.String()
}

// String returns the document as [ParseDocument] reads it.
func (d Document) String() string { return conditionsText(d.where) }

func conditionsText(where []condition) string {
	var parts []string
	for _, c := range where {
		parts = append(parts, c.path()+"="+bareOrQuoted(c.text))
	}
	return strings.Join(parts, ",")
}

// path returns the keys of a condition as they are written.
func (c condition) path() string {
	var keys []string
	for _, k := range c.keys {
		keys = append(keys, bareOrQuoted(k))
	}
	return strings.Join(keys, ".")
}

// special are the characters that a key or a text has only in quotes.
const special = ".[]=,\" \t\r\n"

func bareOrQuoted(text string) string {
	unusual := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if text == "" || strings.ContainsAny(text, special) || strings.ContainsFunc(text, unusual) {
		return doubleQuoted(text)
	}
	return text
}

// selectorParser reads a selector from left to right.
type selectorParser struct {
	text string
	at   int
}

func (p *selectorParser) wrong(format string, args ...any) error {
	return &Error{
		Path:   []string{p.text},
		Reason: ErrSelector,
		Detail: fmt.Sprintf("at character %d: ", len([]rune(p.text[:min(p.at, len(p.text))]))+1) + fmt.Sprintf(format, args...),
	}
}

// next reports whether the next character is c, and moves past it.
func (p *selectorParser) next(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *selectorParser) step(first bool) (step, error) {
	if p.next('[') {
		return p.bracket()
	}
	if !first && !p.next('.') {
		return step{}, p.wrong("a dot or a bracket is expected")
	}
	key, err := p.word(special, "a key")
	return step{key: key}, err
}

// bracket reads a position or conditions, behind the opening bracket.
func (p *selectorParser) bracket() (step, error) {
	end := strings.IndexByte(p.text[p.at:], ']')
	if end < 0 {
		return step{}, p.wrong("the bracket is not closed")
	}
	inner := p.text[p.at : p.at+end]
	if n, err := strconv.Atoi(inner); err == nil && n >= 0 && strconv.Itoa(n) == inner {
		p.at += end + 1
		return step{kind: byIndex, index: n}, nil
	}
	where, err := p.conditions()
	if err != nil {
		return step{}, err
	}
	if !p.next(']') {
		return step{}, p.wrong("a comma or a closing bracket is expected")
	}
	return step{kind: byConditions, where: where}, nil
}

// conditions reads key.key=text,key=text.
func (p *selectorParser) conditions() (where []condition, err error) {
	for {
		var c condition
		for {
			key, err := p.word(special, "a position from 0 or a condition such as name=canary")
			if err != nil {
				return nil, err
			}
			c.keys = append(c.keys, key)
			if !p.next('.') {
				break
			}
		}
		if !p.next('=') {
			return nil, p.wrong("a position from 0 or a condition such as name=canary is expected")
		}
		if c.text, err = p.word("[],\"\r\n", "a text"); err != nil {
			return nil, err
		}
		if where = append(where, c); !p.next(',') {
			return where, nil
		}
	}
}

// word reads a bare word without the characters of stop, or one in quotes.
func (p *selectorParser) word(stop, what string) (string, error) {
	rest := p.text[p.at:]
	if strings.HasPrefix(rest, `"`) {
		end := quotedEnd([]byte(rest))
		var text string
		if end < 0 || json.Unmarshal([]byte(rest[:end]), &text) != nil {
			return "", p.wrong("the quotes are not closed, or do not hold what a JSON text may")
		}
		p.at += end
		return text, nil
	}
	end := strings.IndexAny(rest, stop)
	if end < 0 {
		end = len(rest)
	}
	if end == 0 || strings.TrimSpace(rest[:end]) != rest[:end] {
		return "", p.wrong("%s is expected", what)
	}
	p.at += end
	return rest[:end], nil
}
