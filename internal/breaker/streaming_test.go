package breaker_test

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// publishedStreaming are the figures published for 5 % of an AI gateway: time
// to first token 3000 ms at the 99th percentile, 3 % of streams above it after
// 100 streams, 150 ms between tokens, 0.5 % broken streams, 1 % of 5xx, 90 % of
// the KV cache; and errors from the third on and above 1 %.
var publishedStreaming = [release.Streaming]breaker.StreamLimit{
	{Limit: release.NewRatio(3000*breaker.PerMS, 1)},
	{Span: minutes(5), Limit: release.MustRatio("0.03"), MinOf: 100},
	{Span: minutes(1), Limit: release.NewRatio(150*breaker.PerMS, 1), MinOf: 10},
	{Span: minutes(5), Limit: release.MustRatio("0.005"), MinSum: 3},
	{Span: minutes(1), Limit: release.MustRatio("0.01"), MinSum: 3},
	{Span: minutes(5), Limit: release.MustRatio("0.01"), MinSum: 3},
	{Span: minutes(1), Limit: release.NewRatio(9*breaker.PerWhole/10, 1), MinOf: 1},
}

// streamed gives a window bad figures of streaming and infrastructure.
func streamed(w release.Window, of, bad int64) release.Window {
	w.TTFTOf, w.ITLOf, w.Streams, w.StatusOf = of, of, of, of
	w.TTFTSlow, w.Aborted, w.Errors, w.ServerErrors = bad, bad, bad, bad
	w.TTFTP99MS, w.ITLMS, w.KVCache = 9000, 900, 0.99
	w.Known |= release.StreamingFigures
	return w
}

// TestALimitOfStreamingTripsAboveIt and not at it, from the counts on that it
// needs.
func TestALimitOfStreamingTripsAboveIt(t *testing.T) {
	shares := func(of, bad int64, f release.Figures) func(*release.Window) {
		return func(w *release.Window) {
			*w = streamed(*w, of, bad)
			w.Known = w.Known&^release.StreamingFigures | f
		}
	}
	figure := func(of int64, x float64, f release.Figures) func(*release.Window) {
		return func(w *release.Window) {
			shares(of, 0, f)(w)
			w.TTFTP99MS, w.ITLMS, w.KVCache = x, x, x
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*release.Window)
		want   string
	}{
		{"ttft_p99 at 3000 ms passes", figure(40, 3000, release.HasTTFT), ""},
		{"ttft_p99 at 3000.001 ms trips", figure(40, 3000.001, release.HasTTFT), "ttft_p99: p99 time to first token 3000 ms, limit 3000 ms (40 streams)"},
		{"ttft_p99 of one stream trips", figure(1, 3001, release.HasTTFT), "ttft_p99: p99 time to first token 3001 ms, limit 3000 ms (1 stream)"},
		{"ttft_p99 of no stream is no data", figure(0, 9000, release.HasTTFT), ""},
		{"ttft_slow at 3 of 100 passes", shares(100, 3, release.HasTTFTSlow), ""},
		{"ttft_slow at 4 of 100 trips", shares(100, 4, release.HasTTFTSlow), "ttft_slow: 4 of 100 streams slow to their first token in 5 minutes (4 %), limit 3 %"},
		{"ttft_slow of all of 99 is not judged", shares(99, 99, release.HasTTFTSlow), ""},
		{"itl at 150 ms passes", figure(10, 150, release.HasITL), ""},
		{"itl at 150.001 ms trips", figure(10, 150.001, release.HasITL), "itl: mean inter-token latency 150.001 ms in 1 minute, limit 150 ms (10 streams)"},
		{"itl of an engine without KV cache trips", figure(10, 500, release.HasITL), "itl: mean inter-token latency 500 ms in 1 minute, limit 150 ms (10 streams)"},
		{"itl of 9 streams is not judged", figure(9, 500, release.HasITL), ""},
		{"stream_aborts at 3 of 600 passes", shares(600, 3, release.HasAborts), ""},
		{"stream_aborts at 3 of 599 trips", shares(599, 3, release.HasAborts), "stream_aborts: 3 of 599 streams broke off in 5 minutes (0.5008 %), limit 0.5 %"},
		{"stream_aborts at 2 of 2 are too few", shares(2, 2, release.HasAborts), ""},
		{"server_errors at 3 of 300 passes", shares(300, 3, release.HasServerErrors), ""},
		{"server_errors at 3 of 299 trips", shares(299, 3, release.HasServerErrors), "server_errors: 3 of 299 requests answered 5xx in 1 minute (1.003 %), limit 1 %"},
		{"server_errors at 2 of 2 are too few", shares(2, 2, release.HasServerErrors), ""},
		{"errors at 3 of 300 passes", shares(300, 3, release.HasErrors), ""},
		{"errors at 4 of 300 trips", shares(300, 4, release.HasErrors), "errors: 4 of 300 requests failed in 5 minutes (1.333 %), limit 1 %"},
		{"errors at 2 of 2 are too few", shares(2, 2, release.HasErrors), ""},
		{"kv_cache at 90 % passes", figure(0, 0.9, release.HasKVCache), ""},
		{"kv_cache at 90.0001 % trips", figure(0, 0.900001, release.HasKVCache), "kv_cache: 90 % of the KV cache in use in 1 minute, limit 90 % (1 window)"},
		{"kv_cache at 97 % trips", figure(0, 0.97, release.HasKVCache), "kv_cache: 97 % of the KV cache in use in 1 minute, limit 90 % (1 window)"},
		{"nothing of it known passes", shares(900, 900, 0), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			w := window(0, 1000, 1000)
			tc.change(&w)
			got := ""
			if ev := breaker.Step(&l, st, &w); ev != nil {
				got = ev.Finding.Signal.String() + ": " + ev.Finding.String()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheOrderOfTheFastLayerHoldsForStreaming: after transfers, before the
// solve rate, in the order of the signals.
func TestTheOrderOfTheFastLayerHoldsForStreaming(t *testing.T) {
	l := published()
	for s := release.Transfers; s <= release.SolveRate; s++ {
		st := new(breaker.State)
		w := streamed(window(0, 400, 0), 400, 400)
		w.Transfers = 400
		ev := breaker.Step(&l, st, &w)
		if ev == nil || ev.Finding.Signal != s {
			t.Fatalf("%s, want a trip by %s", say(ev), s)
		}
		l.Rules[s].Mode = release.Off
	}
}

// TestSpansOfStreamingAreTheirOwn: each signal counts over its span, open on
// the left.
func TestSpansOfStreamingAreTheirOwn(t *testing.T) {
	for _, tc := range []struct {
		signal release.Signal
		minute int // of the second window
		trips  bool
	}{
		{release.StreamAborts, 4, true}, {release.StreamAborts, 5, false},
		{release.ServerErrors, 0, true}, {release.ServerErrors, 1, false},
		{release.Errors, 4, true}, {release.Errors, 5, false},
	} {
		l, st := published(), new(breaker.State)
		first, second := streamed(window(0, 9, 9), 9, 2), streamed(window(tc.minute, 9, 9), 9, 1)
		first.Known = first.Known&^release.StreamingFigures | tc.signal.Figures()
		second.Known = first.Known
		var got []release.Event
		if tc.minute == 0 {
			second.Aborted, second.Errors, second.ServerErrors = 3, 3, 3
			first = second
			got = drive(&l, st, []release.Window{first})
		} else {
			got = drive(&l, st, []release.Window{first, second})
		}
		if tripped := len(got) > 0 && got[0].Finding.Signal == tc.signal; tripped != tc.trips {
			t.Errorf("%s at minute %d: %s", tc.signal, tc.minute, sayAll(got))
		}
	}
}

// TestTheMeanOverASpanIsWeighedByStreams, and that of the KV cache by windows.
func TestTheMeanOverASpanIsWeighedByStreams(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.Streaming[release.ITL-release.FirstStreaming].Span = minutes(5)
	l.Rules[release.KVCache].Mode = release.Off
	many, few := window(0, 100, 100), window(1, 100, 100)
	many.ITLMS, many.ITLOf, many.Known = 20, 90, many.Known|release.HasITL
	few.ITLMS, few.ITLOf, few.Known = 500, 10, few.Known|release.HasITL
	if got := drive(&l, st, []release.Window{many, few}); len(got) > 0 {
		t.Errorf("(90 x 20 + 10 x 500) / 100 = 68 ms: %s", sayAll(got))
	}
	few.T, few.ITLOf = at(2), 60
	ev := breaker.Step(&l, st, &few)
	if want := (90*20.0 + 10*500 + 60*500) / 160; ev == nil || ev.Finding.Value != want || ev.Finding.Of != 160 || !ev.First.Equal(at(0)) {
		t.Errorf("got %+v, want a mean of %v ms", ev, want)
	}
}

// TestAThrottledSignalShowsItsHitAndTripsNothing, as long as it lasts.
func TestAThrottledSignalShowsItsHitAndTripsNothing(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.Rules[release.KVCache].OnFail, l.Rules[release.ITL].OnFail = release.Throttle, release.HoldStep
	for m, tc := range []struct {
		kv, itl float64
		want    release.SignalSet
	}{
		{0.5, 20, 0},
		{0.95, 20, release.SignalSet(0).With(release.KVCache)},
		{0.95, 500, release.SignalSet(0).With(release.KVCache).With(release.ITL)},
		{0.9, 20, 0},
	} {
		w := window(m, 30, 30)
		w.KVCache, w.ITLMS, w.ITLOf, w.Known = tc.kv, tc.itl, 30, w.Known|release.HasKVCache|release.HasITL
		if ev := breaker.Step(&l, st, &w); ev != nil || st.Hits != tc.want {
			t.Errorf("minute %d: %s, hits %b, want %b", m, say(ev), st.Hits, tc.want)
		}
	}
}

// TestAWindowWithoutTheFigureIsNotJudgedByIt: a window that does not know a figure
// is not judged by it, although the span's sums may have come past the limit.
func TestAWindowWithoutTheFigureIsNotJudgedByIt(t *testing.T) {
	l, st := published(), new(breaker.State)
	good, bad, blind := window(0, 9, 9), window(3, 9, 9), window(6, 9, 9)
	good.Errors, good.StatusOf, good.Known = 0, 1000, good.Known|release.HasErrors
	bad.Errors, bad.StatusOf, bad.Known = 5, 100, bad.Known|release.HasErrors
	if got := drive(&l, st, []release.Window{good, bad, blind}); len(got) > 0 {
		t.Errorf("5 of 1100, and the good ones leave the span with a window that knows nothing: %s", sayAll(got))
	}
	next := bad
	next.T, next.Errors, next.StatusOf = at(7), 0, 1
	if breaker.Step(&l, st, &next) == nil {
		t.Error("5 of 101 do not trip when a window that knows the figure comes")
	}
}

// TestStatesFromBeforeStreamingAreRead and written as they were: digests in
// journals rest on the bytes.
func TestStatesFromBeforeStreamingAreRead(t *testing.T) {
	old := []byte(`{"phase":"CLOSED","locked":false,"recoveries":0,"round":{"done":0,"good":0,"pool":{"requests":0,"judged":0,"solved":0}},"hits":18,"windows":[{"t":1772442000000000000,"total":26,"judged":26,"solved":24,"violations":0,"transfers":1}]}`)
	st := read(t, old)
	if want := release.SignalSet(0).With(release.Cost).With(release.SolveRate); st.Hits != want {
		t.Errorf("hits %b, want %b", st.Hits, want)
	}
	if got := marshal(t, st); !bytes.Equal(got, old) {
		t.Errorf("written as\n%s\nwant\n%s", got, old)
	}
}

func TestTheStreamingCountsOfAStateAreWrittenBySignal(t *testing.T) {
	l, st := published(), new(breaker.State)
	w := window(0, 30, 30)
	w.ITLMS, w.ITLOf, w.Aborted, w.Streams, w.Known = 20.5, 30, 0, 28, w.Known|release.HasITL|release.HasAborts
	breaker.Step(&l, st, &w)
	if got, want := string(marshal(t, st)), `"streaming":{"itl":[615000,30],"stream_aborts":[0,28]}`; !strings.Contains(got, want) {
		t.Errorf("%s\nhas no %s", got, want)
	}
	for _, bad := range []string{`{"cost":[1,2]}`, `{"itl":[-1,2]}`, `{"itl":[1,0]}`, `{"itl":[1,-2]}`, `{"itl":"1"}`, `{"speed":[1,2]}`} {
		if err := new(breaker.State).UnmarshalJSON([]byte(`{"phase":"CLOSED","windows":[{"t":1,"streaming":` + bad + `}]}`)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// drawStreaming draws limits small enough for short feeds to reach them.
func drawStreaming(t *rapid.T) (out [release.Streaming]breaker.StreamLimit) {
	if rapid.Bool().Draw(t, "no streaming") {
		return out
	}
	for i := range out {
		out[i] = breaker.StreamLimit{
			Span:  minutes(rapid.SampledFrom([]int{1, 1, 3, 7, 50}).Draw(t, "stream_span")),
			Limit: release.MustRatio(rapid.SampledFrom([]string{"0.01", "0.1", "0.5"}).Draw(t, "stream_limit")),
			MinOf: rapid.Int64Range(0, 8).Draw(t, "stream_min_of"), MinSum: rapid.Int64Range(0, 3).Draw(t, "stream_min_sum"),
		}
	}
	out[0].Span = 0
	for _, i := range []int{0, 2} {
		out[i].Limit, out[i].MinSum = release.NewRatio(rapid.Int64Range(1, 400_000).Draw(t, "stream_us"), 1), 0
	}
	out[6].Limit, out[6].MinSum = release.NewRatio(rapid.Int64Range(1, breaker.PerWhole).Draw(t, "stream_part"), 1), 0
	return out
}

// drawStreams draws any subset of the figures, mostly harmless ones.
func drawStreams(t *rapid.T, w *release.Window) {
	bad := func(of int64) int64 {
		if rapid.IntRange(0, 5).Draw(t, "bad stream") > 0 {
			return 0
		}
		return rapid.Int64Range(0, min(of, 3)).Draw(t, "bad streams")
	}
	few := rapid.Int64Range(0, 12)
	w.Known |= release.Figures(rapid.Uint32().Draw(t, "streaming")) & release.StreamingFigures
	w.TTFTOf, w.ITLOf, w.Streams, w.StatusOf = few.Draw(t, "ttft_of"), few.Draw(t, "itl_of"), few.Draw(t, "streams"), few.Draw(t, "status_of")
	w.TTFTSlow, w.Aborted, w.Errors, w.ServerErrors = bad(w.TTFTOf), bad(w.Streams), bad(w.StatusOf), bad(w.StatusOf)
	w.TTFTP99MS, w.ITLMS = rapid.Float64Range(0, 200).Draw(t, "ttft"), rapid.Float64Range(0, 200).Draw(t, "itl")
	w.KVCache = rapid.Float64Range(0, 1).Draw(t, "kv")
}

// TestFiguresThatAreMissingChangeNoDecision: what a window does not know may
// hold anything.
func TestFiguresThatAreMissingChangeNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		other := slices.Clone(ws)
		for i := range other {
			known := other[i].Known
			junk := streamed(other[i], 1000, 1000)
			for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
				if known&s.Figures() != 0 {
					continue
				}
				switch s {
				case release.TTFTP99:
					other[i].TTFTP99MS = junk.TTFTP99MS
				case release.TTFTSlow:
					other[i].TTFTSlow = junk.TTFTSlow
				case release.ITL:
					other[i].ITLMS, other[i].ITLOf = junk.ITLMS, junk.ITLOf
				case release.StreamAborts:
					other[i].Aborted, other[i].Streams = junk.Aborted, junk.Streams
				case release.ServerErrors:
					other[i].ServerErrors = junk.ServerErrors
				case release.Errors:
					other[i].Errors = junk.Errors
				case release.KVCache:
					other[i].KVCache = junk.KVCache
				}
			}
		}
		var a, b breaker.State
		if diff := cmp.Diff(drive(&l, &a, ws), drive(&l, &b, other)); diff != "" {
			t.Fatalf("events differ:\n%s", diff)
		}
	})
}

// TestAServiceWithoutStreamingDecidesAsBefore: without figures, limits of
// streaming change nothing, neither events nor what is written.
func TestAServiceWithoutStreamingDecidesAsBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		for i := range ws {
			ws[i].Known &^= release.StreamingFigures
		}
		plain := l
		plain.Streaming = [release.Streaming]breaker.StreamLimit{}
		l.Keep, plain.Keep = l.Reach(), l.Reach()
		var a, b breaker.State
		if diff := cmp.Diff(drive(&plain, &a, ws), drive(&l, &b, ws)); diff != "" {
			t.Fatalf("events differ:\n%s", diff)
		}
		x, _ := a.MarshalJSON()
		y, _ := b.MarshalJSON()
		if !bytes.Equal(x, y) {
			t.Fatalf("written as\n%s\nwithout limits\n%s", y, x)
		}
	})
}

// streaming is the finding of a signal of streaming, the long way round.
func (r *rescan) streaming(w release.Window, s release.Signal) (release.Finding, bool) {
	limit := r.l.Streaming[s-release.FirstStreaming]
	span := limit.Span
	run := r.within(w.T, span)
	if span == 0 {
		span, run = w.Span, []release.Window{w}
	}
	sum, of := new(big.Rat), int64(0)
	exact := func(x float64, unit, n int64) *big.Rat { // as the breaker has it: to the microsecond, to the millionth
		return new(big.Rat).Mul(new(big.Rat).SetInt64(int64(x*float64(unit)+0.5)), big.NewRat(n, 1))
	}
	for i := range run {
		w := &run[i]
		if !w.Has(s.Figures()) {
			continue
		}
		add := map[release.Signal]func() (*big.Rat, int64){
			release.TTFTP99:      func() (*big.Rat, int64) { return exact(w.TTFTP99MS, breaker.PerMS, w.TTFTOf), w.TTFTOf },
			release.TTFTSlow:     func() (*big.Rat, int64) { return big.NewRat(w.TTFTSlow, 1), w.TTFTOf },
			release.ITL:          func() (*big.Rat, int64) { return exact(w.ITLMS, breaker.PerMS, w.ITLOf), w.ITLOf },
			release.StreamAborts: func() (*big.Rat, int64) { return big.NewRat(w.Aborted, 1), w.Streams },
			release.ServerErrors: func() (*big.Rat, int64) { return big.NewRat(w.ServerErrors, 1), w.StatusOf },
			release.Errors:       func() (*big.Rat, int64) { return big.NewRat(w.Errors, 1), w.StatusOf },
			release.KVCache:      func() (*big.Rat, int64) { return exact(w.KVCache, breaker.PerWhole, 1), 1 },
		}[s]
		if x, n := add(); n > 0 {
			sum.Add(sum, x)
			of += n
		}
	}
	f := release.Finding{Signal: s, Of: of, Span: span}
	if of == 0 || limit.Limit.IsZero() || !w.Has(s.Figures()) {
		return f, false
	}
	mean := new(big.Rat).Quo(sum, big.NewRat(of, 1))
	unit := 1.0
	switch s {
	case release.TTFTP99, release.ITL:
		unit = 1000
	case release.KVCache:
		unit = 1e6
	default:
		f.Count = sum.Num().Int64()
	}
	value, _ := mean.Float64()
	f.Value, f.Limit = value/unit, limit.Limit.Float64()/unit
	return f, of >= limit.MinOf && sum.Cmp(big.NewRat(limit.MinSum, 1)) >= 0 && mean.Cmp(limit.Limit.Rat()) > 0
}

// TestNothingIsAllocatedForAWindowWithStreaming once the rings have grown.
func TestNothingIsAllocatedForAWindowWithStreaming(t *testing.T) {
	l, st := published(), new(breaker.State)
	w := streamed(window(0, 26, 24), 26, 0)
	w.TTFTP99MS, w.ITLMS, w.KVCache = 800, 20, 0.5
	one := func() {
		w.T = w.T.Add(time.Minute)
		breaker.Step(&l, st, &w)
	}
	for range 200 {
		one()
	}
	if n := testing.AllocsPerRun(2000, one); n != 0 {
		t.Errorf("%v allocations a window", n)
	}
}

// BenchmarkStreaming is one window with all figures through the breaker.
func BenchmarkStreaming(b *testing.B) {
	l, st := published(), new(breaker.State)
	w := streamed(window(0, 26, 24), 26, 0)
	w.TTFTP99MS, w.ITLMS, w.KVCache = 800, 20, 0.5
	b.ReportAllocs()
	for b.Loop() {
		w.T = w.T.Add(time.Minute)
		if ev := breaker.Step(&l, st, &w); ev != nil {
			b.Fatal(say(ev))
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "windows/s")
}
