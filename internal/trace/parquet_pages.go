package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// The library decodes pages well, but where a codec returns what it unpacked in
// another buffer than the one it was given, that of lz4 often, it goes on with what
// was in the given one before; and its lz4 doubles its room for ever on a damaged
// page. So pages are unpacked here, and the library reads a file in which nothing is
// compressed.

// tableOnly is a file that has nothing but its magic bytes and a table of contents.
type tableOnly []byte

// ReadAt implements [io.ReaderAt].
func (t tableOnly) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at >= int64(len(t)) {
		return 0, io.EOF
	}
	n := copy(b, t[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// openPlain opens the file that the library is to read in place of one with this
// table of contents: nothing in it is compressed, and pages have no place.
func openPlain(meta *pqformat.FileMetaData) (*parquet.File, error) {
	meta.EncryptionAlgorithm, meta.FooterSigningKeyMetadata, meta.KeyValueMetadata = pqformat.EncryptionAlgorithm{}, nil, nil
	for i := range meta.RowGroups {
		chunks := meta.RowGroups[i].Columns
		for j := range chunks {
			m := &chunks[j].MetaData
			chunks[j] = pqformat.ColumnChunk{MetaData: pqformat.ColumnMetaData{
				Type: m.Type, Encoding: m.Encoding, PathInSchema: m.PathInSchema, NumValues: m.NumValues,
				Codec: pqformat.Uncompressed, TotalUncompressedSize: m.TotalUncompressedSize, TotalCompressedSize: 1 << 60, DataPageOffset: servedFrom,
			}}
		}
	}
	table, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return nil, err
	}
	file := append(tableOnly(parquetMagic), table...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(table)))
	file = append(file, parquetMagic...)
	return parquet.OpenFile(file, int64(len(file)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(parquetBuffer))
}

// pageServer is the reader of one column of a slice, from which the library reads
// the pages one after the other, unpacked. They have no place in a file.
type pageServer struct {
	r     io.ReaderAt
	codec pqformat.CompressionCodec
	pages []int64 // where those that are left start
	start int64   // where the page served starts for the library
	room  *pageRoom
	page  []byte
}

// pageRoom is memory for one page, of whatever column: each is taken over before
// the next one is served.
type pageRoom struct{ packed, plain []byte }

// servedFrom is where all columns start for the library.
const servedFrom = int64(len(parquetMagic))

// ReadAt implements [io.ReaderAt] as far as the library needs it: offsets only
// grow, and nothing is read beyond the end of a page at once.
func (s *pageServer) ReadAt(b []byte, at int64) (int, error) {
	for at >= s.start+int64(len(s.page)) {
		if len(s.pages) == 0 {
			return 0, io.EOF
		}
		s.start += int64(len(s.page))
		page, err := s.load(s.pages[0])
		if err != nil {
			return 0, err
		}
		s.page, s.pages = page, s.pages[1:]
	}
	if at < s.start {
		return 0, errors.New("a page is read twice")
	}
	return copy(b, s.page[at-s.start:]), nil
}

// load reads and unpacks the page at an offset of the file, and writes a header
// that says so before it.
func (s *pageServer) load(at int64) ([]byte, error) {
	h, size, err := pageHeader(s.r, at)
	if err != nil {
		return nil, err
	}
	packed := room(s.room.packed, int(h.CompressedPageSize))
	s.room.packed = packed
	if err := readAt(s.r, packed, at+size); err != nil {
		return nil, err
	}
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(packed) {
		return nil, errors.New("the checksum of a page is wrong")
	}
	plain, head := h, []byte(nil)
	plain.CRC, plain.CompressedPageSize = 0, h.UncompressedPageSize
	levels, codec := 0, s.codec
	if v2 := &h.DataPageHeaderV2; h.Type == pqformat.DataPageV2 && v2.Valid {
		levels = int(v2.V.RepetitionLevelsByteLength) + int(v2.V.DefinitionLevelsByteLength)
		if levels < 0 || levels > len(packed) || levels > int(h.UncompressedPageSize) {
			return nil, errors.New("a page is shorter than its levels")
		}
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			codec = pqformat.Uncompressed
		}
		plain.DataPageHeaderV2.V.IsCompressed = thrift.New(false)
	}
	if head, err = thrift.Marshal(new(thrift.CompactProtocol), &plain); err != nil {
		return nil, err
	}
	out := room(s.room.plain, len(head)+int(h.UncompressedPageSize)+64)[:len(head)+int(h.UncompressedPageSize)]
	s.room.plain = out
	copy(out, head)
	copy(out[len(head):], packed[:levels])
	return out, unpack(codec, out[len(head)+levels:], packed[levels:])
}

// unpack fills dst with what src is packed from, and refuses any more or less.
func unpack(codec pqformat.CompressionCodec, dst, src []byte) error {
	var got []byte
	var err error
	switch {
	case codec == pqformat.Uncompressed:
		got = src
	case codec == pqformat.Lz4Raw: // that of the library doubles its room until nothing is wrong
		var n int
		n, err = lz4.UncompressBlock(src, dst)
		got = dst[:max(n, 0)]
	default:
		got, err = parquet.LookupCompressionCodec(codec).Decode(dst, src)
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
