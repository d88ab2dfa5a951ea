package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
)

// asideMark stands in the names of files that are being written.
const asideMark = ".aside-"

// replace writes a file aside, syncs it and, unless last objects, renames it
// over path. Every writer has a name aside of its own, so that one that was
// stopped halfway and overtaken cannot write into another's file.
func replace(path string, data []byte, last func() error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+asideMark+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if last != nil {
		if err := last(); err != nil {
			return err
		}
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return journal.SyncDir(filepath.Dir(path))
}

// asideAge is from when on a file aside was left by a process that was killed:
// writing one takes no time.
const asideAge = time.Minute

// tidy takes away what processes that were killed while they wrote have left,
// and, with all, what one that was stopped would go on with. It is no matter if
// it cannot.
func (d *Dir) tidy(now time.Time, all bool) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.Contains(e.Name(), asideMark) {
			continue
		}
		if info, err := e.Info(); all || err == nil && now.Sub(info.ModTime()) > asideAge {
			_ = os.Remove(filepath.Join(d.path, e.Name()))
		}
	}
}
