package trace

import (
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go/deprecated"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// cells are the values of a page or of a dictionary, without its nulls. One of
// the slices holds them, by their form.
type cells struct {
	form form
	n    int

	bits    []byte
	flags   []byte // what bits were made from, memory only
	int32s  []int32
	int64s  []int64
	int96s  []deprecated.Int96
	floats  []float32
	doubles []float64
	bytes   []byte
	ends    []uint32 // where the texts in bytes start, and the last one ends
}

// decode replaces the cells by those that src holds in an encoding, of which
// there are n. What it needs for that it takes from those before.
func (c *cells) decode(enc pqformat.Encoding, src []byte, n int) (err error) {
	if n == 0 && len(src) == 0 { // not all encodings take that for none
		c.n = 0
		return nil
	}
	e := encodingOf(enc)
	switch c.form.kind {
	case formBool:
		if enc == pqformat.RLE {
			err = c.decodeRunBits(src, n)
			break
		}
		c.bits, err = e.DecodeBoolean(c.bits, src)
		c.n = 8 * len(c.bits)
	case formInt32, formUint32, formDecimal32, formDate:
		c.int32s, err = e.DecodeInt32(c.int32s, src)
		c.n = len(c.int32s)
	case formInt64, formUint64, formDecimal64, formStamp:
		c.int64s, err = e.DecodeInt64(c.int64s, src)
		c.n = len(c.int64s)
	case formInt96:
		c.int96s, err = e.DecodeInt96(c.int96s, src)
		c.n = len(c.int96s)
	case formFloat:
		c.floats, err = e.DecodeFloat(c.floats, src)
		c.n = len(c.floats)
	case formDouble:
		c.doubles, err = e.DecodeDouble(c.doubles, src)
		c.n = len(c.doubles)
	case formText, formDecimalBytes:
		c.bytes, c.ends, err = e.DecodeByteArray(c.bytes, src, c.ends)
		c.n = max(len(c.ends)-1, 0)
	case formDecimalFixed:
		c.bytes, err = e.DecodeFixedLenByteArray(c.bytes, src, c.form.width)
		c.n = len(c.bytes) / max(c.form.width, 1)
	}
	c.n = min(c.n, n)
	return err
}

// text is the bytes of a value that has some.
func (c *cells) text(i int) []byte {
	if c.form.kind == formDecimalFixed {
		return c.bytes[i*c.form.width : (i+1)*c.form.width]
	}
	return c.bytes[c.ends[i]:c.ends[i+1]]
}

func (c *cells) bit(i int) bool { return c.bits[i>>3]>>(i&7)&1 == 1 }

// integer returns a value that is a whole number, or the digits of a decimal.
func (c *cells) integer(i int) (v int64, ok bool) {
	switch c.form.kind {
	case formInt32, formDecimal32:
		return int64(c.int32s[i]), true
	case formUint32:
		return int64(uint32(c.int32s[i])), true
	case formInt64, formDecimal64:
		return c.int64s[i], true
	case formUint64:
		return c.int64s[i], c.int64s[i] >= 0
	case formDecimalBytes, formDecimalFixed:
		return smallInteger(c.text(i))
	}
	return 0, false
}

// smallInteger reads a big-endian number in two's complement, if it fits.
func smallInteger(b []byte) (int64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	v := int64(int8(b[0])) // sign and all
	for _, c := range b[1:] {
		if v != v<<8>>8 {
			return 0, false
		}
		v = v<<8 | int64(c)
	}
	return v, true
}

// append writes a value as CSV would have it.
func (c *cells) append(dst []byte, i int) []byte {
	switch c.form.kind {
	case formText:
		return append(dst, c.text(i)...)
	case formBool:
		return strconv.AppendBool(dst, c.bit(i))
	case formUint64:
		return strconv.AppendUint(dst, uint64(c.int64s[i]), 10)
	case formFloat:
		return strconv.AppendFloat(dst, float64(c.floats[i]), 'g', -1, 32)
	case formDouble:
		return strconv.AppendFloat(dst, c.doubles[i], 'g', -1, 64)
	case formDecimal32, formDecimal64, formDecimalBytes, formDecimalFixed:
		return c.appendDecimal(dst, i)
	case formStamp:
		return appendStamp(dst, c.form, c.int64s[i])
	case formInt96:
		at := int96Time(c.int96s[i])
		return at.AppendFormat(dst, stampLayout)
	case formDate:
		return time.Unix(int64(c.int32s[i])*86400, 0).UTC().AppendFormat(dst, time.DateOnly)
	}
	v, _ := c.integer(i)
	return strconv.AppendInt(dst, v, 10)
}

// appendDecimal writes a decimal with its point.
func (c *cells) appendDecimal(dst []byte, i int) []byte {
	start := len(dst)
	if v, ok := c.integer(i); ok {
		dst = strconv.AppendInt(dst, v, 10)
	} else {
		dst = bigInteger(c.text(i)).Append(dst, 10)
	}
	if c.form.scale <= 0 {
		return dst
	}
	if dst[start] == '-' {
		start++
	}
	for len(dst)-start <= c.form.scale {
		dst = slices.Insert(dst, start, '0')
	}
	return slices.Insert(dst, len(dst)-c.form.scale, '.')
}

// bigInteger reads a big-endian number in two's complement.
func bigInteger(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

const stampLayout = "2006-01-02T15:04:05.999999999"

func appendStamp(dst []byte, f form, v int64) []byte {
	var at time.Time
	switch f.unit {
	case Milliseconds:
		at = time.UnixMilli(v)
	case Microseconds:
		at = time.UnixMicro(v)
	default:
		at = time.Unix(0, v)
	}
	dst = at.UTC().AppendFormat(dst, stampLayout)
	if f.utc {
		dst = append(dst, 'Z')
	}
	return dst
}

// int96Time reads a time as Impala and Spark wrote it before there were
// timestamps: nanoseconds of the day, and a Julian day number, without a zone.
func int96Time(v deprecated.Int96) time.Time {
	const epochDay = 2440588 // the Julian day number of 1970-01-01
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:4], v[0])
	binary.LittleEndian.PutUint32(b[4:], v[1])
	day := int64(v[2]) - epochDay
	return time.Unix(day*86400, int64(binary.LittleEndian.Uint64(b[:]))).UTC()
}
