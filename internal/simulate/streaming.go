package simulate

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Streaming is what both arms do beside the first signals, where no fault
// changes it. A figure that is not known is missing from all windows.
type Streaming struct {
	Share float64 // of requests, that stream; 0: all

	TTFTP99MS float64 // 99th percentile of the time to first token; 0: not known
	TTFTSlow  Level   // of streams, whose first token is later than ttft_slow allows
	ITLMS     float64 // mean inter-token latency; 0: not known
	Aborts    Level   // of streams, that break off

	ServerErrors Level // of requests, answered 5xx
	Refusals     Level // of requests, that fail otherwise, such as by 429

	KVCache float64 // blocks in use, a fraction of 1; 0: not known
}

// Spreads of the logarithms of a stream's time to first token and of its
// inter-token latency, in drawn feeds.
const ttftSigma, itlSigma = 0.5, 0.3

// known reports whether there is any figure.
func (m *Streaming) known() bool {
	m0 := *m
	m0.Share = 0
	return m0 != Streaming{}
}

// share is the share of requests that stream.
func (m *Streaming) share() float64 {
	if m.Share == 0 {
		return 1
	}
	return m.Share
}

// levels lists the figures that are levels, and of how many requests a minute
// each is, with so many requests a minute in all.
func (m *Streaming) levels(perMin float64) [4]struct {
	what  string
	level *Level
	most  float64
} {
	return [4]struct {
		what  string
		level *Level
		most  float64
	}{
		{"slow streams", &m.TTFTSlow, perMin * m.share()}, {"broken streams", &m.Aborts, perMin * m.share()},
		{"server errors", &m.ServerErrors, perMin}, {"refusals", &m.Refusals, perMin},
	}
}

// refuse says what of it cannot be, or "".
func (m *Streaming) refuse(perMin float64) string {
	for _, x := range []float64{m.TTFTP99MS, m.ITLMS} {
		if !amount(x) {
			return fmt.Sprintf("%g is no latency", x)
		}
	}
	for _, x := range []float64{m.Share, m.KVCache} {
		if !(x >= 0 && x <= 1) {
			return fmt.Sprintf("a share is between 0 and 1, not %g", x)
		}
	}
	for _, l := range m.levels(perMin) {
		switch {
		case !amount(l.level.Value) || !l.level.PerMin && l.level.Value > 1:
			return fmt.Sprintf("a share of requests is between 0 and 1, not %g", l.level.Value)
		case l.level.PerMin && l.level.Value > l.most:
			return fmt.Sprintf("%g %s a minute of %g", l.level.Value, l.what, l.most)
		}
	}
	return ""
}

// knows reports whether the base has a target of streaming.
func (m *Streaming) knows(t Target) bool {
	switch t {
	case TTFT:
		return m.TTFTP99MS > 0
	case SlowStreams:
		return m.TTFTSlow.Known
	case InterToken:
		return m.ITLMS > 0
	case BrokenStreams:
		return m.Aborts.Known
	case ServerErrorLevel:
		return m.ServerErrors.Known
	case RefusalLevel:
		return m.Refusals.Known
	}
	return m.KVCache > 0
}

// shared turns counts, which are the canary's, into shares for stable.
func (m *Streaming) shared(perMin float64) {
	for _, l := range m.levels(perMin) {
		if l.level.PerMin {
			*l.level = shareOf(*l.level, l.most)
		}
	}
}

// under is what a fault makes of it.
func (m *Streaming) under(f *Fault, minute int) {
	latency := func(ms *float64) {
		if f.Change == ToMS {
			*ms = f.Value
		} else {
			*ms *= f.Value
		}
	}
	switch f.Target {
	case TTFT:
		latency(&m.TTFTP99MS)
	case SlowStreams:
		m.TTFTSlow = f.level(m.TTFTSlow)
	case InterToken:
		latency(&m.ITLMS)
	case BrokenStreams:
		m.Aborts = f.level(m.Aborts)
	case ServerErrorLevel:
		m.ServerErrors = f.level(m.ServerErrors)
	case RefusalLevel:
		m.Refusals = f.level(m.Refusals)
	case KVCacheLevel:
		switch f.Change {
		case ToRate:
			m.KVCache = f.Value
		default:
			m.KVCache = min(1, m.KVCache+f.Value/100*float64(minute-f.From)/60)
		}
	}
}

// The streams of a feed that belong to streaming, behind all others: a feed
// without these figures draws what it always drew.
const (
	carryStreams = iota
	carryTTFT
	carryTTFTSlow
	carryITL
	carryAborts
	carryServerErrors
	carryRefusals
	streamingFigures
)

func carryStreaming(arm release.Arm) int {
	if arm == release.Stable {
		return carryFigures + 2*figures + streamingFigures
	}
	return carryFigures + 2*figures
}

// fillStreaming adds the figures of streaming to a window of n requests.
func (s *Synthetic) fillStreaming(w *release.Window, n int64, lv *levels) {
	m, first := &lv.streaming, carryStreaming(w.Arm)
	streams := s.part(first+carryStreams, n, m.share(), n)
	expected := lv.expected * m.share()
	if m.TTFTP99MS > 0 && streams > 0 {
		w.TTFTOf, w.TTFTP99MS = streams, m.TTFTP99MS
		if s.spec.Drawn {
			w.TTFTP99MS = s.dice.at(first+carryTTFT, s.at).p99(streams, m.TTFTP99MS, ttftSigma)
		}
		w.Known |= release.HasTTFT
	}
	if m.TTFTSlow.Known {
		w.TTFTOf, w.TTFTSlow = streams, s.some(first+carryTTFTSlow, streams, m.TTFTSlow, expected)
		w.Known |= release.HasTTFTSlow
	}
	if m.ITLMS > 0 && streams > 0 {
		w.ITLOf, w.ITLMS = streams, m.ITLMS
		if s.spec.Drawn {
			w.ITLMS = s.dice.at(first+carryITL, s.at).mean(streams, m.ITLMS, itlSigma)
		}
		w.Known |= release.HasITL
	}
	if m.Aborts.Known {
		w.Streams, w.Aborted = streams, s.some(first+carryAborts, streams, m.Aborts, expected)
		w.Known |= release.HasAborts
	}
	if m.ServerErrors.Known {
		w.StatusOf, w.ServerErrors = n, s.some(first+carryServerErrors, n, m.ServerErrors, lv.expected)
		w.Errors, w.Known = w.ServerErrors, w.Known|release.HasServerErrors|release.HasErrors
	}
	if m.Refusals.Known {
		w.StatusOf, w.Errors = n, min(n, w.Errors+s.some(first+carryRefusals, n, m.Refusals, lv.expected))
		w.Known |= release.HasErrors
	}
	if m.KVCache > 0 {
		w.KVCache, w.Known = m.KVCache, w.Known|release.HasKVCache
	}
}
