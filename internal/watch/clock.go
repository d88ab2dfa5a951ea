package watch

import (
	"strconv"
	"strings"
	"time"
)

// Clock writes a duration in its two largest units, begun seconds left out:
// "45s", "6m 40s", "2h 05m", "3d 4h"; the smaller unit is left out where it is
// nothing. What is negative is "0s".
func Clock(d time.Duration) string {
	seconds := max(int64(d/time.Second), 0)
	minutes, hours, days := seconds/60, seconds/3600, seconds/86400
	switch {
	case days > 0:
		return twoUnits(days, "d", strconv.FormatInt(hours%24, 10), "h")
	case hours > 0:
		return twoUnits(hours, "h", twoDigits(minutes%60), "m")
	case minutes > 0:
		return twoUnits(minutes, "m", twoDigits(seconds%60), "s")
	default:
		return strconv.FormatInt(seconds, 10) + "s"
	}
}

func twoUnits(large int64, largeUnit, small, smallUnit string) string {
	text := strconv.FormatInt(large, 10) + largeUnit
	if strings.Trim(small, "0") == "" {
		return text
	}
	return text + " " + small + smallUnit
}

func twoDigits(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}
