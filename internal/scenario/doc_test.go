package scenario

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/simulate"
)

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/reference/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The reference names every key, fault, expectation and word of the reader.
func TestReferenceNamesEveryKey(t *testing.T) {
	text := page(t)
	words := slices.Concat(topKeys, feedKeys, baseKeys, faultKeys, faultNames(), expectKinds, timeKeys, transitionKeys, moves, phases,
		[]string{"false_trips_per_week_below", "detected_within", "attempt", "why"})
	for _, w := range words {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(w) + `\b`).MatchString(text) {
			t.Errorf("%s is not in docs/reference/scenario.md", w)
		}
	}
}

// The table of faults in the reference says what the reader does.
func TestReferenceOfFaultsIsTheTable(t *testing.T) {
	text := page(t)
	for _, row := range table {
		line := ""
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "| `"+row.name+"`") {
				line = l
			}
		}
		cells := strings.Split(line, " | ")
		if len(cells) < 4 {
			t.Errorf("no row for %s", row.name)
			continue
		}
		var keys []string
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			keys = append(keys, m[1])
		}
		var want []string
		for _, h := range row.how {
			want = append(want, h.key)
		}
		if !slices.Equal(keys, want) || strings.Contains(cells[1], "if left out") != (row.def != nil) {
			t.Errorf("%s: the reference says %q, the table %v", row.name, cells[1], want)
		}
		arm := string(row.arm)
		if arm == "all" {
			arm = "both"
		}
		if cells[2] != arm {
			t.Errorf("%s: the reference says arm %s, the table %s", row.name, cells[2], arm)
		}
		if healthy := row.name == "traffic_drop" || row.name == "label_lag"; healthy == row.harm {
			t.Errorf("%s: the reference says that all but traffic_drop and label_lag make the canary bad", row.name)
		}
	}
}

// The example of the reference is a scenario that holds.
func TestReferenceExampleHolds(t *testing.T) {
	text := page(t)
	from := strings.Index(text, "```yaml\n") + len("```yaml\n")
	src := text[from : from+strings.Index(text[from:], "```")]
	sc, list := Parse("scenario.md", []byte(src))
	if sc == nil {
		t.Fatal(list)
	}
	plan := sc.Config.Plan()
	out, err := simulate.Run(plan, sc.Feed(plan, 1), sc.Options())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sc.Check(out) {
		if !r.OK {
			t.Errorf("want %s, got %s", r.Want, r.Got)
		}
	}
}
