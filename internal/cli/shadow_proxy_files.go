package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/canaryctl/canaryctl/internal/config"
)

// headerChars are the characters of a header's name (RFC 9110, 5.6.2).
const headerChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// checkHeaders refuses names that no header can have.
func (o *shadowProxyOptions) checkHeaders() error {
	for _, h := range []struct{ flag, name string }{{"user-header", o.UserHeader}, {"segment-header", o.SegmentHeader}} {
		for _, r := range h.name {
			if !strings.ContainsRune(headerChars, r) {
				return usage(fmt.Errorf("--%s %q is no name of a header", h.flag, h.name), "a name is letters, digits and hyphens, such as X-User-Id")
			}
		}
	}
	return nil
}

// apart keeps files from being written that are something else as well: lines
// behind the weights or the configuration would break both.
type apart []namedFile

// namedFile is a file and what it is already.
type namedFile struct{ what, path string }

// takenError says what a file is already.
type takenError struct{ what string }

// Error implements error.
func (e *takenError) Error() string { return "it is the file of " + e.what + " as well" }

// inputs are the files that the proxy reads.
func (o *shadowProxyOptions) inputs(cfg *config.Config) apart {
	in := apart{{"the configuration", o.app.global.Config}}
	if cfg.Target != nil && cfg.Target.File != nil {
		in = append(in, namedFile{"the weights", cfg.Target.File.Path})
	}
	return in
}

// open opens a file for lines, unless it is one of the others: under whatever
// name, and whether it is there already or not.
func (a *apart) open(flag, path string, private bool) (*os.File, error) {
	for _, other := range *a {
		if isRegular(path) && samePath(path, other.path) {
			return nil, &takenError{other.what}
		}
	}
	f, err := openLines(path, private)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	for _, other := range *a {
		if there, gone := os.Stat(other.path); err == nil && gone == nil && info.Mode().IsRegular() && os.SameFile(info, there) {
			err = &takenError{other.what}
		}
	}
	if err == nil {
		err = endHalfLine(f, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	*a = append(*a, namedFile{flag, path})
	return f, nil
}

// isRegular is true for what is a file with lines, or will be one: several
// outputs may go to a device.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// samePath compares names of files of which one may not be there.
func samePath(a, b string) bool {
	return whereIs(a) == whereIs(b)
}

func whereIs(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// endHalfLine ends a line that was cut off when the file was last written: the
// first one that is appended would else be part of it. A file that may be written
// and not read is left as it is.
func endHalfLine(f *os.File, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	in, err := os.Open(f.Name())
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	last := make([]byte, 1)
	_, err = in.ReadAt(last, info.Size()-1)
	if err = errors.Join(err, in.Close()); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.WriteString("\n")
	return err
}
