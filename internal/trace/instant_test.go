package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func spanOfInt(n int64) time.Duration { return time.Duration(n) }

func TestTimesAreReadToTheNanosecond(t *testing.T) {
	const at = "2023-11-16T18:17:03.97996Z"
	want, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		at, "2023-11-16 18:17:03.9799600", "2023-11-16 18:17:03,97996", "2023-11-16T18:17:03.979960000999Z", "2023-11-16 18:17:03.97996 UTC",
		"2023-11-16 20:17:03.97996+02", "2023-11-16T20:17:03.97996+0200", "2023-11-16T12:47:03.97996-05:30", "2023-11-16t18:17:03.97996z",
		"1700158623.97996", "1.70015862397996e9", "1700158623979.96", "1700158623979960", "1700158623979960000",
	} {
		var c clock
		if got, err := c.instant([]byte(text)); err != nil || got != want.UnixNano() {
			t.Errorf("%s: %v, %v", text, instantOf(got), err)
		}
	}
}

func TestALeapSecondIsTheFirstOfTheNextDay(t *testing.T) {
	want := time.Date(2017, 1, 1, 0, 0, 0, 5e8, time.UTC)
	for _, text := range []string{"2016-12-31T23:59:60.5Z", "2017-01-01T05:29:60.5+05:30", "2016-12-31 23:59:60.5"} {
		var c clock
		if got, err := c.instant([]byte(text)); err != nil || got != want.UnixNano() {
			t.Errorf("%s: %v, %v", text, instantOf(got), err)
		}
	}
}

func TestWhatIsNoTimeIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		"":                          "no time",
		"null":                      "no time",
		"NaN":                       "not a finite number",
		"600":                       "any unit",
		"2023-11-16":                "is not a time",
		"2023-11-16T18:17":          "is not a time",
		"2023-02-29T00:00:00Z":      "is not a time",
		"2023-13-01T00:00:00Z":      "is not a time",
		"2023-01-01T24:00:00Z":      "is not a time",
		"2023-01-01T00:00:60Z":      "is not a time",
		"2023-01-01T00:00:00.Z":     "is not a time",
		"2023-01-01T00:00:00+25":    "is not a time",
		"2023-01-01T00:00:00+01:0":  "is not a time",
		"2023-01-01T00:00:00 CET":   "is not a time",
		"2023-01-01T00:00:0\xff":    "is not a time",
		"2016-12-31T22:59:60Z":      "is not a time",
		"2016-12-31T23:59:60+01:00": "is not a time",
		"2016-12-31T23:59:61Z":      "is not a time",
		"0001-01-01T00:00:00Z":      "out of range",
		"1679-12-31T23:59:59Z":      "out of range",
		"2260-01-01T00:00:00Z":      "out of range: from 1680 to 2259",
		"2260-01-01T00:00:01Z":      "out of range",
		"2259-12-31T23:59:59-00:30": "out of range",
		"1680-01-01T00:00:00+00:01": "out of range",
		"9151488000":                "out of range: from 1680 to 2259",
		"9999-12-31T23:59:60Z":      "out of range",
		"99999999999999999999999":   "out of range",
		"-62135596800":              "any unit",
		"yesterday":                 "is not a time",
		"2023-01-01T00:00:00+-1:00": "is not a time",
	} {
		var c clock
		if got, err := c.instant([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v; want %q", text, instantOf(got), err, why)
		}
	}
}

// The years that are read are those of the page: input.md.
func TestTheYearsFrom1680To2259AreRead(t *testing.T) {
	for _, text := range []string{"1680-01-01T00:00:00Z", "1679-12-31T23:30:00-01:00", "2259-12-31T23:59:59.999999999Z", "2260-01-01T00:59:59+01:00", "9151487999.999999999"} {
		var c clock
		got, err := c.instant([]byte(text))
		if year := instantOf(got).Year(); err != nil || year != 1680 && year != 2259 {
			t.Errorf("%s: %v, %v", text, instantOf(got), err)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "input.md"))
	if err != nil || !strings.Contains(string(page), "Years from 1680 to 2259 are read.") {
		t.Error("the page says otherwise", err)
	}
}

func TestAGivenUnitIsNotGuessed(t *testing.T) {
	c := clock{unit: Seconds}
	if got, err := c.instant([]byte("600")); err != nil || got != int64(600*time.Second) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.instant([]byte("2023-01-01T00:00:00Z")); err == nil {
		t.Error("a date was read as a number of seconds")
	}
	if c.guessed {
		t.Error("guessed")
	}
}

func TestAFileThatMixesUnitsIsNotReadInSilence(t *testing.T) {
	var c clock
	if _, err := c.instant([]byte("1700000000")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.instant([]byte("1700000000000")); err == nil || !strings.Contains(err.Error(), "looks like ms, those before it like s") {
		t.Errorf("%v", err)
	}
}

func TestCalendarTimesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(-maxTime+int64(48*time.Hour), maxTime-int64(48*time.Hour)).Draw(t, "ns")
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "zone"))
		text := time.Unix(0, ns).In(zone).Format(time.RFC3339Nano)
		got, hasZone, ok := parseCalendar([]byte(text))
		if !ok || !hasZone || got != ns {
			t.Fatalf("%s: %d %t %t, want %d", text, got, hasZone, ok, ns)
		}
	})
}
