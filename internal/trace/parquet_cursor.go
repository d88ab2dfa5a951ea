package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// cursor walks a column of a slice, some rows at a time.
type cursor struct {
	column *parquetColumn
	pages  *parquet.FilePages
	page   loadedPage
	row    int // the next row of the page
	value  int // the value at it, or after it where it is null

	dictionary parquet.Dictionary // of the pages
	entries    cells              // what is in it

	pieces []piece
	held   []parquet.Page // pages that the pieces point into
}

// loadedPage is a page that was decoded.
type loadedPage struct {
	page  parquet.Page
	rows  int
	cells cells   // its values, or those of its dictionary
	index []int32 // which of the dictionary's each value is, nil without one
	defs  []byte  // definition levels, nil where no value is null
	level byte    // that of values which are not null

	dictionary parquet.Dictionary
}

// piece is a part of the rows asked for that lies in one page.
type piece struct {
	loadedPage
	first int // of the rows asked for, the first in the piece
	n     int
	row   int // of the page
	value int
}

func (c *cursor) open(r io.ReaderAt, room *pageRoom, s *parquetSlice, at int) error {
	c.close()
	chunk, ok := s.group.ColumnChunks()[c.column.at].(*parquet.FileColumnChunk)
	if !ok {
		return errors.New("a column cannot be read")
	}
	start := s.starts[at]
	c.pages = chunk.PagesFrom(&pageServer{r: r, codec: start.codec, pages: start.pages, start: servedFrom, room: room})
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
	if c.page.page != nil {
		parquet.Release(c.page.page)
	}
	if c.pages != nil {
		c.pages.Close() //nolint:errcheck // it never fails
	}
	c.pages, c.page, c.row, c.value, c.dictionary = nil, loadedPage{}, 0, 0, nil
}

// release lets go of the pages that the last pieces pointed into.
func (c *cursor) release() {
	for i, p := range c.held {
		parquet.Release(p)
		c.held[i] = nil
	}
	c.held, c.pieces = c.held[:0], c.pieces[:0]
}

// take moves over so many rows and returns where they are. What it returned
// before is no longer valid.
func (c *cursor) take(rows int) ([]piece, error) {
	c.release()
	for done := 0; done < rows; {
		if c.row == c.page.rows {
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
	if c.page.page != nil {
		c.held = append(c.held, c.page.page)
	}
	c.page, c.row, c.value = loadedPage{}, 0, 0
	page, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	l := loadedPage{page: page, rows: int(page.NumRows()), level: c.column.nulls}
	c.page = l
	nulls := 0
	if c.column.nulls > 0 {
		if nulls = int(page.NumNulls()); nulls > 0 {
			l.defs = page.DefinitionLevels()
		}
	}
	if d := page.Dictionary(); d == nil {
		l.cells = cellsOf(c.column.form, page)
	} else {
		if d != c.dictionary {
			c.dictionary, c.entries = d, cellsOf(c.column.form, d.Page())
		}
		values := page.Data()
		l.cells, l.index, l.dictionary = c.entries, values.Int32(), d
	}
	c.page = l
	return l.check(nulls)
}

// check makes sure that there are as many values as rows that are not null, and
// that all are in the dictionary.
func (l *loadedPage) check(nulls int) error {
	have := l.cells.n
	if l.index != nil {
		have = len(l.index)
	}
	if l.cells.form.kind != formNull && have < l.rows-nulls {
		return fmt.Errorf("a page has %d values for %d rows", have, l.rows-nulls)
	}
	for _, i := range l.index {
		if uint(i) >= uint(l.cells.n) {
			return fmt.Errorf("value %d of a dictionary of %d", i, l.cells.n)
		}
	}
	return nil
}
