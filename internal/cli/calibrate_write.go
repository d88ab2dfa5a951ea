package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/splice"
)

// putSettings returns the configuration with the settings in it and every
// other byte as it was. Whatever it returns without an error parses without
// one.
func putSettings(name string, src []byte, settings []calibrate.Setting) ([]byte, error) {
	src, err := withLayers(name, src, settings)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		if src, err = putSetting(name, src, s); err != nil {
			return nil, err
		}
	}
	if cfg, findings := config.Parse(name, src); cfg == nil {
		return nil, usage(fmt.Errorf("these values do not go with the rest of the file: %s; nothing was changed", findings[0]), cmp.Or(findings[0].Hint, "see canaryctl lint"))
	}
	return src, nil
}

// places returns where a setting may stand: in canary, or beside it.
func places(s calibrate.Setting) [][]string {
	if s.InMetrics {
		return [][]string{append([]string{"canary", "metrics"}, s.Key...), append([]string{"metrics"}, s.Key...)}
	}
	return [][]string{append([]string{"canary"}, s.Key...), s.Key}
}

// putSetting sets one value at the first place at which it does not stand
// twice then: a key beside canary is not added inside as well. What values
// mean together is judged when all are in.
func putSetting(name string, src []byte, s calibrate.Setting) ([]byte, error) {
	var errs []error
	for _, path := range places(s) {
		out, err := splice.Set(src, path, s.Value)
		switch {
		case err == nil && !standsTwice(name, out):
			return out, nil
		case err != nil && !errors.Is(err, splice.ErrNotFound):
			errs = append(errs, err)
		}
	}
	errs = append(errs, splice.ErrNotFound) // where nothing else was wrong
	return nil, usage(fmt.Errorf("put %s: %s into %s: %w; nothing was changed", strings.Join(s.Key, "."), s.Value, name, errs[0]), "set it by hand")
}

func standsTwice(name string, src []byte) bool {
	_, findings := config.Parse(name, src)
	return slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Rule == "two-places" })
}

// withLayers returns the configuration with the mappings of metrics that the
// settings need, empty where they were missing.
func withLayers(name string, src []byte, settings []calibrate.Setting) ([]byte, error) {
	if !isThere(src, []string{"canary", "metrics"}) && !isThere(src, []string{"metrics"}) {
		out := appendMetrics(src, settings)
		if cfg, _ := config.Parse(name, out); cfg != nil {
			return out, nil
		}
		out, err := addMapping(src, []string{"metrics"}) // JSON, or a file in one line
		if err != nil {
			return nil, usage(fmt.Errorf("%s has no metrics to put the values in: %w", name, err), "add to it:  metrics: { fast_layer: {}, slow_layer: {} }")
		}
		src = out
	}
	at := []string{"metrics"}
	if !isThere(src, at) {
		at = []string{"canary", "metrics"}
	}
	for _, s := range settings {
		layer := append(slices.Clone(at), s.Key[0])
		if !s.InMetrics || isThere(src, layer) {
			continue
		}
		out, err := addMapping(src, layer)
		if err != nil {
			return nil, usage(fmt.Errorf("%s has no %s to put the values in: %w", name, s.Key[0], err), fmt.Sprintf("add an empty one, %s: {}, to its metrics", s.Key[0]))
		}
		src = out
	}
	return src, nil
}

// standIn is the scalar in whose place a mapping is put.
const standIn = "canaryctl-empty-mapping"

// isThere reports whether a path leads to a mapping. Nothing is changed: only
// the reason why a scalar cannot be set there counts. A key without a value is
// as good as missing.
func isThere(src []byte, path []string) bool {
	_, err := splice.Set(src, path, standIn)
	return err != nil && !errors.Is(err, splice.ErrNotFound)
}

// addMapping adds an empty mapping under a key that is missing or empty.
func addMapping(src []byte, path []string) ([]byte, error) {
	out, err := splice.Set(src, path, standIn)
	if err != nil {
		return nil, err
	}
	for _, written := range []string{`"` + standIn + `"`, standIn} {
		if bytes.Contains(out, []byte(written)) {
			return bytes.Replace(out, []byte(written), []byte("{}"), 1), nil
		}
	}
	return nil, splice.ErrUnsafe
}

// appendMetrics adds the whole block of metrics below the file's last line,
// beside canary.
func appendMetrics(src []byte, settings []calibrate.Setting) []byte {
	end := "\n"
	if bytes.Contains(src, []byte("\r\n")) {
		end = "\r\n"
	}
	out := bytes.Clone(src)
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, end...)
	}
	out = append(out, "metrics:"+end...)
	layer := ""
	for _, s := range settings {
		if !s.InMetrics {
			continue
		}
		if s.Key[0] != layer {
			layer = s.Key[0]
			out = append(out, "  "+layer+":"+end...)
		}
		out = append(out, "    "+s.Key[1]+": "+s.Value+end...)
	}
	return out
}
