package cli

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	stdout, stderr, code := runCLI(t, append([]string{"calibrate", "--replays", "0", "-o", "json"}, petshopArgs(t)...)...)
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
		rep.Centre.Mean != 0.999106 || math.Abs(rep.Centre.P0-0.999105) > 5e-7 || rep.Dispersion["10m"].SD != 0.001566 || rep.Dispersion["10m"].Phi != 3.797489 {
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

// Traffic without outcomes is no baseline, and its report is printed all the
// same: hours, weeks and drift.
func TestCalibrateReportsTheTrafficWhereNothingIsSaidOfOutcomes(t *testing.T) {
	stdout, stderr, code := runCLI(t, "calibrate", "--map", "t=window_start_s:s,total=requests", "--input-span", "10m", realData(t, "servegen", "derived_m-large_total_10min.csv"))
	if code != ExitUsage || !strings.Contains(stderr, "[no-outcome]") {
		t.Errorf("exit %d, stderr %s", code, stderr)
	}
	for _, want := range []string{"236,892,826 requests", "week 2 has 0.869 times the requests of", "1.45 times"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the report does not say %q:\n%s", want, stdout)
		}
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
	stdout, stderr, code := runCLI(t, append([]string{"calibrate", "--replays", "0", "--write", "-c", path}, petshopArgs(t)...)...)
	written := regexp.MustCompile(`(?m)^\+    slow_layer: \{ solve_baseline: 0\.999105, solve_rate_drop_pp: 5, min_samples_slow: \d+, noise: \{ z: 4\.024, tau: 0\.00\d+, .* \} \}  # week 30$`)
	if code != ExitOK || !written.MatchString(stdout) {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
}

func TestCalibratePageShowsWhatTheCommandPrints(t *testing.T) {
	args := petshopArgs(t)
	args = slices.Insert(args, len(args)-1, "--replays", "20")
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
