package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	pqformat "github.com/parquet-go/parquet-go/format"
)

// cursor walks a column of a slice, some rows at a time.
type cursor struct {
	column *parquetColumn
	r      io.ReaderAt
	room   *pageRoom
	codec  pqformat.CompressionCodec
	next   []pagePlace // the pages that were not read yet
	page   *loadedPage
	row    int // the next row of the page
	value  int // the value at it, or after it where it is null

	entries      cells // the dictionary of the pages
	dictionary   int   // its number, 0 for none
	dictionaries int   // how many were read

	pieces []piece
	held   []*loadedPage // pages that the pieces point into
	free   []*loadedPage // memory for more of them
}

// piece is a part of the rows asked for that lies in one page.
type piece struct {
	*loadedPage
	first int // of the rows asked for, the first in the piece
	n     int
	row   int // of the page
	value int
}

// open starts a slice.
func (c *cursor) open(r io.ReaderAt, room *pageRoom, start *columnStart) error {
	c.close()
	c.r, c.room, c.codec, c.next = r, room, start.codec, start.pages
	if start.dictionary.kind == pqformat.DictionaryPage {
		if err := c.loadDictionary(&start.dictionary); err != nil {
			return err
		}
	}
	for skip := start.skip; skip > 0; {
		if err := c.load(); err != nil {
			return err
		}
		n := min(skip, int64(c.page.rows))
		c.forward(int(n))
		skip -= n
	}
	return nil
}

func (c *cursor) close() {
	c.release()
	if c.page != nil {
		c.free = append(c.free, c.page)
	}
	c.next, c.page, c.row, c.value, c.dictionary = nil, nil, 0, 0, 0
}

// release lets go of the pages that the last pieces pointed into.
func (c *cursor) release() {
	c.free = append(c.free, c.held...)
	c.held, c.pieces = c.held[:0], c.pieces[:0]
}

// take moves over so many rows and returns where they are. What it returned
// before is no longer valid.
func (c *cursor) take(rows int) ([]piece, error) {
	c.release()
	for done := 0; done < rows; {
		if c.page == nil || c.row == c.page.rows {
			if err := c.load(); err != nil {
				return nil, err
			}
			continue
		}
		n := min(rows-done, c.page.rows-c.row)
		c.pieces = append(c.pieces, piece{loadedPage: c.page, first: done, n: n, row: c.row, value: c.value})
		c.forward(n)
		done += n
	}
	return c.pieces, nil
}

// forward moves over rows of the page.
func (c *cursor) forward(n int) {
	if defs := c.page.defs; defs == nil {
		c.value += n
	} else {
		c.value += bytes.Count(defs[c.row:c.row+n], []byte{c.column.nulls})
	}
	c.row += n
}

// load reads the next page.
func (c *cursor) load() error {
	if len(c.next) == 0 {
		return io.EOF
	}
	place := &c.next[0]
	c.next = c.next[1:]
	if c.page != nil {
		c.held = append(c.held, c.page)
	}
	c.page, c.row, c.value = c.unused(), 0, 0
	data, err := c.room.read(c.r, c.codec, place)
	if err != nil {
		return err
	}
	if err := c.page.decode(c.column, place, data); err != nil {
		return err
	}
	if isDictionary(place.encoding) {
		if c.dictionary == 0 {
			return errors.New("a page without the dictionary that it needs")
		}
		c.page.cells, c.page.dictionary = c.entries, c.dictionary
	}
	return c.page.check()
}

// unused is memory for a page.
func (c *cursor) unused() *loadedPage {
	n := len(c.free)
	if n == 0 {
		return new(loadedPage)
	}
	l := c.free[n-1]
	c.free = c.free[:n-1]
	return l
}

// loadDictionary reads the dictionary of the pages that follow.
func (c *cursor) loadDictionary(place *pagePlace) error {
	data, err := c.room.read(c.r, c.codec, place)
	if err != nil {
		return err
	}
	encoding := place.encoding
	if isDictionary(encoding) {
		encoding = pqformat.Plain
	}
	c.entries.form = c.column.form
	if err := c.entries.decode(encoding, data, int(place.rows)); err != nil {
		return err
	}
	if place.rows < 0 || c.entries.n < int(place.rows) {
		return fmt.Errorf("a dictionary has %d values of %d", c.entries.n, place.rows)
	}
	c.dictionaries++
	c.dictionary = c.dictionaries
	return nil
}
