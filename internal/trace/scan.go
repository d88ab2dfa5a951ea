package trace

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// jsonScanner reads the fields of a recipe out of objects of JSON lines. It
// checks the whole object, so it accepts a line if and only if encoding/json
// does and the line is one object, but for one that is nested deeper than
// maxDepth, which it leaves to encoding/json. It needs a newline after the line
// and blockPad bytes after that.
//
// Lines of a log are alike: which key comes after which is remembered as a
// guess, and the next line's text compared with it in whole words. Only where
// it differs a key is read and looked up.
type jsonScanner struct {
	rowTaker
	keys  *keyBook
	slots map[string]*keySlot // by prefix
	start keySlot             // before the first member
	stack []byte              // brackets that are open
	high  bool                // a byte that is not ASCII was met in the object
}

// maxDepth bounds how deep objects are nested that this scanner reads.
const maxDepth = 1000

// maxSlots bounds how many different keys are remembered: past it they are data.
const maxSlots = 2 * maxOthers

// maxPrefix is how long a key is at most that is remembered.
const maxPrefix = 256

// keySlot is a key with all that stands between the value before and its own:
// comma, blanks, quotes, colon.
type keySlot struct {
	words, masks [2]uint64 // the first 16 bytes of the prefix
	n            int       // the length of the prefix
	rest         []byte    // of the prefix, after 16 bytes
	use          keyUse
	idle         bool  // its field is one on which no sum rests
	strange      bool  // a key that nobody met before
	stored       bool  // it is remembered
	high         bool  // it has bytes that are not ASCII
	field        Field // that is read from it
	fields       []Field
	next         [2]*keySlot // which keys came after it
}

// keyUse says what is done with the value of a key.
type keyUse uint8

const (
	skipped keyUse = iota
	toText
	toFlag
	toNumber
	toInstant
	toMany // fields of any kind
)

// useKeys makes the scanner read by other keys.
func (s *jsonScanner) useKeys(keys *keyBook) {
	s.keys, s.slots, s.start = keys, make(map[string]*keySlot), keySlot{}
}

// load reads eight bytes. With both ends named the compiler has to compare them,
// but not to compute where an empty rest would begin.
func load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// at reports whether the slot's prefix stands at b[i].
func (k *keySlot) at(b []byte, i int) bool {
	return (load(b, i)^k.words[0])&k.masks[0]|(load(b, i+8)^k.words[1])&k.masks[1] == 0 &&
		(k.rest == nil || bytes.HasPrefix(b[i+16:], k.rest))
}

// object reads the object that starts at b[i] into s.q, and returns the index
// after it. It reports false where the line must be read with care.
func (s *jsonScanner) object(b []byte, i int) (end int, ok bool) {
	s.high = false
	i++
	for last := &s.start; ; {
		key := last.next[0]
		// This is key.at(b, i), which most keys pass, without the call.
		head := (*[16]byte)(b[i : i+16])
		if key == nil || (binary.LittleEndian.Uint64(head[:8])^key.words[0])&key.masks[0]|(binary.LittleEndian.Uint64(head[8:])^key.words[1])&key.masks[1] != 0 ||
			key.rest != nil && !key.at(b, i) {
			if b[i] == '}' {
				return i + 1, true
			}
			if key = s.other(b, i, last); key == nil || key.strange {
				i = skipBlanks(b, i)
				return i + 1, key == nil && b[i] == '}'
			}
		}
		last, i = key, i+key.n
		s.high = s.high || key.high
		if b[i] == '"' {
			from := i + 1
			if key.use == toInstant { // mostly of the same minute as the one before
				if t, end, ok := s.clock.read(b, from); ok && b[end] == '"' {
					s.q.meet(key.field)
					s.q.t, s.clock.zone = t, false
					i = end + 1
					continue
				}
			}
			m := special(load(b, from))
			for i = from; m == 0; m = special(load(b, i)) {
				i += 8
			}
			if i += bits.TrailingZeros64(m) / 8; b[i] == '"' {
				if key.idle && s.sums {
					s.q.meet(key.field)
				} else if key.use != skipped && !s.plain(b[from:i], key) {
					return i, false
				}
				i++
				continue
			}
			i = from - 1 // something is escaped, or not ASCII
		}
		switch key.use {
		case skipped:
			if end := shortEnd(b, i); end > 0 {
				i = end
				continue
			}
			i, ok = s.skip(b, i)
		case toNumber:
			if n, end, short := shortNumber(b, i); short && n.mant < 1<<53 {
				s.q.meet(key.field)
				s.q.nums[key.field] = n
				i = end
				continue
			}
			i, ok = s.text(b, i, key.field)
		case toFlag:
			switch x := load(b, i); {
			case x&0xffffffff == wordTrue:
				s.q.meet(key.field)
				s.q.flags.add(key.field)
				i += 4
				continue
			case x&0xffffffffff == wordFalse:
				s.q.meet(key.field)
				i += 5
				continue
			}
			i, ok = s.text(b, i, key.field)
		default:
			i, ok = s.read(b, i, key)
		}
		if !ok {
			return i, false
		}
	}
}

// other finds the slot of the key at b[i], which is not the one that mostly
// comes after last. It returns nil where there is no key.
func (s *jsonScanner) other(b []byte, i int, last *keySlot) *keySlot {
	if key := last.next[1]; key != nil && key.at(b, i) {
		return key
	}
	key := s.meet(b, i, last == &s.start)
	if key != nil && key.stored && !key.strange {
		last.follow(key)
	}
	return key
}

// plain takes the text of a string in which nothing is escaped.
func (s *jsonScanner) plain(text []byte, key *keySlot) bool {
	text = trim(text)
	if key.use != toMany {
		return s.put(key.field, text)
	}
	for _, f := range key.fields {
		if !s.put(f, text) {
			return false
		}
	}
	return true
}

// follow remembers that a key came after this one.
func (k *keySlot) follow(next *keySlot) {
	if k.next[0] == nil {
		k.next[0] = next
	} else {
		k.next[1] = next
	}
}

// meet reads the key that stands at b[i], behind a comma unless it is the first,
// and finds its slot. It returns nil where there is no key.
func (s *jsonScanner) meet(b []byte, i int, first bool) *keySlot {
	start := i
	i = skipBlanks(b, i)
	if !first {
		if b[i] != ',' {
			return nil
		}
		i = skipBlanks(b, i+1)
	}
	if b[i] != '"' {
		return nil
	}
	name := i
	i, _ = s.stringEnd(b, i+1)
	if i < 0 {
		return nil
	}
	end := i
	if i = skipBlanks(b, i); b[i] != ':' {
		return nil
	}
	i = skipBlanks(b, i+1)
	prefix := b[start:i]
	k := s.slots[string(prefix)]
	if k == nil {
		k = s.newSlot(prefix, jsonscan.Text(b[name:end]))
		if len(s.slots) < maxSlots && len(prefix) <= maxPrefix {
			s.slots[string(prefix)] = k
			k.stored = true
		}
	}
	return k
}

func (s *jsonScanner) newSlot(prefix, name []byte) *keySlot {
	k := &keySlot{n: len(prefix), high: bytes.ContainsFunc(prefix, func(r rune) bool { return r >= utf8.RuneSelf })}
	var padded [16]byte
	for i := range copy(padded[:], prefix) {
		k.masks[i/8] |= 0xff << (i % 8 * 8)
	}
	for i := range k.words {
		k.words[i] = load(padded[:], 8*i)
	}
	if k.n > len(padded) {
		k.rest = bytes.Clone(prefix[len(padded):])
	}
	fields, known := s.keys.flat[string(name)]
	k.strange = !known && !s.keys.full && !s.keys.others[string(name)]
	if k.fields, k.use = fields, useOf(fields); len(fields) > 0 {
		k.field = fields[0]
		k.idle = k.use == toText && s.rc.idle.has(k.field)
	}
	return k
}

// useOf says what is done with a value that is read into such fields.
func useOf(fields []Field) keyUse {
	switch {
	case len(fields) == 0:
		return skipped
	case len(fields) > 1:
		return toMany
	}
	switch classes[fields[0]] {
	case numberClass:
		return toNumber
	case flagClass:
		return toFlag
	case instantClass:
		return toInstant
	}
	return toText
}

// read reads the value at b[i] into the fields of a key.
func (s *jsonScanner) read(b []byte, i int, key *keySlot) (end int, ok bool) {
	if key.use != toMany {
		return s.text(b, i, key.field)
	}
	for _, f := range key.fields {
		if end, ok = s.text(b, i, f); !ok {
			return i, false
		}
	}
	return end, true
}

// text reads a value of any kind into a field.
func (s *jsonScanner) text(b []byte, i int, f Field) (end int, ok bool) {
	switch b[i] {
	case '{', '[':
		return i, false
	case 'n':
		s.q.meet(f)
		s.q.null.add(f)
		return word(b, i, "null")
	case '"':
		end, escaped := s.stringEnd(b, i+1)
		if end < 0 {
			return i, false
		}
		text := b[i+1 : end-1]
		if escaped || s.high && !utf8.Valid(text) { // decoded by the careful reader
			return i, false
		}
		return end, s.put(f, trim(text))
	}
	if end, ok = s.skip(b, i); !ok {
		return i, false
	}
	return end, s.put(f, b[i:end])
}

// trim takes blanks off both ends, as [bytes.TrimSpace] does.
func trim(s []byte) []byte {
	if n := len(s); n > 0 && s[0]-'!' < utf8.RuneSelf-'!' && s[n-1]-'!' < utf8.RuneSelf-'!' {
		return s
	}
	return bytes.TrimSpace(s)
}

// skip checks the value at b[i] and returns the index after it.
func (s *jsonScanner) skip(b []byte, i int) (end int, ok bool) {
	switch b[i] {
	case '"':
		end, _ = s.stringEnd(b, i+1)
		return end, end > 0
	case '{', '[':
		return s.nested(b, i)
	case 't':
		return word(b, i, "true")
	case 'f':
		return word(b, i, "false")
	case 'n':
		return word(b, i, "null")
	}
	return numberEnd(b, i)
}

func word(b []byte, i int, w string) (end int, ok bool) {
	end = i + len(w)
	return end, string(b[i:end]) == w
}

// nested checks an object or an array within the line's object.
func (s *jsonScanner) nested(b []byte, i int) (end int, ok bool) {
	s.stack = s.stack[:0]
	for {
		i = skipBlanks(b, i)
		if c := b[i]; c == '{' || c == '[' {
			if len(s.stack) == maxDepth {
				return i, false
			}
			s.stack = append(s.stack, c+2) // the bracket that closes it
			i = skipBlanks(b, i+1)
			if b[i] != c+2 {
				if c == '{' {
					i, ok = s.innerKey(b, i)
					if !ok {
						return i, false
					}
				}
				continue
			}
		} else if i, ok = s.skip(b, i); !ok {
			return i, false
		} else if i = skipBlanks(b, i); b[i] == ',' {
			if i = skipBlanks(b, i+1); s.stack[len(s.stack)-1] == '}' {
				if i, ok = s.innerKey(b, i); !ok {
					return i, false
				}
			}
			continue
		}
		if i, ok = s.closing(b, i); !ok || len(s.stack) == 0 {
			return i, ok
		}
	}
}

// closing reads the brackets that close at b[i], and the comma and the key after
// them.
func (s *jsonScanner) closing(b []byte, i int) (end int, ok bool) {
	for {
		n := len(s.stack) - 1
		if b[i] != s.stack[n] {
			return i, false
		}
		s.stack = s.stack[:n]
		i++
		if n == 0 {
			return i, true
		}
		if i = skipBlanks(b, i); b[i] != ',' {
			continue
		}
		if i = skipBlanks(b, i+1); s.stack[n-1] == '}' {
			return s.innerKey(b, i)
		}
		return i, true
	}
}

// innerKey checks the key and the colon at b[i].
func (s *jsonScanner) innerKey(b []byte, i int) (end int, ok bool) {
	if b[i] != '"' {
		return i, false
	}
	if i, _ = s.stringEnd(b, i+1); i < 0 {
		return i, false
	}
	i = skipBlanks(b, i)
	return i + 1, b[i] == ':'
}

const (
	ones  = 0x0101010101010101
	ones2 = 0x0001000100010001
	ones4 = 0x0000000100000001
	highs = 0x8080808080808080

	wordTrue  = 't' | 'r'<<8 | 'u'<<16 | 'e'<<24
	wordFalse = 'f' | 'a'<<8 | 'l'<<16 | 's'<<24 | 'e'<<32
)

// stringEnd checks the string whose first byte after the quote is b[i], eight
// bytes at a time, and returns the index after its last quote, -1 where it is
// not valid.
func (s *jsonScanner) stringEnd(b []byte, i int) (end int, escaped bool) {
	for {
		m := special(load(b, i))
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c >= utf8.RuneSelf:
			s.high = true
			i++
		case c == '\\':
			n := escape(b, i)
			if n == 0 {
				return -1, false
			}
			i, escaped = i+n, true
		default:
			return -1, false
		}
	}
}

// same has the highest bit of each byte set that is c. Nothing is carried from one
// byte to the next, so all bits are right.
func same(x uint64, c byte) uint64 {
	x ^= ones * uint64(c)
	return ^((x&^highs + ones*0x7f) | x) & highs
}

// special has the highest bit of each byte set that ends a string, escapes, is a
// control or is not ASCII. Of each kind the lowest is right, so the lowest of
// all; those above it may err (Mycroft's test for a zero byte).
func special(x uint64) uint64 {
	quote, slash := x^ones*'"', x^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x | x) & highs
}

// escape is the length of the escape at b[i], 0 if it is none.
func escape(b []byte, i int) int {
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for _, c := range b[i+2 : i+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// numberEnd checks the number at b[i].
func numberEnd(b []byte, i int) (end int, ok bool) {
	if b[i] == '-' {
		i++
	}
	if b[i] == '0' {
		i++
	} else if i, ok = digitsEnd(b, i); !ok {
		return i, false
	}
	if b[i] == '.' {
		if i, ok = digitsEnd(b, i+1); !ok {
			return i, false
		}
	}
	if b[i]|0x20 == 'e' {
		if i++; b[i] == '+' || b[i] == '-' {
			i++
		}
		return digitsEnd(b, i)
	}
	return i, true
}

// shortNumber reads a number without an exponent, with at most eight digits, or
// seven before a point and eight after it. Of everything else it says no.
func shortNumber(b []byte, i int) (n number, end int, ok bool) {
	if b[i] == '-' {
		n.neg = true
		i++
	}
	x := load(b, i)
	others := nonDigits(x)
	before := bits.TrailingZeros64(others) / 8
	if before == 0 || before > 1 && byte(x) == '0' {
		return n, i, false
	}
	x ^= ones * '0'
	if end = i + before; before == 8 || b[end] != '.' {
		n.mant = eightDigits(x << (64 - 8*before))
	} else if all := bits.TrailingZeros64(others&(others-1)) / 8; all < 8 || b[i+8]-'0' > 9 { // all of it is in one word
		if all == before+1 {
			return n, i, false
		}
		whole := uint64(1)<<(8*before) - 1
		n.mant = eightDigits((x&whole | x>>8&^whole) << (64 - 8*(all-1)))
		n.exp, end = before+1-all, i+all
	} else {
		after, count := digits8(load(b, end+1))
		if count == 0 {
			return n, i, false
		}
		n.mant = eightDigits(x<<(64-8*before))*powersOf10[count] + after
		n.exp, end = -count, end+1+count
	}
	return n, end, b[end]-'0' > 9 && b[end]|0x20 != 'e' && b[end] != '.'
}

// shortEnd returns the index after such a number where a comma or a bracket
// follows, else 0.
func shortEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	x := load(b, i)
	others := nonDigits(x)
	n := bits.TrailingZeros64(others) / 8
	if n == 0 || n == 8 || n > 1 && byte(x) == '0' {
		return 0
	}
	if b[i+n] == '.' {
		if all := bits.TrailingZeros64(others&(others-1)) / 8; all == n+1 {
			return 0
		} else if all < 8 || b[i+8]-'0' > 9 {
			n = all
		} else {
			more := bits.TrailingZeros64(nonDigits(load(b, i+n+1))) / 8
			if more == 0 || more == 8 {
				return 0
			}
			n += 1 + more
		}
	}
	if i += n; b[i] != ',' && b[i] != '}' {
		return 0
	}
	return i
}

// nonDigits has the highest bit of each byte set that is no digit.
func nonDigits(x uint64) uint64 {
	x ^= ones * '0'
	return (x&^highs + ones*(0x80-10) | x) & highs
}

// digits8 reads the digits at the start of eight bytes, and how many there are.
func digits8(x uint64) (value uint64, count int) {
	count = bits.TrailingZeros64(nonDigits(x)) / 8
	return eightDigits((x ^ ones*'0') << (64 - 8*count)), count // digits that are not there become leading zeros
}

// eightDigits is the value of eight digits from 0 to 9, the first of which is in the
// lowest byte.
func eightDigits(x uint64) uint64 {
	x = x * (10<<8 + 1) >> 8 & (ones2 * 0xff)
	x = x * (100<<16 + 1) >> 16 & (ones4 * 0xffff)
	return x * (10000<<32 + 1) >> 32
}

// digitsEnd returns the index after the digits at b[i]; ok says that there is
// one.
func digitsEnd(b []byte, i int) (end int, ok bool) {
	for start := i; ; {
		x := load(b, i) ^ ones*'0'
		if m := (x + ones*(0x80-10) | x) & highs; m != 0 {
			i += bits.TrailingZeros64(m) / 8
			return i, i > start
		}
		i += 8
	}
}

// skipBlanks skips what may stand between the parts of an object, except the
// newline that ends the line.
func skipBlanks(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' {
		i++
	}
	return i
}
