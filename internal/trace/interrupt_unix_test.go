//go:build unix

package trace

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestOpeningANamedPipeEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	endsOnCancel(t, path, nil)
}
