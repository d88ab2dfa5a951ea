package diag

import "unicode/utf8"

// maxTyped bounds the words that are compared: what is longer was not mistyped.
const maxTyped = 64

// Nearest returns the word that a mistyped one most likely meant, for a hint of
// the kind "did you mean"; the empty string where none is near. A word is near
// when at most a third of the typed runes, or one, have to be changed; of
// several as near, the first counts.
func Nearest(typed string, words []string) string {
	n := utf8.RuneCountInString(typed)
	if n > maxTyped {
		return ""
	}
	best, name := max(1, n/3)+1, ""
	for _, w := range words {
		if d := distance([]rune(typed), []rune(w)); d < best {
			best, name = d, w
		}
	}
	return name
}

// distance is the number of runes to insert, delete, replace or swap with
// their neighbour to turn a into b (optimal string alignment).
func distance(a, b []rune) int {
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(one[j+1]+1, row[j]+1, one[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], two[j-1]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(b)]
}
