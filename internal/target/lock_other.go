//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package target

import (
	"errors"
	"os"
)

// tryLock says that this system has no locks that belong to an open file.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
