package trace

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// endsOnCancel reads what nobody writes to, and fails if the context's end
// does not end it.
func endsOnCancel(t *testing.T, path string, stdin io.Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := ReadFiles(ctx, []string{path}, stdin, Options{}, nil)
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting for the input")
	}
}

func TestAReadThatWaitsForAPipeEndsWithTheContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	endsOnCancel(t, "-", r)
	pipe, into := io.Pipe()
	t.Cleanup(func() { into.Close() })
	endsOnCancel(t, "-", pipe)
}

func TestAPipeIsReadInPieces(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for part := range strings.SplitAfterSeq(recordLines, ":") {
			if _, err := io.WriteString(w, part); err != nil {
				return
			}
		}
		w.Close()
	}()
	var bytes int64
	d, err := ReadFiles(t.Context(), []string{"-"}, r, Options{}, func(n int64) { bytes += n })
	if err != nil || bytes != int64(len(recordLines)) {
		t.Fatalf("%v, %d bytes", err, bytes)
	}
	wantTable(t, d, recordTable...)
}
