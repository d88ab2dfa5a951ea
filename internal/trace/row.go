package trace

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rowReader reads the rows of one file, whatever its format. A faster reader,
// or one of another format, is another implementation of this interface.
type rowReader interface {
	// next fills r with the next row; what r points to is valid until the
	// next call. It returns io.EOF after the last row, a *badRow for a row
	// that cannot be read, after which reading goes on, and any other error
	// when the file cannot be read further.
	next(r *row) error
}

// row is one row of a file: the cells of the fields that its plan asks for.
type row struct {
	cells [numRead]cell
	raw   []byte // the row as it stands in the file
	line  int64  // its first line, from 1
	lines int64  // how many it spans
	point bool   // a Prometheus point: one figure of a window, for the time before t
	twice bool   // a field stood in it more than once
	named bool   // raw holds an id of its own: the same again is the same request
	span  bool   // raw is nothing but that id, which no other request has
}

func (r *row) reset() {
	clear(r.cells[:])
	r.raw, r.lines, r.point, r.twice, r.named, r.span = nil, 1, false, false, false, false
}

// cell is a value as text. Strings are decoded, everything else is as written.
type cell struct {
	kind cellKind
	text []byte
}

type cellKind uint8

const (
	absent    cellKind = iota // no such column or key
	null                      // null, or an empty string
	scalar                    // text, number, true or false
	composite                 // an object or an array
)

// present reports whether there is a value.
func (c cell) present() bool { return c.kind >= scalar }

// scalarCell is a cell with text, null where that is empty.
func scalarCell(text []byte) cell {
	if len(text) == 0 {
		return cell{kind: null}
	}
	return cell{kind: scalar, text: text}
}

// badRow says why a row cannot be read.
type badRow struct{ reason string }

// Error implements error.
func (b *badRow) Error() string { return b.reason }

func badField(f Field, format string, args ...any) error {
	return &badRow{f.String() + " " + fmt.Sprintf(format, args...)}
}

// maxCount bounds a count: a trillion requests in one window is a mistake, and
// far from where sums overflow.
const maxCount = 1_000_000_000_000

// count reads a cell that must be a whole number of at least 0.
func (r *row) count(f Field) (v int64, fig figure, err error) {
	n, fig, err := r.number(f)
	if fig != finite {
		return 0, fig, err
	}
	v, ok := n.whole()
	_, fits := n.floor(0)
	switch {
	case !fits:
		return 0, fig, badField(f, "%s is too large for a count", quote(r.cells[f].text))
	case !ok:
		return 0, fig, badField(f, "%s is not a whole number", quote(r.cells[f].text))
	case v < 0:
		return 0, fig, badField(f, "%s is negative", quote(r.cells[f].text))
	case v > maxCount:
		return 0, fig, badField(f, "%s is too large for a count", quote(r.cells[f].text))
	}
	return v, fig, nil
}

// number reads a cell that must be a number or nothing.
func (r *row) number(f Field) (number, figure, error) {
	c := &r.cells[f]
	switch c.kind {
	case absent, null:
		return number{}, missing, nil
	case composite:
		return number{}, notNumber, badField(f, "is an object or an array, not a number")
	}
	n, fig := parseNumber(c.text)
	if fig == notNumber {
		return n, fig, badField(f, "%s is not a number", quote(c.text))
	}
	return n, fig, nil
}

// measure reads a cell as a float64 of at least 0, scaled by 10^pow.
func (r *row) measure(f Field, pow int) (float64, figure, error) {
	n, fig, err := r.number(f)
	if fig != finite {
		return 0, fig, err
	}
	if n.negative() {
		return 0, fig, badField(f, "%s is negative", quote(r.cells[f].text))
	}
	v, ok := n.float(r.cells[f].text, pow)
	if !ok {
		return 0, fig, badField(f, "%s is out of range", quote(r.cells[f].text))
	}
	return v, fig, nil
}

// flag reads a cell that must be true, false or nothing; known is false for
// nothing.
func (r *row) flag(f Field) (value, known bool, err error) {
	c := &r.cells[f]
	switch c.kind {
	case absent, null:
		return false, false, nil
	case composite:
		return false, false, badField(f, "is an object or an array, neither true nor false")
	}
	if value, known, ok := flagOf(c.text); ok {
		return value, known, nil
	}
	return false, false, badField(f, "%s is neither true nor false", quote(c.text))
}

// flagOf reads a text that must be true, false or nothing; known is false for
// nothing.
func flagOf(text []byte) (value, known, ok bool) {
	switch string(text) {
	case "true":
		return true, true, true
	case "false":
		return false, true, true
	}
	switch {
	case foldedIn(text, trueWords):
		return true, true, true
	case foldedIn(text, falseWords):
		return false, true, true
	}
	return false, false, isMissing(text)
}

var (
	trueWords  = []string{"true", "1", "t", "1.0"}
	falseWords = []string{"false", "0", "f", "0.0"}
)

// text reads a cell as a name, "" where it is missing.
func (r *row) text(f Field) ([]byte, error) {
	c := r.cells[f]
	if c.kind == composite {
		return nil, badField(f, "is an object or an array, not a name")
	}
	return c.text, nil
}

// quote shows a cell in a message: in quotes, without control characters, at
// most 40 characters.
func quote(s []byte) string {
	const most = 40
	if utf8.RuneCount(s) > most {
		cut := 0
		for range most {
			_, n := utf8.DecodeRune(s[cut:])
			cut += n
		}
		return strconv.Quote(string(s[:cut])) + "..."
	}
	return strconv.Quote(string(s))
}

// printable shows a name in a message, quoted only where it needs to be.
func printable(s string) string {
	if q := strconv.Quote(s); len(q) != len(s)+2 || strings.ContainsAny(s, " ,") || s == "" {
		return quote([]byte(s))
	}
	return s
}

// validText returns s with invalid UTF-8 replaced by U+FFFD, as encoding/json
// does, so that the same name is the same in every format.
func validText(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	return bytes.ToValidUTF8(s, []byte("\uFFFD"))
}
