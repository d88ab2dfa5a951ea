package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/canaryctl/canaryctl/internal/journal"
)

// TestADirectoryThatCannotBeSyncedIsNoError: proc(5) answers fsync(2) with
// EINVAL, as file systems of networks and of user space may.
func TestADirectoryThatCannotBeSyncedIsNoError(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a directory that surely cannot be synced")
	}
	d, err := os.Open("/proc/self")
	if err != nil {
		t.Skip(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); !errors.Is(err, syscall.EINVAL) {
		t.Skipf("it can be synced: %v", err)
	}
	if err := journal.SyncDir("/proc/self"); err != nil {
		t.Error(err)
	}
	if err := journal.SyncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := journal.SyncDir(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
