package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// csvReader reads comma-separated values with a header (RFC 4180; quoted cells
// may hold newlines).
type csvReader struct {
	lines  *lineReader // over the file, or over single rows that were cut out of it
	over   bytes.Reader
	bind   func(names []string) (*plan, error)
	plan   *plan
	header []string
	cells  []csvCell
	fields [][]byte
	// A record with quotes: its cells, where each ends, and as it was written.
	buf  []byte
	ends []int
	raw  []byte
	// open says that the last record had no newline and its last column is
	// read: were the file cut off there, the figure would be wrong.
	open bool
}

// errOpenQuote says that the text ends inside a quoted cell.
var errOpenQuote = &badRow{"a quoted cell does not end; the file may be cut off"}

// errLongCell is returned for a quoted cell that is too long. What follows may be
// within it or not: rows that somebody wrote into a text must not be counted.
func errLongCell() error {
	return &InputError{Msg: fmt.Sprintf("a quoted cell does not end within %d MiB", maxLine>>20), Advice: "is its closing quote missing? leave columns of long texts out of the export"}
}

// csvCell is a field and the column it is read from; inner leads on into a
// cell that holds a JSON object.
type csvCell struct {
	field Field
	index int
	inner Path
}

func (c *csvReader) next(r *row) error {
	r.reset()
	if c.plan == nil {
		if err := c.readHeader(); err != nil {
			return err
		}
	}
	return c.nextRow(r)
}

// nextIn implements [carefulReader].
func (c *csvReader) nextIn(r *row, o *oddRow) error {
	r.reset()
	switch {
	case o.long && bytes.IndexByte(o.text, '"') >= 0:
		return errLongCell()
	case o.long:
		return errLineTooLong()
	}
	c.over.Reset(o.text)
	if c.lines == nil {
		c.lines = newLineReader(bufio.NewReaderSize(&c.over, bufferSize))
	}
	c.lines.r.Reset(&c.over)
	c.lines.line = 0
	if c.plan != nil {
		line := r.line
		err := c.nextRow(r)
		r.line = line
		return err
	}
	if err := c.readHeader(); err != nil {
		return err
	}
	return errHeader
}

// linesIn is how many lines a text has, the last one with a newline or without.
func linesIn(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// nextRow reads a row after the header.
func (c *csvReader) nextRow(r *row) error {
	err := c.record(r)
	if err != nil {
		return err
	}
	if len(c.fields) != len(c.header) {
		return &badRow{fmt.Sprintf("%d cells, the header has %d%s", len(c.fields), len(c.header), ifCut(c.lines.cut))}
	}
	if bytes.IndexByte(r.raw, 0) >= 0 {
		return &badRow{"it has NUL bytes"}
	}
	for _, cell := range c.cells {
		text := bytes.TrimSpace(c.fields[cell.index])
		if cell.inner != nil {
			if r.cells[cell.field], err = innerCell(text, cell.inner); err != nil {
				return &badRow{printable(c.header[cell.index]) + " " + err.Error()}
			}
			continue
		}
		r.cells[cell.field] = scalarCell(validText(text))
	}
	if c.lines.cut {
		c.open = slices.ContainsFunc(c.cells, func(cell csvCell) bool { return cell.index == len(c.header)-1 })
	}
	return nil
}

func ifCut(cut bool) string {
	if cut {
		return "; the last line has no newline, it may be cut off"
	}
	return ""
}

// innerCell looks a path up in a cell that holds JSON, or nothing.
func innerCell(text []byte, path Path) (cell, error) {
	if isMissing(text) {
		return cell{}, nil
	}
	if !json.Valid(text) {
		return cell{}, fmt.Errorf("%s is not JSON", quote(text))
	}
	value, ok := findPath(text, path)
	if !ok {
		return cell{}, nil
	}
	return jsonCell(value), nil
}

// readHeader reads the names of the columns and makes the plan.
func (c *csvReader) readHeader() error {
	var r row
	if err := c.record(&r); err != nil {
		if bad, ok := errors.AsType[*badRow](err); ok {
			return fmt.Errorf("the header: %w", bad)
		}
		return err
	}
	for _, f := range c.fields {
		c.header = append(c.header, strings.TrimSpace(string(validText(f))))
	}
	if err := checkHeader(c.header); err != nil {
		return err
	}
	p, err := c.bind(c.header)
	if err != nil {
		return err
	}
	c.plan = p
	for _, col := range p.columns {
		if err := c.place(col); err != nil {
			return err
		}
	}
	return nil
}

// checkHeader refuses what is no header of comma-separated values.
func checkHeader(names []string) error {
	numbers := 0
	for _, n := range names {
		if _, fig := parseNumber([]byte(n)); fig == finite {
			numbers++
		}
	}
	switch {
	case numbers > 0 && numbers*2 >= len(names):
		return fmt.Errorf("the first line, %s, is data: CSV needs a header with the names of the columns", quote([]byte(strings.Join(names, ","))))
	case len(names) == 1 && strings.ContainsAny(names[0], ";\t|"):
		return fmt.Errorf("the header %s has no commas: cells must be separated by commas", quote([]byte(names[0])))
	}
	return nil
}

// place finds the column of a field: by its whole name, or by the head of a
// dotted one, whose cells are then JSON.
func (c *csvReader) place(col column) error {
	for n := len(col.path); n > 0; n-- {
		name := strings.Join(col.path[:n], ".")
		at := slices.Index(c.header, name)
		if at < 0 {
			continue
		}
		if slices.Contains(c.header[at+1:], name) {
			return fmt.Errorf("two columns are named %s", printable(name))
		}
		cell := csvCell{field: col.field, index: at}
		if n < len(col.path) {
			cell.inner = col.path[n:]
		}
		c.cells = append(c.cells, cell)
		return nil
	}
	if !col.mapped {
		return nil
	}
	e := &MappingError{Text: col.field.String() + "=" + col.path.String(), Msg: fmt.Sprintf("there is no column %q", col.path), Advice: "the columns are " + list(c.header)}
	if near := diag.Nearest(col.path.String(), c.header); near != "" {
		e.Advice = fmt.Sprintf("did you mean %s?", near)
	}
	return e
}

// record reads the next record into c.fields and says in r where it stood.
func (c *csvReader) record(r *row) error {
	for {
		text, err := c.lines.next()
		r.line = c.lines.line
		if err == c.lines.tooLong && c.lines.quoted {
			return errLongCell()
		}
		if err != nil {
			return err
		}
		if blank(text) {
			continue
		}
		c.fields = c.fields[:0]
		if bytes.IndexByte(text, '"') < 0 {
			r.raw = text
			c.splitPlain(text)
			return nil
		}
		return c.quoted(r, text)
	}
}

func (c *csvReader) splitPlain(text []byte) {
	for {
		i := bytes.IndexByte(text, ',')
		if i < 0 {
			c.fields = append(c.fields, text)
			return
		}
		c.fields = append(c.fields, text[:i])
		text = text[i+1:]
	}
}

// quoted splits a record with quotes in it, reading further lines where a
// quoted cell holds newlines. The rules are those of encoding/csv: a quote may
// stand only around a whole cell, or doubled inside one.
func (c *csvReader) quoted(r *row, text []byte) error {
	first := c.lines.line
	c.raw = append(c.raw[:0], text...)
	c.buf, c.ends = c.buf[:0], c.ends[:0]
	err := c.cellsOf(text)
	r.lines = c.lines.line - first + 1
	r.raw = c.raw
	if err != nil {
		return err
	}
	start := 0
	for _, end := range c.ends {
		c.fields = append(c.fields, c.buf[start:end])
		start = end
	}
	return nil
}

func (c *csvReader) cellsOf(text []byte) error {
	for {
		if len(text) == 0 || text[0] != '"' {
			i := bytes.IndexByte(text, ',')
			plain := text
			if i >= 0 {
				plain = text[:i]
			}
			if bytes.IndexByte(plain, '"') >= 0 {
				return &badRow{"a quote inside a cell that does not start with one"}
			}
			c.buf = append(c.buf, plain...)
			c.ends = append(c.ends, len(c.buf))
			if i < 0 {
				return nil
			}
			text = text[i+1:]
			continue
		}
		rest, err := c.quotedCell(text[1:])
		if err != nil {
			return err
		}
		c.ends = append(c.ends, len(c.buf))
		switch {
		case len(rest) == 0:
			return nil
		case rest[0] != ',':
			return &badRow{"a quote inside a quoted cell that is not doubled"}
		}
		text = rest[1:]
	}
}

// quotedCell appends the cell that text is inside of, and returns what follows
// its closing quote.
func (c *csvReader) quotedCell(text []byte) ([]byte, error) {
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			c.buf = append(append(c.buf, text...), '\n')
			next, err := c.lines.next()
			switch {
			case errors.Is(err, io.EOF):
				return nil, errOpenQuote
			case err != nil:
				return nil, err
			case len(c.raw)+len(next)+2 > maxLine: // with the newlines
				return nil, errLongCell()
			}
			c.raw = append(append(c.raw, '\n'), next...)
			text = next
			continue
		}
		c.buf = append(c.buf, text[:i]...)
		if i+1 == len(text) || text[i+1] != '"' {
			return text[i+1:], nil
		}
		c.buf = append(c.buf, '"')
		text = text[i+2:]
	}
}
