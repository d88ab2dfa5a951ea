package config

// nearest returns the word that a mistyped one most likely meant, or "".
// Closer than a third of its length counts, the first of several.
func nearest(typed string, words []string) string {
	best, name := max(1, len(typed)/3)+1, ""
	if len(typed) > 64 {
		return ""
	}
	for _, w := range words {
		if d := distance(typed, w); d < best {
			best, name = d, w
		}
	}
	return name
}

// distance is the number of runes to insert, delete, replace or swap with
// their neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	two, one, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range one {
		one[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(one[j+1]+1, row[j]+1, one[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], two[j-1]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(t)]
}
