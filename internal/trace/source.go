package trace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	bufferSize = 256 << 10
	// maxZstdWindow is the most that unpacking zstd may hold; `zstd --long`
	// stays within it.
	maxZstdWindow = 128 << 20
	// stdinName is standard input among the paths.
	stdinName = "-"
)

// source is an open file: its bytes, decompressed, without a byte order mark.
type source struct {
	name   string
	text   *bufio.Reader
	raw    *bufio.Reader // what text is unpacked from, or text itself
	close  []func()
	ctx    context.Context // ends with that of the reading, or when the source is closed
	stop   context.CancelFunc
	done   chan struct{} // closed when nobody reads ahead any more; nil where nobody does
	zstd   bool          // it is compressed so: the errors of the decoder have no type
	shape  *shapedFile   // where detect found one
	file   *os.File      // where its text can be read from any place; else nil
	opened *os.File      // what Close closes
	origin *origin       // where its rows can be read again
	start  int64         // where in the file the text starts
}

// Close ends all reading of the source.
func (s *source) Close() {
	s.stop()
	if s.done != nil {
		<-s.done
	}
	for _, c := range s.close {
		c()
	}
	if s.opened != nil {
		s.opened.Close()
	}
}

// open opens a file, or standard input, and undoes gzip and zstd, which are
// known by their first bytes whatever the file is called.
func open(ctx context.Context, name string, stdin io.Reader, progress func(int64)) (*source, error) {
	s := &source{name: name}
	s.ctx, s.stop = context.WithCancel(ctx)
	ctx = s.ctx
	r := stdin
	if name != stdinName {
		f, err := unlessDone(ctx, func() (*os.File, error) { return os.Open(name) }) // of a named pipe: when somebody writes
		if err != nil {
			s.Close()
			return nil, s.fail(err)
		}
		s.opened = f
		if info, err := f.Stat(); err == nil && info.IsDir() {
			s.Close()
			return nil, &InputError{File: name, Msg: "is a directory", Advice: "name the files in it, as in " + filepath.Join(name, "*.jsonl")}
		}
		r = f
	}
	if r == nil {
		s.Close()
		return nil, &InputError{File: name, Msg: "there is no standard input"}
	}
	s.seekable(r)
	s.raw = bufio.NewReaderSize(newMeter(ctx, r, progress), bufferSize)
	if err := s.decompress(s.raw); err != nil {
		s.Close()
		return nil, err
	}
	if bom, _ := s.text.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		s.text.Discard(3) //nolint:errcheck // just peeked
		s.start += 3
	}
	return s, nil
}

// seekable remembers a regular file, and where it stands.
func (s *source) seekable(r io.Reader) {
	f, ok := r.(*os.File)
	if !ok {
		return
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	if at, err := f.Seek(0, io.SeekCurrent); err == nil {
		s.file, s.start = f, at
	}
}

// size is how long the file is now, 0 where that is not known: of a pipe, and of
// files that only look regular, as those of /proc.
func (s *source) size() int64 {
	if s.file == nil {
		return 0
	}
	info, err := s.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// blocks cuts what is left of the source into blocks, of whole lines or of whole
// rows of CSV.
func (s *source) blocks(csv bool, progress func(int64)) blockSource {
	whole := wholeLines
	if csv {
		whole = wholeRows
	}
	end := s.size()
	if end <= s.start || s.text != s.raw {
		b := newStreamBlocks(s.ctx, s.text, blockSize, whole)
		s.done = b.done
		return b
	}
	b := &fileBlocks{ctx: s.ctx, file: s.file, start: s.start, end: end, size: blockSize, rows: csv, progress: progress, counted: int64(s.text.Buffered())}
	if info, err := s.file.Stat(); err == nil {
		s.origin = &origin{file: s.file, path: s.name, info: info, csv: csv}
		b.origin = s.origin
	}
	return b
}

// bare takes the file's name out of an error that will be printed after it.
func bare(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func (s *source) decompress(raw *bufio.Reader) error {
	head, err := raw.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.fail(err)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := newMembers(raw)
		if err != nil {
			return s.fail(err)
		}
		s.text = bufio.NewReaderSize(z, bufferSize)
	case isZstd(head):
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return s.fail(err)
		}
		s.zstd = true
		s.close = append(s.close, z.Close)
		s.text = bufio.NewReaderSize(z, bufferSize)
	case isFramed(raw):
		s.text = bufio.NewReaderSize(newFrames(raw), bufferSize)
	default:
		s.text = raw
	}
	return nil
}

// isZstd knows a frame and a skippable frame.
func isZstd(head []byte) bool {
	return bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18})
}

// fail says what a failed read means for the file.
func (s *source) fail(err error) error {
	if e, ok := errors.AsType[*InputError](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, zstd.ErrMagicMismatch) { // the first frame has its magic number: see isZstd
		err = &trailingError{kind: "zstd"}
	}
	e := &InputError{File: s.name, Err: bare(err)}
	_, trails := errors.AsType[*trailingError](err)
	_, fromFile := errors.AsType[*os.PathError](err)
	switch {
	case trails:
		e.Advice = "unpack what is before them with gzip -dc or zstd -dc; was something appended that is not compressed?"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Msg, e.Err = "cut off: the compressed data ends too early", nil
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		e.Msg, e.Err, e.Advice = fmt.Sprintf("needs more than %d MiB to unpack", maxZstdWindow>>20), nil, "unpack it with zstd --long=31, or compress without --long"
	case isDamage(err), s.zstd && !fromFile:
		e.Msg = "the compressed data is damaged"
	}
	return e
}

func isDamage(err error) bool {
	for _, d := range []error{gzip.ErrHeader, gzip.ErrChecksum, zstd.ErrCRCMismatch, zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig} {
		if errors.Is(err, d) {
			return true
		}
	}
	return strings.HasPrefix(err.Error(), "flate: ")
}

// meter counts what is read and stops at the context's end.
type meter struct {
	ctx      context.Context
	r        io.Reader
	progress func(int64)
	// aside is where a read of anything but a regular file goes first: a
	// terminal or a pipe may keep it waiting beyond the context's end, and
	// what then arrives must not land in the caller's buffer.
	aside []byte
}

func newMeter(ctx context.Context, r io.Reader, progress func(int64)) *meter {
	m := &meter{ctx: ctx, r: r, progress: progress}
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			return m
		}
	}
	m.aside = make([]byte, bufferSize)
	return m
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.read(p)
	if m.progress != nil {
		m.progress(int64(n))
	}
	return n, err
}

func (m *meter) read(p []byte) (int, error) {
	if m.aside == nil {
		return m.r.Read(p)
	}
	into := m.aside[:min(len(p), len(m.aside))]
	n, err := unlessDone(m.ctx, func() (int, error) { return m.r.Read(into) })
	return copy(p, into[:n]), err
}

// unlessDone returns what f returns, or the context's error as soon as the
// context is done. f then runs on until the world lets it go; its result is
// lost.
func unlessDone[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// format is how a file's rows are written.
type format uint8

const (
	formatCSV format = iota
	formatJSONL
	formatArray
	formatAnswer
	formatExposition
	formatShaped // of somebody else's shape: source.shape says which
	formatParquet
)

// foreign are formats that are known and not read, by their first bytes.
var foreign = []struct{ magic, name, advice string }{
	{"ARROW1", "Arrow", "export CSV or JSON lines from it"},
	{"Obj\x01", "Avro", "export CSV or JSON lines from it"},
	{"ORC", "ORC", "export CSV or JSON lines from it"},
	{"SQLite format 3", "an SQLite database", "export CSV from it"},
	{"PK\x03\x04", "a zip archive", "unpack it, or compress with gzip or zstd"},
	{"BZh", "bzip2", "unpack it, or compress with gzip or zstd"},
	{"\xfd7zXZ", "xz", "unpack it, or compress with gzip or zstd"},
	{"\x04\x22\x4d\x18", "lz4", "unpack it, or compress with gzip or zstd"},
	{"\x1f\x8b", "gzip inside the compressed data", "compress once"},
	{"\x28\xb5\x2f\xfd", "zstd inside the compressed data", "compress once"},
	{"\xff\xfe", "UTF-16 text", "convert it to UTF-8"},
	{"\xfe\xff", "UTF-16 text", "convert it to UTF-8"},
	{"<", "HTML or XML", "a login page in place of the download?"},
}

// detect tells the format from the start of the file. A file without anything
// in it gets io.EOF.
func (s *source) detect(opt *Options) (format, error) {
	head, err := s.text.Peek(64 << 10)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return 0, s.fail(err)
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return 0, &InputError{File: s.name, Msg: "this is " + f.name + ", which is not read", Advice: f.advice}
		}
	}
	if bytes.HasPrefix(head, []byte(parquetMagic)) {
		return formatParquet, nil
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	if found, err := s.findShape(text, opt); found || err != nil {
		return formatShaped, err
	}
	switch {
	case len(text) == 0 && errors.Is(err, io.EOF):
		return 0, io.EOF
	case len(text) == 0:
		return 0, &InputError{File: s.name, Msg: fmt.Sprintf("starts with %d bytes of blank space", len(head))}
	case text[0] == '[':
		return formatArray, nil
	case text[0] == '{':
		return s.detectObject(text)
	case looksLikeExposition(text):
		return formatExposition, nil
	case isProtobufOTLP(head):
		return 0, &InputError{File: s.name, Msg: "OTLP in protobuf, which is not read", Advice: "set format: json in the collector's file exporter"}
	case isBinary(text):
		return 0, &InputError{File: s.name, Msg: fmt.Sprintf("binary data (it starts with % x); JSON lines, CSV and Prometheus answers are read", text[:min(len(text), 8)])}
	}
	return formatCSV, nil
}

// detectObject tells JSON lines from a single document.
func (s *source) detectObject(text []byte) (format, error) {
	if looksLikeAnswer(text) {
		return formatAnswer, nil
	}
	first, _, more := bytes.Cut(text, []byte("\n"))
	first = bytes.TrimSpace(first)
	if last := first[len(first)-1]; more && (last == '{' || last == ',' || last == '[') {
		return 0, &InputError{File: s.name, Msg: "a JSON document over several lines", Advice: "write one object a line, or one array of objects"}
	}
	return formatJSONL, nil
}

// isBinary reports whether the first line holds bytes that no text does.
func isBinary(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.ContainsFunc(first[:min(len(first), 512)], func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\r' && r != '\f'
	})
}

// stem is a file's name without folder and anything from the first dot.
func stem(name string) string {
	s, _, _ := strings.Cut(filepath.Base(name), ".")
	return s
}
