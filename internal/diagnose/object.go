package diagnose

import "encoding/json"

// eachMember calls f for every member of an object in order, with the key
// decoded and the value as written. object must be valid JSON: only then is it
// enough to count quotes and brackets. Logs have millions of lines, of which a
// few keys matter.
func eachMember(object []byte, f func(key, value []byte)) {
	i := skipSpace(object, 1)
	for object[i] != '}' {
		end := stringEnd(object, i)
		key := object[i+1 : end-1]
		if escaped(key) {
			key = []byte(unquote(object[i:end]))
		}
		i = skipSpace(object, skipSpace(object, end)+1) // past the colon
		end = valueEnd(object, i)
		f(key, object[i:end])
		if i = skipSpace(object, end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
}

// unquote decodes a valid JSON string with its quotes.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; !escaped(inner) {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it is valid
	return text
}

// escaped reports whether a string is more than its bytes.
func escaped(inner []byte) bool {
	for _, c := range inner {
		if c == '\\' || c >= 0x80 {
			return true
		}
	}
	return false
}

func skipSpace(s []byte, i int) int {
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

// valueEnd returns the index after the value that starts at s[i], which is
// inside an object.
func valueEnd(s []byte, i int) int {
	depth := 0
	for {
		switch s[i] {
		case '"':
			if i = stringEnd(s, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // a number or word before the end of the object
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
}
