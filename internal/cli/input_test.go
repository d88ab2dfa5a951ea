package cli

import (
	"strings"
	"testing"
)

func TestSizesAreExact(t *testing.T) {
	for text, want := range map[string]struct {
		bytes int64
		as    string
	}{
		"64MiB":           {64 << 20, "64MiB"},
		"1GiB":            {1 << 30, "1GiB"},
		"500MB":           {500_000_000, "500MB"},
		"1.5GiB":          {3 << 29, "1536MiB"},
		"0.1GB":           {100_000_000, "100MB"},
		"16MiB":           {16 << 20, "16MiB"},
		"16384KiB":        {16 << 20, "16MiB"},
		"16777217B":       {16777217, "16777217B"},
		"20000kB":         {20_000_000, "20MB"},
		"2TiB":            {2 << 40, "2TiB"},
		"1024GiB":         {1 << 40, "1TiB"},
		"0.0000000005TiB": {0, ""},
	} {
		var s sizeFlag
		err := s.Set(text)
		if want.bytes == 0 {
			if err == nil {
				t.Errorf("%s is taken for %d bytes", text, s)
			}
			continue
		}
		if err != nil || int64(s) != want.bytes || s.String() != want.as {
			t.Errorf("%s: %d bytes, %s, %v; want %d, %s", text, s, &s, err, want.bytes, want.as)
		}
	}
}

func TestSizesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "such as 64MiB",
		"64":                          "such as 64MiB",
		"64M":                         "such as 64MiB",
		"64 mib":                      "such as 64MiB",
		"MiB":                         "not a whole number",
		"-64MiB":                      "not a whole number",
		"1e999GiB":                    "not a whole number",
		"16777216.5B":                 "not a whole number",
		"99999999999TiB":              "not a whole number",
		"NaNMiB":                      "not a whole number",
		"15MiB":                       "at least 16MiB",
		"0B":                          "at least 16MiB",
		strings.Repeat("9", 40):       "such as 64MiB",
		strings.Repeat("9", 40) + "B": "not a whole number",
	} {
		s := sizeFlag(7)
		if err := s.Set(text); err == nil || !strings.Contains(err.Error(), want) || s != 7 {
			t.Errorf("%q: %v (%d), want %q", text, err, s, want)
		}
	}
}
