package trace

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// sliceRows is how many rows are read by one goroutine at a time, at least:
// a little more than the row groups that most writers make. Tests lower it.
var sliceRows = 1 << 17

// parquetSlice is a run of rows of one row group.
type parquetSlice struct {
	first  int64 // row of the file
	rows   int64
	starts []columnStart
}

// columnStart leads to the first row of a slice in a column.
type columnStart struct {
	codec      pqformat.CompressionCodec
	dictionary pagePlace // without a kind: there is none
	pages      []pagePlace
	skip       int64 // rows of the first page that are before the slice
}

// prepare cuts the file into slices, and settles what the first rows decide.
func (p *parquetRead) prepare() error {
	first := int64(0)
	for i := range p.meta.RowGroups {
		rows := p.meta.RowGroups[i].NumRows
		if rows < 0 {
			return fmt.Errorf("row group %d cannot be read", i)
		}
		if err := p.ctx.Err(); err != nil {
			return err
		}
		pages := make([]pageTable, len(p.columns))
		for j := range p.columns {
			c := &p.columns[j]
			if err := p.checkChunk(i, c, rows); err != nil {
				return err
			}
			var err error
			if pages[j], err = p.pagesOf(&p.meta.RowGroups[i].Columns[c.at].MetaData, rows); err != nil {
				return fmt.Errorf("column %s of row group %d: %w", printable(c.name), i, err)
			}
		}
		p.slices = append(p.slices, cutGroup(rows, first, pages)...)
		first += rows
	}
	return p.settleUnit()
}

// checkChunk refuses a column of a row group that cannot be read.
func (p *parquetRead) checkChunk(i int, c *parquetColumn, rows int64) error {
	if c.at >= len(p.meta.RowGroups[i].Columns) {
		return fmt.Errorf("row group %d has no column %s", i, printable(c.name))
	}
	chunk := &p.meta.RowGroups[i].Columns[c.at]
	switch {
	case chunk.CryptoMetadata.Value != nil || len(chunk.EncryptedColumnMetadata) > 0:
		return encrypted(p.run.name)
	case chunk.FilePath != "":
		return &InputError{File: p.run.name, Msg: fmt.Sprintf("column %s is in another file, %s", printable(c.name), printable(chunk.FilePath)), Advice: "write it as one file"}
	case !isUnpacked(chunk.MetaData.Codec):
		return &InputError{File: p.run.name, Msg: fmt.Sprintf("column %s is compressed with %s, which is not read", printable(c.name), strings.ToLower(chunk.MetaData.Codec.String())), Advice: "snappy, gzip, zstd, brotli, lz4_raw and none are read"}
	case chunk.MetaData.Type != c.kind:
		return fmt.Errorf("column %s is of another type in row group %d", printable(c.name), i)
	case chunk.MetaData.NumValues != rows:
		return fmt.Errorf("column %s has %d values in row group %d of %d rows", printable(c.name), chunk.MetaData.NumValues, i, rows)
	}
	return nil
}

// isUnpacked reports whether [unpack] knows a codec.
func isUnpacked(c pqformat.CompressionCodec) bool {
	switch c {
	case pqformat.Uncompressed, pqformat.Snappy, pqformat.Gzip, pqformat.Zstd, pqformat.Brotli, pqformat.Lz4Raw:
		return true
	}
	return false
}

// cutGroup cuts a row group, which starts at row first of the file, into slices,
// unless it is small. No page is longer than a slice, so that none is decoded
// more than twice.
func cutGroup(rows, first int64, pages []pageTable) (out []parquetSlice) {
	step := int64(sliceRows)
	for i := range pages {
		step = max(step, pages[i].longest())
	}
	for from := int64(0); from < rows; from += step {
		s := parquetSlice{first: first + from, rows: min(step, rows-from), starts: make([]columnStart, len(pages))}
		for i := range pages {
			s.starts[i] = pages[i].start(from)
		}
		out = append(out, s)
	}
	return out
}

// pageTable says where the pages of a column are in the file.
type pageTable struct {
	codec      pqformat.CompressionCodec
	dictionary pagePlace // without a kind: there is none
	pages      []pagePlace
	first      []int64 // their first rows, and how many rows there are
}

func (t *pageTable) longest() (rows int64) {
	for i := range t.pages {
		rows = max(rows, int64(t.pages[i].rows))
	}
	return rows
}

func (t *pageTable) start(row int64) columnStart {
	i := 0
	for t.first[i+1] <= row {
		i++
	}
	return columnStart{codec: t.codec, dictionary: t.dictionary, pages: t.pages[i:], skip: row - t.first[i]}
}

// pagesOf reads the headers of a column's pages, and refuses those that promise
// what cannot be.
func (p *parquetRead) pagesOf(meta *pqformat.ColumnMetaData, rows int64) (t pageTable, err error) {
	at := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 {
		at = min(at, d)
	}
	t.codec = meta.Codec
	end := at + meta.TotalCompressedSize
	if at < 0 || meta.TotalCompressedSize < 0 || end < at || end > p.size {
		return t, errors.New("it is said to be where the file is not")
	}
	t.first = append(t.first, 0)
	for known := int64(0); known < rows; {
		if at >= end {
			return t, fmt.Errorf("its pages have %d rows of %d", known, rows)
		}
		h, size, err := pageHeader(p.r, at)
		if err != nil {
			return t, err
		}
		n := valuesOf(&h)
		next := at + size + int64(h.CompressedPageSize)
		switch {
		case h.CompressedPageSize < 0 || next > end || n > rows-known || h.UncompressedPageSize < 0 || int64(h.UncompressedPageSize) > max(meta.TotalUncompressedSize, sanePage):
			return t, errors.New("a page is longer than its column")
		case n > 0:
			known += n
			t.pages, t.first = append(t.pages, placeOf(&h, at+size)), append(t.first, known)
		case n < 0 && min(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues) < 0:
			return t, fmt.Errorf("a page is said to have %d values", n)
		case n < 0:
			return t, fmt.Errorf("a page is of the unknown kind %s", h.Type)
		case h.Type == pqformat.DictionaryPage && (len(t.pages) > 0 || t.dictionary.kind == pqformat.DictionaryPage):
			return t, errors.New("its dictionary is not at its start")
		case h.Type == pqformat.DictionaryPage:
			t.dictionary = placeOf(&h, at+size)
		}
		at = next
	}
	return t, nil
}

// sanePage is a size of a page that is believed whatever the sum of all is said
// to be.
const sanePage = 1 << 20

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
