package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

func aStorm() *report.Storm {
	return &report.Storm{
		Name: "gust", About: "A short one.", Seconds: 20, Seed: 3, Faults: true,
		Outcomes: []*simulate.StormOutcome{
			{
				Client: "naive", Short: simulate.StormLane{Requests: 10000, Answered: 9999, MedianMS: new(1000.0), P99MS: new(2345.6)},
				Attempts: 30000, RateLimited: 20000, Extra: 50000, NoRetry: 1,
				Buckets: []simulate.StormBucket{{Arrived: 100, Answered: 98}, {Second: 5, Arrived: 100, Answered: 97}, {Second: 10, Arrived: 100, Answered: 49}, {Second: 15}},
			},
			{Client: "policy", Opened: 2, OpenedS: new(1.5), RecoveredS: new(15.0), ByBreaker: 7, Buckets: make([]simulate.StormBucket, 4)},
		},
		Expectations: []report.Expectation{{Want: "naive: never recovers", Got: "naive: never recovers", OK: true}},
	}
}

func TestStormText(t *testing.T) {
	var b strings.Builder
	if err := aStorm().Text(&b, report.Style{}); err != nil {
		t.Fatal(err)
	}
	want := `gust: 20 seconds of requests, seed 3
  A short one.

  client     calls a request       429   amplif.  answered     short      long recovered
  naive     30,000      3.00    66.7 %      2.50    99.9 %    99.9 %         -     never
  policy         0         -         -         -         -         -         -      15 s

  naive  =+x.
  policy ....
         answered of what arrived: = 98 % and more, + half, x less, . nobody came; a column is 5 s

  naive: failed: 1 after the last attempt, 0 at the own breaker, 0 at the gate; 0 time-outs
    breaker opened 0 times; short answered in 1.00 s, p99 2.35 s
  policy: failed: 0 after the last attempt, 7 at the own breaker, 0 at the gate; 0 time-outs
    breaker opened 2 times, first 1.5 s after the fault began

expectations  1, all met
  ok    naive: never recovers
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestStormJSONHasNoFigureOfNothing(t *testing.T) {
	text, err := json.Marshal(aStorm().JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"schema":1,"scenario":"gust","seconds":20,"seed":3,"clients":[{"client":"naive",`, `"calls_per_request":3,"amplification":2.5}`,
		`"calls_per_request":null,"amplification":null}`, `"recovered_after_s":null`, `"recovered_after_s":15`, `"median_ms":null`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
