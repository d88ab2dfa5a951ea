package config

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Streaming is metrics.streaming as written, by signal.
type Streaming struct {
	TTFTP99, TTFTSlow, ITL, StreamAborts, ServerErrors, Errors, KVCache StreamLimit
}

// StreamLimit is the limit of one signal of streaming or infrastructure. What
// the signal has no key for is its zero value.
type StreamLimit struct {
	LimitMS    release.Ratio // ttft_p99, itl; ttft_slow: the time to first token from which on a stream is slow
	BaselineMS release.Ratio // ttft_p99
	RatioLimit release.Ratio // ttft_p99
	ShareLimit release.Ratio // of counted signals
	Limit      release.Ratio // kv_cache
	Span       time.Duration // span_min; ttft_p99 has none: each window stands by itself
	MinCount   int64         // of streams, requests or windows
	MinBad     int64         // min_aborts, min_errors
}

// Of returns the limit of a signal of streaming or infrastructure.
func (s *Streaming) Of(signal release.Signal) *StreamLimit {
	return [release.Streaming]*StreamLimit{
		&s.TTFTP99, &s.TTFTSlow, &s.ITL, &s.StreamAborts, &s.ServerErrors, &s.Errors, &s.KVCache,
	}[signal-release.FirstStreaming]
}

// bindStreaming fills in metrics.streaming, for the plan and for every step.
// Windows must be known by then.
func (d *document) bindStreaming(c *Config) {
	c.Streaming = d.streaming("", c.windowLength())
	for i := range c.Steps {
		c.Steps[i].Streaming = d.streaming(stepPath(i), c.windowLength())
	}
}

func (d *document) streaming(step string, window time.Duration) Streaming {
	var out Streaming
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		at := func(name string) typed {
			path := streamingPath(s, name)
			if specOf(path) == nil {
				return typed{}
			}
			return d.limit(step, path)
		}
		l := out.Of(s)
		*l = StreamLimit{
			LimitMS: at("limit_ms").number, BaselineMS: at("baseline_ms").number, RatioLimit: at("ratio_limit").number,
			ShareLimit: at("share_limit").number, Limit: at("limit").number,
			Span: at("span_min").span, MinCount: at("min_count").count, MinBad: at("min_aborts").count + at("min_errors").count,
		}
		if l.Span > 0 && !d.hasLimit(step, streamingPath(s, "span_min")) {
			l.Span = max(l.Span, window)
		}
	}
	return out
}

func streamingPath(s release.Signal, name string) string { return streaming + s.String() + "." + name }

var onFailOf = map[string]release.OnFail{
	"roll_back": release.RollBack, "trip": release.RollBack, "hold": release.HoldStep, "throttle": release.Throttle,
}

// onFail returns what a failing signal does: what signals says where it says
// it, else the action of streaming.
func (d *document) onFail(s release.Signal) release.OnFail {
	switch path := "canary.signals." + s.String() + ".on_fail"; {
	case d.has(path):
		return onFailOf[d.get(path).text]
	case s.Streaming():
		return onFailOf[d.get(streamingPath(s, "action")).text]
	}
	return release.RollBack
}

// checkStreaming refuses a span that is shorter than a window: what it says
// would not be what is judged.
func (d *document) checkStreaming(c *Config) {
	window := c.windowLength()
	for i := -1; i < len(c.Steps); i++ {
		step, limits := "", &c.Streaming
		if i >= 0 {
			step, limits = stepPath(i), &c.Steps[i].Streaming
		}
		for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
			path, span := streamingPath(s, "span_min"), limits.Of(s).Span
			if span == 0 || span >= window || step != "" && !d.has(step+".limits."+limitName(path)) {
				continue
			}
			d.errorAt(d.limitNode(step, path), ruleSpanOrder, fmt.Sprintf("make it at least %s, or the windows shorter", minutesText(window)),
				"%s: span_min %s is shorter than a window of %s", s, minutesText(span), release.Minutes(window))
		}
	}
}

// limits returns the breaker's limit of a signal, in the unit of
// [breaker.StreamCounts]. The error is a [*digitsError].
func (l *StreamLimit) limits(s release.Signal) (breaker.StreamLimit, error) {
	out := breaker.StreamLimit{Span: l.Span, MinOf: l.MinCount, MinSum: l.MinBad, Limit: l.ShareLimit}
	key, limit, unit := "limit_ms", l.LimitMS.Rat, int64(breaker.PerMS)
	switch s {
	case release.TTFTP99:
		relative := new(big.Rat).Mul(l.BaselineMS.Rat(), l.RatioLimit.Rat())
		if relative.Cmp(l.LimitMS.Rat()) < 0 {
			key, limit = "baseline_ms", func() *big.Rat { return relative }
		}
	case release.ITL:
	case release.KVCache:
		key, limit, unit = "limit", l.Limit.Rat, breaker.PerWhole
	default:
		return out, nil
	}
	var err error
	if out.Limit, err = release.RatioOf(new(big.Rat).Mul(limit(), big.NewRat(unit, 1))); err != nil {
		return out, &digitsError{[2]string{streamingPath(s, key), streamingPath(s, "ratio_limit")}, "x", err}
	}
	return out, nil
}

// limits returns the breaker's limits of all signals. The error is a
// [*digitsError].
func (s *Streaming) limits() (out [release.Streaming]breaker.StreamLimit, err error) {
	for signal := release.FirstStreaming; signal <= release.LastStreaming && err == nil; signal++ {
		out[signal-release.FirstStreaming], err = s.Of(signal).limits(signal)
	}
	return out, err
}

// canonical writes the limits where they are not the defaults: see
// [FastLayer.countForm].
func (s *Streaming) canonical(window time.Duration) string {
	var b strings.Builder
	usual := usualLimits(window)
	for signal := release.FirstStreaming; signal <= release.LastStreaming; signal++ {
		if l := s.Of(signal); *l != *usual.Of(signal) {
			fmt.Fprintf(&b, " %s=%s,%s,%s,%s,%s,%v,%d,%d", signal, fraction(l.LimitMS), fraction(l.BaselineMS), fraction(l.RatioLimit),
				fraction(l.ShareLimit), fraction(l.Limit), l.Span, l.MinCount, l.MinBad)
		}
	}
	return b.String()
}

// usualLimits are the limits where nothing is written.
func usualLimits(window time.Duration) Streaming {
	empty := document{}
	return empty.streaming("", window)
}

// canonicalSignals writes how signals take part: the five that there were at
// first as ever, and those of streaming where they do not as they would by
// themselves.
func (c *Config) canonicalSignals() string {
	first := append(slices.Clone(c.Signals[:release.FirstStreaming]), c.Signals[release.SolveRate])
	out, empty := fmt.Sprint(first), document{}
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		if rule := c.Signals[s]; rule != (breaker.Rule{OnFail: empty.onFail(s)}) {
			out += fmt.Sprintf(" %s=%v", s, rule)
		}
	}
	return out
}
