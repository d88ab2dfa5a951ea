package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// sliceRows is how many rows are read by one goroutine at a time, at least:
// a little more than the row groups that most writers make. Tests lower it.
var sliceRows = 1 << 17

// parquetSlice is a run of rows of one row group.
type parquetSlice struct {
	group *parquet.FileRowGroup
	first int64 // row of the file
	rows  int64
	// starts says where each column starts, nil where the slice is its whole
	// row group.
	starts []columnStart
}

// columnStart leads to the first row of a slice in a column.
type columnStart struct {
	cut, gap int64 // the gap bytes from cut on, in the file, are pages that have none of the rows
	skip     int64 // rows of the page after them that are before the slice
}

// prepare cuts the file into slices, and settles what the first rows decide.
func (p *parquetRead) prepare() error {
	first := int64(0)
	for i, g := range p.file.RowGroups() {
		group, ok := g.(*parquet.FileRowGroup)
		if !ok {
			return fmt.Errorf("row group %d cannot be read", i)
		}
		if err := p.checkGroup(i, group); err != nil {
			return err
		}
		p.slices = append(p.slices, p.cut(i, group, first)...)
		first += group.NumRows()
	}
	return p.settleUnit()
}

// checkGroup refuses a row group whose columns cannot be read.
func (p *parquetRead) checkGroup(i int, group *parquet.FileRowGroup) error {
	chunks := p.file.Metadata().RowGroups[i].Columns
	for _, c := range p.columns {
		chunk := &chunks[c.at]
		switch {
		case chunk.CryptoMetadata.Value != nil || len(chunk.EncryptedColumnMetadata) > 0:
			return encrypted(p.run.name)
		case chunk.FilePath != "":
			return &InputError{File: p.run.name, Msg: fmt.Sprintf("column %s is in another file, %s", printable(c.name), printable(chunk.FilePath)), Advice: "write it as one file"}
		case chunk.MetaData.NumValues != group.NumRows():
			return fmt.Errorf("column %s has %d values in row group %d of %d rows", printable(c.name), chunk.MetaData.NumValues, i, group.NumRows())
		case chunk.MetaData.Codec != p.file.Metadata().RowGroups[0].Columns[c.at].MetaData.Codec:
			return &InputError{File: p.run.name, Msg: fmt.Sprintf("column %s is compressed in two ways", printable(c.name)), Advice: "write it once more, with one compression"}
		}
	}
	return nil
}

// cut cuts a row group into slices, unless it is small or its pages do not say
// where their rows are.
func (p *parquetRead) cut(i int, group *parquet.FileRowGroup, first int64) []parquetSlice {
	rows := group.NumRows()
	whole := []parquetSlice{{group: group, first: first, rows: rows}}
	if rows <= int64(sliceRows) {
		return whole
	}
	columns := make([]pageTable, len(p.columns))
	step := int64(sliceRows)
	for at, c := range p.columns {
		table, ok := p.pagesOf(&p.file.Metadata().RowGroups[i].Columns[c.at].MetaData, rows)
		if !ok {
			return whole
		}
		columns[at] = table
		step = max(step, table.longest())
	}
	var out []parquetSlice
	for from := int64(0); from < rows; from += step {
		s := parquetSlice{group: group, first: first + from, rows: min(step, rows-from), starts: make([]columnStart, len(columns))}
		for i := range columns {
			s.starts[i] = columns[i].start(from)
		}
		out = append(out, s)
	}
	return out
}

// pageTable says where the pages of a column are in the file.
type pageTable struct {
	offsets []int64
	first   []int64 // their first rows, and how many rows there are
}

func (t *pageTable) longest() (rows int64) {
	for i := range t.offsets {
		rows = max(rows, t.first[i+1]-t.first[i])
	}
	return rows
}

func (t *pageTable) start(row int64) columnStart {
	i := 0
	for t.first[i+1] <= row {
		i++
	}
	return columnStart{cut: t.offsets[0], gap: t.offsets[i] - t.offsets[0], skip: row - t.first[i]}
}

// pagesOf reads the headers of a column's pages. It returns false where they
// do not make up the rows.
func (p *parquetRead) pagesOf(meta *pqformat.ColumnMetaData, rows int64) (t pageTable, ok bool) {
	at := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d != 0 {
		if d > at {
			return t, false
		}
		at = d
	}
	end := at + meta.TotalCompressedSize
	t.first = append(t.first, 0)
	for known := int64(0); at < end && known < rows; {
		h, size, err := pageHeader(p.r, at)
		if err != nil || h.CompressedPageSize < 0 {
			return t, false
		}
		n := valuesOf(&h)
		switch {
		case n > 0:
			known += n
			t.offsets, t.first = append(t.offsets, at), append(t.first, known)
		case n < 0, len(t.offsets) > 0:
			return t, false
		}
		at += size + int64(h.CompressedPageSize)
	}
	return t, t.first[len(t.first)-1] == rows
}

// valuesOf is how many values a page has: as many as rows, where none is a
// list. A dictionary has 0 of them, and a page that is neither -1.
func valuesOf(h *pqformat.PageHeader) int64 {
	switch {
	case h.Type == pqformat.DictionaryPage:
		return 0
	case h.Type == pqformat.DataPage && h.DataPageHeader.Valid:
		return int64(h.DataPageHeader.V.NumValues)
	case h.Type == pqformat.DataPageV2 && h.DataPageHeaderV2.Valid:
		return int64(h.DataPageHeaderV2.V.NumValues)
	}
	return -1
}

// pageHeader reads the header of the page that starts at an offset, and how
// long it is. Most are short; statistics of long texts make them longer.
func pageHeader(r io.ReaderAt, at int64) (h pqformat.PageHeader, size int64, err error) {
	for room := 512; room <= 1<<20; room *= 16 {
		buf := make([]byte, room)
		n, readErr := r.ReadAt(buf, at)
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return h, 0, readErr
		}
		protocol := thrift.CompactProtocol{}
		from := protocol.NewReaderFromBytes(buf[:n])
		h = pqformat.PageHeader{}
		if err = thrift.NewDecoder(from).Decode(&h); err == nil {
			return h, int64(from.BytesRead()), nil
		}
	}
	return h, 0, err
}

// gapReader reads a file as if some bytes were not in it.
type gapReader struct {
	r        io.ReaderAt
	cut, gap int64
}

// ReadAt implements [io.ReaderAt].
func (g *gapReader) ReadAt(b []byte, at int64) (n int, err error) {
	if before := g.cut - at; before > 0 {
		n, err = g.r.ReadAt(b[:min(before, int64(len(b)))], at)
		if err != nil || n == len(b) {
			return n, err
		}
	}
	more, err := g.r.ReadAt(b[n:], at+int64(n)+g.gap)
	return n + more, err
}
