package release

import "fmt"

// FirstStreaming and LastStreaming are the first and the last of the signals of
// streaming and infrastructure, which stand together between [Transfers] and
// [SolveRate].
const (
	FirstStreaming = TTFTP99
	LastStreaming  = KVCache
)

// Streaming is their number.
const Streaming = int(LastStreaming-FirstStreaming) + 1

// Streaming reports whether s is a signal of streaming or infrastructure. These
// trip above their limit; the others at it.
func (s Signal) Streaming() bool { return s >= FirstStreaming && s <= LastStreaming }

// Figures returns what a window must carry for a signal of streaming or
// infrastructure to be judged, else none.
func (s Signal) Figures() Figures {
	if !s.Streaming() {
		return 0
	}
	return streamingFigures[s-FirstStreaming]
}

var streamingFigures = [Streaming]Figures{
	HasTTFT, HasTTFTSlow, HasITL, HasAborts, HasServerErrors, HasErrors, HasKVCache,
}

// StreamingFigures are the figures of all signals of streaming and infrastructure.
const StreamingFigures = HasTTFT | HasTTFTSlow | HasITL | HasAborts | HasServerErrors | HasErrors | HasKVCache

// streaming says a finding on streaming or infrastructure in one sentence.
func (f Finding) streaming() string {
	over := Minutes(f.Span)
	switch f.Signal {
	case TTFTP99:
		return fmt.Sprintf("p99 time to first token %s ms, limit %s ms (%s)", number(f.Value), number(f.Limit), plural(f.Of, "stream"))
	case TTFTSlow:
		return fmt.Sprintf("%d of %s slow to their first token in %s (%s), limit %s", f.Count, plural(f.Of, "stream"), over, percent(f.Value), percent(f.Limit))
	case ITL:
		return fmt.Sprintf("mean inter-token latency %s ms in %s, limit %s ms (%s)", number(f.Value), over, number(f.Limit), plural(f.Of, "stream"))
	case StreamAborts:
		return fmt.Sprintf("%d of %s broke off in %s (%s), limit %s", f.Count, plural(f.Of, "stream"), over, percent(f.Value), percent(f.Limit))
	case ServerErrors:
		return fmt.Sprintf("%d of %s answered 5xx in %s (%s), limit %s", f.Count, plural(f.Of, "request"), over, percent(f.Value), percent(f.Limit))
	case Errors:
		return fmt.Sprintf("%d of %s failed in %s (%s), limit %s", f.Count, plural(f.Of, "request"), over, percent(f.Value), percent(f.Limit))
	}
	return fmt.Sprintf("%s of the KV cache in use in %s, limit %s (%s)", percent(f.Value), over, percent(f.Limit), plural(f.Of, "window"))
}
