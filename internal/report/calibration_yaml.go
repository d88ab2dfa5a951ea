package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// CalibrationYAML writes what a baseline supplies as keys of canary, ready to
// be pasted below it: traffic and cost, the steps with their own limits, and
// metrics. Behind each value stands where it comes from.
func CalibrationYAML(w io.Writer, r *calibrate.Report) error {
	return calibrationYAML(w, r, r.Settings())
}

func calibrationYAML(w io.Writer, r *calibrate.Report, settings []calibrate.Setting) error {
	root := &yamlKey{}
	own := map[int][]*calibrate.Setting{}
	metrics := &yamlKey{key: "metrics"}
	for i := range settings {
		switch s := &settings[i]; {
		case s.Step > 0:
			own[s.Step] = append(own[s.Step], s)
		case s.InMetrics:
			metrics.put(s.Key, s.Value, s.Why)
		default:
			root.put(s.Key, s.Value, s.Why)
		}
	}
	if len(r.Steps) > 0 {
		root.below = append(root.below, stepsOf(r, own))
	}
	if len(metrics.below) > 0 {
		root.below = append(root.below, metrics)
	}
	if !r.Verdict.OK {
		root.below = nil // half of a rule is no rule
	}
	var lines []yamlLine
	root.write(&lines, 0)
	_, err := io.WriteString(w, yamlHead(r)+aligned(lines))
	return err
}

// yamlHead says what was measured, and what is wrong with it.
func yamlHead(r *calibrate.Report) string {
	head := []string{
		fmt.Sprintf("canaryctl calibrate: %s requests from %s to %s", thousands(r.Totals.Total), stamp(r.Span.From), stamp(r.Span.To)),
		"keys of " + keysOf(r.Scene) + " in canary.yaml; canaryctl calibrate --write puts the values there and keeps the rest",
	}
	if !r.Verdict.OK {
		head = append(head, "NO VERDICT TO BUILD ON: "+strings.Join(r.Verdict.Reasons, ", ")+"; the text report says what to do")
	}
	if n := len(r.Warnings); n > 0 {
		var codes []string
		for i := range r.Warnings {
			codes = append(codes, r.Warnings[i].Code)
		}
		head = append(head, fmt.Sprintf("%s, told by the text report: %s", counted(n, "warning"), strings.Join(codes, ", ")))
	}
	out := ""
	for _, line := range head {
		out += "# " + plain(line) + "\n"
	}
	return out
}

// keysOf names where the values of a scene stand, "" for the whole service's.
func keysOf(scene string) string {
	if scene == "" {
		return "canary"
	}
	return "scenes." + scene + ", or of canary where there are no scenes,"
}

// longestHold is the hold in minutes above which a step has none: four weeks.
const longestHold = 4 * 7 * 24 * 60

// stepsOf are the steps as the report has them, each with its own limits.
func stepsOf(r *calibrate.Report, own map[int][]*calibrate.Setting) *yamlKey {
	steps := &yamlKey{key: "steps"}
	for i := range r.Steps {
		s := &r.Steps[i]
		item := &yamlKey{item: true}
		item.put([]string{"pct"}, strconv.FormatFloat(s.Pct, 'f', -1, 64), optional(s.RateP10, 1, 3, " requests a minute at the tenth percentile"))
		drop := strconv.FormatFloat(r.Slow.DetectDropPP, 'f', -1, 64)
		switch hold := s.HoldMin[drop]; {
		case hold == nil:
			item.put([]string{"gate"}, "[metric]", "no time is known after which a drop of "+drop+" pp can be told")
		case *hold > longestHold:
			item.put([]string{"gate"}, "[metric]", "a drop of "+drop+" pp takes "+digits(*hold, 4)+" min to tell")
		default:
			item.put([]string{"min_hold_min"}, strconv.FormatFloat(*hold, 'f', -1, 64), "until the gate can tell a drop of "+drop+" pp; longer if you like")
			item.put([]string{"gate"}, "[time, metric]", "")
		}
		for _, l := range own[i+1] {
			why := l.Why
			if why == "" {
				why = whyOf(s, strings.Join(l.Key, "."))
			}
			item.put(append([]string{"limits"}, l.Key...), l.Value, why)
		}
		steps.below = append(steps.below, item)
	}
	return steps
}

// whyOf says where a step's own limit comes from.
func whyOf(s *calibrate.Step, key string) string {
	expected := func(c *calibrate.Count) string {
		if c == nil {
			return ""
		}
		return fmt.Sprintf("%s expected in violation_window_min; %s false trips a week", digits(c.Lambda, 3), digits(c.PerWeek, 2))
	}
	switch key {
	case "violation_limit":
		return expected(s.Violations)
	case "min_transfer_count":
		return expected(s.Transfers)
	case "min_slow_count":
		return expected(s.Slow)
	case "violation_ratio_multiplier", "transfer_rate_ratio_limit", "p99_slow_ratio_limit":
		return "what gates and minutes busier than any are held against"
	case "cost_min_samples":
		if s.CostJudged {
			return "the mean of fewer is noise; a window holds as many"
		}
		return "the mean of fewer is noise; no usual window holds as many"
	case "min_samples_slow":
		return "judged requests that tell the drop at this step"
	case "slow_window_max_min":
		return "until min_samples_slow have come, 95 % sure"
	case "noise.z":
		return "sigmas for the budget, at this step's window"
	case "noise.tau":
		return "sd of the true rate between windows as long as this step's"
	case "cusum.limit":
		return "for the budget, at this step's traffic"
	}
	return ""
}

// yamlKey is a key with a value, or with keys below it.
type yamlKey struct {
	key, value, why string
	item            bool // of a list: it has no key
	below           []*yamlKey
}

// put sets the value at a path below the key.
func (k *yamlKey) put(path []string, value, why string) {
	for _, part := range path {
		var next *yamlKey
		for _, b := range k.below {
			if b.key == part && !b.item {
				next = b
			}
		}
		if next == nil {
			next = &yamlKey{key: part}
			k.below = append(k.below, next)
		}
		k = next
	}
	k.value, k.why = value, why
}

// yamlLine is a line with its comment.
type yamlLine struct{ text, why string }

// write writes the keys below this one.
func (k *yamlKey) write(lines *[]yamlLine, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, b := range k.below {
		switch {
		case b.item:
			first := len(*lines)
			b.write(lines, depth+1)
			text := &(*lines)[first].text
			*text = indent + "- " + strings.TrimLeft(*text, " ")
		case b.value != "":
			*lines = append(*lines, yamlLine{indent + b.key + ": " + b.value, b.why})
		default:
			*lines = append(*lines, yamlLine{indent + b.key + ":", b.why})
			b.write(lines, depth+1)
		}
	}
}

// aligned puts the comments below one another.
func aligned(lines []yamlLine) string {
	room := 0
	for _, l := range lines {
		if l.why != "" {
			room = max(room, len(l.text))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		if l.why == "" {
			b.WriteString(l.text + "\n")
			continue
		}
		fmt.Fprintf(&b, "%-*s  # %s\n", room, l.text, plain(l.why))
	}
	return b.String()
}
