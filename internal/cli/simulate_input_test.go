package cli

import (
	"slices"
	"testing"
)

// A week of snapshots is ten thousand files: no heading names them all.
func TestAFeedOfManyFilesIsNamedAfterTheFirst(t *testing.T) {
	many := slices.Repeat([]string{"week/metrics-1.prom"}, 10_080)
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{"a/total.json"}, "total.json"},
		{[]string{"a/total.json", "b/solved.json"}, "total.json solved.json"},
		{many[:4], "metrics-1.prom metrics-1.prom metrics-1.prom metrics-1.prom"},
		{many[:5], "metrics-1.prom and 4 more"},
		{many, "metrics-1.prom and 10079 more"},
	} {
		if got := nameOfFiles(c.files); got != c.want {
			t.Errorf("%d files: %q, want %q", len(c.files), got, c.want)
		}
	}
}
