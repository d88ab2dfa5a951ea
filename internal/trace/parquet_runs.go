package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/encoding/rle"
)

// Runs of equal values and runs of packed ones follow each other in levels, in
// places in a dictionary and in some columns of booleans (Parquet format,
// Encodings, "RLE/Bit-Packing Hybrid"). The library decodes them.

// neededRuns is the start of src, in runs of values of width bits each, up to the
// one that has the last of n values. The library makes room for as many as a run
// says it has, so that damaged ones are refused here: equal values are not more
// than the page needs, and packed ones, which some writers pad to eight and some
// to 32, are all there, unless it is the padding that is cut off.
func neededRuns(src []byte, width, n int) ([]byte, error) {
	at := 0
	for need := int64(n); need > 0 && at < len(src); {
		head, size := uint64(src[at]), 1
		if head >= 0x80 {
			if head, size = binary.Uvarint(src[at:]); size <= 0 {
				return nil, errors.New("the length of a run cannot be read")
			}
		}
		at += size
		count, left := int64(min(head>>1, math.MaxInt32)), int64(len(src)-at)
		if count == 0 { // the library takes it for a run without a value
			continue
		}
		taken, whole := int64(width+7)/8, false
		if head&1 == 1 {
			taken = count * int64(width)
			count *= 8
			whole = taken > 0 && taken <= left
			if min(count, need)*int64(width) > 8*left {
				return nil, io.ErrUnexpectedEOF
			}
		}
		if !whole && count > (need+7)&^7 {
			return nil, fmt.Errorf("a run of %d values where %d are left", count, need)
		}
		at += int(min(taken, left))
		need -= count
	}
	return src[:at], nil
}

// decodeRunBits decodes n booleans in runs. That of the library takes the value of
// a run for eight of them, as it writes them: 0xff, and its length for a multiple
// of eight.
func (c *cells) decodeRunBits(src []byte, n int) (err error) {
	c.bits, c.n = c.bits[:0], 0
	if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
		return io.ErrUnexpectedEOF
	}
	runs, err := neededRuns(src[4:][:binary.LittleEndian.Uint32(src)], 1, n)
	if err != nil {
		return err
	}
	c.flags, err = (&rle.Encoding{BitWidth: 1}).DecodeLevels(roomAhead(c.flags, n), runs)
	if err != nil {
		return err
	}
	c.n = len(c.flags)
	c.bits = zeros(c.bits, (c.n+7)/8)
	for i, v := range c.flags {
		c.bits[i>>3] |= v & 1 << (i & 7)
	}
	return nil
}

// decodeIndex decodes n places in a dictionary.
func decodeIndex(dst []int32, src []byte, n int) ([]int32, error) {
	if len(src) > 0 {
		runs, err := neededRuns(src[1:], int(src[0]), n)
		if err != nil {
			return dst[:0], err
		}
		src = src[:1+len(runs)]
	}
	return dictionaryEncoding.DecodeInt32(roomAhead(dst, n), src)
}
