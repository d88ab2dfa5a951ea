package calibrate

import (
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// ErrReplaySpan says that a baseline's windows are neither a whole number of
// live windows long nor a whole part of one.
var ErrReplaySpan = errors.New("the baseline's windows do not fit into live windows")

// ErrReplayShort says that a baseline covers less than a day: there is nothing
// to resample a week from.
var ErrReplayShort = errors.New("the baseline covers less than a day: too little to resample weeks from")

// history is a baseline laid out by the clock: days of ticks, from which weeks
// are drawn.
type history struct {
	tick     time.Duration
	loads    []load  // windows, those shorter than a tick joined to one
	parts    []int32 // how many ticks each of them spans
	days     []day   // oldest first
	perDay   int     // ticks
	perBlock int
	start    time.Time // a Monday, midnight by the zone's clock
	apart    bool      // weekdays and weekends are not mixed
	choices  [2][][]choice
	// choices are the days from which a block may be drawn: by kind of day (both
	// alike if not apart) and by the block's place in the day.
}

// day is one date of the baseline.
type day struct {
	weekend bool
	ticks   []place
	covered []int // ticks by block
}

// place is where the requests of a tick stand: the window, from 1 on, and
// which of its parts. 0 is a gap.
type place struct{ window, part int32 }

// choice is a day that a block may be drawn from.
type choice struct {
	day    *day
	weight int // ticks it covers
}

// newHistory lays out windows by the clock of a zone.
func newHistory(windows []release.Window, tick, block time.Duration, zone *time.Location) (*history, error) {
	const whole = 24 * time.Hour
	if tick <= 0 || block <= 0 || block%tick != 0 || whole%block != 0 {
		return nil, fmt.Errorf("blocks of %s in ticks of %s do not fill a day", block, tick)
	}
	h := &history{tick: tick, perDay: int(whole / tick), perBlock: int(block / tick)}
	dates := map[string]int{}
	covered := 0
	for i := range windows {
		w := &windows[i]
		if i > 0 && w.T.Before(windows[i-1].End()) {
			return nil, fmt.Errorf("the window at %s begins before the one before it ends", stamp(w.T))
		}
		if w.Span <= 0 || w.Span%tick != 0 && tick%w.Span != 0 {
			return nil, fmt.Errorf("%w: the window at %s is %s long, a live window %s", ErrReplaySpan, stamp(w.T), release.Minutes(w.Span), release.Minutes(tick))
		}
		if i > 0 && w.Span < tick && windows[i-1].Span < tick && w.T.Truncate(tick).Equal(windows[i-1].T.Truncate(tick)) {
			l := loadOf(w)
			h.loads[len(h.loads)-1].join(&l)
			continue
		}
		covered += h.place(w, zone, dates)
	}
	if time.Duration(covered)*tick < whole {
		return nil, ErrReplayShort
	}
	h.choose()
	y, m, d := windows[0].T.In(zone).Date()
	back := (int(time.Date(y, m, d, 12, 0, 0, 0, zone).Weekday()) + 6) % 7
	h.start = time.Date(y, m, d-back, 0, 0, 0, 0, zone).UTC()
	return h, nil
}

// place gives a window its ticks and returns how many it has. Where clocks go
// back a time comes twice, and its first ticks stay; where they go forward
// times are missing, and are a gap.
func (h *history) place(w *release.Window, zone *time.Location, dates map[string]int) (placed int) {
	parts := max(w.Span/h.tick, 1)
	h.loads = append(h.loads, loadOf(w))
	h.parts = append(h.parts, int32(parts))
	for k := range parts {
		local := w.T.Add(k * h.tick).In(zone)
		date := local.Format(time.DateOnly)
		at, seen := dates[date]
		if !seen {
			at = len(h.days)
			dates[date] = at
			weekday := local.Weekday()
			h.days = append(h.days, day{
				weekend: weekday == time.Saturday || weekday == time.Sunday,
				ticks:   make([]place, h.perDay), covered: make([]int, h.perDay/h.perBlock),
			})
		}
		hour, minute, second := local.Clock()
		slot := int((time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second) / h.tick)
		if t := &h.days[at].ticks[slot]; t.window == 0 {
			*t = place{window: int32(len(h.loads)), part: int32(k)}
			h.days[at].covered[slot/h.perBlock]++
			placed++
		}
	}
	return placed
}

// choose finds the days that each block may be drawn from. Weekdays and
// weekends are kept apart where there are two of each that hold half a day or
// more.
func (h *history) choose() {
	var kinds [2]int
	for i := range h.days {
		covered := 0
		for _, n := range h.days[i].covered {
			covered += n
		}
		if 2*covered >= h.perDay {
			kinds[h.days[i].kind()]++
		}
	}
	h.apart = kinds[0] >= 2 && kinds[1] >= 2
	for kind := range h.choices {
		h.choices[kind] = make([][]choice, h.perDay/h.perBlock)
		for b := range h.choices[kind] {
			h.choices[kind][b] = h.candidates(kind, b)
		}
	}
}

// candidates are the days that cover half of a block or more; only if there
// are none, those that cover less of it.
func (h *history) candidates(kind, b int) []choice {
	var half, less []choice
	for i := range h.days {
		d := &h.days[i]
		switch n := d.covered[b]; {
		case n == 0, h.apart && d.kind() != kind:
		case 2*n >= h.perBlock:
			half = append(half, choice{d, n})
		default:
			less = append(less, choice{d, n})
		}
	}
	if len(half) > 0 {
		return half
	}
	return less
}

func (d *day) kind() int {
	if d.weekend {
		return 1
	}
	return 0
}

// stream is resampled time without end: blocks that keep their place in the
// day, each of a day drawn at random. A day that covers more of a block is
// drawn more often, so that every tick has the same chance.
type stream struct {
	h      *history
	blocks *dice
	split  *dice
	tick   int // since Monday, midnight, of the first week
	day    *day
	rest   load // of the window under way, its ticks from next on
	next   place
}

// newStream begins at a tick since Monday, midnight, of the first week.
func (h *history) newStream(blocks, split *dice, tick int) *stream {
	s := &stream{h: h, blocks: blocks, split: split, tick: tick}
	s.draw()
	return s
}

// draw takes a day for the block under way; nil where no day has any of it.
func (s *stream) draw() {
	b := s.tick / s.h.perBlock
	perDay := s.h.perDay / s.h.perBlock
	kind := 0
	if weekday := b / perDay % 7; weekday >= 5 {
		kind = 1
	}
	choices := s.h.choices[kind][b%perDay]
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	s.day, s.next = nil, place{}
	if sum == 0 {
		return
	}
	n := s.blocks.rng.IntN(sum)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			s.day = c.day
			return
		}
	}
}

// now is the start of the next tick.
func (s *stream) now() time.Time { return s.h.start.Add(time.Duration(s.tick) * s.h.tick) }

// take returns what came in the next tick: a whole window as the baseline has
// it, or a part of one, for which own is the memory.
func (s *stream) take(own *load) *load {
	at := place{}
	if s.day != nil {
		at = s.day.ticks[s.tick%s.h.perDay]
	}
	l := &nothing
	if at.window != 0 {
		l = s.minute(at, own)
	}
	if s.tick++; s.tick%s.h.perBlock == 0 {
		s.draw()
	}
	return l
}

// nothing is a tick of which nothing is known.
var nothing = load{gap: true}

// minute returns a tick of a window: the window itself, or one of its parts,
// into each of which a request falls with the same chance. Of a window that is
// cut by a block's beginning the lost parts are drawn away first.
func (s *stream) minute(at place, own *load) *load {
	whole, parts := &s.h.loads[at.window-1], s.h.parts[at.window-1]
	if parts == 1 {
		return whole
	}
	if s.next != at {
		s.rest = whole.part(s.split, float64(parts-at.part)/float64(parts))
	}
	*own = s.rest.part(s.split, 1/float64(parts-at.part))
	s.rest = s.rest.less(own)
	s.next = place{window: at.window, part: at.part + 1}
	return own
}
