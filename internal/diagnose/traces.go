package diagnose

import (
	"hash/fnv"
	"time"
)

// maxTraces bounds how many requests are kept apart in each of two
// generations; tests lower it.
var maxTraces = 1 << 17

// traces keep the requests of which attempts may still come. When a generation
// is full the one before it is let go: its requests are long over, unless their
// lines lie that many requests apart.
type traces struct {
	young, old map[uint64]request
	seen       int64 // requests met
	answered   int64 // of which an attempt went well
	gone       int64 // let go
}

// request is what its attempts so far leave behind.
type request struct {
	lines    int64
	last     int64 // nanoseconds since 1970 of the last attempt that went out; 0: unknown
	asked    time.Duration
	asking   bool // the last attempt that went out was told to wait
	hopeless bool // it ended with what no retry mends
	answered bool
}

// step is what an attempt says about the client, seen with the one before.
type step struct {
	number     int64 // of the attempt, by its place among the lines of its request
	told, soon bool  // the client was told to wait, and came back too soon
	again      bool  // it is a retry
	hopeless   bool  // of what no retry mends
}

func traceKey(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) //nolint:errcheck // it has no error
	return h.Sum64()
}

// add takes the next attempt of a request.
func (t *traces) add(a *Attempt) step {
	key := traceKey(a.Trace)
	r := t.find(key)
	s := step{number: r.lines + 1, again: r.lines > 0, hopeless: r.lines > 0 && r.hopeless}
	if gap := a.At.UnixNano() - r.last; r.asking && r.last != 0 && !a.At.IsZero() && gap >= 0 && !a.own() {
		s.told, s.soon = true, gap < int64(r.asked)
	}
	r.lines++
	if !a.own() {
		if r.last = 0; !a.At.IsZero() {
			r.last = a.At.UnixNano()
		}
		r.asked, r.asking = a.RetryAfter, a.RetryAfterKnown
		r.hopeless = a.Status >= 400 && !a.outcome().Retryable()
	}
	if !r.answered && a.answered() {
		r.answered = true
		t.answered++
	}
	t.young[key] = r
	return s
}

func (t *traces) find(key uint64) request {
	if r, ok := t.young[key]; ok {
		return r
	}
	r, ok := t.old[key]
	if ok {
		delete(t.old, key)
	} else {
		t.seen++
	}
	if len(t.young) >= maxTraces || t.young == nil {
		t.gone += int64(len(t.old))
		t.old, t.young = t.young, map[uint64]request{}
	}
	return r
}
