package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// errNotFile says that a directory or a device stands where a file was to be
// written.
var errNotFile = errors.New("not a regular file")

// maxLinks is how many links are followed, as many as Linux does.
const maxLinks = 40

// placeOf follows the links of a path to the place where a file stands or will
// stand when it is written aside and renamed. The error is [errNotFile] for what
// is no regular file: a device, a directory, and anything below /dev and /proc,
// whose entries are what others hold open and not places in a directory; it is
// [fs.ErrNotExist] where there is no directory.
func placeOf(path string) (string, error) {
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return "", err
		}
		at := filepath.Join(dir, filepath.Base(path))
		if below(at, "/dev") && !below(at, "/dev/shm") || below(at, "/proc") {
			return "", errNotFile
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return at, nil
		case err != nil:
			return "", err
		case info.Mode().IsRegular():
			return at, nil
		case info.Mode()&fs.ModeSymlink == 0:
			return "", errNotFile
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if path = to; !filepath.IsAbs(to) {
			path = filepath.Join(dir, to)
		}
	}
	return "", fmt.Errorf("%s: more than %d links", path, maxLinks)
}

func below(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// writeNewFile writes a file aside and moves it to its place whole. Without
// overwrite a file that is there stays, and the error is [fs.ErrExist], even
// when it appeared this very moment. With it a link is followed and the file
// keeps its permissions. The error is [errNotFile] where no file can stand.
func writeNewFile(path string, data []byte, overwrite bool) error {
	place, err := placeOf(path)
	if err != nil {
		return err
	}
	if overwrite {
		path = place
	}
	before, err := os.Stat(path)
	if err == nil && !before.Mode().IsRegular() {
		return errNotFile
	}
	aside, err := writeAside(path, data)
	if err != nil {
		return err
	}
	defer os.Remove(aside) // after a rename there is nothing to remove
	if !overwrite {
		return moveNew(aside, path)
	}
	if before != nil {
		if err := os.Chmod(aside, before.Mode().Perm()); err != nil {
			return err
		}
	}
	return os.Rename(aside, path)
}

// writeAside writes a file beside a path, with the permissions that the user
// gives to new files, and returns its name.
func writeAside(path string, data []byte) (name string, err error) {
	name = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36))
	aside, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	_, err = aside.Write(data)
	err = errors.Join(err, aside.Sync(), aside.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(name))
	}
	return name, nil
}

// moveNew gives a file its name if nothing has that name. A link fails on one
// that is taken; where the file system has no links a look must do.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, statErr := os.Lstat(to); statErr == nil {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	return os.Rename(from, to)
}

// replaceFile writes a file aside and renames it over path, so that a reader
// sees the old bytes or the new ones. It refuses if the file is no longer what
// was read: somebody else has edited it since. A link is followed; the
// permissions stay.
func replaceFile(name string, was, data []byte) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return changed(name, err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, was) {
		return changed(path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return changed(path, err)
	}
	aside, err := writeAside(path, data)
	if err != nil {
		return &Error{Code: ExitFailed, Err: fmt.Errorf("%s was not touched: %w", path, err), Hint: "the file is written beside itself and renamed: its directory must be writable"}
	}
	defer os.Remove(aside) // after the rename there is nothing to remove
	if err := os.Chmod(aside, info.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// changed says that somebody else edited, or removed, the file meanwhile.
func changed(path string, err error) error {
	what := fmt.Errorf("%s has changed since it was read; it was not touched", path)
	if err != nil {
		what = fmt.Errorf("%s cannot be read any more: %w", path, err)
	}
	return &Error{Code: ExitConflict, Err: what, Hint: "run the command again"}
}
