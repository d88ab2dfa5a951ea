package watch

import (
	"testing"
	"time"
)

func TestClockHasTheTwoLargestUnits(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Hour, "0s"}, {0, "0s"}, {999 * time.Millisecond, "0s"}, {45 * time.Second, "45s"},
		{time.Minute, "1m"}, {6*time.Minute + 40*time.Second, "6m 40s"}, {9*time.Minute + 5*time.Second, "9m 05s"},
		{2*time.Hour + 5*time.Minute + 59*time.Second, "2h 05m"}, {2 * time.Hour, "2h"}, {2*time.Hour + 30*time.Second, "2h"},
		{76 * time.Hour, "3d 4h"}, {72 * time.Hour, "3d"}, {90 * time.Hour, "3d 18h"}, {82 * time.Hour, "3d 10h"},
	} {
		if got := Clock(c.d); got != c.want {
			t.Errorf("%s is written %q, want %q", c.d, got, c.want)
		}
	}
}
