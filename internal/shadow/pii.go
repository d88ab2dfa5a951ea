package shadow

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is a kind of personal data that an answer must not hold.
type Kind struct {
	Name string         // as reasons call it
	Find *regexp.Regexp // what it looks like; nil for the built-in kinds
	// Whole says that a match counts only if no digit stands before or behind
	// it: RE2 cannot say so itself.
	Whole bool

	run func(digits string, x bool) bool
}

// The built-in kinds. All three are runs of digits that are not part of a
// longer run; they are not checked any further, since a leak with a slip in it
// is one as well.
var (
	// id18 is an identity number of 18 digits; the last may be X.
	id18 = Kind{Name: "id_18", run: func(digits string, x bool) bool { return len(digits) == 18 || len(digits) == 17 && x }}
	// id15 is an identity number of 15 digits, as issued until 1999.
	id15 = Kind{Name: "id_15", run: func(digits string, _ bool) bool { return len(digits) == 15 }}
	// mobile is a mobile number of 11 digits: 1, a digit from 3 to 9, nine more.
	mobile = Kind{Name: "mobile", run: func(digits string, _ bool) bool {
		return len(digits) == 11 && digits[0] == '1' && digits[1] >= '3'
	}}
)

// BuiltInKinds returns the kinds that are looked for unless a contract says
// otherwise.
func BuiltInKinds() []Kind { return []Kind{id18, id15, mobile} }

// in reports whether a text holds personal data of this kind.
func (k *Kind) in(text string) bool {
	if k.Find != nil {
		return k.matches(text)
	}
	return eachRun(ascii(text), k.run)
}

// eachRun asks about every run of digits of a text, with whether an X closes
// it, until one is it. The X closes nothing if another digit follows.
func eachRun(text string, is func(digits string, x bool) bool) bool {
	for i := 0; i < len(text); i++ {
		if !digit(text[i]) {
			continue
		}
		end := i
		for end < len(text) && digit(text[end]) {
			end++
		}
		x := end < len(text) && (text[end] == 'X' || text[end] == 'x') && (end+1 == len(text) || !digit(text[end+1]))
		if is(text[i:end], x) {
			return true
		}
		i = end
	}
	return false
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

// ascii turns the full-width digits and X of East Asian text (U+FF10 to FF19,
// FF38, FF58) into those of ASCII.
func ascii(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0xff10 && r <= 0xff58 }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xff10 && r <= 0xff19:
			return r - 0xff10 + '0'
		case r == 0xff38 || r == 0xff58:
			return 'X'
		}
		return r
	}, text)
}

// matches looks for a pattern, past matches that a digit touches where those do
// not count.
func (k *Kind) matches(text string) bool {
	for from := 0; from <= len(text); {
		at := k.Find.FindStringIndex(text[from:])
		if at == nil {
			return false
		}
		start, end := from+at[0], from+at[1]
		if start == end {
			return false // nothing is no leak
		}
		if !k.Whole || !digitBefore(text, start) && !digitAt(text, end) {
			return true
		}
		from = start + pastRun(text[start:])
	}
	return false
}

func digitBefore(text string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return unicode.IsDigit(r)
}

func digitAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsDigit(r)
}

// pastRun returns where the digits at the start of text end, at least one rune
// on: whatever begins within them has a digit before it.
func pastRun(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
	if end < 0 {
		return len(text)
	}
	_, size := utf8.DecodeRuneInString(text)
	return max(end, size)
}

// Leak is personal data in an answer: its kind and where it stands, never
// itself.
type Leak struct {
	Kind  string
	Field string // items[0].name; a key that is personal data itself is masked
}

// leaks finds all personal data in an answer, by field and kind: in strings, in
// whole numbers and in keys.
func (c *Contract) leaks(v any) (out []Leak) {
	c.walk(v, "", func(path, text string) { out = append(out, c.leaksIn(text, path)...) })
	return out
}

func (c *Contract) leaksIn(text, path string) (out []Leak) {
	for i := range c.Kinds {
		if c.Kinds[i].in(text) {
			out = append(out, Leak{c.Kinds[i].Name, path})
		}
	}
	return out
}

// leaksBeside finds personal data in the texts of a completion that are not the
// answer: prose beside a tool call, other choices, the reasoning. A text that is
// JSON itself, such as the arguments of a second call, is looked through as an
// answer is, so that excepted fields are excepted there too.
func (c *Contract) leaksBeside(texts []spoken) (out []Leak) {
	for _, s := range texts {
		at := c.shownPath(s.at)
		v, err := Decode([]byte(s.text))
		if err != nil {
			out = append(out, c.leaksIn(s.text, at)...)
			continue
		}
		for _, l := range c.leaks(v) {
			out = append(out, Leak{l.Kind, join(at, l.Field)})
		}
	}
	return out
}

// shownPath is where a text stands, with keys that may not be shown masked.
func (c *Contract) shownPath(at string) string {
	parts := strings.Split(at, ".")
	for i := range parts {
		name, item, list := strings.Cut(parts[i], "[")
		if parts[i] = c.shown(name); list {
			parts[i] += "[" + item
		}
	}
	return strings.Join(parts, ".")
}

// walk calls see with every text of an answer but those of excepted fields, in
// the order of the keys.
func (c *Contract) walk(v any, path string, see func(path, text string)) {
	if slices.Contains(c.Except, generic(path)) {
		return
	}
	switch v := v.(type) {
	case string:
		see(path, v)
	case json.Number:
		if whole, ok := wholeDigits(v); ok {
			see(path, whole)
		}
	case []any:
		for i, item := range v {
			c.walk(item, path+"["+strconv.Itoa(i)+"]", see)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := join(path, c.shown(key))
			see(below, key)
			c.walk(v[key], below, see)
		}
	}
}

// wholeDigits returns the digits of a whole number, however it is written.
func wholeDigits(n json.Number) (string, bool) {
	if !strings.ContainsAny(string(n), ".eE") {
		return string(n), true
	}
	r, ok := rational(n)
	if !ok || !r.IsInt() {
		return "", false
	}
	return r.Num().String(), true
}

// maskedKey stands for a key that is personal data, or that no name has.
const maskedKey = "<key>"

// shown returns a key as reasons may show it.
func (c *Contract) shown(key string) string {
	if key == "" || len(key) > 100 || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return maskedKey
	}
	if strings.Contains(key, "@") || longRun(key) {
		return maskedKey // an address, or part of a number: of a kind that nobody looks for
	}
	for i := range c.Kinds {
		if c.Kinds[i].in(key) {
			return maskedKey
		}
	}
	return key
}

// longRun reports whether a key has five digits or more in a row.
func longRun(key string) bool {
	return eachRun(ascii(key), func(digits string, _ bool) bool { return len(digits) >= 5 })
}

func join(path, key string) string {
	switch {
	case path == "":
		return key
	case key == "":
		return path
	}
	return path + "." + key
}

// generic is a path without the numbers of items: items[].name.
func generic(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		b.WriteByte(path[i])
		if path[i] == '[' {
			for i+1 < len(path) && path[i+1] != ']' {
				i++
			}
		}
	}
	return b.String()
}
