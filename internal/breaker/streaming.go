package breaker

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// StreamLimit is the limit of one signal of streaming or infrastructure. It is
// held against Sum / Of of what the signal counted in its span, see [Counted],
// and trips above it.
type StreamLimit struct {
	Span   time.Duration // (now - Span, now]; 0: each window stands by itself
	Limit  release.Ratio // in the unit of Sum / Of
	MinOf  int64         // fewer are not judged
	MinSum int64         // fewer never trip
}

// Counted is what is summed up of a signal of streaming or infrastructure: whole
// numbers, so that a mean is compared as exactly as a share, and a sum that
// windows have entered and left is what it would be without them.
//
//   - shares: of Of streams or requests, Sum are slow, broke off or failed;
//   - ttft_p99, itl: Sum is milliseconds x [PerMS] x streams, of Of streams;
//   - kv_cache: Sum is the fraction x [PerWhole], of Of windows.
type Counted struct{ Sum, Of int64 }

// The units in which means are summed: a microsecond, and a millionth.
const (
	PerMS    = 1_000
	PerWhole = 1_000_000
)

// PerUnit is how many of the units of Sum / Of make one of the signal's own:
// milliseconds for ttft_p99 and itl, a fraction of 1 for the others.
func PerUnit(s release.Signal) float64 {
	switch s {
	case release.TTFTP99, release.ITL:
		return PerMS
	case release.KVCache:
		return PerWhole
	}
	return 1
}

func (c *Counted) add(o Counted)    { c.Sum, c.Of = c.Sum+o.Sum, c.Of+o.Of }
func (c *Counted) remove(o Counted) { c.Sum, c.Of = c.Sum-o.Sum, c.Of-o.Of }

// StreamCounts are the counts of all signals of streaming and infrastructure,
// from [release.FirstStreaming] on. Where Of is 0 nothing is known.
type StreamCounts [release.Streaming]Counted

// StreamCountsOf returns a window's counts, as far as it knows them.
func StreamCountsOf(w *release.Window) (out StreamCounts) {
	if w.Known&release.StreamingFigures == 0 {
		return out
	}
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		if w.Has(s.Figures()) {
			*out.of(s) = countedOf(w, s)
		}
	}
	return out
}

// countedOf returns what a window counted of a signal; nothing of nothing where
// it saw no stream or request that could count.
func countedOf(w *release.Window, s release.Signal) Counted {
	switch s {
	case release.TTFTP99:
		return weighted(w.TTFTP99MS*PerMS, w.TTFTOf)
	case release.TTFTSlow:
		return Counted{w.TTFTSlow, w.TTFTOf}
	case release.ITL:
		return weighted(w.ITLMS*PerMS, w.ITLOf)
	case release.StreamAborts:
		return Counted{w.Aborted, w.Streams}
	case release.ServerErrors:
		return Counted{w.ServerErrors, w.StatusOf}
	case release.Errors:
		return Counted{w.Errors, w.StatusOf}
	}
	return weighted(w.KVCache*PerWhole, 1)
}

// mostSum bounds what one window adds to a sum, so that a thousand windows of
// nonsense do not make it overflow. 10 s for a billion streams are within it.
const mostSum = 1 << 53

// weighted is a mean, rounded to the unit of sums, times how many it is of.
func weighted(x float64, of int64) Counted {
	if of <= 0 || math.IsNaN(x) {
		return Counted{}
	}
	unit := int64(mostSum)
	if x = max(x, 0); x < mostSum {
		unit = int64(x)
		if x-float64(unit) >= 0.5 { // exact, as math.Round is
			unit++
		}
	}
	if hi, sum := bits.Mul64(uint64(unit), uint64(of)); hi == 0 && sum <= mostSum {
		return Counted{int64(sum), of}
	}
	return Counted{mostSum, of}
}

func (c *StreamCounts) of(s release.Signal) *Counted { return &c[s-release.FirstStreaming] }

// Of returns what was counted of a signal of streaming or infrastructure.
func (c *StreamCounts) Of(s release.Signal) Counted { return c[s-release.FirstStreaming] }

// Add adds the counts of o.
func (c *StreamCounts) Add(o *StreamCounts) {
	for i := range c {
		c[i].add(o[i])
	}
}

// MarshalJSON writes what is known, by signal: [sum, of].
func (c StreamCounts) MarshalJSON() ([]byte, error) {
	out := map[release.Signal][2]int64{}
	for i, n := range c {
		if n.Of != 0 {
			out[release.FirstStreaming+release.Signal(i)] = [2]int64{n.Sum, n.Of}
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what [StreamCounts.MarshalJSON] writes.
func (c *StreamCounts) UnmarshalJSON(b []byte) error {
	var in map[release.Signal][2]int64
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("streaming counts: %w", err)
	}
	*c = StreamCounts{}
	for s, n := range in {
		if !s.Streaming() || n[0] < 0 || n[1] < 1 {
			return fmt.Errorf("streaming counts: %d of %d %s", n[0], n[1], s)
		}
		*c.of(s) = Counted{Sum: n[0], Of: n[1]}
	}
	return nil
}

// StreamLimitOf returns the limit of a signal of streaming or infrastructure.
func (l *Limits) StreamLimitOf(s release.Signal) *StreamLimit {
	return &l.Streaming[s-release.FirstStreaming]
}

// Trips reports whether the counts are past the limit: from MinOf on, at least
// MinSum, and above Limit. A limit that was never set trips nothing.
func (l *StreamLimit) Trips(c Counted) bool {
	return c.Of > 0 && c.Of >= l.MinOf && c.Sum >= l.MinSum && !l.Limit.IsZero() && l.Limit.Compare(c.Sum, c.Of) > 0
}

// StreamFinding holds counts against their limit in figures, in the signal's
// own unit.
func (l *Limits) StreamFinding(s release.Signal, c Counted, span time.Duration) release.Finding {
	f, unit := release.Finding{Signal: s, Of: c.Of, Span: span}, PerUnit(s)
	if unit == 1 {
		f.Count = c.Sum
	}
	f.Limit = l.StreamLimitOf(s).Limit.Float64() / unit
	if c.Of > 0 {
		f.Value = float64(c.Sum) / float64(c.Of) / unit
	}
	return f
}

// flow is the part of the spans that belongs to signals of streaming and
// infrastructure. A service without such figures pays nothing for it: there are
// no samples until the first window that has one.
type flow struct {
	ring  []StreamCounts           // totals before each sample, parallel to spans.ring; nil: no window had such a figure
	first [release.Streaming]int64 // of each signal's span, which reaches to the newest sample
	spans [release.Streaming]time.Duration
}

// flowAt returns the totals before a sample.
func (s *spans) flowAt(seq int64) *StreamCounts { return &s.flow.ring[seq&int64(len(s.flow.ring)-1)] }

// flowBetween returns what the samples from..to-1 counted.
func (s *spans) flowBetween(from, to int64) StreamCounts {
	out := *s.flowAt(to)
	for i := range out {
		out[i].remove(s.flowAt(from)[i])
	}
	return out
}

// pushFlow keeps the streaming counts of the newest sample.
func (s *spans) pushFlow(w *release.Window) {
	if s.flow.ring == nil {
		s.flow.ring = make([]StreamCounts, len(s.ring))
		s.flow.lay(s.lo)
	}
	a, b := s.flowAt(s.hi-1), s.flowAt(s.hi)
	for i := range a {
		sum, of := a[i].Sum, a[i].Of
		if signal := release.FirstStreaming + release.Signal(i); w.Has(signal.Figures()) {
			c := countedOf(w, signal)
			sum, of = sum+c.Sum, of+c.Of
		}
		b[i].Sum, b[i].Of = sum, of
	}
}

func (s *spans) growFlow() {
	if s.flow.ring == nil {
		return
	}
	bigger := make([]StreamCounts, len(s.ring))
	for seq := s.lo; seq <= s.hi; seq++ {
		bigger[seq&int64(len(bigger)-1)] = *s.flowAt(seq)
	}
	s.flow.ring = bigger
}

// lay lets the signals' spans begin with a sample.
func (f *flow) lay(first int64) {
	for i := range f.first {
		f.first[i] = first
	}
}

// slideFlow moves the spans up to now. It returns the oldest sample that they or
// others need.
func (s *spans) slideFlow(l *Limits, now, needed int64) int64 {
	for i := range s.flow.first {
		span := max(l.Streaming[i].Span, 1)
		if s.flow.spans[i] != span {
			s.flow.spans[i], s.flow.first[i] = span, s.lo
		}
		edge, seq := now-int64(span), s.flow.first[i]
		for seq < s.hi && s.at(seq).T <= edge {
			seq++
		}
		s.flow.first[i] = seq
		needed = min(needed, seq)
	}
	return needed
}

// streamed returns what was counted of a signal in its span.
func (s *spans) streamed(signal release.Signal) Counted {
	i := signal - release.FirstStreaming
	c := s.flowAt(s.hi)[i]
	c.remove(s.flowAt(s.flow.first[i])[i])
	return c
}

// streamLayer holds the signals of streaming and infrastructure against their
// limits, in a window that knows their figures: what others knew before is not
// judged again.
func (st *State) streamLayer(l *Limits, w *release.Window) (release.Signal, bool) {
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		if w.Has(s.Figures()) && l.StreamLimitOf(s).Trips(st.spans.streamed(s)) && st.past(l, s) {
			return s, true
		}
	}
	return 0, false
}

// streamFinding returns the figures of a signal that is past its limit.
func (st *State) streamFinding(l *Limits, w *release.Window, s release.Signal) release.Finding {
	span := l.StreamLimitOf(s).Span
	if span == 0 {
		span = w.Span
	}
	return l.StreamFinding(s, st.spans.streamed(s), span)
}

// readFlow keeps the streaming counts of the newest sample of a state that is
// read.
func (s *spans) readFlow(c *StreamCounts) {
	if s.flow.ring == nil {
		if *c == (StreamCounts{}) {
			return
		}
		s.flow.ring = make([]StreamCounts, len(s.ring))
	}
	*s.flowAt(s.hi) = *s.flowAt(s.hi - 1)
	s.flowAt(s.hi).Add(c)
}
