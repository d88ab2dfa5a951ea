package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/bitpacked"
	"github.com/parquet-go/parquet-go/encoding/rle"
	pqformat "github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// Pages are read, unpacked and taken apart here; the library decodes what they
// hold. Its own reader of pages copies each of them several times, loses pages
// where a codec returns what it unpacked in another buffer than the one it was
// given, as that of lz4 often does, and its lz4 doubles its room for ever on a
// damaged page.

// pagePlace is where a page is, and what its header says of it.
type pagePlace struct {
	at            int64 // of what follows the header
	packed, plain int32 // bytes of that, as they are in the file and unpacked
	rows          int32 // or the entries of a dictionary
	crc           uint32
	kind          pqformat.PageType
	encoding      pqformat.Encoding // of the values
	levels        pqformat.Encoding // of the definition levels

	// In pages of the second version levels lie before what is packed, and so
	// many bytes are known to be levels.
	repeats, defs int32
	stored        bool // nothing of it is packed
}

// placeOf is the place of the page with a header, what follows which is at an
// offset of the file.
func placeOf(h *pqformat.PageHeader, at int64) pagePlace {
	p := pagePlace{at: at, packed: h.CompressedPageSize, plain: h.UncompressedPageSize, crc: uint32(h.CRC), kind: h.Type, rows: int32(valuesOf(h))}
	switch h.Type {
	case pqformat.DictionaryPage:
		p.rows, p.encoding = h.DictionaryPageHeader.V.NumValues, h.DictionaryPageHeader.V.Encoding
	case pqformat.DataPage:
		p.encoding, p.levels = h.DataPageHeader.V.Encoding, h.DataPageHeader.V.DefinitionLevelEncoding
	case pqformat.DataPageV2:
		v2 := &h.DataPageHeaderV2.V
		p.encoding, p.levels = v2.Encoding, pqformat.RLE
		p.repeats, p.defs = v2.RepetitionLevelsByteLength, v2.DefinitionLevelsByteLength
		p.stored = v2.IsCompressed.Valid && !v2.IsCompressed.V
	}
	return p
}

// pageRoom is memory for one page, of whatever column: each is decoded before
// the next one is read.
type pageRoom struct{ packed, plain []byte }

// read reads and unpacks a page. What it returns is valid until the next call.
func (room *pageRoom) read(r io.ReaderAt, codec pqformat.CompressionCodec, p *pagePlace) ([]byte, error) {
	packed := grown(room.packed, int(p.packed))
	room.packed = packed
	if err := readAt(r, packed, p.at); err != nil {
		return nil, err
	}
	if p.crc != 0 && p.crc != crc32.ChecksumIEEE(packed) {
		return nil, errors.New("the checksum of a page is wrong")
	}
	levels := int(p.repeats) + int(p.defs)
	if p.repeats < 0 || p.defs < 0 || levels > len(packed) || levels > int(p.plain) {
		return nil, errors.New("a page is shorter than its levels")
	}
	if p.stored {
		codec = pqformat.Uncompressed
	}
	// Decoders are faster where they may write past the end.
	out := grown(room.plain, int(p.plain)+64)[:p.plain]
	room.plain = out
	copy(out, packed[:levels])
	return out, unpack(codec, out[levels:], packed[levels:])
}

// grown is a slice of n bytes whatever is in them.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n+n/8)[:n]
	}
	return b[:n]
}

// unpack fills dst with what src is packed from, and refuses any more or less.
func unpack(codec pqformat.CompressionCodec, dst, src []byte) error {
	var got []byte
	var err error
	switch {
	case len(dst) == 0 && len(src) == 0: // nulls only, in a page of the second version
		return nil
	case codec == pqformat.Uncompressed:
		got = src
	case codec == pqformat.Lz4Raw: // that of the library doubles its room until nothing is wrong
		var n int
		n, err = lz4.UncompressBlock(src, dst)
		got = dst[:max(n, 0)]
	default:
		got, err = codecOf(codec).Decode(dst, src)
	}
	switch {
	case err != nil:
		return err
	case len(got) != len(dst):
		return fmt.Errorf("a page has %d bytes of %d", len(got), len(dst))
	case len(dst) > 0 && &got[0] != &dst[0]:
		copy(dst, got)
	}
	return nil
}

// loadedPage is a page that was decoded.
type loadedPage struct {
	rows   int
	values int     // rows that are not null
	cells  cells   // its values, or those of its dictionary
	index  []int32 // which of the dictionary's each value is, nil without one
	defs   []byte  // definition levels, nil where no value is null
	level  byte    // that of values which are not null

	dictionary int // the number of its dictionary in the column, 0 for none

	// Memory that the next page uses again.
	own     cells
	indexes []int32
	levels  []byte
}

// decode takes a page apart: levels, if the column has any, and values.
func (l *loadedPage) decode(c *parquetColumn, p *pagePlace, data []byte) (err error) {
	l.rows, l.values, l.level, l.defs, l.index, l.dictionary = int(p.rows), int(p.rows), c.nulls, nil, nil, 0
	data, levels, err := cutLevels(c, p, data)
	if err != nil {
		return err
	}
	if levels != nil {
		if err := l.decodeLevels(p.levels, levels); err != nil {
			return err
		}
	}
	if isDictionary(p.encoding) {
		l.indexes, err = decodeIndex(l.indexes, data, l.values)
		l.index = l.indexes[:min(len(l.indexes), l.values)]
		return err
	}
	l.own.form = c.form
	err = l.own.decode(p.encoding, data, l.values)
	l.cells = l.own
	return err
}

// roomAhead is memory for n values, which come in eights: decoders make it run by
// run otherwise, and copy what they have. A damaged page may promise any number.
func roomAhead[T any](s []T, n int) []T { return room(s, min(n, sanePage)+8) }

// cutLevels returns the values of a page and its definition levels, nil for none.
func cutLevels(c *parquetColumn, p *pagePlace, data []byte) (values, levels []byte, err error) {
	if p.kind == pqformat.DataPageV2 {
		levels, values = data[p.repeats:p.repeats+p.defs], data[p.repeats+p.defs:]
		if c.nulls == 0 || p.defs == 0 {
			levels = nil
		}
		return values, levels, nil
	}
	if c.nulls == 0 {
		return data, nil, nil
	}
	if len(data) < 4 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n := uint64(binary.LittleEndian.Uint32(data))
	if data = data[4:]; n > uint64(len(data)) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return data[n:], data[:n], nil
}

// decodeLevels decodes the definition levels, and counts the rows that are not
// null.
func (l *loadedPage) decodeLevels(e pqformat.Encoding, src []byte) (err error) {
	width := bits.Len8(l.level)
	switch {
	case e == pqformat.RLE && isOneRun(src, l.rows, l.level):
		return nil
	case e == pqformat.RLE:
		if src, err = neededRuns(src, width, l.rows); err == nil {
			l.levels, err = (&rle.Encoding{BitWidth: width}).DecodeLevels(roomAhead(l.levels, l.rows), src)
		}
	case e == pqformat.BitPacked:
		l.levels, err = (&bitpacked.Encoding{BitWidth: width}).DecodeLevels(l.levels, src)
	default:
		err = fmt.Errorf("levels are encoded as %s", e)
	}
	switch {
	case err != nil:
		return err
	case len(l.levels) < l.rows:
		return fmt.Errorf("a page has %d levels for %d rows", len(l.levels), l.rows)
	}
	l.defs = l.levels[:l.rows]
	if l.values = bytes.Count(l.defs, []byte{l.level}); l.values == l.rows {
		l.defs = nil
	}
	return nil
}

// isOneRun reports whether run-length encoded levels are n times the same one
// in a single run.
func isOneRun(src []byte, n int, level byte) bool {
	head, size := binary.Uvarint(src)
	return size > 0 && len(src) == size+1 && head&1 == 0 && head>>1 >= uint64(n) && src[size] == level
}

// check makes sure that there are as many values as rows that are not null, and
// that all are in the dictionary.
func (l *loadedPage) check() error {
	have := l.cells.n
	if l.dictionary > 0 {
		have = len(l.index)
	}
	if l.cells.form.kind != formNull && have < l.values {
		return fmt.Errorf("a page has %d values for %d rows", have, l.values)
	}
	most := uint32(0)
	for _, i := range l.index {
		most = max(most, uint32(i))
	}
	if len(l.index) > 0 && uint64(most) >= uint64(l.cells.n) {
		return fmt.Errorf("value %d of a dictionary of %d", most, l.cells.n)
	}
	return nil
}

// isDictionary reports whether values are given as places in a dictionary. The
// older of the two names stands for plain values on the page of a dictionary.
func isDictionary(e pqformat.Encoding) bool {
	return e == olderDictionary.Encoding() || e == pqformat.RLEDictionary
}
