package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
)

// planOf is a plan of one step.
func planOf(hold time.Duration, l breaker.Limits) *ladder.Plan {
	return &ladder.Plan{Steps: []ladder.Step{{MinHold: hold, Limits: l}}}
}

// traffic is a source that keeps to the contract of windows that are final, with
// gaps, and remembers what it was asked.
type traffic struct {
	fakeSource
	span  time.Duration
	users bool
	early time.Duration // by so much its clock is ahead
}

func (f *traffic) Span() time.Duration { return f.span }

func (f *traffic) Read(_ context.Context, from, now time.Time) (source.Batch, error) {
	f.asked = append(f.asked, from)
	b := source.Batch{Until: now.Add(-f.settle).Truncate(f.span), Newest: now, Notes: []string{"odd"}}
	if f.users {
		b.Users = map[release.Arm]int64{release.Canary: 3}
	}
	for t := from.Truncate(f.span); t.Before(b.Until.Add(f.early)); t = t.Add(f.span) {
		if n := t.Unix() / int64(f.span/time.Second); !t.Before(from) && n%7 != 0 {
			b.Windows = append(b.Windows, release.Window{T: t, Span: f.span, Arm: release.Canary, Total: n}, release.Window{T: t, Span: f.span, Arm: release.Stable, Total: n + 1})
		}
	}
	return b, f.err
}

var midday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// TestTheDriverIsHandedWhatItAskedFor and the view what came before as well.
func TestTheDriverIsHandedWhatItAskedFor(t *testing.T) {
	src := &traffic{span: time.Minute, users: true}
	w := NewWide(src, planOf(10*time.Minute, breaker.Limits{FastSpan: 5 * time.Minute}))
	from := midday.Add(-4 * time.Minute)
	b, err := w.Read(t.Context(), from, midday)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := (&traffic{span: time.Minute}).Read(t.Context(), from, midday)
	if err != nil || !slices.Equal(b.Windows, alone.Windows) || !b.Until.Equal(alone.Until) || !b.Newest.Equal(alone.Newest) || !slices.Equal(b.Notes, alone.Notes) || b.Users != nil {
		t.Errorf("%v\n%v", b, alone)
	}
	if want := midday.Add(-70 * time.Minute); len(src.asked) != 1 || !src.asked[0].Equal(want) {
		t.Errorf("asked from %v, want %s: 60 windows and the step's ten", src.asked, want)
	}
	canary, stable := w.windows()
	if len(canary) != 60 || len(stable) != 60 || canary[0].T.Before(src.asked[0]) || canary[0].Arm != release.Canary || stable[0].Arm != release.Stable {
		t.Errorf("%d and %d windows, from %s", len(canary), len(stable), canary[0].T)
	}
}

// TestHowFarTheViewLooksBack.
func TestHowFarTheViewLooksBack(t *testing.T) {
	for _, c := range []struct {
		what string
		span time.Duration
		plan *ladder.Plan
		want time.Duration
	}{
		{"a step", time.Minute, planOf(2*time.Hour, breaker.Limits{FastSpan: 5 * time.Minute}), 3 * time.Hour},
		{"limits", time.Minute, planOf(time.Minute, breaker.Limits{SlowSpan: time.Hour, SlowSpanMax: 3 * time.Hour, LabelLag: time.Hour}), 5 * time.Hour},
		{"no further than so many windows", time.Minute, planOf(240*time.Hour, breaker.Limits{}), 1500 * time.Minute},
		{"a source that does not know its span", 0, planOf(10*time.Minute, breaker.Limits{}), 70 * time.Minute},
		{"other windows", 5 * time.Minute, planOf(12*time.Minute, breaker.Limits{}), 63 * 5 * time.Minute},
	} {
		if got := NewWide(&traffic{span: c.span}, c.plan).back; got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// TestWhatIsKnownIsNotAskedForAgain: only the first reading is a long one.
func TestWhatIsKnownIsNotAskedForAgain(t *testing.T) {
	src := &traffic{span: time.Minute}
	w := NewWide(src, planOf(10*time.Minute, breaker.Limits{}))
	for i := range 3 {
		now := midday.Add(time.Duration(i) * time.Minute)
		if _, err := w.Read(t.Context(), now.Add(-4*time.Minute), now); err != nil {
			t.Fatal(err)
		}
	}
	src.err = errors.New("no answer")
	if _, err := w.Read(t.Context(), midday.Add(time.Minute), midday.Add(5*time.Minute)); !errors.Is(err, src.err) {
		t.Fatal(err)
	}
	if canary, _ := w.windows(); len(canary) != 60 || w.busy() {
		t.Errorf("after a reading that failed: %d windows, busy %v", len(canary), w.busy())
	}
	src.err = nil
	if _, err := w.Read(t.Context(), midday.Add(9*time.Minute), midday.Add(10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, at := range src.asked {
		asked = append(asked, at.Format("15:04"))
	}
	if got := fmt.Sprint(asked); got != "[10:50 11:57 11:58 11:59 11:59]" { // from where it stood, not from where the driver stands by now
		t.Errorf("asked from %s", got)
	}
}

// TestAWindowWhoseClockIsAheadIsNotKept.
func TestAWindowWhoseClockIsAheadIsNotKept(t *testing.T) {
	w := NewWide(&traffic{span: time.Minute, early: 5 * time.Minute}, planOf(0, breaker.Limits{}))
	if _, err := w.Read(t.Context(), midday, midday); err != nil {
		t.Fatal(err)
	}
	if canary, _ := w.windows(); canary[len(canary)-1].End().After(midday) {
		t.Errorf("%s is kept at %s", canary[len(canary)-1].T, midday)
	}
}

// TestWhatIsKeptIsWhatAWholeReadingGives, whatever the driver asks for and
// wherever the clock goes.
func TestWhatIsKeptIsWhatAWholeReadingGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute, 7 * time.Minute}).Draw(t, "span")
		src := &traffic{span: span}
		src.settle = rapid.SampledFrom([]time.Duration{0, 90 * time.Second}).Draw(t, "settle")
		w := NewWide(src, planOf(30*time.Minute, breaker.Limits{}))
		now := midday
		for range rapid.IntRange(1, 12).Draw(t, "readings") {
			now = now.Add(time.Duration(rapid.IntRange(-600, 6000).Draw(t, "seconds")) * time.Second)
			from := now.Add(-time.Duration(rapid.IntRange(-60, 20000).Draw(t, "back")) * time.Second)
			src.err = nil
			if rapid.Bool().Draw(t, "fails") {
				src.err = errors.New("no answer")
			}
			b, err := w.Read(context.Background(), from, now)
			if err != nil {
				continue
			}
			alone, _ := (&traffic{fakeSource: fakeSource{settle: src.settle}, span: span}).Read(context.Background(), from, now)
			if !slices.Equal(b.Windows, alone.Windows) {
				t.Fatalf("from %s at %s the driver is handed %d windows, of %d", from, now, len(b.Windows), len(alone.Windows))
			}
			whole, _ := (&traffic{fakeSource: fakeSource{settle: src.settle}, span: span}).Read(context.Background(), w.earliest(now), now)
			if !slices.Equal(w.kept, whole.Windows) {
				t.Fatalf("at %s %d windows are kept, of %d", now, len(w.kept), len(whole.Windows))
			}
			if len(w.kept) > 2*mostKept {
				t.Fatalf("%d windows are kept", len(w.kept))
			}
		}
	})
}
