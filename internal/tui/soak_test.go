//go:build unix

package tui

import (
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/watch"
	"github.com/canaryctl/canaryctl/scenarios"
)

// paints counts the frames that a program draws, and keeps nothing of them.
type paints struct{ frames, bytes atomic.Int64 }

func (p *paints) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), "\x1b[H") {
		p.frames.Add(1)
	}
	p.bytes.Add(int64(len(b)))
	return len(b), nil
}

// weekly is a replay of a week of minutes.
func weekly(t *testing.T) Film {
	t.Helper()
	src, err := scenarios.FS.ReadFile("healthy-week.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sc, findings := scenario.Parse("healthy-week.yaml", src)
	if sc == nil {
		t.Fatal(findings)
	}
	plan := sc.Config.Plan()
	film, err := simulate.NewFilm(plan, sc.Feed(plan, sc.Seed), sc.Options())
	if err != nil {
		t.Fatal(err)
	}
	return watch.NewReel("healthy-week", film, func(*ladder.Plan) *config.Config { return sc.Config })
}

// ticking is a live feed with a snapshot a second, of a release whose events
// grow as a journal's do: the newest two hundred are kept.
type ticking struct {
	now   func() time.Time
	n     int
	event []watch.Event
}

func (f *ticking) Next(ctx context.Context) (watch.Snapshot, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return watch.Snapshot{}, ctx.Err()
	}
	f.n++
	s := held()
	s.At = f.now()
	s.Source.Newest, s.Decider.At = s.At, s.At
	f.event = append(f.event, watch.Event{At: s.At, Line: int64(f.n), Kind: "message", Text: "one more"})
	if n := len(f.event) - 200; n > 0 {
		f.event = append([]watch.Event(nil), f.event[n:]...)
	}
	s.Events = f.event
	return s, nil
}

// heap is what is in use after all that is not has been taken away.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // finalizers of the first may have let go of more
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mostGrowth is what the heap may be larger by in the end: what is in a buffer at
// one time and not at another. A frame at 120x40 is 10 kB; a leak of one a minute
// would be found.
const mostGrowth = 512 << 10

// soaking runs a view at 120x40 for so long, after a warm-up, and returns how
// many frames were drawn in that time and how much the heap has grown.
func soaking(t *testing.T, o Options, warm, long time.Duration, meanwhile func(at time.Duration, heap int64)) (frames, growth int64) {
	t.Helper()
	out := &paints{}
	o.Out, o.Colors, o.Dark = out, termenv.TrueColor, true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := program(ctx, &o)
	done := make(chan error, 1)
	go func() {
		final, err := p.Run()
		_, err = o.ended(ctx, final, err)
		done <- err
	}()
	p.Send(tea.WindowSizeMsg{Width: 120, Height: 40})
	time.Sleep(warm)
	before, drawn := heap(), out.frames.Load()
	const parts = 24
	for i := range parts {
		time.Sleep(long / parts)
		if meanwhile != nil {
			meanwhile(warm+time.Duration(i+1)*long/parts, heap())
		}
	}
	frames, growth = out.frames.Load()-drawn, heap()-before
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	time.Sleep(3 * time.Second) // timers of the view run out
	return frames, growth
}

func TestAnHourOfWindowsLeavesNothing(t *testing.T) {
	film := weekly(t)
	synctest.Test(t, func(t *testing.T) {
		hour := time.Hour / 100
		frames, growth := soaking(t, Options{Film: film, Speed: 100, Now: time.Now}, hour, hour, nil)
		t.Logf("replay: %d frames, %d bytes more", frames, growth)
		if least, most := int64(58), int64(120); frames < least || frames > most { // a frame each 0.6 s, and the seconds between
			t.Errorf("%d frames for 60 windows in 36 seconds", frames)
		}
		if growth > mostGrowth {
			t.Errorf("the heap has grown by %d bytes", growth)
		}
	})
}

func TestAnHourOfLookingLeavesNothing(t *testing.T) {
	long := time.Hour
	if raced() {
		long /= 6 // the race detector needs most of a minute for an hour
	}
	synctest.Test(t, func(t *testing.T) {
		feed := &ticking{now: time.Now}
		frames, growth := soaking(t, Options{Feed: feed, Actions: idle{}, Now: time.Now}, 5*time.Minute, long, nil)
		t.Logf("live, for %v: %d frames, %d bytes more", long, frames, growth)
		// One for the clock and one for the snapshot, where they do not fall together.
		if seconds := int64(long / time.Second); frames < seconds-10 || frames > 2*seconds+10 {
			t.Errorf("%d frames in %d seconds of a snapshot each", frames, seconds)
		}
		if growth > mostGrowth {
			t.Errorf("the heap has grown by %d bytes", growth)
		}
	})
}

// processor is how much of it this process has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// TestSoak plays a day of minutes at 100x, in real time.
func TestSoak(t *testing.T) {
	if os.Getenv("CANARYCTL_SOAK") == "" {
		t.Skip("a quarter of an hour: make soak runs it")
	}
	const warm, long = 36 * time.Second, 24 * time.Hour / 100
	film := weekly(t)
	var used time.Duration
	from := time.Now()
	keys, person := io.Pipe() // who presses none
	defer person.Close()      //nolint:errcheck // never fails
	frames, growth := soaking(t, Options{Film: film, Speed: 100, Now: time.Now, In: keys}, warm, long, func(at time.Duration, heap int64) {
		used = processor(t)
		t.Logf("after %v: heap %d kB", at.Round(time.Second), heap>>10)
	})
	share := used.Seconds() / time.Since(from).Seconds()
	t.Logf("24 hours of windows in %v: %d frames, processor %.2f %% of a core, heap %+d bytes", long, frames, 100*share, growth)
	if share > 0.10 {
		t.Errorf("%.1f %% of a core", 100*share)
	}
	if growth > mostGrowth {
		t.Errorf("the heap has grown by %d bytes", growth)
	}
	if least := int64(1440); frames < least*95/100 {
		t.Errorf("%d frames for 1440 windows", frames)
	}
}
