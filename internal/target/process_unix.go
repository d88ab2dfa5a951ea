//go:build unix

package target

import (
	"fmt"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and group of another: a gateway that reads
// it by its group would not be able to any more.
func keepOwner(f *os.File, like os.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	have, err := f.Stat()
	if err != nil {
		return err
	}
	if is, ok := have.Sys().(*syscall.Stat_t); ok && is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("its owner %d and group %d cannot be kept: %w", want.Uid, want.Gid, err)
	}
	return nil
}
