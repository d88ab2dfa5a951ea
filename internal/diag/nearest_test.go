package diag

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	words := []string{"violation_limit", "violations", "cost", "p99", "transfers"}
	tests := []struct{ name, typed, want string }{
		{"a letter missing", "violation_limt", "violation_limit"},
		{"a letter too many", "costs", "cost"},
		{"another letter", "p98", "p99"},
		{"two letters swapped", "ocst", "cost"},
		{"a third of the letters wrong", "trensfars", "transfers"},
		{"more than a third wrong", "trxnxfxxs", ""},
		{"a short word may have one mistake", "c0st", "cost"},
		{"nothing near", "latency", ""},
		{"nothing typed", "", ""},
		{"the same word", "p99", "p99"},
		{"letters of several bytes count as one", "cöst", "cost"},
		{"too long to be a mistake", strings.Repeat("violations", 7), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Nearest(tt.typed, words); got != tt.want {
				t.Errorf("%q is near %q, want %q", tt.typed, got, tt.want)
			}
		})
	}
	if got := Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of two as near, %q", got)
	}
}

// TestDistanceIsSymmetric: and bounded by the longer word, and 0 for equal
// words alone.
func TestDistanceIsSymmetric(t *testing.T) {
	word := rapid.SliceOfN(rapid.SampledFrom([]rune("abcé世")), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || d > max(len(a), len(b)) || (d == 0) != (string(a) == string(b)) {
			t.Fatalf("%q and %q are %d apart", string(a), string(b), d)
		}
	})
}
