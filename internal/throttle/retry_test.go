package throttle_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

const middle = 0.5 // the u that adds no jitter

func status(code int) throttle.Outcome { return throttle.Outcome{Status: code} }

func asking(code int, wait time.Duration) throttle.Outcome {
	return throttle.Outcome{Status: code, RetryAfter: wait, RetryAfterKnown: true}
}

func TestOnlyWhatMayBeRetriedIsRetried(t *testing.T) {
	tests := []struct {
		name  string
		o     throttle.Outcome
		again bool
	}{
		{"a rate limit", throttle.Outcome{Status: 429, Code: "rate_limit_exceeded"}, true},
		{"a rate limit without a body", status(429), true},
		{"an empty account: no waiting mends it", throttle.Outcome{Status: 429, Code: throttle.InsufficientQuota}, false},
		{"500", status(500), true},
		{"502", status(502), true},
		{"503", status(503), true},
		{"504", status(504), true},
		{"501 is not listed", status(501), false},
		{"a time-out", throttle.Outcome{TimedOut: true}, true},
		{"a time-out after the head of an answer", throttle.Outcome{Status: 200, TimedOut: true}, true},
		{"a refused connection", throttle.Outcome{}, true},
		{"bad request", status(400), false},
		{"bad key", status(401), false},
		{"forbidden", status(403), false},
		{"no such model", status(404), false},
		{"unprocessable", status(422), false},
		{"an answer", status(200), false},
		{"a caller who went away", throttle.Outcome{Status: 503, Cancelled: true}, false},
	}
	for _, tt := range tests {
		if _, again := throttle.DefaultRetry().Next(1, tt.o, middle); again != tt.again {
			t.Errorf("%s: again %v, want %v", tt.name, again, tt.again)
		}
	}
}

func TestWaitsOfThePublishedPolicy(t *testing.T) {
	tests := []struct {
		name    string
		attempt int
		o       throttle.Outcome
		u       float64
		want    time.Duration
		again   bool
	}{
		{"after the first attempt", 1, status(429), middle, 350 * time.Millisecond, true},
		{"doubled after the second", 2, status(429), middle, 700 * time.Millisecond, true},
		{"doubled again after the third", 3, status(429), middle, 1400 * time.Millisecond, true},
		{"the fourth is the last", 4, status(429), middle, 0, false},
		{"30 % sooner at the least", 1, status(503), 0, 245 * time.Millisecond, true},
		{"Retry-After is honoured", 1, asking(429, time.Second), 0, time.Second, true},
		{"Retry-After is spread, and only to later", 1, asking(429, time.Second), middle, 1150 * time.Millisecond, true},
		{"a Retry-After of 0 leaves the wait as it was", 1, asking(429, 0), middle, 350 * time.Millisecond, true},
		{"a Retry-After of the longest wait", 1, asking(429, 8*time.Second), 0.9, 8 * time.Second, true},
		{"a longer Retry-After is given up on", 1, asking(429, 8*time.Second+1), middle, 0, false},
		{"Retry-After of a 503", 2, asking(503, 2*time.Second), 0, 2 * time.Second, true},
	}
	for _, tt := range tests {
		wait, again := throttle.DefaultRetry().Next(tt.attempt, tt.o, tt.u)
		if again != tt.again || (wait-tt.want).Abs() > time.Microsecond {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, wait, again, tt.want, tt.again)
		}
	}
}

// TestLongestWaitsAreSpreadToo: waits cut off at the longest would all end at
// the same instant.
func TestLongestWaitsAreSpreadToo(t *testing.T) {
	r := throttle.DefaultRetry()
	r.Attempts = 20
	early, _ := r.Next(12, status(429), 0)
	late, _ := r.Next(12, status(429), 0.999999)
	if late > r.Most || late < r.Most-10*time.Millisecond {
		t.Errorf("the latest wait is %v, want just below %v", late, r.Most)
	}
	if ratio := float64(early) / float64(late); ratio > 0.55 || ratio < 0.53 {
		t.Errorf("the earliest is %.3f of the latest, want 0.7/1.3", ratio)
	}
}

// TestNothingGrowsToNothing: 4^513 is infinite, and none of it is none.
func TestNothingGrowsToNothing(t *testing.T) {
	r := throttle.Retry{Factor: 4, Jitter: 1, Attempts: 514}
	if wait, again := r.Next(513, status(0), 0.9999999); wait != 0 || !again {
		t.Errorf("waits %v, again %t", wait, again)
	}
}

// TestWaitsKeepTheirBounds: whatever the policy, no wait is longer than Most
// or sooner than asked for, and there are never more attempts than Attempts.
func TestWaitsKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := throttle.Retry{
			Base:     time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "base")),
			Factor:   rapid.Float64Range(0, 50).Draw(t, "factor"),
			Most:     time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "most")),
			Jitter:   rapid.Float64Range(0, 1).Draw(t, "jitter"),
			Attempts: rapid.IntRange(0, 2000).Draw(t, "attempts"),
		}
		attempt := rapid.IntRange(1, 2000).Draw(t, "attempt")
		o := status(rapid.SampledFrom([]int{0, 200, 400, 429, 500, 503}).Draw(t, "status"))
		if rapid.Bool().Draw(t, "asks") {
			o = asking(o.Status, time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "retry after")))
		}
		wait, again := r.Next(attempt, o, rapid.Float64Range(0, 0.9999999).Draw(t, "u"))
		switch {
		case again && attempt >= r.Attempts:
			t.Fatalf("attempt %d of %d is followed by another", attempt, r.Attempts)
		case wait < 0 || wait > r.Most:
			t.Fatalf("waits %v, at most %v", wait, r.Most)
		case again && o.RetryAfterKnown && wait < o.RetryAfter:
			t.Fatalf("waits %v though asked for %v", wait, o.RetryAfter)
		case again && !o.Retryable():
			t.Fatalf("%d is tried again", o.Status)
		}
	})
}
