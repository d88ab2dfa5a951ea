package release_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestTheSignalsOfStreamingStandTogether(t *testing.T) {
	var all release.Figures
	n := 0
	for s := release.Signal(0); int(s) < release.Judged; s++ {
		if s.Streaming() != (s > release.Transfers && s < release.SolveRate) || s.Streaming() != (s.Figures() != 0) {
			t.Errorf("%s: streaming %v, figures %b", s, s.Streaming(), s.Figures())
		}
		if s.Streaming() {
			n++
			if all&s.Figures() != 0 {
				t.Errorf("%s shares a figure with another", s)
			}
			all |= s.Figures()
		}
	}
	if n != release.Streaming || all != release.StreamingFigures {
		t.Errorf("%d signals with figures %b, want %d with %b", n, all, release.Streaming, release.StreamingFigures)
	}
}

// TestASetOfSignalsIsTheNumberThatItWasBeforeStreaming: violations, cost, p99,
// transfers, solve_rate, cooldown and probes are the bits from the lowest on.
func TestASetOfSignalsIsTheNumberThatItWasBeforeStreaming(t *testing.T) {
	for n, s := range []release.Signal{release.Violations, release.Cost, release.P99, release.Transfers, release.SolveRate, release.Cooldown, release.Probes} {
		set := release.SignalSet(0).With(s)
		b, err := json.Marshal(set)
		if err != nil || string(b) != []string{"1", "2", "4", "8", "16", "32", "64"}[n] {
			t.Errorf("%s is written as %s, %v", s, b, err)
		}
		var again release.SignalSet
		if err := json.Unmarshal(b, &again); err != nil || again != set || !again.Has(s) {
			t.Errorf("%s is read back as %b, %v", s, again, err)
		}
	}
	seen := release.SignalSet(0)
	for s := release.Signal(0); s <= release.Probes; s++ {
		if seen.Has(s) {
			t.Errorf("%s has the bit of another", s)
		}
		seen = seen.With(s)
	}
}

func TestFindingsOfStreamingSayWhatTheyRestOn(t *testing.T) {
	for want, f := range map[string]release.Finding{
		"p99 time to first token 3200 ms, limit 3000 ms (40 streams)":                   {Signal: release.TTFTP99, Value: 3200, Limit: 3000, Of: 40, Span: time.Minute},
		"4 of 100 streams slow to their first token in 5 minutes (4 %), limit 3 %":      {Signal: release.TTFTSlow, Value: 0.04, Limit: 0.03, Count: 4, Of: 100, Span: 5 * time.Minute},
		"mean inter-token latency 500 ms in 1 minute, limit 150 ms (1 stream)":          {Signal: release.ITL, Value: 500, Limit: 150, Of: 1, Span: time.Minute},
		"3 of 500 streams broke off in 5 minutes (0.6 %), limit 0.5 %":                  {Signal: release.StreamAborts, Value: 0.006, Limit: 0.005, Count: 3, Of: 500, Span: 5 * time.Minute},
		"9 of 300 requests answered 5xx in 1 minute (3 %), limit 1 %":                   {Signal: release.ServerErrors, Value: 0.03, Limit: 0.01, Count: 9, Of: 300, Span: time.Minute},
		"30 of 300 requests failed in 5 minutes (10 %), limit 1 %":                      {Signal: release.Errors, Value: 0.1, Limit: 0.01, Count: 30, Of: 300, Span: 5 * time.Minute},
		"95.5 % of the KV cache in use in 2 hours 30 minutes, limit 90 % (150 windows)": {Signal: release.KVCache, Value: 0.955, Limit: 0.9, Of: 150, Span: 150 * time.Minute},
	} {
		if got := f.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
