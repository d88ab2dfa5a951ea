package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
)

// TestProvidersAgainstEachOther holds 150 calls each to four providers of one
// model against each other (ray-project/llmperf-leaderboard): perplexity is
// slower than anyscale and has 2 refusals; of lepton's calls 130 were refused,
// and the 20 others say little of its latency; 49 of bedrock's answers were too
// short, which is a broken contract.
func TestProvidersAgainstEachOther(t *testing.T) {
	dir := realData(t, "llmperf-leaderboard")
	of := func(name string) string { return filepath.Join(dir, "individual", name+"_70b.json") }
	for _, tt := range []struct {
		stable, canary string
		trips          []string
		code           ExitCode
	}{
		{"anyscale", "anyscale", nil, ExitOK},
		{"anyscale", "perplexity", []string{"p99", "itl"}, ExitFailed},
		{"perplexity", "anyscale", nil, ExitOK},
		{"anyscale", "lepton", []string{"errors"}, ExitFailed},
		{"perplexity", "lepton", []string{"errors"}, ExitFailed},
		{"anyscale", "bedrock", []string{"violations", "p99", "itl", "errors"}, ExitFailed},
		{"perplexity", "bedrock", []string{"violations", "errors"}, ExitFailed},
	} {
		t.Run(tt.stable+" against "+tt.canary, func(t *testing.T) {
			code, out, stderr := runLine(t, "canaryctl shadow compare -o json --records stable="+of(tt.stable)+" canary="+of(tt.canary))
			var r setsReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v: %s%s", err, out, stderr)
			}
			if diff := cmp.Diff(tt.trips, signalNames(r.Trips)); diff != "" || code != tt.code {
				t.Errorf("exit %d: %s", code, diff)
			}
			for _, k := range r.Checks {
				switch {
				case tt.canary == "bedrock" && k.Signal == release.Violations && *k.Value != 49:
					t.Errorf("%v violations of bedrock, want 49", *k.Value)
				case tt.canary == "lepton" && slices.Contains([]string{"p99_ms", "median_ms"}, k.Figure) && k.Verdict != release.Insufficient:
					t.Errorf("%s %s of 20 answers: %s, want insufficient", k.Signal, k.Figure, k.Verdict)
				case tt.canary == "perplexity" && k.Signal == release.Errors && (k.Samples != 150 || k.Verdict != release.Pass):
					t.Errorf("2 refusals of 150: %s of %d, want pass", k.Verdict, k.Samples)
				}
			}
		})
	}
}
