package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
)

// realData returns the path of a file of the real data, or skips.
func realData(t *testing.T, parts ...string) string {
	t.Helper()
	root := os.Getenv("CANARYCTL_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	path := filepath.Join(append([]string{root, "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data is not here: %v", err)
	}
	return path
}

func petshopArgs(t *testing.T) []string {
	t.Helper()
	return []string{"--map", "t=unix_ts:s,total=requests,solved=successes", "--input-span", "5m",
		realData(t, "petshop", "derived_petsite_noissue_high_traffic.csv")}
}

func TestCalibratePetshop(t *testing.T) {
	stdout, stderr, code := runCLI(t, append([]string{"calibrate", "-o", "json"}, petshopArgs(t)...)...)
	if code != ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var rep struct {
		Schema  int
		Totals  struct{ Total, Judged, Solved int64 }
		Windows struct {
			Whole   int
			Partial []struct {
				T          string
				CoveredMin float64 `json:"covered_min"`
				Total      int64
			}
		}
		Centre     struct{ Mean, P0 float64 }
		Dispersion map[string]struct{ SD, Phi float64 }
		Warnings   []struct{ Code, Text string }
	}
	if err := json.Unmarshal([]byte(stdout), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Schema != 1 || rep.Totals.Total != 406226 || rep.Totals.Solved != 405862 || rep.Windows.Whole != 294 ||
		rep.Centre.Mean != 0.999106 || rep.Centre.P0 != 0.999105 || rep.Dispersion["10m"].SD != 0.001566 || rep.Dispersion["10m"].Phi != 3.797489 {
		t.Errorf("figures: %+v", rep)
	}
	if p := rep.Windows.Partial; len(p) != 1 || p[0].T != "2023-09-07T15:00:00Z" || p[0].CoveredMin != 5 || p[0].Total != 687 {
		t.Errorf("the half-covered last window is not named: %+v", p)
	}
	if !slices.ContainsFunc(rep.Warnings, func(w struct{ Code, Text string }) bool {
		return strings.Contains(w.Text, "49 hours are less than five days")
	}) {
		t.Errorf("warnings: %+v", rep.Warnings)
	}
}

func TestCalibrateRefusesRealDataThatIsNoBaseline(t *testing.T) {
	azure := []string{"azure-llm-2023", "AzureLLMInferenceTrace_code.csv"}
	flat := []string{"nab", "art_flatline.csv"}
	for _, c := range []struct {
		name string
		file []string
		args []string
		want []string
	}{
		{"57 minutes of records are too short", azure, []string{"--map", "ts=TIMESTAMP"}, []string{"57 minutes of data, at least 24 hours are needed", "none of 8819 requests says whether it was solved"}},
		{"57 minutes mapped as windows", azure, []string{"--map", "t=TIMESTAMP"}, []string{"57 minutes of data, at least 24 hours are needed", "no counts"}},
		{"57 minutes without a map", azure, nil, []string{"57 minutes of data, at least 24 hours are needed", "no counts"}},
		{"a series of values has no counts", flat, []string{"--map", "t=timestamp"}, []string{"no counts in it: 4032 rows", "it has value"}},
		{"a value mapped to solved is still no count of requests", flat, []string{"--map", "t=timestamp,solved=value"}, []string{"no counts"}},
		{"a value mapped to total has no outcome", flat, []string{"--map", "t=timestamp,total=value", "--input-span", "5m"}, []string{"says whether it was solved"}},
		{"a series without a map", flat, nil, []string{"no counts in it"}},
		{"runs without times", []string{"tau-bench", "derived_runs.csv"}, nil, []string{"no time in it"}},
		{"runs without times, mapped", []string{"tau-bench", "derived_runs.csv"}, []string{"--map", "solved=reward,transfer=handoff"}, []string{"no time in it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := runCLI(t, append(append([]string{"calibrate"}, c.args...), realData(t, c.file...))...)
			if code != ExitUsage || stdout != "" {
				t.Errorf("exit %d, stdout %q", code, stdout)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr does not say %q:\n%s", want, stderr)
				}
			}
		})
	}
}

var someSettings = []calibrate.Setting{
	{Key: []string{"requests_per_min"}, Value: "138"},
	{Key: []string{"cost_baseline_usd"}, Value: "0.0125"},
	{Key: []string{"fast_layer", "baseline_violation_rate"}, InMetrics: true, Value: "0.00001"},
	{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.999105"},
	{Key: []string{"slow_layer", "min_samples_slow"}, InMetrics: true, Value: "20"},
}

const someSteps = "  target_service: shop # ours\n  steps:\n    - { pct: 1, min_hold_min: 5 }  # all at once\n"

// Whatever form the file has, the values arrive where the parser finds them,
// no line that was there is lost, and a second time changes nothing.
func TestPutSettingsIntoAnyForm(t *testing.T) {
	for name, src := range map[string]string{
		"whole":                  "canary:\n" + someSteps + "  metrics:\n    fast_layer: { baseline_violation_rate: 0.5 } # f\n    slow_layer:\n      solve_baseline: 0.9 # s\n",
		"metrics beside canary":  "metrics:\n  slow_layer: { min_samples_slow: 7 } # s\ncanary:\n" + someSteps,
		"a layer is missing":     "canary:\n" + someSteps + "  metrics:\n    slow_layer: {} # s\n",
		"no layers":              "canary:\n" + someSteps + "  metrics: {} # m\n",
		"no metrics":             "canary:\n" + someSteps,
		"no metrics, no newline": "canary:\n" + strings.TrimSuffix(someSteps, "\n"),
		"no metrics, CRLF":       strings.ReplaceAll("canary:\n"+someSteps, "\n", "\r\n"),
		"cost beside canary":     "cost_baseline_usd: 2 # c\ncanary:\n" + someSteps,
		"one line":               "canary: { target_service: shop, steps: [{ pct: 1, min_hold_min: 5 }] } # all\n",
		"JSON":                   `{"canary": {"target_service": "shop", "steps": [{"pct": 1, "min_hold_min": 5}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			out, err := putSettings("canary.yaml", []byte(src), someSettings)
			if err != nil {
				t.Fatal(err)
			}
			cfg, findings := config.Parse("canary.yaml", out)
			if cfg == nil {
				t.Fatalf("no longer a configuration: %v\n%s", findings, out)
			}
			got := []string{cfg.RequestsPerMin.String(), cfg.CostBaselineUSD.String(), cfg.Fast.BaselineViolationRate.String(), cfg.Slow.SolveBaseline.String()}
			if want := []string{"138", "0.0125", "1e-05", "0.999105"}; !slices.Equal(got, want) || cfg.Slow.MinSamplesSlow != 20 {
				t.Errorf("values %v %d in\n%s", got, cfg.Slow.MinSamplesSlow, out)
			}
			for line := range strings.Lines(src) {
				if _, comment, ok := strings.Cut(line, "# "); ok && !strings.Contains(string(out), "# "+strings.TrimSpace(comment)) {
					t.Errorf("comment %q is lost in\n%s", comment, out)
				}
			}
			again, err := putSettings("canary.yaml", out, someSettings)
			if err != nil || string(again) != string(out) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

func TestPutSettingsJudgesTheValuesTogether(t *testing.T) {
	src := []byte("canary:\n" + someSteps + "  metrics: { slow_layer: { solve_baseline: 0.9, solve_rate_drop_pp: 50 } }\n")
	baseline := calibrate.Setting{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.4"}
	drop := calibrate.Setting{Key: []string{"slow_layer", "solve_rate_drop_pp"}, InMetrics: true, Value: "5"}
	if _, err := putSettings("canary.yaml", src, []calibrate.Setting{baseline, drop}); err != nil {
		t.Errorf("a baseline of 0.4 goes with a drop of 5: %v", err)
	}
	_, err := putSettings("canary.yaml", src, []calibrate.Setting{baseline})
	if err == nil || !strings.Contains(err.Error(), "canary.yaml:5:") || !strings.Contains(err.Error(), "nothing was changed") || codeOf(err) != ExitUsage {
		t.Errorf("a baseline of 0.4 with a drop of 50: %v", err)
	}
}

func TestWriteRefusesAFileThatChangedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "canary.yaml")
	if err := os.WriteFile(path, []byte("edited by somebody\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(replaceFile(path, []byte("as it was read\n"), []byte("new\n"))); code != ExitConflict {
		t.Errorf("code %d", code)
	}
	if got, _ := os.ReadFile(path); string(got) != "edited by somebody\n" {
		t.Errorf("the edit is lost: %q", got)
	}
}

func TestWriteSaysWhatIsInItsWay(t *testing.T) {
	dir := t.TempDir()
	if err := replaceFile(filepath.Join(dir, "gone.yaml"), nil, []byte("new")); codeOf(err) != ExitConflict || !strings.Contains(err.Error(), "gone.yaml cannot be read any more") {
		t.Errorf("a file removed meanwhile: code %d, %v", codeOf(err), err)
	}
	long := filepath.Join(dir, strings.Repeat("c", 250)) // a name that leaves no room for the copy beside it
	if err := os.WriteFile(long, []byte("old"), 0o600); err != nil {
		t.Skip(err)
	}
	e, ok := errors.AsType[*Error](replaceFile(long, []byte("old"), []byte("new")))
	if !ok || e.Code != ExitFailed || !strings.Contains(e.Error(), "was not touched") || !strings.Contains(e.Hint, "its directory must be writable") {
		t.Errorf("%v", e)
	}
	_, stderr, code := runCLI(t, append([]string{"calibrate", "--write", "-c", os.DevNull}, petshopArgs(t)...)...)
	if code != ExitUsage || !strings.Contains(stderr, "is not a regular file: --write cannot change it") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestReplaceFileFollowsLinksAndKeepsPermissions(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "canary.yaml")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(link, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("content %q", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}

func TestCalibrateWritesPetshopFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "canary.yaml")
	src := "canary:\n" + someSteps + "  metrics:\n    slow_layer: { solve_baseline: 0.90, solve_rate_drop_pp: 10 }  # week 30\n"
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := runCLI(t, append([]string{"calibrate", "--write", "-c", path}, petshopArgs(t)...)...)
	if code != ExitOK || !strings.Contains(stdout, "+    slow_layer: { solve_baseline: 0.999105, solve_rate_drop_pp: 5, min_samples_slow: 20 }  # week 30\n") {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
}

func TestCalibratePageShowsWhatTheCommandPrints(t *testing.T) {
	args := petshopArgs(t)
	got, stderr, code := runCLI(t, append([]string{"calibrate"}, args...)...)
	if code != ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	args[len(args)-1] = "shop.csv"
	want := transcript(t, "calibrate.md", "calibrate "+strings.Join(args, " "))
	if got != want {
		t.Errorf("docs/reference/calibrate.md shows\n%s\nthe command prints\n%s", want, got)
	}
}

// For any file: no panic, and what comes out is a configuration that has the
// values, and has them once and for all.
func FuzzPutSettings(f *testing.F) {
	f.Add("canary:\n" + someSteps + "  metrics:\n    slow_layer:\n      solve_baseline: 0.9 # s\n")
	f.Add("cost_baseline_usd: 2\ncanary:\n" + someSteps + "metrics: {}\n")
	f.Add(`{"canary": {"target_service": "shop", "steps": [{"pct": 1, "min_hold_min": 5}]}}`)
	f.Add("canary: {target_service: a, steps: [{pct: 1, min_hold_min: 5}]}\n...\n")
	f.Add("---\ncanary:\r\n  target_service: a\r\n  steps: [{pct: 1, min_hold_min: 5}]")
	f.Fuzz(func(t *testing.T, src string) {
		if cfg, _ := config.Parse("canary.yaml", []byte(src)); cfg == nil {
			return
		}
		out, err := putSettings("canary.yaml", []byte(src), someSettings)
		if err != nil {
			return
		}
		cfg, findings := config.Parse("canary.yaml", out)
		if cfg == nil {
			t.Fatalf("broken: %v\n%s", findings, out)
		}
		if cfg.Slow.SolveBaseline.String() != "0.999105" || cfg.Slow.MinSamplesSlow != 20 || cfg.CostBaselineUSD.String() != "0.0125" || cfg.RequestsPerMin.String() != "138" {
			t.Fatalf("values are lost in\n%s", out)
		}
		if again, err := putSettings("canary.yaml", out, someSettings); err != nil || string(again) != string(out) {
			t.Fatalf("a second time: %v\n%s\n%s", err, out, again)
		}
	})
}
