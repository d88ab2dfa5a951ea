// Command proxyload measures what `canaryctl shadow proxy` adds to the latency
// of the API behind it, and whether it leaks. It starts the command itself,
// plays both versions, and asks, all on one machine.
//
//	go build -o bin/canaryctl ./cmd/canaryctl
//	go run ./examples/proxyload -canaryctl bin/canaryctl
//
// Stable is asked directly and through the proxy in turns of two seconds, so
// that what else the machine does falls on both. Every request is copied, to a
// canary that is healthy, hangs, resets, or is ten times slower than stable.
// Every answer is compared with what stable wrote, byte for byte, packed and
// streamed ones among them. The exit code is 1 where a limit is not kept: 1 ms
// added at the median, 5 ms at p99, 5 ms until the first byte is passed on.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The limits that are kept.
const (
	addedMedian = time.Millisecond
	addedP99    = 5 * time.Millisecond
	passedOn    = 5 * time.Millisecond
)

// options are the flags.
type options struct {
	Command string
	Rate    int
	Conns   int
	For     time.Duration
	Turn    time.Duration
	Latency time.Duration
	Streams int
	Canary  string
}

func main() {
	var o options
	flag.StringVar(&o.Command, "canaryctl", "bin/canaryctl", "the `program`")
	flag.IntVar(&o.Rate, "rate", 200, "`requests` a second")
	flag.IntVar(&o.Conns, "conns", 32, "`connections` of the client")
	flag.DurationVar(&o.For, "for", 20*time.Second, "how `long` each canary is measured, directly and through the proxy each")
	flag.DurationVar(&o.Turn, "turn", 2*time.Second, "how `long` each goes on before the other's turn")
	flag.DurationVar(&o.Latency, "latency", 20*time.Millisecond, "how `long` stable takes")
	flag.StringVar(&o.Canary, "canary", "healthy,hanging,resetting,slow", "what the canary does, one after the other")
	flag.IntVar(&o.Streams, "streams", 10_000, "`streams` after which nothing may be left; 0 for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kept, err := run(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	if !kept {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (kept bool, err error) {
	m, err := newMocks(o.Latency)
	if err != nil {
		return false, err
	}
	defer m.close()
	kept = true
	fmt.Printf("%d requests a second on %d connections, stable takes %s, %s of each\n\n", o.Rate, o.Conns, o.Latency, o.For)
	fmt.Printf("%-10s %26s %26s %18s %20s %s\n", "CANARY", "DIRECT p50 / p99 ms", "PROXY p50 / p99 ms", "ADDED p50 / p99", "PASSED ON p50 / p99", "ANSWERS")
	for canary := range strings.SplitSeq(o.Canary, ",") {
		m.canaryIs(canary)
		good, err := measure(ctx, o, m, canary)
		if err != nil {
			return false, fmt.Errorf("%s: %w", canary, err)
		}
		kept = kept && good
	}
	if o.Streams > 0 {
		m.canaryIs("healthy")
		good, err := leak(ctx, o, m)
		if err != nil {
			return false, fmt.Errorf("streams: %w", err)
		}
		kept = kept && good
	}
	return kept, nil
}

// measure asks directly and through a proxy, in turns.
func measure(ctx context.Context, o options, m *mocks, canary string) (kept bool, err error) {
	p, err := start(ctx, o.Command, m)
	if err != nil {
		return false, err
	}
	defer p.stop() //nolint:errcheck // an error before is the one to be told
	direct, through := newClient(m.stable.URL, o.Conns), newClient(p.url, o.Conns)
	defer direct.close()
	defer through.close()
	var a, b figures
	warm := o
	warm.Turn = o.Turn / 2
	drive(ctx, warm, m, through) // connections are opened
	drive(ctx, warm, m, direct)
	for spent := time.Duration(0); spent < o.For && ctx.Err() == nil; spent += o.Turn {
		a.add(drive(ctx, o, m, direct))
		b.add(drive(ctx, o, m, through))
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	status, err := p.status()
	if err != nil {
		return false, err
	}
	median, p99 := b.latency(0.5)-a.latency(0.5), b.latency(0.99)-a.latency(0.99)
	onward, onwardDirect := b.delay(0.99), a.delay(0.99)
	kept = median < addedMedian && p99 < addedP99 && onward < max(passedOn, onwardDirect+passedOn/5) && b.wrong == 0 && b.failed == 0
	fmt.Printf("%-10s %26s %26s %18s %20s %d, %d changed, %d failed%s\n", canary,
		pair(a.latency(0.5), a.latency(0.99)), pair(b.latency(0.5), b.latency(0.99)), pair(median, p99), pair(b.delay(0.5), onward),
		len(b.latencies)+int(b.streams), b.wrong, b.failed, mark(kept))
	fmt.Printf("%10s passed on without the proxy: %s; copies: %d sent, %d dropped, %d failed; %d pairs\n", "", pair(a.delay(0.5), onwardDirect),
		status.Copies.Sent, status.Copies.Dropped, status.Copies.Failed, status.Pairs)
	return kept, p.stop()
}

func pair(a, b time.Duration) string { return fmt.Sprintf("%.2f / %.2f", ms(a), ms(b)) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mark(kept bool) string {
	if kept {
		return ""
	}
	return "  NOT KEPT"
}

// figures are what a client saw.
type figures struct {
	latencies []time.Duration // of whole answers
	delays    []time.Duration // from the writing of an event to its arrival
	streams   int64
	wrong     int64 // answers that are not what stable wrote
	failed    int64
}

func (f *figures) add(o figures) {
	f.latencies = append(f.latencies, o.latencies...)
	f.delays = append(f.delays, o.delays...)
	f.streams += o.streams
	f.wrong += o.wrong
	f.failed += o.failed
}

func (f *figures) latency(q float64) time.Duration { return quantile(f.latencies, q) }
func (f *figures) delay(q float64) time.Duration   { return quantile(f.delays, q) }

// quantile is the nearest rank.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// drive asks at an even pace for one turn. A request that finds no connection
// free waits for one, and its latency counts from when it was due.
func drive(ctx context.Context, o options, m *mocks, c *client) (f figures) {
	due := make(chan time.Time, o.Rate)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range o.Conns {
		wg.Go(func() {
			for at := range due {
				one := c.ask(ctx, m, at)
				mu.Lock()
				f.add(one)
				mu.Unlock()
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(o.Rate))
	defer tick.Stop()
	end := time.NewTimer(o.Turn)
	defer end.Stop()
	for {
		select {
		case <-tick.C:
			due <- time.Now()
			continue
		case <-end.C:
		case <-ctx.Done():
		}
		break
	}
	close(due)
	wg.Wait()
	return f
}
