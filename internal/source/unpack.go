package source

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/canaryctl/canaryctl/internal/trace"
)

// oldEnough is how long before the time asked for a compressed file must have
// been written last for it to be left unread.
const oldEnough = 24 * time.Hour

// unpack reads on in a compressed file: from the place up to which the file was
// read that it was made of, or up to which it was read itself.
func (f *follower) unpack(ctx context.Context, k *followed, adopt bool) error {
	r, err := trace.OpenText(ctx, k.path)
	if err != nil {
		return f.unlessCut(k, err)
	}
	defer r.Close() // only read
	text := bufio.NewReaderSize(r, pieceSize)
	head, err := text.Peek(pieceSize)
	cut := bytes.LastIndexByte(head, '\n') + 1
	if cut == 0 && err != nil && !errors.Is(err, io.EOF) {
		return f.unlessCut(k, err)
	}
	if cut > 0 {
		head = head[:cut]
	}
	at := 0
	switch k.rows, at, err = f.live.Open(k.path, head); {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, trace.ErrWhole) && f.kind == trace.Windows:
		return f.live.Whole(k.path, text)
	case errors.Is(err, trace.ErrWhole):
		return f.readWhole(ctx, k) // which says why not
	case err != nil:
		return err
	}
	m := k.mark
	if m.at == 0 && adopt {
		m = f.original(k, head)
	}
	if m.at == 0 && f.old(k, head[at:]) {
		return nil
	}
	if m.at == 0 {
		k.mark.extend(head[:at])
		_, err := text.Discard(at)
		return f.unlessCut(k, cmp.Or(err, f.pour(ctx, k, text)))
	}
	switch same, err := skip(text, m); {
	case err != nil:
		return f.unlessCut(k, err)
	case !same:
		k.mark = mark{}
		return f.unpack(ctx, k, false)
	}
	k.mark = m
	return f.unlessCut(k, f.pour(ctx, k, text))
}

// original returns the mark of the file that was compressed into this one.
func (f *follower) original(k *followed, head []byte) (m mark) {
	for o := range f.marks(k) {
		if n := min(len(head), len(o.head)); n > 0 && o.at > m.at && bytes.Equal(head[:n], o.head[:n]) {
			m = o
		}
	}
	return m
}

// old reports whether a file was written last so long before the time asked for
// that nothing in it is wanted. The file's own rows say whether its time can be
// believed.
func (f *follower) old(k *followed, head []byte) bool {
	mod := k.info.ModTime()
	if !mod.Add(oldEnough).Before(f.from) {
		return false
	}
	first, ok := k.rows.Time(head)
	return ok && first.Before(mod.Add(oldEnough))
}

// skip reads over what a mark says was read already; false: what is there is
// something else.
func skip(text *bufio.Reader, m mark) (bool, error) {
	if _, err := io.CopyN(io.Discard, text, m.at-int64(len(m.tail))); err != nil {
		return false, err
	}
	tail := make([]byte, len(m.tail))
	if _, err := io.ReadFull(text, tail); err != nil {
		return false, err
	}
	return bytes.Equal(tail, m.tail), nil
}

// pour reads a text to its end; its last line needs no newline.
func (f *follower) pour(ctx context.Context, k *followed, text io.Reader) error {
	buf, held := make([]byte, pieceSize), 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(text, buf[held:])
		held += n
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		cut := held
		if !ended {
			cut = bytes.LastIndexByte(buf[:held], '\n') + 1
		}
		full := held == len(buf) && len(buf) >= longestRow
		if full && cut == 0 {
			cut = held
		}
		used, feedErr := f.feed(k, buf[:cut], ended || full)
		switch {
		case feedErr != nil:
			return feedErr
		case ended:
			return nil
		case err != nil:
			return err
		}
		held = copy(buf, buf[used:held])
		if used == 0 && held == len(buf) {
			buf = append(buf, make([]byte, 3*len(buf))...)
		}
	}
}

// unlessCut passes an error on, but for that of a file which ends too early:
// it is being written, and read on when it has changed.
func (f *follower) unlessCut(k *followed, err error) error {
	if e, ok := errors.AsType[*trace.InputError](err); ok && e.Err == nil && k.gone.IsZero() {
		f.note(e.Error() + " (read on when it has changed)")
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
