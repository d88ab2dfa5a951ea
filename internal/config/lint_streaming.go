package config

import (
	"fmt"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// lintStreaming warns of signals of streaming that are asked for and can never
// be judged, or that are held against the shipped baseline. Of those that are
// not written nobody knows whether the source has them.
func (d *document) lintStreaming(c *Config) {
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		if c.Signals[s].Mode == release.Off || !d.has(streaming+s.String()) && c.Signals[s].Mode != release.Required {
			continue
		}
		d.lintBlindSignal(c, s)
	}
	row := specOf(streamingPath(release.TTFTP99, "baseline_ms"))
	if d.has(streaming+"ttft_p99") && !d.has(row.path) {
		d.warnAt(d.node(row.path), ruleDefaultBaseline, "measure it: the 99th percentile of the time to first token over a week of stable",
			"%s is the shipped default %s, not a figure of this service", row.name, row.def)
	}
}

// lintBlindSignal warns of steps whose traffic never brings the min_count of a
// signal in its span, were every request a stream.
func (d *document) lintBlindSignal(c *Config, s release.Signal) {
	if c.RequestsPerMin.IsZero() || s == release.KVCache {
		return
	}
	for i := range c.Steps {
		l := c.Steps[i].Streaming.Of(s)
		span := l.Span
		if span == 0 {
			span = c.windowLength()
		}
		perMin := c.share(c.Steps[i].Weight)
		in := new(big.Rat).Mul(perMin, minutesRat(span))
		if in.Cmp(new(big.Rat).SetInt64(l.MinCount)) >= 0 {
			continue
		}
		hint := fmt.Sprintf("a min_count of %d under this step's limits would be judged", max(floor(in), 1))
		if l.Span > 0 {
			hint += fmt.Sprintf(", or a span_min of %d", ceil(new(big.Rat).Quo(new(big.Rat).SetInt64(l.MinCount), perMin)))
		}
		d.warnAt(d.limitNode(stepPath(i), streamingPath(s, "min_count"), streaming+s.String(), "canary.signals."+s.String()), ruleBlindSignal, hint,
			"step %d: %s is blind: %s requests a minute are %s in %s, fewer than the min_count of %d", i+1, s, inProse(perMin), inProse(in), release.Minutes(span), l.MinCount)
	}
}
