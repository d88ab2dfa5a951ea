package breaker_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// bytesReader hands out numbers of a fuzz input, 0 at its end.
type bytesReader struct{ b []byte }

func (r *bytesReader) next() byte {
	if len(r.b) == 0 {
		return 0
	}
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

func (r *bytesReader) below(n int) int64 { return int64(int(r.next()) % n) }

func (r *bytesReader) limits() breaker.Limits {
	l := published()
	l.FastSpan, l.SlowSpan = minutes(1+int(r.below(9))), minutes(1+int(r.below(40)))
	l.LabelLag, l.Cooldown = minutes(int(r.below(30))), minutes(int(r.below(16)))
	for i := range l.Streaming {
		l.Streaming[i] = breaker.StreamLimit{Span: minutes(int(r.below(9))), Limit: release.NewRatio(r.below(200), 100), MinOf: r.below(9), MinSum: r.below(4)}
	}
	l.MinSamples, l.ProbeMinRequests = r.below(200), r.below(60)
	l.Trials, l.MaxRecoveries = 1+r.below(6), r.below(4)
	l.LockOnEscalate = r.below(2) == 0
	for s := range l.Rules {
		l.Rules[s] = breaker.Rule{Mode: release.Mode(r.below(4)), OnFail: release.OnFail(r.below(3))}
	}
	l.SlowSpanMax, l.SolveBaseline = minutes(int(r.below(90))), release.NewRatio(80+r.below(21), 100)
	l.AgainstStable, l.P99ByCount = r.below(2) == 1, r.below(2) == 1
	l.SlowRate, l.MinSlow = release.NewRatio(r.below(20), 100), r.below(4)
	l.Noise = breaker.Noise{Z: float64(r.below(6)), Tau: float64(r.below(5)) / 50, TauControl: float64(r.below(3)) / 50, Tail: breaker.Tail(r.below(2))}
	l.Judge, l.Cusum = breaker.Judge(r.below(2)), breaker.Cusum{Drop: release.NewRatio(r.below(100), 100), Limit: float64(r.below(30))}
	return l
}

func (r *bytesReader) window(now time.Time) release.Window {
	w := release.Window{T: now, Span: time.Minute, Arm: release.Canary, Known: release.Figures(r.next()) | release.Figures(r.next())<<8}
	w.TTFTOf, w.ITLOf, w.Streams, w.StatusOf = r.below(90), int64(r.next())<<(r.next()%56), r.below(9), r.below(9)
	w.TTFTSlow, w.Aborted, w.Errors, w.ServerErrors = r.below(90), r.below(9), r.below(9), r.below(9)
	w.TTFTP99MS, w.ITLMS, w.KVCache = float64(r.next())*20, float64(r.next())*1e17, float64(r.next())/200
	w.Total = int64(r.next()) << (r.next() % 32)
	w.Judged = w.Total * r.below(5) / 4
	w.Solved = w.Judged * r.below(5) / 4
	w.Violations, w.Transfers = r.below(4), r.below(4)
	w.Cost, w.P99MS = float64(r.next())/100, float64(r.next())*10
	w.Slow, w.ControlJudged = r.below(4), int64(r.next())
	w.ControlSolved = w.ControlJudged * r.below(5) / 4
	return w
}

// FuzzStep feeds windows made of the input's bytes: no panic, and the state
// stays sound after each, also when it is written and read back.
func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{7, 26, 0, 4, 3, 1, 1}, 40))
	f.Add(bytes.Repeat([]byte{0xff, 8, 0, 3, 2, 3, 3, 50, 20, 1}, 60))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &bytesReader{b}
		l := r.limits()
		st := new(breaker.State)
		now := t0
		for len(r.b) > 0 {
			now = now.Add(minutes(1 + int(r.below(3))))
			w := r.window(now)
			if l.Noise.Tail == breaker.ExactTail {
				w.Total, w.Judged, w.Solved = w.Total>>24, w.Judged>>24, w.Solved>>24 // its sum has as many terms as requests
			}
			for _, ev := range tick(&l, st, now, &w) {
				if ev.Locked != st.Locked && ev.To == st.Phase {
					t.Fatalf("%s, but locked is %v", say(&ev), st.Locked)
				}
			}
			if broken := invariant(&l, st); broken != "" {
				t.Fatal(broken)
			}
		}
		if again := read(t, marshal(t, st)); !bytes.Equal(marshal(t, st), marshal(t, again)) {
			t.Fatalf("read back as\n%s\nwas\n%s", marshal(t, again), marshal(t, st))
		}
	})
}

// FuzzUnmarshalJSON: any bytes are refused or give a state that can be
// written, read back the same, and stepped.
func FuzzUnmarshalJSON(f *testing.F) {
	for _, minute := range []int{0, 10, 22, 25, 30, 60} {
		st := new(breaker.State)
		l := published()
		for m := range minute {
			w := window(m, 26, 24)
			if m == 21 {
				w.Violations = 3
			}
			tick(&l, st, w.T, &w)
		}
		f.Add(marshal(f, st))
	}
	f.Add([]byte(`{"phase":"HALF_OPEN","probed":9,"round":{"done":-1,"good":7},"windows":[{"t":1},{"t":1,"judged":-3}]}`))
	f.Add([]byte(`{"phase":"CLOSED","cusum":{"sum":1e300,"judged":-4,"solved":9,"first":3,"last":1,"folded":7},"windows":[{"t":1,"judged":3,"controlled":3,"control_judged":9,"slow":2}]}`))
	f.Add([]byte(`{"phase":"CLOSED","hits":512,"windows":[{"t":1,"streaming":{"itl":[9,1],"kv_cache":[5,0]}},{"t":2,"streaming":{"itl":[9223372036854775807,1]}}]}`))
	f.Add([]byte(`{"phase":"CLOSED","hits":19,"windows":[{"t":1,"streaming":{"itl":[9,1]}},{"t":2,"streaming":{"itl":[9223372036854775807,1]}}]}`))
	f.Add([]byte(`{"phase":"CLOSED","windows":[{"t":9223372036854775807},{"t":-9223372036854775808}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		st := new(breaker.State)
		if err := st.UnmarshalJSON(b); err != nil {
			return
		}
		written := marshal(t, st)
		if again := marshal(t, read(t, written)); !bytes.Equal(written, again) {
			t.Fatalf("written\n%s\nread back\n%s", written, again)
		}
		l := published()
		if len(b)%2 == 0 {
			l.SolveBaseline, l.Judge, l.Cusum = release.MustRatio("0.9"), breaker.CusumJudge, breaker.Cusum{Drop: release.MustRatio("0.1"), Limit: 5}
		}
		for m := range 40 {
			w := window(m, 26, 24)
			w.Violations = int64(binary.LittleEndian.Uint16(append(b, 0, 0)[:2]) % 3)
			tick(&l, st, w.T, &w)
		}
		marshal(t, st)
	})
}
