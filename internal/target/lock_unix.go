//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package target

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes a file's lock if nobody has it. It does not wait: a wait in the
// system could not be given up, and would keep a thread and the file.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}
