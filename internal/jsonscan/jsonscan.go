// Package jsonscan walks JSON that is known to be valid without decoding it:
// logs have millions of lines, of which a few keys matter. What is not valid
// makes it panic; see [encoding/json.Valid].
package jsonscan

import (
	"encoding/json"
	"unicode/utf8"
)

// Text decodes a valid JSON string with its quotes.
func Text(v []byte) []byte {
	inner := v[1 : len(v)-1]
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				return inner // unreachable for valid JSON
			}
			return []byte(s)
		}
	}
	return inner
}

// EachMember calls f for every member of an object in order, with the key
// decoded and the value as written. obj must be a valid JSON object: only then
// is it enough to count quotes and brackets.
func EachMember(obj []byte, f func(key, value []byte)) {
	i := SkipSpace(obj, 1)
	for obj[i] != '}' {
		end := stringEnd(obj, i)
		key := Text(obj[i:end])
		i = SkipSpace(obj, SkipSpace(obj, end)+1) // past the colon
		end = ValueEnd(obj, i)
		f(key, obj[i:end])
		i = SkipSpace(obj, end)
		if obj[i] == ',' {
			i = SkipSpace(obj, i+1)
		}
	}
}

// SkipSpace returns the index of the first byte from s[i] on that is no white
// space. There must be one.
func SkipSpace(s []byte, i int) int {
	for s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r' {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at s[i].
func stringEnd(s []byte, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// ValueEnd returns the index after the value that starts at s[i].
func ValueEnd(s []byte, i int) int {
	switch s[i] {
	case '"':
		return stringEnd(s, i)
	case '{', '[':
	default:
		for ; i < len(s); i++ {
			switch s[i] {
			case ',', '}', ']', ' ', '\t', '\n', '\r':
				return i
			}
		}
		return i
	}
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = stringEnd(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
}
