package throttle_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

func TestRetryAfterHeaders(t *testing.T) {
	now := time.Date(2026, 3, 2, 2, 17, 0, 0, time.UTC)
	tests := []struct {
		header string
		want   time.Duration
		known  bool
	}{
		{"3", 3 * time.Second, true},
		{" 0 ", 0, true},
		{"0.35", 350 * time.Millisecond, true},
		{"1.0000000019", time.Second + 1, true},
		{"99999999999999999999", math.MaxInt64, true},
		{"9999999999", math.MaxInt64, true},
		{"Mon, 02 Mar 2026 02:17:05 GMT", 5 * time.Second, true},
		{"Monday, 02-Mar-26 02:17:05 GMT", 5 * time.Second, true},
		{"Mon Mar  2 02:17:05 2026", 5 * time.Second, true},
		{"Mon, 02 Mar 2026 02:16:00 GMT", 0, true},
		{"", 0, false},
		{"-1", 0, false},
		{"1e3", 0, false},
		{".5", 0, false},
		{"5.", 0, false},
		{"soon", 0, false},
		{"NaN", 0, false},
		{"1.5s", 0, false},
	}
	for _, tt := range tests {
		if got, known := throttle.RetryAfter(tt.header, now); got != tt.want || known != tt.known {
			t.Errorf("%q: %v, %v, want %v, %v", tt.header, got, known, tt.want, tt.known)
		}
	}
}

func TestResetHeadersAreDurationsAndAzuresAreIgnored(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"120ms": 120 * time.Millisecond, "6m0s": 6 * time.Minute, "1.5s": 1500 * time.Millisecond,
		"-1": 0, "0": 0, "0s": 0, "-1s": 0, "60": 0, "": 0, "later": 0,
	} {
		if got, known := throttle.ResetAfter(header); known != (want > 0) || known && got != want {
			t.Errorf("%q: %v, %v, want %v", header, got, known, want)
		}
	}
}

func TestTheFinestHeaderGoesFirst(t *testing.T) {
	now := time.Date(2026, 3, 2, 2, 17, 0, 0, time.UTC)
	tests := []struct {
		name    string
		headers []string
		want    time.Duration
		known   bool
	}{
		{"none", nil, 0, false},
		{"retry-after-ms before retry-after", []string{"retry-after-ms", "1234", "retry-after", "2"}, 1234 * time.Millisecond, true},
		{"retry-after before a reset", []string{"retry-after", "2", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"}, 2 * time.Second, true},
		{"a retry-after that is none", []string{"retry-after", "-1", "retry-after-ms", "-1"}, 0, false},
		{"the reset of the limit that is used up", []string{"x-ratelimit-remaining-requests", "12", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "120ms"}, 120 * time.Millisecond, true},
		{"the longer of two that are used up", []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-project-tokens", "0", "x-ratelimit-reset-project-tokens", "120ms"}, time.Second, true},
		{"Azure's -1", []string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "-1"}, 0, false},
		{"a reset with something left", []string{"x-ratelimit-remaining-tokens", "5", "x-ratelimit-reset-tokens", "1s"}, 0, false},
	}
	for _, tt := range tests {
		h := http.Header{}
		for i := 0; i < len(tt.headers); i += 2 {
			h.Set(tt.headers[i], tt.headers[i+1])
		}
		if got, known := throttle.HeaderWait(h.Get, now); got != tt.want || known != tt.known {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, got, known, tt.want, tt.known)
		}
	}
}

// TestAnyHeaderIsReadOrUnknown: no header gives a wait below 0 or a panic.
func TestAnyHeaderIsReadOrUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9]{0,30}\.?[0-9]{0,30}`)).Draw(t, "header")
		if d, known := throttle.RetryAfter(h, start); d < 0 || !known && d != 0 {
			t.Fatalf("%q: %v, %v", h, d, known)
		}
		if d, known := throttle.RetryAfterMS(h); d < 0 || !known && d != 0 {
			t.Fatalf("%q: %v, %v", h, d, known)
		}
	})
}
