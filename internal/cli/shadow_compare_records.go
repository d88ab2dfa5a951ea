package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/config"
)

// recordsPlace is where the file of records will stand. What cannot be written
// aside and renamed is refused, and so is what the command reads or writes
// itself, by whatever name: the file of records would take its place.
func (o *compareOptions) recordsPlace() (string, error) {
	const hint = "name a file that is none of those that are read"
	if o.RecordsOut == "" || o.RecordsOut == "-" {
		return "", usage(fmt.Errorf("--records-out %q is no file", o.RecordsOut), "standard output has the verdicts: "+hint)
	}
	path, err := placeOf(o.RecordsOut)
	switch {
	case errors.Is(err, errNotFile):
		return "", usage(fmt.Errorf("--records-out %s: %w", o.RecordsOut, err), "it is written aside and renamed: "+hint)
	case errors.Is(err, fs.ErrNotExist):
		return "", usage(fmt.Errorf("--records-out %s: there is no directory %s", o.RecordsOut, filepath.Dir(o.RecordsOut)), asideHint)
	case err != nil:
		return "", usage(fmt.Errorf("--records-out: %w", err), hint)
	}
	there, err := os.Stat(path)
	if err != nil {
		return path, nil // nothing stands there yet
	}
	for _, name := range o.Files {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, there) {
			return "", usage(fmt.Errorf("--records-out %s: this is an input, %s", o.RecordsOut, name), hint)
		}
	}
	for _, name := range o.Contracts {
		if _, ships := config.BuiltInContract(name); ships {
			continue
		}
		if info, err := os.Stat(name); err == nil && os.SameFile(info, there) {
			return "", usage(fmt.Errorf("--records-out %s: this is an input, the contract %s", o.RecordsOut, name), hint)
		}
	}
	for _, stream := range []struct {
		name string
		of   any
	}{{"standard input", o.app.Stdin}, {"standard output", o.app.Stdout}, {"standard error", o.app.Stderr}} {
		if f, ok := stream.of.(*os.File); ok {
			if info, err := f.Stat(); err == nil && os.SameFile(info, there) {
				return "", usage(fmt.Errorf("--records-out %s: this is %s", o.RecordsOut, stream.name), hint)
			}
		}
	}
	return path, nil
}

const asideHint = "the file is written beside itself and renamed: its directory must be there and writable"

// asideFile is a file that is written aside, line by line, and takes its name
// when it is whole.
type asideFile struct {
	path string
	file *os.File
	*bufio.Writer
}

// newAsideFile begins a file that will stand at a place of [placeOf].
func newAsideFile(path string) (*asideFile, error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, usage(err, asideHint)
	}
	return &asideFile{path: path, file: f, Writer: bufio.NewWriter(f)}, nil
}

// commit gives the file its name.
func (a *asideFile) commit() error {
	err := errors.Join(a.Flush(), a.file.Sync(), a.file.Close())
	if err == nil {
		if info, statErr := os.Stat(a.path); statErr == nil {
			err = os.Chmod(a.file.Name(), info.Mode().Perm())
		}
	}
	if err == nil {
		err = os.Rename(a.file.Name(), a.path)
	}
	if err != nil {
		return &Error{Code: ExitFailed, Err: fmt.Errorf("the records are not written, and nothing is said of the pairs: %w", err), Hint: asideHint}
	}
	return nil
}

// drop removes the file if it did not get its name.
func (a *asideFile) drop() {
	a.file.Close()
	os.Remove(a.file.Name())
}
