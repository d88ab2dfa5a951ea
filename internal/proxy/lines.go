package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

// lines writes JSON lines in a goroutine of its own: whoever has one to write
// never waits. Where more come than can be written they are dropped and counted.
type lines struct {
	to    io.Writer
	what  string
	queue chan any
	say   func(format string, args ...any)
	warn  func(format string, args ...any)
	done  sync.WaitGroup

	written, dropped, failed atomic.Int64
	torn                     bool // the last write left half a line
	sick                     bool // the last write failed
}

const (
	queued    = 4096     // lines that wait to be written
	batchSize = 64 << 10 // bytes of lines that are written at once
	maxLine   = 16 << 20 // bytes of a line that readers take; only texts of users make longer ones
	moment    = 100 * time.Millisecond
)

// newLines starts the goroutine; nil for no writer, which takes lines and
// writes none.
func newLines(to io.Writer, what string, o *Options) *lines {
	if to == nil {
		return nil
	}
	l := &lines{to: to, what: what, queue: make(chan any, queued), say: o.Say, warn: o.Warn}
	l.done.Go(l.run)
	return l
}

// put hands over a line, which must not be changed any more.
func (l *lines) put(line any) {
	if l == nil {
		return
	}
	select {
	case l.queue <- line:
	default:
		if l.dropped.Add(1) == 1 {
			l.warn("%s come faster than they can be written; those that are left out are counted in %sstatus", l.what, adminPrefix)
		}
	}
}

// close writes what is queued and ends. Nobody may put lines any more.
func (l *lines) close() {
	if l != nil {
		close(l.queue)
		l.done.Wait()
	}
}

func (l *lines) run() {
	for line := range l.queue {
		text, n := l.gather(appendLine(nil, line))
		l.write(text, n)
	}
}

// gather adds the lines that come within a moment: a write can keep a processor
// from the users' requests until the runtime notices that it waits for the disk,
// so that there should be few.
func (l *lines) gather(text []byte) (_ []byte, n int64) {
	end := time.NewTimer(moment)
	defer end.Stop()
	for n = 1; len(text) < batchSize; n++ {
		select {
		case line, ok := <-l.queue:
			if !ok {
				return text, n
			}
			text = appendLine(text, line)
		case <-end.C:
			return text, n
		}
	}
	return text, n
}

func appendLine(text []byte, line any) []byte {
	one, err := json.Marshal(line)
	if err != nil {
		return text // lines are plain structs: they are always encoded
	}
	if long, ok := line.(interface{ shorter() any }); ok && len(one) >= maxLine {
		if one, err = json.Marshal(long.shorter()); err != nil {
			return text // as above
		}
	}
	return append(append(text, one...), '\n')
}

// write writes whole lines in one go. What a full disk cut off in the middle is
// taken back; where it cannot be, it is ended before the next line, so that it
// spoils one line and not two.
func (l *lines) write(text []byte, n int64) {
	if l.torn {
		text = append([]byte{'\n'}, text...)
	}
	wrote, err := l.to.Write(text)
	unended := wrote > 0 && wrote < len(text) && text[wrote] == '\n' && text[wrote-1] != '\n' // all of a line: it may have been read already
	if wrote > 0 {
		half := wrote - 1 - bytes.LastIndexByte(text[:wrote], '\n')
		l.torn = half > 0 && (unended || !takeBack(l.to, int64(half)))
	}
	if err != nil {
		whole := int64(bytes.Count(bytes.TrimPrefix(text[:wrote], []byte{'\n'}), []byte{'\n'}))
		if unended {
			whole++
		}
		l.written.Add(whole)
		l.failed.Add(n - whole)
		if !l.sick {
			l.warn("%s are not written: %v; they are lost and counted until this is mended", l.what, err)
		}
		l.sick = true
		return
	}
	if l.sick {
		l.say("%s are written again; %d were lost", l.what, l.failed.Load())
	}
	l.sick = false
	l.written.Add(n)
}

// takeBack cuts off the last bytes that were written to a file; false where
// they cannot be, or where somebody else has written behind them.
func takeBack(to io.Writer, n int64) bool {
	f, ok := to.(interface {
		io.Seeker
		Stat() (fs.FileInfo, error)
		Truncate(size int64) error
	})
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	end, err := f.Seek(0, io.SeekCurrent)
	return err == nil && end == info.Size() && f.Truncate(end-n) == nil
}

// linesState is how the writing goes, for the status.
type linesState struct {
	Written int64 `json:"written"`
	Dropped int64 `json:"dropped"` // came faster than they could be written
	Failed  int64 `json:"failed"`  // could not be written
}

func (l *lines) state() *linesState {
	if l == nil {
		return nil
	}
	return &linesState{Written: l.written.Load(), Dropped: l.dropped.Load(), Failed: l.failed.Load()}
}
