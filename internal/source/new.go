package source

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// New makes the source that the configuration describes. It reads nothing yet:
// what it refuses is the configuration itself, and variables of the environment
// that are not set. Errors are *Error.
func New(c *config.Source, o Options) (Source, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	name := "source." + c.Kind
	if c.Span <= 0 {
		return nil, &Error{Source: name, Err: fmt.Errorf("windows of no length"), Hint: "set span_min"}
	}
	switch c.Kind {
	case "prometheus":
		return newPrometheus(c, o)
	case "windows":
		return newFiles(c, o, trace.Windows)
	case "records":
		return newFiles(c, o, trace.Records)
	}
	return nil, &Error{Source: name, Err: fmt.Errorf("there is no such kind of source"), Hint: "the kinds are windows, records and prometheus"}
}

// traceOptions reads map and arms, and says how rows are read.
func traceOptions(c *config.Source, o Options) (trace.Options, error) {
	opt := trace.Options{InputSpan: c.Span, Span: c.Span, MaxBad: c.MaxBad, SlowMS: o.SlowMS, TTFTLimitMS: o.TTFTLimitMS, Scene: c.Scene}
	for _, field := range slices.Sorted(maps.Keys(c.Map)) {
		column, ok := c.Map[field].(string)
		if !ok {
			return opt, &Error{Source: "source." + c.Kind + ".map." + field, Err: fmt.Errorf("%v is not the name of a column", c.Map[field]),
				Hint: `write COLUMN or "COLUMN:UNIT"`}
		}
		m, err := trace.ParseMapping(field + "=" + escapeCommas(column))
		if err != nil {
			return opt, &Error{Source: "source." + c.Kind + ".map", Err: err, Hint: hintOf(err)}
		}
		opt.Map = append(opt.Map, m...)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Arms)) {
		if err := addArm(&opt, key, c.Arms[key]); err != nil {
			return opt, &Error{Source: "source." + c.Kind + ".arms." + key, Err: err, Hint: "write ARM: VERSION, or a list of versions, with versions in quotes"}
		}
	}
	return opt, nil
}

// escapeCommas makes one mapping of a column's name that holds commas, which
// separate mappings on a command line only.
func escapeCommas(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			b.WriteByte(s[i])
			i++
		case s[i] == ',':
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// addArm reads one entry of arms: an arm and its version or versions, or a
// version and its arm.
func addArm(opt *trace.Options, key string, value any) error {
	if !isArm(key) {
		if arm, ok := value.(string); ok && isArm(arm) {
			return opt.ParseArm(arm + "=" + key)
		}
		return fmt.Errorf("neither %q nor %v is an arm: stable and canary are", key, value)
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		version, err := versionText(v)
		if err != nil {
			return err
		}
		if err := opt.ParseArm(key + "=" + version); err != nil {
			return err
		}
	}
	return nil
}

// versionText reads a version. A decimal is refused: 1.10 has become 1.1 by the
// time that it is read.
func versionText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return "", fmt.Errorf("%v is not a version", v)
}

func isArm(s string) bool { return s == string(release.Stable) || s == string(release.Canary) }

// hintOf turns the advice of package trace, which speaks of flags, into the
// words of canary.yaml.
func hintOf(err error) string {
	h, ok := err.(trace.Hinter)
	if !ok {
		return ""
	}
	return inConfig(h.Hint())
}

// inConfig says in the words of canary.yaml what package trace says in those
// of the command line.
func inConfig(s string) string {
	return strings.NewReplacer("--map ", "map: ", "--arm ", "arms: ", "--input-span ", "span_min: ", "--max-bad ", "max_bad: ").Replace(s)
}
