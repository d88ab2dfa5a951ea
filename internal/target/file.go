package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

// fileLockWait is how long a write waits for another one of the same file.
const fileLockWait = 10 * time.Second

// file is a JSON or YAML document on disk. A write compares and replaces it
// under a lock: a file beside it, PATH.lock, that also remembers the highest
// fencing token that has written.
type file struct {
	path     string // as configured, made absolute by Options.Dir
	name     string
	doc      document
	ring     int64
	scene    string // its fencing tokens are its own; "": there is none
	lockWait time.Duration
	sync     func(*os.File) error // fsync; tests make it fail
}

func newFile(cfg *config.FileTarget, o Options) (Target, error) {
	if cfg.Path == "" {
		return nil, errors.New("target.file.path: missing: say which file holds the weights")
	}
	doc, err := newDocument("target.file", cfg.Canary, cfg.Stable, cfg.Unit)
	if err != nil {
		return nil, err
	}
	path := cfg.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	return &file{path: path, name: "file " + cfg.Path, doc: doc, ring: o.Ring, scene: o.Scene, lockWait: fileLockWait, sync: (*os.File).Sync}, nil
}

// Read implements [Target]. It needs no lock: the file is replaced whole.
func (f *file) Read(context.Context) (Reading, error) {
	path, err := f.resolve()
	if err != nil {
		return Reading{}, err
	}
	w, _, err := f.load(path)
	return Reading{Weight: w}, err
}

// resolve follows links to the file that is read and replaced.
func (f *file) resolve() (string, error) {
	path, err := filepath.EvalSymlinks(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &ShapeError{Target: f.name, Err: fmt.Errorf("the file is not there: %w", err), Hint: "write it once, so that the gateway and canaryctl mean the same file: " + f.doc.example()}
	}
	if err != nil {
		return "", f.failure(err, "cannot be read")
	}
	return path, nil
}

// load reads the document and the weight in it.
func (f *file) load(path string) (release.Weight, []byte, error) {
	src, err := readDocument(path)
	if err != nil {
		if shape, ok := errors.AsType[*ShapeError](err); ok {
			shape.Target = f.name
			return release.Weight{}, nil, shape
		}
		return release.Weight{}, nil, f.failure(err, "cannot be read")
	}
	w, err := f.doc.read(src, f.ring)
	if err != nil {
		err = &ShapeError{Target: f.name, Err: err, Hint: "canary and stable say where the weights stand, unit what they are multiples of; such as " + f.doc.example()}
	}
	return w, src, err
}

func readDocument(path string) ([]byte, error) {
	// Asked before it is opened: opening a pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &ShapeError{Err: errors.New("not a regular file")}
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() // read only
	src, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err == nil && len(src) > maxDocument {
		err = &ShapeError{Err: fmt.Errorf("larger than %d MiB", maxDocument>>20)}
	}
	return src, err
}

// failure tells what may get better from what will not.
func (f *file) failure(err error, what string) error {
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrNotExist) {
		return &RefusedError{Target: f.name, Err: err, Hint: "the file is written beside itself and renamed: this user must be allowed to write in its directory"}
	}
	return &UnreachableError{Target: f.name, Err: err}
}

// Write implements [Target].
func (f *file) Write(ctx context.Context, was Reading, c Change) error {
	if err := f.Check(c.To); err != nil {
		return err
	}
	path, err := f.resolve()
	if err != nil {
		return refusedShape(err)
	}
	return f.rewrite(ctx, path, c, func() ([]byte, error) {
		now, src, err := f.load(path)
		switch {
		case src == nil, err != nil && !c.Overwrite:
			return nil, refusedShape(err)
		case !c.Overwrite && !now.Same(was.Weight):
			return nil, &ConflictError{Target: f.name, Held: &now}
		}
		out, err := f.doc.write(src, c.To)
		if err != nil {
			return nil, &RefusedError{Target: f.name, Err: err, Hint: "the file is not written when it cannot be changed safely"}
		}
		return out, nil
	})
}

// rewrite replaces the file by what changed makes of it, under the lock and if
// the change's fencing token is not too old.
func (f *file) rewrite(ctx context.Context, path string, c Change, changed func() ([]byte, error)) error {
	lock, err := f.lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer lock.Close() // gives the lock back
	if err := f.fenced(ctx, lock, path, c); err != nil {
		return err
	}
	out, err := changed()
	if err != nil {
		return err
	}
	return f.replace(path, out)
}

// refusedShape makes a [*ShapeError] what a write may return.
func refusedShape(err error) error {
	if shape, ok := errors.AsType[*ShapeError](err); ok {
		return &RefusedError{Target: shape.Target, Err: shape.Err, Hint: shape.Hint}
	}
	return err
}

// lockPause is how long a held lock is left alone between two looks.
const lockPause = 20 * time.Millisecond

// lock waits for the lock file. A lock whose holder was killed is free; closing
// the file gives it back.
func (f *file) lock(ctx context.Context, path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, f.failure(err, "cannot be locked; the file is as it was")
	}
	if err := f.await(ctx, lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// await looks at a lock again and again until it is had.
func (f *file) await(ctx context.Context, lock *os.File) error {
	limit := time.NewTimer(f.lockWait)
	defer limit.Stop()
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for {
		had, err := tryLock(lock)
		switch {
		case err != nil:
			return f.failure(err, "cannot be locked; the file is as it was")
		case had:
			return nil
		}
		select {
		case <-ctx.Done():
			return &UnreachableError{Target: f.name, Err: fmt.Errorf("%s is held by another process: %w", lock.Name(), ctx.Err())}
		case <-limit.C:
			return &UnreachableError{Target: f.name, Err: fmt.Errorf("%s has been held by another process for %s", lock.Name(), f.lockWait)}
		case <-again.C:
		}
	}
}

// fenced is [file.fence] in the lock, or in that of the scene: several releases
// write in the file then, each with tokens of its own, and none is older for
// what another has written.
func (f *file) fenced(ctx context.Context, lock *os.File, path string, c Change) error {
	if f.scene == "" {
		return f.fence(lock, c)
	}
	own, err := f.lock(ctx, path+"."+f.scene+".lock")
	if err != nil {
		return err
	}
	defer own.Close() // gives the lock back
	return f.fence(own, c)
}

// fence refuses a write whose fencing token is older than one that has been
// seen, and remembers a newer one before anything is written. The token has
// always the same length, so that a kill leaves the old one or the new one. A
// rollback is never refused: its token may come from a clock that is behind.
func (f *file) fence(lock *os.File, c Change) error {
	token := c.Token
	if token == 0 {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(lock, 64))
	if err != nil {
		return f.failure(err, "its lock cannot be read; the file is as it was")
	}
	seen := uint64(0)
	if text = bytes.TrimSpace(text); len(text) > 0 {
		if seen, err = strconv.ParseUint(string(text), 10, 64); err != nil && c.Overwrite {
			return nil // nothing keeps a rollback
		} else if err != nil {
			return &RefusedError{Target: f.name, Err: fmt.Errorf("%s does not hold a fencing token", lock.Name()), Hint: "it is canaryctl's: remove it while nothing writes"}
		}
	}
	switch {
	case token < seen && c.Overwrite:
		return nil
	case token < seen:
		return &ConflictError{Target: f.name, Err: fmt.Errorf("token %d is older than %d, which has written since: this lock was lost, or %s remembers a clock that was ahead: then remove it while nothing writes", token, seen, lock.Name())}
	case token == seen:
		return nil
	}
	_, err = lock.WriteAt(fmt.Appendf(nil, "%020d\n", token), 0)
	if err = errors.Join(err, lock.Sync()); err != nil {
		return f.failure(err, "its lock cannot be written; the file is as it was")
	}
	return nil
}

// replace writes a file aside and moves it to its place, so that a reader sees
// the old bytes or the new ones, also after a power failure. It keeps owner
// and permissions. Only one process does so at a time, and the name aside is
// always the same: one that was killed leaves nothing that piles up.
func (f *file) replace(path string, data []byte) error {
	dir, base := filepath.Dir(path), filepath.Base(path)
	aside := filepath.Join(dir, "."+base+".canaryctl")
	err := f.writeAside(path, aside, data)
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		_ = os.Remove(aside) // it may not be there
		return f.failure(err, "cannot be written; the file is as it was")
	}
	if err := f.syncDir(dir); err != nil {
		return &UnreachableError{Target: f.name, Err: fmt.Errorf("written, but it is not known to outlast a power failure: %w", err)}
	}
	return nil
}

func (f *file) writeAside(path, aside string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err == nil {
		err = keepOwner(out, info)
	}
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.sync(out)
	}
	return errors.Join(err, out.Close())
}

// syncDir makes a rename outlast a power failure, where directories can be
// synced.
func (f *file) syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // nothing was written through it
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// Check implements [Target].
func (f *file) Check(w release.Weight) error { return f.doc.check(f.name, w) }

// KeepsState implements [Target].
func (f *file) KeepsState() bool { return false }

// ReadBack implements [Target]: a file is never stale.
func (f *file) ReadBack() time.Duration { return 0 }

// String implements [Target].
func (f *file) String() string { return f.name }
