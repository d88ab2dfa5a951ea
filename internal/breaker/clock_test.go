package breaker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestForgottenWindowsHaveNeverBeen: a breaker that forgets the windows after an
// instant goes on as one that never had them, as long as none of them tripped it
// or took older ones out of its spans.
func TestForgottenWindowsHaveNeverBeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := breaker.Limits{
			FastSpan: 5 * time.Minute, ViolationLimit: 1 << 40, SlowSpan: 25 * time.Minute, SolveFloor: release.MustRatio("0.8"), MinSamples: 1 << 40,
			Keep: 48 * time.Hour, LabelLag: time.Duration(rapid.IntRange(0, 5).Draw(t, "lag")) * time.Minute,
		}
		begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
		window := func(at int) *release.Window {
			n := rapid.Int64Range(1, 50).Draw(t, "requests")
			return &release.Window{T: begin.Add(time.Duration(at) * time.Minute), Span: time.Minute, Total: n, Judged: n, Solved: n / 2, Violations: n % 3, Known: release.HasSolved | release.HasViolations}
		}
		var a, b breaker.State
		n := rapid.IntRange(0, 40).Draw(t, "before")
		for i := range n {
			w := window(i)
			breaker.Step(&l, &a, w)
			breaker.Step(&l, &b, w)
		}
		for i := range rapid.IntRange(0, 100).Draw(t, "ahead") {
			breaker.Step(&l, &a, window(1000+i))
		}
		newest, ok := breaker.Unsee(&a, begin.Add(time.Duration(n)*time.Minute))
		if ok != (n > 0) || ok && !newest.Equal(begin.Add(time.Duration(n-1)*time.Minute)) {
			t.Fatalf("the newest of %d begins at %s, %v", n, newest, ok)
		}
		l.ViolationLimit = 5
		for i := range 20 {
			w := window(n + 1 + i)
			got := breaker.Step(&l, &a, w)
			want := breaker.Step(&l, &b, w)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("window %d:\n%s", i, diff)
			}
		}
		x, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(x, &a); err != nil {
			t.Fatal(err)
		}
	})
}

func TestACooldownBeginsNowAtTheLatest(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	l := breaker.Limits{Cooldown: 6 * time.Minute}
	var st breaker.State
	breaker.Trip(&st, now.Add(24*time.Hour), false)
	breaker.SetBack(&st, now)
	if breaker.Tick(&l, &st, now.Add(6*time.Minute)) == nil {
		t.Errorf("still %s", st.Phase)
	}
}

// TestWindowsThatWereForgottenCountNoMore: the fast span had begun among them.
func TestWindowsThatWereForgottenCountNoMore(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.Keep, l.ViolationLimit = l.SlowSpan, 100
	feed := func(minute int, violations int64) *release.Event {
		w := window(minute, 26, 24)
		w.Violations = violations
		return breaker.Step(&l, st, &w)
	}
	for minute := range 20 {
		feed(minute, int64(minute/13)) // one at each of minute 13 to 19
	}
	breaker.Unsee(st, at(10))
	l.ViolationLimit = 3
	if ev := feed(11, 2); ev != nil {
		t.Errorf("two violations trip: %s", say(ev))
	}
	if ev := feed(12, 1); ev == nil {
		t.Error("three violations do not trip")
	}
}
