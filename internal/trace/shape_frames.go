package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// isFramed reports whether a file starts as the collector's file exporter writes
// JSON with compression: zstd: each message compressed by itself, after four
// bytes that say its length.
func isFramed(raw *bufio.Reader) bool {
	head, err := raw.Peek(8)
	return err == nil && isZstd(head[4:]) && binary.BigEndian.Uint32(head) <= uint32(maxLine)
}

// frames undoes such a file: one message a line.
type frames struct {
	raw  *bufio.Reader
	dec  *zstd.Decoder
	rest []byte
	n    int64 // messages begun
	err  error // after which nothing more is read: a bufio.Reader forgets it
}

func newFrames(raw *bufio.Reader) *frames { return &frames{raw: raw} }

func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		if f.err == nil {
			f.err = f.more()
		}
		if f.err != nil {
			return 0, f.err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *frames) more() error {
	f.n++
	var size [4]byte
	if _, err := io.ReadFull(f.raw, size[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return f.cut(err)
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > uint32(maxLine) {
		return fmt.Errorf("damaged: message %d is %d bytes long", f.n, length)
	}
	packed := make([]byte, length)
	if _, err := io.ReadFull(f.raw, packed); err != nil {
		return f.cut(err)
	}
	if f.dec == nil {
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(4*maxLine)))
		if err != nil {
			return err
		}
		f.dec = dec
	}
	text, err := f.dec.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("message %d: the compressed data is damaged: %w", f.n, err)
	}
	f.rest = append(text, '\n')
	return nil
}

func (f *frames) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("cut off: message %d does not end", f.n)
	}
	return err
}
