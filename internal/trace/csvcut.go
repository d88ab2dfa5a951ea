package trace

import "bytes"

// wholeRows is how much of a CSV text is whole rows.
func wholeRows(text []byte) int {
	for i := 0; ; {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return i + wholeLines(text[i:])
		}
		i += wholeLines(text[i : i+q])
		end, whole := rowEnd(text, i)
		if !whole {
			return i
		}
		i = end
	}
}

// rowEnd returns where the row that starts at text[i] ends, its newline
// included: by the rules of [csvReader.cellsOf], for which a row that is not
// well formed ends with the line in which that shows, and one longer than
// maxLine with the line in which it becomes so. whole is false where the text
// does not go so far.
func rowEnd(text []byte, i int) (end int, whole bool) {
	for start := i; ; i = end + 1 {
		stop, ended := lineEnd(text, i)
		q := bytes.IndexByte(text[i:stop], '"')
		if q < 0 {
			return stop, ended
		}
		if q += i; q > i && text[q-1] != ',' { // within a cell
			return stop, ended
		}
		if end = quotedEnd(text, q+1); end < 0 || end-start > maxLine {
			return overlongEnd(text, start, end)
		}
		if end == len(text) || text[end] != ',' {
			return lineEnd(text, end)
		}
	}
}

// quotedEnd returns the index after the quote that ends the cell in which text[i]
// is, -1 where there is none.
func quotedEnd(text []byte, i int) int {
	for {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return -1
		}
		if i += q + 1; i == len(text) || text[i] != '"' {
			return i
		}
		i++
	}
}

// lineEnd returns where the line ends that goes on at text[i].
func lineEnd(text []byte, i int) (end int, whole bool) {
	n := bytes.IndexByte(text[i:], '\n')
	if n < 0 {
		return len(text), false
	}
	return i + n + 1, true
}

// overlongEnd returns the end of the first line with which a row is longer than
// maxLine. Its quoted cell ends at end, if that is not -1.
func overlongEnd(text []byte, start, end int) (int, bool) {
	for i := start; ; {
		next, whole := lineEnd(text, i)
		if !whole || next-start > maxLine || end >= 0 && next > end {
			return next, whole
		}
		i = next
	}
}
