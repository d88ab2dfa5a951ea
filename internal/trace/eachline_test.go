package trace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// linesOf says each line as number:text, with a mark for one without an end.
func linesOf(t *testing.T, path, stdin string) string {
	t.Helper()
	var said []string
	err := EachLine(t.Context(), path, strings.NewReader(stdin), nil, func(l Line) error {
		text := fmt.Sprintf("%d:%s", l.Number, l.Text)
		if l.Cut {
			text += "|"
		}
		if l.Err != nil {
			text = fmt.Sprintf("%d!", l.Number)
		}
		said = append(said, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(said, " ")
}

func TestEachLineOfAnyPacking(t *testing.T) {
	const text, want = "\xef\xbb\xbfa\r\n\n  \nb\nc", "1:a 4:b 5:c|"
	var gz, zst bytes.Buffer
	z := gzip.NewWriter(&gz)
	z.Write([]byte(text)) //nolint:errcheck // into memory
	z.Close()             //nolint:errcheck // as above
	s, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte(text)) //nolint:errcheck // into memory
	s.Close()             //nolint:errcheck // as above
	for name, packed := range map[string]string{"plain": text, "gzip": gz.String(), "zstd": zst.String()} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(packed), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := linesOf(t, path, ""); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := linesOf(t, "-", packed); got != want {
			t.Errorf("%s from standard input: %q, want %q", name, got, want)
		}
	}
}

func TestEachLineGoesOnAfterOneThatIsTooLong(t *testing.T) {
	defer func(n int) { maxLine = n }(maxLine)
	maxLine = 10
	if got := linesOf(t, "-", "a\n"+strings.Repeat("x", 50)+"\nb\n"); got != "1:a 2! 3:b" {
		t.Errorf("%q", got)
	}
}

func TestEachLineEndsWithWhatFails(t *testing.T) {
	stop := errors.New("enough")
	if err := EachLine(t.Context(), "-", strings.NewReader("a\nb\n"), nil, func(Line) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	err := EachLine(t.Context(), filepath.Join(t.TempDir(), "none"), nil, nil, func(Line) error { return nil })
	if e, ok := errors.AsType[*InputError](err); !ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", e)
	}
}
