package release_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// TestAFindingSaysWhichRuleSpoke in its text and, other than the published
// one, in JSON.
func TestAFindingSaysWhichRuleSpoke(t *testing.T) {
	const minute = time.Minute
	for _, tc := range []struct {
		name       string
		f          release.Finding
		text, json string
	}{
		{
			"the published form",
			release.Finding{Signal: release.SolveRate, Value: 0.8, Limit: 0.8, Count: 160, Of: 200, Span: 25 * minute},
			"160 of 200 solved in 25 minutes (80 %), trips at 80 % or less",
			`{"signal":"solve_rate","value":0.8,"limit":0.8,"count":160,"samples":200}`,
		},
		{
			"fitted to the noise",
			release.Finding{Signal: release.SolveRate, Form: release.Fitted, Value: 0.8, Limit: 0.812, Sigmas: 4.02, Count: 200, Of: 250, Span: 25 * minute},
			"200 of 250 solved in 25 minutes (80 %), trips at 81.2 % or less: 4.02 sigma of 250",
			`{"signal":"solve_rate","value":0.8,"limit":0.812,"count":200,"samples":250,"form":"fitted","sigmas":4.02}`,
		},
		{
			"an exact tail, above the floor",
			release.Finding{Signal: release.SolveRate, Form: release.FittedExact, Value: 0.996, Limit: 0.98, Count: 249, Of: 250, Span: 25 * minute},
			"249 of 250 solved in 25 minutes (99.6 %), trips at 98 % or less where that is beyond noise",
			`{"signal":"solve_rate","value":0.996,"limit":0.98,"count":249,"samples":250,"form":"fitted_exact"}`,
		},
		{
			"a limit that few requests cannot reach",
			release.Finding{Signal: release.SolveRate, Form: release.Fitted, Value: 0, Limit: -0.1, Sigmas: 6.5, Of: 3, Span: minute},
			"0 of 3 solved in 1 minute (0 %), no rate of 3 can trip",
			`{"signal":"solve_rate","value":0,"limit":-0.1,"samples":3,"form":"fitted","sigmas":6.5}`,
		},
		{
			"against stable, by the drop",
			release.Finding{Signal: release.SolveRate, Form: release.Concurrent, Value: 0.83, Limit: 0.85, Count: 83, Of: 100, Span: 25 * minute, ControlSolved: 900, ControlJudged: 1000},
			"83 of 100 solved in 25 minutes (83 % against stable's 90 %), trips at 85 % or less",
			`{"signal":"solve_rate","value":0.83,"limit":0.85,"count":83,"samples":100,"form":"control","control_solved":900,"control_judged":1000}`,
		},
		{
			"against stable, by the noise of both",
			release.Finding{Signal: release.SolveRate, Form: release.Concurrent, Value: 0.7, Limit: 0.756, Sigmas: 4, Count: 70, Of: 100, Span: 25 * minute, ControlSolved: 900, ControlJudged: 1000},
			"70 of 100 solved in 25 minutes (70 % against stable's 90 %), trips at 75.6 % or less: 4.00 sigma of 100 against 1000",
			`{"signal":"solve_rate","value":0.7,"limit":0.756,"count":70,"samples":100,"form":"control","sigmas":4,"control_solved":900,"control_judged":1000}`,
		},
		{
			"a cumulative sum",
			release.Finding{Signal: release.SolveRate, Form: release.CumulativeSum, Value: 12.3, Limit: 11.2, Count: 170, Of: 200, Span: 43 * minute},
			"cusum 12.3, limit 11.2 (170 of 200 solved in 43 minutes, 85 %)",
			`{"signal":"solve_rate","value":12.3,"limit":11.2,"count":170,"samples":200,"form":"cusum"}`,
		},
		{
			"slow requests counted",
			release.Finding{Signal: release.P99, Form: release.ByCount, Value: 0.08, Limit: 0.06, Count: 12, Of: 150, Span: 5 * minute},
			"12 of 150 requests slower than the baseline's p99 in 5 minutes (8 %), limit 6 %",
			`{"signal":"p99","value":0.08,"limit":0.06,"count":12,"samples":150,"form":"count"}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.f.String(); got != tc.text {
				t.Errorf("got  %s\nwant %s", got, tc.text)
			}
			b, err := json.Marshal(tc.f)
			if err != nil || string(b) != tc.json {
				t.Errorf("got  %s (%v)\nwant %s", b, err, tc.json)
			}
			var back release.Finding
			if err := json.Unmarshal(b, &back); err != nil || back.Form != tc.f.Form {
				t.Errorf("read back as %+v, %v", back, err)
			}
		})
	}
	var f release.Form
	if err := json.Unmarshal([]byte(`"guess"`), &f); err == nil {
		t.Error("an unknown form was accepted")
	}
}
