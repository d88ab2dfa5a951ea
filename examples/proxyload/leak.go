package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// What may be there after all streams that was not before: nothing of theirs,
// but garbage that has not been swept, and a connection that is kept open.
const (
	moreGoroutines = 20
	moreFiles      = 10
	moreHeap       = 8 << 20
)

// atOnce is how many streams are open at a time.
const atOnce = 64

// leak opens many streams, one in ten of which its user leaves in the middle,
// and looks at what the proxy holds before and after.
func leak(ctx context.Context, o options, m *mocks) (kept bool, err error) {
	p, err := start(ctx, o.Command, m, "--short", "0", "--max-copies", "64")
	if err != nil {
		return false, err
	}
	defer p.stop() //nolint:errcheck // an error before is the one to be told
	m.gap.Store(int64(2 * time.Millisecond))
	if _, err := streams(ctx, m, p, o.Streams/10); err != nil { // connections and pools as they will be
		return false, err
	}
	before, err := p.rest(ctx)
	if err != nil {
		return false, err
	}
	began := time.Now()
	wrong, err := streams(ctx, m, p, o.Streams)
	if err != nil {
		return false, err
	}
	took := time.Since(began)
	after, err := p.rest(ctx)
	if err != nil {
		return false, err
	}
	s, err := p.status()
	if err != nil {
		return false, err
	}
	kept = after.goroutines <= before.goroutines+moreGoroutines && after.files <= before.files+moreFiles && after.heap <= before.heap+moreHeap && wrong == 0
	fmt.Printf("\n%d streams in %s, %d left by their users, %d changed or failed: goroutines %.0f -> %.0f, files %d -> %d, live heap %.1f -> %.1f MB; %d copies, %d dropped%s\n",
		o.Streams, took.Round(time.Millisecond), s.Requests.Cancelled, wrong, before.goroutines, after.goroutines, before.files, after.files, before.heap/1e6, after.heap/1e6,
		s.Copies.Sent, s.Copies.Dropped, mark(kept))
	return kept, p.stop()
}

// streams opens n streams and reads them.
func streams(ctx context.Context, m *mocks, p *command, n int) (wrong int64, err error) {
	c := newClient(p.url, atOnce)
	defer c.close()
	var left, bad atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for ctx.Err() == nil && left.Add(-1) >= 0 {
				q := &question{Model: "m-1", Messages: []message{{"user", "Where?"}}, N: m.next.Add(1), Stream: true}
				most := 0
				if q.N%10 == 0 {
					most = 300
				}
				got, _, err := c.send(ctx, q, most)
				if err != nil || most == 0 && got != expected(q) {
					bad.Add(1)
				}
				m.wrote.Delete(q.N)
			}
		})
	}
	wg.Wait()
	return bad.Load(), ctx.Err()
}

// rest waits until nothing is under way, and a while for the garbage to be
// swept.
func (c *command) rest(ctx context.Context) (h holds, err error) {
	for range 40 {
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return h, ctx.Err()
		}
		s, err := c.status()
		if err != nil {
			return h, err
		}
		if s.Copies.InFlight == 0 {
			break
		}
	}
	time.Sleep(time.Second)
	return c.holds()
}
