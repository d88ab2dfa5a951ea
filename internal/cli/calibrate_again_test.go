package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/config"
)

const supportWeek = "../../testdata/samples/support-week.csv"

// written calibrates a fresh configuration with one set of flags after the
// other and returns the limits that the last one leaves.
func written(t *testing.T, runs ...[]string) []breaker.Limits {
	t.Helper()
	return limitsOf(t, rewritten(t, []byte("canary:\n"+someSteps), runs...))
}

// rewritten calibrates a configuration with one set of flags after the other and
// returns what the last one leaves.
func rewritten(t *testing.T, src []byte, runs ...[]string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "canary.yaml")
	if err := os.WriteFile(path, src, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range runs {
		args := append([]string{"calibrate", "--replays", "0", "--write", "-c", path}, flags...)
		if _, stderr, code := runCLI(t, append(args, supportWeek)...); code != ExitOK {
			t.Fatalf("%v: exit %d: %s", flags, code, stderr)
		}
	}
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// limitsOf are the limits of a configuration's steps.
func limitsOf(t *testing.T, src []byte) (limits []breaker.Limits) {
	t.Helper()
	cfg, findings := config.Parse("canary.yaml", src)
	if cfg == nil {
		t.Fatalf("%v in\n%s", findings, src)
	}
	for _, step := range cfg.Plan().Steps {
		l := step.Limits
		l.SlowSpanMax, l.Keep = max(l.SlowSpan, l.SlowSpanMax), 0 // a span that reaches to its own length is fixed
		if l.Judge != breaker.CusumJudge {
			l.Cusum = breaker.Cusum{}
		}
		if l.Noise.Z == 0 {
			l.Noise = breaker.Noise{}
		}
		limits = append(limits, l)
	}
	return limits
}

// What --write leaves behind is this calibration's, whichever was written
// before it.
func TestWriteDoesNotDependOnWhatWasWrittenBefore(t *testing.T) {
	rules := map[string][]string{
		"window": {}, "exact": {"--judge", "exact"}, "count": {"--judge", "count"}, "cusum": {"--judge", "cusum"},
		"drop to find 20": {"--detect-drop", "20"}, "incident left out": {"--exclude", "2026-03-04T14:00Z/15:20Z"},
	}
	alone := map[string][]byte{}
	for name, flags := range rules {
		alone[name] = rewritten(t, []byte("canary:\n"+someSteps), flags)
	}
	for last, flags := range rules {
		want := limitsOf(t, alone[last])
		for first, before := range alone {
			if d := cmp.Diff(want, limitsOf(t, rewritten(t, before, flags))); d != "" {
				t.Errorf("%s after %s (-alone +after):\n%s", last, first, d)
			}
		}
	}
}

// The plain rule has no fitted form and no slow limits of a step; the fast
// layer's stay.
func TestPlainRuleTakesTheFittedFormAway(t *testing.T) {
	for _, before := range [][]string{{}, {"--judge", "exact"}, {"--judge", "cusum"}} {
		for i, l := range written(t, before, []string{"--k", "3"}) {
			if l.Noise.Z != 0 || l.Judge != breaker.WindowJudge || l.SlowSpanMax != l.SlowSpan {
				t.Errorf("after %v, step %d: %+v", before, i+1, l)
			}
		}
	}
}

// A report that cannot be printed is not written either.
func TestNothingIsWrittenThatNobodySaw(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	path := filepath.Join(t.TempDir(), "canary.yaml")
	src := "canary:\n" + someSteps
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	app := &App{Stdout: full, Stderr: full, Getenv: func(string) string { return "" }}
	if code := Main([]string{"calibrate", "--replays", "0", "--write", "-c", path, supportWeek}, app); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	if got, _ := os.ReadFile(path); string(got) != src {
		t.Errorf("written all the same:\n%s", got)
	}
}
