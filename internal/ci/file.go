package ci

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// regular looks at a path without following a link: a checkout may hold a link
// under the name of our file that leads anywhere. It returns nil for a file
// that is not there.
func regular(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", path)
	}
	return info, err
}

// open opens a plain file and makes sure that it is the one that was looked
// at.
func open(path string, flags int) (*os.File, os.FileInfo, error) {
	info, err := regular(path)
	if err != nil {
		return nil, nil, err
	}
	if info == nil {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, nil, err
	}
	now, err := f.Stat()
	if err == nil && info != nil && !os.SameFile(info, now) {
		err = fmt.Errorf("%s was changed for another file meanwhile", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, now, nil
}

// appendFile adds text to a file in one write, on a line of its own, unless
// the file would have more than most bytes. What is there stays.
func appendFile(path, text string, most int64) (err error) {
	f, info, err := open(path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	if size := info.Size(); size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			text = "\n" + text
		}
	}
	if size := info.Size() + int64(len(text)); size > most {
		return fmt.Errorf("%s: no room: it would have %d bytes, at most %d are taken", path, size, most)
	}
	_, err = io.WriteString(f, text)
	return err
}

// readRegular reads a small plain file; "" and nil where it is not there.
func readRegular(path string, most int64) (string, os.FileInfo, error) {
	info, err := regular(path)
	if err != nil || info == nil {
		return "", nil, err
	}
	f, info, err := open(path, os.O_RDONLY)
	if err != nil {
		return "", nil, err
	}
	defer f.Close() // was only read
	if info.Size() > most {
		return "", nil, fmt.Errorf("%s: no room: it has %d bytes, at most %d are taken", path, info.Size(), most)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return string(b), info, err
}
