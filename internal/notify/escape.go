package notify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// zeroWidth is a space of no width. Where a dialect has no way to escape, it
// stands behind a character that would begin formatting, which then begins
// none.
const zeroWidth = "\u200b"

// broken puts a zeroWidth behind each of chars that does not stand within a
// word: solve_rate stays as it is, so that it can be copied.
func broken(s, chars string) string {
	var b strings.Builder
	before := ' '
	for i, r := range s {
		b.WriteRune(r)
		if strings.ContainsRune(chars, r) {
			after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
			if r == '`' || !isWord(before) || !isWord(after) {
				b.WriteString(zeroWidth)
			}
		}
		before = r
	}
	return b.String()
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// slashed puts a backslash before each of chars.
func slashed(s, chars string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(chars, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// spans puts each line between backticks. A line with a backtick in it stands
// between two, as CommonMark has it (6.1).
func spans(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.Contains(line, "`") {
			lines[i] = "`` " + line + " ``"
		} else {
			lines[i] = "`" + line + "`"
		}
	}
	return strings.Join(lines, "\n")
}
