package target

import (
	"os"
	"regexp"
	"testing"

	"github.com/canaryctl/canaryctl/internal/config"
)

// TestPresetsOfTheReferenceAreTaken parses the page's examples and makes their
// targets.
func TestPresetsOfTheReferenceAreTaken(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/target-presets.md")
	if err != nil {
		t.Fatal(err)
	}
	const canary = "canary:\n  target_service: s\n  steps: [{pct: 1, min_hold_min: 0}]\n"
	made := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		cfg, found := config.Parse("canary.yaml", append([]byte(canary), block[1]...))
		if cfg == nil || cfg.Target == nil {
			t.Errorf("%s\n%v", block[1], found)
			continue
		}
		var tgt Target
		var err error
		o := Options{Ring: 100, Getenv: func(name string) string { return "value-of-" + name }}
		switch made[cfg.Target.Kind] = true; cfg.Target.Kind {
		case "etcd":
			tgt, err = newEtcd(cfg.Target.Etcd, o)
		case "haproxy":
			tgt, err = newHAProxy(cfg.Target.HAProxy, o)
		case "unleash":
			tgt, err = newUnleash(cfg.Target.Unleash, o)
		}
		if err != nil || tgt == nil || tgt.KeepsState() {
			t.Errorf("%s: %v", cfg.Target.Kind, err)
		}
	}
	if len(made) != 3 {
		t.Errorf("the page has examples of %v, want three", made)
	}
}
