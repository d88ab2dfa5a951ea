package trace

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
)

const (
	parquetMagic = "PAR1"
	// parquetTail is the length of what ends a file: how long its table of
	// contents is, and the magic bytes once more.
	parquetTail = 8
)

// readFooter reads a file's table of contents. It tells a file that is whole from one that is cut off, which has no
// table of contents, and makes sure that the table says of nothing that there
// is more of it than there are bytes: room would be made for it.
func readFooter(name string, r io.ReaderAt, size int64) ([]byte, error) {
	cut := &InputError{File: name, Msg: "cut off: a Parquet file ends with a table of its contents, and this one has none", Advice: "was it copied or written to its end?"}
	var tail [parquetTail]byte
	if size < int64(len(parquetMagic)+len(tail)) {
		return nil, cut
	}
	if err := readAt(r, tail[:], size-int64(len(tail))); err != nil {
		return nil, &InputError{File: name, Err: bare(err)}
	}
	switch string(tail[4:]) {
	case parquetMagic:
	case "PARE":
		return nil, encrypted(name)
	default:
		return nil, cut
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	damaged := &InputError{File: name, Msg: "damaged: its table of contents cannot be read"}
	if n > size-int64(len(parquetMagic)+len(tail)) {
		return nil, damaged
	}
	footer := make([]byte, n)
	if err := readAt(r, footer, size-parquetTail-n); err != nil {
		return nil, &InputError{File: name, Err: bare(err)}
	}
	if _, ok := skipThrift(footer, thriftStruct, 0); !ok {
		return nil, damaged
	}
	return footer, nil
}

// decodeFooter decodes a table of contents. A signature may follow it.
func decodeFooter(table []byte) (*pqformat.FileMetaData, error) {
	meta := new(pqformat.FileMetaData)
	return meta, thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(table)).Decode(meta)
}

// readAt fills b.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) || errors.Is(err, io.EOF) && len(b) == 0 {
		return nil
	}
	return err
}

// Types of the compact protocol of Thrift (thrift-compact-protocol.md in the
// sources of Apache Thrift).
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// maxThriftDepth is far more than what a table of contents needs.
const maxThriftDepth = 32

// skipThrift returns what follows a value of a type, or false where b does not
// hold all of it.
func skipThrift(b []byte, typ byte, depth int) (rest []byte, ok bool) {
	if depth > maxThriftDepth {
		return nil, false
	}
	switch typ {
	case thriftTrue, thriftFalse:
		return b, true
	case thriftByte:
		return skipBytes(b, 1)
	case thriftDouble:
		return skipBytes(b, 8)
	case thriftBinary:
		n, rest, ok := thriftNumber(b)
		if !ok {
			return nil, false
		}
		return skipBytes(rest, n)
	case thriftList, thriftSet:
		return skipThriftList(b, depth)
	case thriftMap:
		return skipThriftMap(b, depth)
	case thriftStruct:
		return skipThriftStruct(b, depth)
	case 4, 5, 6: // integers
		_, rest, ok := thriftNumber(b)
		return rest, ok
	}
	return nil, false
}

func skipBytes(b []byte, n uint64) ([]byte, bool) {
	if n > uint64(len(b)) {
		return nil, false
	}
	return b[n:], true
}

func thriftNumber(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

func skipThriftStruct(b []byte, depth int) ([]byte, bool) {
	for ok := true; ok && len(b) > 0; {
		head := b[0]
		b = b[1:]
		if head == 0 {
			return b, true
		}
		if head>>4 == 0 { // the number of the field follows
			_, b, ok = thriftNumber(b)
		}
		if ok {
			b, ok = skipThrift(b, head&0xf, depth+1)
		}
	}
	return nil, false
}

func skipThriftList(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	n, typ := uint64(b[0]>>4), b[0]&0xf
	b = b[1:]
	if n == 0xf {
		if n, b, ok = thriftNumber(b); !ok {
			return nil, false
		}
	}
	return skipItems(b, n, depth, typ)
}

func skipThriftMap(b []byte, depth int) (rest []byte, ok bool) {
	n, b, ok := thriftNumber(b)
	if !ok || n == 0 {
		return b, ok
	}
	if len(b) == 0 {
		return nil, false
	}
	return skipItems(b[1:], n, depth, b[0]>>4, b[0]&0xf)
}

// skipItems skips n items of some types in turn. In lists, a truth value is a
// byte.
func skipItems(b []byte, n uint64, depth int, types ...byte) (rest []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, false
	}
	for range n {
		for _, typ := range types {
			if typ == thriftTrue || typ == thriftFalse {
				typ = thriftByte
			}
			if b, ok = skipThrift(b, typ, depth+1); !ok {
				return nil, false
			}
		}
	}
	return b, true
}
