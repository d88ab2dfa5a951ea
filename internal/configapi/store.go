package configapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

const (
	suffix   = ".document"         // of a service's file
	aside    = ".aside"            // of the file that is written before it takes the other's place
	lockName = ".lock"             // locked while a server has the directory
	magic    = "canaryctl-serve 1" // first words of a file
	// maxFile is the size of the largest file that can be right.
	maxFile = MaxBody + 512<<10
	// lockWait is how long a directory may be locked before it counts as
	// another server's: a server that is just ending may still hold it.
	lockWait = 2 * time.Second
)

// serviceName is what a service may be called; it is a file's name too.
var serviceName = pattern.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// InUseError says that another server has the directory.
type InUseError struct{ Dir string }

// Error implements error.
func (e *InUseError) Error() string { return e.Dir + " is in use by another server" }

// CorruptError says that a file is not what a server has written.
type CorruptError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *CorruptError) Error() string { return e.Path + " is damaged: " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *CorruptError) Unwrap() error { return e.Err }

// document is a service's document and what is remembered beside it. It is
// never changed: a change is another document.
type document struct {
	body   []byte
	etag   string
	canary float64 // the canary's weight, NaN where it has none
	note
}

// note is what the file of a service has besides the document.
type note struct {
	Modified time.Time `json:"modified"`
	Token    uint64    `json:"token"`   // highest fencing token seen
	Answers  []answer  `json:"answers"` // to requests with an idempotency key, oldest first
}

// answer is what a request with an idempotency key was answered.
type answer struct {
	Key    string    `json:"key"`
	Body   string    `json:"body"` // ETag of what it sent
	Status int       `json:"status"`
	At     time.Time `json:"at"`
}

// store keeps the documents in memory and on disk, each in a file of its own.
//
// A file has a line with the checksum of all that follows, a line of JSON (the
// note), and the document's bytes to the end. It is written aside, synced and
// renamed, so that there is always a whole one.
type store struct {
	root   *os.Root
	unlock func()

	mu   sync.RWMutex
	docs map[string]*document
}

// openStore makes the directory, locks it and loads it.
func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lock(dir, lockWait)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		unlock()
		return nil, err
	}
	s := &store{root: root, unlock: unlock, docs: map[string]*document{}}
	if err := s.loadAll(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// lock takes the directory's lock, which the system gives free however the
// process ends.
func lock(dir string, wait time.Duration) (unlock func(), err error) {
	type result struct {
		unlock func()
		err    error
	}
	taken, given := make(chan result), make(chan struct{})
	defer close(given)
	go func() {
		u, err := lockedfile.MutexAt(filepath.Join(dir, lockName)).Lock()
		select {
		case taken <- result{u, err}:
		case <-given: // nobody waits any more
			if err == nil {
				u()
			}
		}
	}()
	select {
	case r := <-taken:
		return r.unlock, r.err
	case <-time.After(wait):
		return nil, &InUseError{Dir: dir}
	}
}

func (s *store) close() error {
	err := s.root.Close()
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// loadAll reads every service's file and removes what an end amid a write has
// left.
func (s *store) loadAll() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), suffix+aside) {
			if err := s.root.Remove(e.Name()); err != nil {
				return err
			}
		}
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		doc, err := s.load(name)
		if err != nil {
			return &CorruptError{Path: filepath.Join(s.root.Name(), e.Name()), Err: err}
		}
		s.docs[name] = doc
	}
	return nil
}

func (s *store) load(name string) (*document, error) {
	if !serviceName.MatchString(name) {
		return nil, errors.New("its name is no service's")
	}
	f, err := s.root.Open(name + suffix)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return parseFile(data)
}

// parseFile is the inverse of fileOf.
func parseFile(data []byte) (*document, error) {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	want, ok := bytes.CutPrefix(head, []byte(magic+" "))
	if !ok {
		return nil, fmt.Errorf("it does not begin with %q", magic)
	}
	if sum := checksum(rest); sum != string(want) {
		return nil, errors.New("its checksum is not that of its content")
	}
	line, body, _ := bytes.Cut(rest, []byte("\n"))
	doc := &document{body: body, etag: etagOf(body)}
	if err := json.Unmarshal(line, &doc.note); err != nil {
		return nil, err
	}
	canary, err := inspect(body)
	doc.canary = canary
	return doc, err
}

// fileOf returns the bytes of a service's file.
func fileOf(doc *document) ([]byte, error) {
	line, err := json.Marshal(doc.note)
	if err != nil {
		return nil, err
	}
	rest := append(append(line, '\n'), doc.body...)
	return append([]byte(magic+" "+checksum(rest)+"\n"), rest...), nil
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// get returns a service's document, nil where there is none.
func (s *store) get(name string) *document {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.docs[name]
}

// count returns how many there are.
func (s *store) count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.docs)
}

// snapshot returns all of them by name.
func (s *store) snapshot() map[string]*document {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.docs)
}

// put makes a document the service's, on disk first. After an error the old one
// holds, unless the new one had taken its place already and only the directory
// could not be synced: then it holds, but might not outlive a power cut.
func (s *store) put(name string, doc *document) error {
	data, err := fileOf(doc)
	if err != nil {
		return err
	}
	hidden := "." + name + suffix + aside
	if err := s.writeSynced(hidden, data); err != nil {
		return err
	}
	if err := s.root.Rename(hidden, name+suffix); err != nil {
		return errors.Join(err, s.root.Remove(hidden))
	}
	s.mu.Lock()
	s.docs[name] = doc
	s.mu.Unlock()
	return s.syncDir()
}

func (s *store) writeSynced(name string, data []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Sync()); err != nil {
		return errors.Join(err, f.Close(), s.root.Remove(name))
	}
	return f.Close()
}

// syncDir makes a rename outlive a power cut. Windows has no such call: there
// the file system's own journal has to do.
func (s *store) syncDir() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := s.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
