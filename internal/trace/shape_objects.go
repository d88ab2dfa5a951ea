package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// objects reads the rows of a file into a bag, by what holds them: lines, an
// array, a document, or a table.
type objects interface {
	next(b *bag, r *row) error
	restart()
	cutOff() bool
}

// objectRows reads a file of which each object is one row.
type objectRows struct {
	from   objects
	shape  *shape
	scores *scoreBook // of Langfuse, nil without
}

func (o *objectRows) next(b *bag, r *row) (bool, error) {
	b.reset()
	if err := o.from.next(b, r); err != nil {
		return false, err
	}
	ok, err := o.shape.read(b, r)
	r.named = b.text("id", "request_id", "x-request-id") != nil
	if ok && err == nil {
		o.scores.join(b, r)
	}
	return ok, err
}

func (o *objectRows) restart()     { o.from.restart() }
func (o *objectRows) cutOff() bool { return o.from.cutOff() }

// lineObjects reads JSON objects, one a line or several.
type lineObjects struct {
	lines *lineReader
	more  []json.RawMessage // further objects of the line
	bad   error             // what follows them
	cut   bool              // the last line is cut off
}

func (l *lineObjects) restart()     { l.more, l.bad = nil, nil }
func (l *lineObjects) cutOff() bool { return l.cut }

func (l *lineObjects) next(b *bag, r *row) error {
	r.line = l.lines.line
	for {
		if len(l.more) > 0 {
			r.raw = l.more[0]
			l.more = l.more[1:]
			b.object(r.raw)
			return nil
		}
		if err := l.bad; err != nil {
			l.bad = nil
			return err
		}
		text, err := l.lines.next()
		r.line = l.lines.line
		if err != nil {
			return err
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if validObject(text) {
			r.raw = text
			b.object(text)
			return nil
		}
		l.split(text)
	}
}

// split takes a line apart that is not one object: several, or none.
func (l *lineObjects) split(text []byte) {
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var v json.RawMessage
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return
		}
		l.cut = l.lines.cut
		if err != nil {
			l.bad = invalidJSON(text, l.cut)
			return
		}
		if v[0] != '{' {
			l.bad = &badRow{"not a JSON object"}
			return
		}
		l.more = append(l.more, v)
	}
}

// documentObjects reads JSON objects that are written over several lines, one
// after the other, or a JSON array of them. Of an object that is a list of
// others under one key, as OTLP is, it reads those one at a time.
type documentObjects struct {
	dec   *json.Decoder
	limit *stepLimit
	key   string // the key of the list; "" for none
	array bool   // the file is an array

	depth int // 1 within the array or the object, 2 within the list
	n     int64
}

func newDocumentObjects(text *bufio.Reader, key string, array bool) *documentObjects {
	limit := &stepLimit{r: text, left: 2 * maxLine}
	return &documentObjects{dec: json.NewDecoder(limit), limit: limit, key: key, array: array}
}

func (d *documentObjects) restart()     {}
func (d *documentObjects) cutOff() bool { return false }

func (d *documentObjects) next(b *bag, r *row) error {
	for {
		d.limit.left = 2 * maxLine
		obj, err := d.step()
		r.line = d.n
		if err != nil {
			return err
		}
		if obj == nil {
			continue
		}
		r.raw = bytes.TrimSpace(obj)
		switch {
		case r.raw[0] != '{':
			return &badRow{"not a JSON object"}
		case d.depth == 2 && d.key == spansKey:
			b.put([]byte(spansKey), cell{kind: composite, text: r.raw})
		default:
			b.object(r.raw)
		}
		return nil
	}
}

// step reads on to the next object, nil where something else came first.
func (d *documentObjects) step() (json.RawMessage, error) {
	switch {
	case d.depth > 0 && !d.dec.More():
		if _, err := d.dec.Token(); err != nil {
			return nil, d.broken(err)
		}
		d.depth--
		return nil, nil
	case d.depth == 2 || d.depth == 1 && d.array || d.depth == 0 && !d.array && d.key == "":
		return d.object()
	case d.depth == 1:
		return nil, d.member()
	}
	t, err := d.dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil {
		return nil, d.broken(err)
	}
	want := json.Delim('{')
	if d.array {
		want = '['
	}
	if t != want || d.array && d.n > 0 {
		return nil, fmt.Errorf("something else follows the JSON, after element %d", d.n)
	}
	d.depth = 1
	return nil, nil
}

// object reads the next object whole.
func (d *documentObjects) object() (json.RawMessage, error) {
	var obj json.RawMessage
	if err := d.dec.Decode(&obj); err != nil {
		if d.depth == 0 && errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, d.broken(err)
	}
	d.n++
	return obj, nil
}

// member reads a key of the object with the list, and its value unless it is
// the list.
func (d *documentObjects) member() error {
	key, err := d.dec.Token()
	if err != nil {
		return d.broken(err)
	}
	if key == d.key {
		if t, err := d.dec.Token(); err != nil {
			return d.broken(err)
		} else if t == json.Delim('[') {
			d.depth = 2
			return nil
		} else if _, nested := t.(json.Delim); nested {
			return fmt.Errorf("%s is no list", d.key)
		}
		return nil
	}
	var skipped json.RawMessage
	if err := d.dec.Decode(&skipped); err != nil {
		return d.broken(err)
	}
	return nil
}

func (d *documentObjects) broken(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("cut off: the JSON does not end, after element %d", d.n)
	case isSyntax(err):
		return fmt.Errorf("not valid JSON near element %d: %w", d.n, err)
	}
	return err
}

// csvObjects reads the rows of a table.
type csvObjects struct{ csv *csvReader }

func newCSVObjects(text *bufio.Reader) *csvObjects {
	return &csvObjects{&csvReader{lines: newLineReader(text), bind: func([]string) (*plan, error) { return &plan{}, nil }}}
}

func (c *csvObjects) restart()     {}
func (c *csvObjects) cutOff() bool { return false }

func (c *csvObjects) next(b *bag, r *row) error {
	if err := c.csv.next(r); err != nil {
		return err
	}
	for i, name := range c.csv.header {
		text := validText(bytes.TrimSpace(c.csv.fields[i]))
		v := scalarCell(text)
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text) {
			v.kind = composite
		}
		b.put([]byte(name), v)
	}
	return nil
}
