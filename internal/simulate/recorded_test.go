package simulate_test

import (
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// callsOf makes the calls that a driver would: a look a minute, a write that is
// read back at once, and another look at what came of it.
func callsOf(p *ladder.Plan, windows iter.Seq[release.Window]) iter.Seq2[*simulate.Call, error] {
	return func(yield func(*simulate.Call, error) bool) {
		var st ladder.State
		var weight release.Weight
		look := func(now time.Time, ws []release.Window) bool {
			for {
				ev := ladder.Evidence{Windows: ws, Observed: ladder.Observed{Weight: weight, At: now, Known: true}}
				if !yield(&simulate.Call{Plan: p, Now: now, Evidence: ev, Until: now}, nil) {
					return false
				}
				d := ladder.Decide(p, &st, ev, now)
				if d.Write {
					weight = d.Weight
				}
				if !d.Write && !d.Happened && d.Move != release.Complete {
					return true
				}
			}
		}
		if !look(t0, nil) {
			return
		}
		for w := range windows {
			if weight.IsZero() {
				w.Total, w.Judged, w.Solved, w.Violations, w.Transfers = 0, 0, 0, 0, 0
			}
			if !look(w.End(), []release.Window{w}) {
				return
			}
		}
	}
}

func each(ws []release.Window) iter.Seq[release.Window] {
	return func(yield func(release.Window) bool) {
		for _, w := range ws {
			if !yield(w) {
				return
			}
		}
	}
}

func TestCallsReplayedLeadWhereTheFeedDoes(t *testing.T) {
	for name, windows := range map[string][]release.Window{"scenario-a": scenarioA(60), "scenario-b": scenarioB(60)} {
		t.Run(name, func(t *testing.T) {
			p := plan(published())
			feed, err := simulate.NewRecorded(windows, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := simulate.Run(p, feed, simulate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := simulate.Replay(callsOf(p, each(windows)), nil)
			if err != nil {
				t.Fatal(err)
			}
			// A live probe begins when its weight is read back, in the minute
			// before the simulator's, whose weight acts in its own minute.
			if g, w := signals(got), signals(want); g != w || g == "" {
				t.Errorf("events %s, want %s", g, w)
			}
			if got.Events[0].Minute != want.Events[0].Minute || got.Rollbacks[0].Finding != want.Rollbacks[0].Finding {
				t.Errorf("trip %+v, want %+v", got.Rollbacks[0], want.Rollbacks[0])
			}
			if got.Rollbacks[0].Exposure != want.Rollbacks[0].Exposure || got.Rollbacks[0].Exposure.Requests == 0 {
				t.Errorf("exposure %+v, want %+v", got.Rollbacks[0].Exposure, want.Rollbacks[0].Exposure)
			}
			if !got.Start.Equal(want.Start) || got.Ticks != want.Ticks || got.Span != want.Span || got.Gaps != 0 {
				t.Errorf("%d ticks of %s from %s, %d gaps; want %d, %s, %s", got.Ticks, got.Span, got.Start, got.Gaps, want.Ticks, want.Span, want.Start)
			}
		})
	}
}

func signals(out *simulate.Outcome) string {
	var words []string
	for _, e := range out.Events {
		words = append(words, e.From.String()+">"+e.To.String()+":"+e.Finding.Signal.String())
	}
	return strings.Join(words, " ")
}

func TestMissingWindowsUnderAWeightAreGaps(t *testing.T) {
	ws := scenarioA(20)
	ws = append(ws[:5], ws[8:]...)
	ws[10].Total, ws[10].Judged, ws[10].Solved = 0, 0, 0
	out, err := simulate.Replay(callsOf(plan(published()), each(ws)), nil)
	if err != nil || out.Gaps != 4 || out.Canary != 16*26 {
		t.Errorf("%d gaps and %d requests, want 4 and %d (%v)", out.Gaps, out.Canary, 16*26, err)
	}
}

// TestAMoveThatWasNeverMadeIsNone: neither a step forward nor a higher share
// within a step, once its write was surely not made.
func TestAMoveThatWasNeverMadeIsNone(t *testing.T) {
	p := plan(published())
	p.Steps[0].MinHold = 30 * time.Minute
	p.Steps[0].Weight, p.Steps[1].Weight = release.Weight{Slots: 10, Ring: 100}, release.Weight{Slots: 20, Ring: 100}
	p.Steps[2].Weight = release.Weight{Slots: 30, Ring: 100}
	p.Adaptive = ladder.DefaultAdaptive()
	p.Adaptive.On, p.Adaptive.Limit, p.Adaptive.Span, p.Adaptive.Least = true, release.NewRatio(1, 20), 5*time.Minute, 20
	asked, made := 0, 0
	calls := func(yield func(*simulate.Call, error) bool) {
		var weight release.Weight
		var st ladder.State
		for m := range 28 {
			now := t0.Add(time.Duration(m) * time.Minute)
			w := minute(m-1, 26, 24, 0, 0)
			w.StatusOf, w.Known = 26, w.Known|release.HasErrors
			for {
				ev := ladder.Evidence{Windows: []release.Window{w}, Observed: ladder.Observed{Weight: weight, At: now, Known: true}}
				if !yield(&simulate.Call{Plan: p, Now: now, Evidence: ev, Until: now}, nil) {
					return
				}
				d := ladder.Decide(p, &st, ev, now)
				if !d.Write {
					break
				}
				if d.Move == release.Adjust {
					if asked++; asked == 2 {
						ladder.Abandon(&st)
						if !yield(&simulate.Call{Now: now, Abandoned: true}, nil) {
							return
						}
						break
					}
					made++
				}
				weight = d.Weight
			}
		}
	}
	out, err := simulate.Replay(calls, nil)
	if err != nil {
		t.Fatal(err)
	}
	adjusted := 0
	for _, m := range out.Moves {
		if m.Move == release.Adjust {
			adjusted++
		}
	}
	if made == 0 || asked == made || adjusted != made {
		t.Errorf("%d of %d changes of the share are told, %d were made", adjusted, asked, made)
	}
}

func TestAReplayEndsWithTheErrorThatItMeets(t *testing.T) {
	none := func(func(*simulate.Call, error) bool) {}
	if _, err := simulate.Replay(none, nil); !errors.Is(err, simulate.ErrNoCalls) {
		t.Errorf("nothing: %v", err)
	}
	torn := errors.New("line 7 is torn")
	if _, err := simulate.Replay(func(yield func(*simulate.Call, error) bool) { yield(nil, torn) }, nil); !errors.Is(err, torn) {
		t.Errorf("damaged: %v", err)
	}
	p, n := plan(published()), 0
	check := func(*simulate.Call, *ladder.Decision, *ladder.State) error {
		if n++; n == 9 {
			return torn
		}
		return nil
	}
	if _, err := simulate.Replay(callsOf(p, each(scenarioA(60))), check); !errors.Is(err, torn) || n != 9 {
		t.Errorf("not what the line says: %v after %d", err, n)
	}
	impossible := &simulate.Call{Plan: p, Now: t0, Command: &ladder.Command{Verb: ladder.DoResume, At: t0}}
	if _, err := simulate.Replay(func(yield func(*simulate.Call, error) bool) { yield(impossible, nil) }, nil); !errors.Is(err, ladder.ErrNotPaused) {
		t.Errorf("a command that was not possible: %v", err)
	}
}

// TestThirtyDaysDoNotSitInMemory replays a window a minute for a month.
func TestThirtyDaysDoNotSitInMemory(t *testing.T) {
	const days, most = 30, 8 << 20
	var begin, now, peak runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&begin)
	windows := func(yield func(release.Window) bool) {
		for m := range days * 24 * 60 {
			if m%(5*24*60) == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				if now.HeapAlloc > peak.HeapAlloc {
					peak = now
				}
			}
			if !yield(minute(m, 26, 24, 0, 0)) {
				return
			}
		}
	}
	out, err := simulate.Replay(callsOf(plan(published()), windows), nil)
	if err != nil || out.Ticks != days*24*60 {
		t.Fatalf("%d ticks, %v", out.Ticks, err)
	}
	if grown := int64(peak.HeapAlloc) - int64(begin.HeapAlloc); grown > most {
		t.Errorf("the heap has grown by %d bytes, at most %d", grown, most)
	}
}
