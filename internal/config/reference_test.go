package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/breaker"
)

const tableBegin, tableEnd = "<!-- keys: kept true by a test -->\n", "<!-- end of keys -->\n"

// keyTable is the table of keys as the reference has it.
func keyTable() string {
	var b strings.Builder
	b.WriteString("| key | type | default | range | meaning |\n|---|---|---|---|---|\n")
	for i := range keys() {
		k := &keys()[i]
		if ofScenes(k.path) && strings.ContainsAny(strings.TrimPrefix(k.path, scenesPath+".*."), ".[") {
			continue // as in canary
		}
		def := ""
		switch {
		case k.required && k.when != nil:
			def = "required with `" + k.when.String() + "`"
		case k.required:
			def = "required"
		case k.def != "":
			def = "`" + k.def + "`"
		}
		if strings.Contains(k.path, ".limits.") {
			def = "the plan's"
		}
		bounds := k.rangeText()
		if len(k.words) > 0 {
			bounds = listing(k.words)
		}
		doc := k.doc
		if k.when != nil {
			doc += " Only with `" + k.when.String() + "`."
		}
		if k.anywhere {
			doc += " May stand beside `canary` as well."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.path, k.kind, def, bounds, doc)
	}
	return b.String()
}

// TestReferenceHasTheTableOfKeys compares docs/reference/canary-yaml.md with
// the table; -update writes it.
func TestReferenceHasTheTableOfKeys(t *testing.T) {
	path := filepath.Join(docsDir, "canary-yaml.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), tableBegin)
	got, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", path, tableBegin, tableEnd)
	}
	want := "\n" + keyTable() + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(head+tableBegin+want+tableEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the table of keys is not that of the code; run go test ./internal/config -run Reference -update\nwant%s", want)
	}
}

// TestReferenceExamplesParse: every yaml block of the reference is a file
// without errors.
func TestReferenceExamplesParse(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(docsDir, "canary-yaml.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(raw), "```yaml\n")
	if len(parts) < 2 {
		t.Fatal("the reference has no example")
	}
	for _, part := range parts[1:] {
		src, _, _ := strings.Cut(part, "```")
		parseOK(t, src)
	}
}

func TestTemplateHasNoErrors(t *testing.T) {
	for _, service := range []string{"my-service", "7", "a: b # c", "it's", "zürich", "true"} {
		src, err := Template(service)
		if err != nil {
			t.Fatal(err)
		}
		if cfg := parseOK(t, string(src)); cfg.TargetService != service {
			t.Errorf("service %q became %q", service, cfg.TargetService)
		}
	}
}

// TestTemplateHasTheKeysThatItShows: a comment of metrics is a line that may be
// taken in.
func TestTemplateHasTheKeysThatItShows(t *testing.T) {
	src := regexp.MustCompile(`(?m)^      # ([a-z0-9_]+: )`).ReplaceAllString(string(template), "      $1")
	if src == string(template) {
		t.Fatal("the template shows no key")
	}
	cfg := parseOK(t, src)
	if !cfg.Fast.P99ByCount || cfg.Slow.Judge != breaker.CusumJudge || !cfg.Slow.AgainstStable || cfg.Slow.Noise == (Noise{}) || cfg.Slow.SlowWindowMax <= cfg.Slow.SlowWindow {
		t.Errorf("%+v %+v", cfg.Fast, cfg.Slow)
	}
}

// TestTemplateHasTheLiveHalfThatItShows: the commented keys of the top level may
// be taken in as well.
func TestTemplateHasTheLiveHalfThatItShows(t *testing.T) {
	src := regexp.MustCompile(`(?m)^# ((?:[a-z_]+:|  [a-z_]+:) ?.*$)`).ReplaceAllString(string(template), "$1")
	cfg := parseOK(t, src)
	if cfg.Versions.Canary == nil || cfg.Source == nil || cfg.Target == nil || cfg.OnComplete != SwapVersions || len(cfg.Notify) != 1 || len(cfg.Hooks) != 1 {
		t.Errorf("%+v", cfg)
	}
}

// TestTemplateHasTheDefaults: the figures that init writes out are those that
// hold when they are left out.
func TestTemplateHasTheDefaults(t *testing.T) {
	src, err := Template("s")
	if err != nil {
		t.Fatal(err)
	}
	full := parseOK(t, string(src))
	bare := parseOK(t, "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}")
	if full.Fast != bare.Fast || full.Slow != bare.Slow || full.Recovery != bare.Recovery {
		t.Errorf("template %+v %+v %+v\ndefaults %+v %+v %+v", full.Fast, full.Slow, full.Recovery, bare.Fast, bare.Slow, bare.Recovery)
	}
	if full.HashRingSlots != bare.HashRingSlots || full.TrafficDimension != bare.TrafficDimension || full.State != bare.State {
		t.Errorf("template and defaults differ: %+v %+v", full, bare)
	}
}
