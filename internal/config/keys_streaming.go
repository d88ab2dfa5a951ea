package config

import (
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
)

const streaming = "canary.metrics.streaming."

var actionWords = []string{"trip", "hold", "throttle"}

// streamingKeys are the rows of metrics.streaming: a mapping for each signal of
// streaming and infrastructure.
func streamingKeys() []key {
	ms := func(def, doc string) key {
		return key{path: "limit_ms", kind: kindDecimal, def: def, min: ">0", max: "1e9", doc: doc}
	}
	share := func(def, doc string) key {
		return key{path: "share_limit", kind: kindDecimal, def: def, min: "0", max: "<1", doc: doc}
	}
	span := func(def, what string) key {
		return key{path: "span_min", kind: kindMinutes, def: def, min: ">0", doc: "The span over which " + what + ". Left out, and a window is longer: the window."}
	}
	least := func(def, of string) key {
		return key{path: "min_count", kind: kindCount, def: def, min: "0", max: "1e12", doc: "Fewer " + of + " are not judged."}
	}
	bad := func(name, of string) key {
		return key{path: name, kind: kindCount, def: "3", min: "1", max: "1e12", doc: "Fewer " + of + " within span_min never trip."}
	}
	signal := func(s release.Signal, what, action string, own ...key) []key {
		own = append(own, key{path: "action", kind: kindEnum, def: action, words: actionWords,
			doc: "`trip` rolls back, `hold` takes no further step in this attempt, `throttle` lowers the weight while it lasts. `signals: {" + s.String() + ": {on_fail: ...}}` has the last word."})
		return slices.Concat([]key{{path: s.String(), kind: kindMap, doc: what}}, at(s.String(), own...))
	}
	return slices.Concat(
		[]key{{path: strings.TrimSuffix(streaming, "."), kind: kindMap, doc: "Signals of streaming and infrastructure. Each trips above its limit, and is judged only in windows that know its figure."}},
		at(strings.TrimSuffix(streaming, "."), slices.Concat(
			signal(release.TTFTP99, "99th percentile of the time to first token, of each window by itself.", "trip",
				ms("3000", "Milliseconds above which it trips."),
				key{path: "baseline_ms", kind: kindDecimal, def: "800", min: ">0", max: "1e9", doc: "The same percentile in the baseline, milliseconds."},
				key{path: "ratio_limit", kind: kindDecimal, def: "3.75", min: ">0", max: "1e6", doc: "The multiple of baseline_ms above which it trips; the lower of both limits holds."},
				least("0", "streams in a window")),
			signal(release.TTFTSlow, "Share of streams whose first token came late.", "trip",
				ms("3000", "Milliseconds to the first token above which a stream is slow. One for all steps, since it is what is counted."),
				share("0.03", "Share of slow streams above which it trips."), span("5", "streams are counted"), least("100", "streams within span_min")),
			signal(release.ITL, "Mean inter-token latency.", "hold",
				ms("150", "Milliseconds above which it trips."), span("1", "the mean is formed, each stream counting once"), least("10", "streams within span_min")),
			signal(release.StreamAborts, "Share of streams that broke off; clients that hang up are none.", "trip",
				share("0.005", "Share of streams above which it trips."), span("5", "streams are counted"), least("0", "streams within span_min"), bad("min_aborts", "broken streams")),
			signal(release.ServerErrors, "Share of requests answered 5xx.", "trip",
				share("0.01", "Share of requests above which it trips."), span("1", "requests are counted"), least("0", "requests within span_min"), bad("min_errors", "5xx")),
			signal(release.Errors, "Share of requests that failed in any way, refusals (429) included.", "trip",
				share("0.01", "Share of requests above which it trips."), span("5", "requests are counted"), least("0", "requests within span_min"), bad("min_errors", "failures")),
			signal(release.KVCache, "KV-cache blocks in use, the most in each window.", "throttle",
				key{path: "limit", kind: kindDecimal, def: "0.90", min: ">0", max: "<1", doc: "Fraction of 1 above which it trips."},
				span("1", "the windows' mean is formed"), least("1", "windows within span_min")),
		)...))
}

// stepOwn reports whether a step may have its own value of a key of
// metrics.streaming: what is counted and what is done are the plan's.
func (k *key) stepOwn() bool {
	return !strings.HasSuffix(k.path, ".action") && k.path != streaming+"ttft_slow.limit_ms"
}
