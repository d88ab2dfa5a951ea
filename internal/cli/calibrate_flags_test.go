package cli

import "testing"

// Budgets, shares and steps that are none are refused where they are read: a
// NaN that got past would compare as false with everything.
func TestFlagsOfCalibrateRefuseWhatIsNoNumber(t *testing.T) {
	type flag interface{ Set(string) error }
	for name, tc := range map[string]struct {
		of       flag
		good     []string
		nonsense []string
	}{
		"--max-false-trips": {
			new(falseTripsFlag), []string{"0.1/week", "0.1", "1%/release", "0.01/release"},
			[]string{"", "NaN", "NaN/week", "NaN/release", "NaN%/release", "Inf", "-Inf/release", "0", "-1/week", "0%/release", "100%/release", "1e9", "1/month"},
		},
		"--budget": {
			new(sharesFlag), []string{"solve_rate=50%,violations=0.5", "solve_rate=100%"},
			[]string{"", "solve_rate", "solve_rate=NaN", "solve_rate=NaN%", "solve_rate=0", "solve_rate=-5%", "solve_rate=101%", "solve_rate=60%,cost=60%", "cost=50%", "solve_rate=10%,solve_rate=10%", "mood=10%"},
		},
		"--steps": {
			new(stepsFlag), []string{"1,5,25,50,100", "0.01%, 100"},
			[]string{"", "NaN", "0", "101", "-1", "5,5", "5,1", "1,,5", "Inf"},
		},
		"--tolerable-drop": {
			new(pointsFlag), []string{"5", "0.01", "100", "3pp"},
			[]string{"", "NaN", "0", "0.001", "100.1", "-5", "Inf", "5%"},
		},
	} {
		for _, text := range tc.good {
			if err := tc.of.Set(text); err != nil {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
		for _, text := range tc.nonsense {
			if tc.of.Set(text) == nil {
				t.Errorf("%s %q was taken", name, text)
			}
		}
	}
}
