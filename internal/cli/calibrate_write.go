package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/splice"
)

// putSettings returns the configuration with the settings in it and every
// other byte as it was. Mappings that they need and that are missing are added
// in the style of the place. Whatever it returns without an error parses
// without one.
func putSettings(name string, src []byte, settings []calibrate.Setting) ([]byte, error) {
	return putSceneSettings(name, src, "", settings)
}

// putSceneSettings is putSettings for the keys of a scene, "" for canary's.
func putSceneSettings(name string, src []byte, scene string, settings []calibrate.Setting) ([]byte, error) {
	was := src
	for _, s := range settings {
		out, err := putSetting(name, src, scene, s)
		if err != nil {
			if _, first := putSetting(name, was, scene, s); first != nil {
				err = first // with the line that the user's file has
			}
			return nil, err
		}
		src = out
	}
	if cfg, findings := config.Parse(name, src); cfg == nil {
		return nil, usage(fmt.Errorf("these values do not go with the rest of the file: %s; nothing was changed", findings[0]), cmp.Or(findings[0].Hint, "see canaryctl lint"))
	}
	return src, nil
}

// places returns where a setting may stand, the best first: a step's limit in
// its step, the rest in canary or beside it. Where there are no metrics at all
// they go beside it, to the end of the file.
func places(s calibrate.Setting) [][]string {
	switch {
	case s.Step > 0:
		return [][]string{append([]string{"canary", "steps", strconv.Itoa(s.Step - 1), "limits"}, s.Key...)}
	case s.InMetrics:
		return [][]string{append([]string{"metrics"}, s.Key...), append([]string{"canary", "metrics"}, s.Key...)}
	}
	return [][]string{append([]string{"canary"}, s.Key...), s.Key}
}

// scenePlaces is places in a scene, which stands at the top or in canary.
func scenePlaces(scene string, s calibrate.Setting) [][]string {
	if scene == "" {
		return places(s)
	}
	path := []string{"scenes", scene}
	switch {
	case s.Step > 0:
		path = append(path, "steps", strconv.Itoa(s.Step-1), "limits")
	case s.InMetrics:
		path = append(path, "metrics")
	}
	path = append(path, s.Key...)
	return [][]string{path, append([]string{"canary"}, path...)}
}

// putSetting sets one value at the first place where the parser looks for it
// and does not find it twice. What values mean together is judged when all are
// in.
func putSetting(name string, src []byte, scene string, s calibrate.Setting) ([]byte, error) {
	var errs []error
	for _, path := range scenePlaces(scene, s) {
		out, err := splice.Put(src, path, s.Value)
		if err == nil && !misplaced(name, out) {
			return out, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, splice.ErrNotFound) // where nothing else was wrong
	return nil, usage(fmt.Errorf("put %s: %s into %s: %w; nothing was changed", keyOf(s), s.Value, name, errs[0]), "set it by hand")
}

// keyOf names a setting's key for a person.
func keyOf(s calibrate.Setting) string {
	key := strings.Join(s.Key, ".")
	if s.Step > 0 {
		return fmt.Sprintf("step %d's %s", s.Step, key)
	}
	return key
}

// misplaced reports whether a key stands in two places, or where none belongs.
func misplaced(name string, src []byte) bool {
	_, findings := config.Parse(name, src)
	return slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Rule == "two-places" || f.Rule == "unknown-key" })
}
