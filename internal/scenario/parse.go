package scenario

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
)

var topKeys = []string{"scenario", "about", "start", "plan", "feed", "fault_from", "approve", "storm", "expect"}

// defaultStart is when synthetic time starts unless a scenario says: a Monday.
var defaultStart = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// Parse reads a scenario file. name is how findings call it. When the list has
// errors the Scenario is nil. Findings about the plan section have their
// places in the scenario file. The list is sorted.
func Parse(name string, src []byte) (*Scenario, diag.List) {
	r := newReader(name, src)
	sc := &Scenario{File: name, Start: defaultStart}
	if root := r.root(); root != nil {
		r.scenario(sc, root)
	}
	r.list.Sort()
	if r.list.HasErrors() {
		return nil, r.list
	}
	return sc, r.list
}

// scenario reads the top level.
func (r *reader) scenario(sc *Scenario, root *yaml.Node) {
	if root.Content != nil && root.Content[0].Value == "canary" {
		r.at(root.Content[0], "unknown-key", "name it with -c, beside a scenario or recorded files to replay under it", "this is a canary.yaml, no scenario")
		return
	}
	s := r.section(root, nil, "the scenario", topKeys...)
	if s.need("scenario", "its name, such as low-traffic") {
		sc.Name, _ = s.text("scenario")
		if strings.ContainsFunc(sc.Name, unicode.IsControl) {
			s.refuse("scenario", "wrong-type", "", "scenario: a name has no control characters")
		}
	}
	if s.need("about", "what happens in it, and why that is expected") {
		sc.About, _ = s.text("about")
		sc.About = strings.TrimSpace(sc.About)
	}
	if s.has("storm") {
		r.storm(sc, s)
		return
	}
	sc.Approve, _ = s.flag("approve")
	r.start(sc, s)
	r.plan(sc, s, root)
	if hasScenes(sc, s) {
		r.scenes(sc, s)
		return
	}
	faultNodes := []*yaml.Node(nil)
	if s.need("feed", "what the service does, minute by minute") {
		faultNodes = r.feed(sc, s)
	}
	r.faultFrom(sc, s)
	if s.need("expect", "a list of what must come of it; without expectations nothing is tested") {
		r.expectations(sc, s)
	}
	if !r.list.HasErrors() && sc.Files == nil {
		r.tryFeed(sc, s, faultNodes)
	}
}

func (r *reader) start(sc *Scenario, s *section) {
	text, ok := s.text("start")
	if !ok {
		return
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.refuse("start", "wrong-type", "write it as 2026-03-02T02:17:00Z", "start: %s is no time of RFC 3339", said(s.vals["start"]))
		return
	}
	sc.Start = t.UTC()
}

// plan hands the lines of the plan section to package config, with everything
// before them blanked so that places stay right.
func (r *reader) plan(sc *Scenario, s *section, root *yaml.Node) {
	n := s.vals["plan"]
	if n == nil || !r.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		s.refuse("plan", "wrong-type", "the plan is a whole canary.yaml: canary: {target_service: ..., steps: [...]}", "plan: want a mapping, not %s", said(n))
		return
	}
	last := len(r.lines) // the line before the next key
	for i := 0; i < len(root.Content); i += 2 {
		if k := root.Content[i]; k.Line > n.Line {
			last = k.Line - 1
			break
		}
	}
	first := []rune(r.lines[n.Line-1])
	blank := strings.Repeat("\n", n.Line-1) + strings.Repeat(" ", n.Column-1)
	body := slices.Concat([]string{string(first[n.Column-1:])}, r.lines[n.Line:last])
	cfg, list := config.Parse(r.name, []byte(blank+strings.Join(body, "\n")))
	r.list = append(r.list, list...)
	sc.Config = cfg
}

// faultFrom reads fault_from, which goes before the first fault that is the
// canary's own.
func (r *reader) faultFrom(sc *Scenario, s *section) {
	from, ok := s.count("fault_from", 0, maxMinutes)
	if !ok {
		return
	}
	sc.FaultFrom = new(int(from))
	if sc.Files == nil && sc.Minutes > 0 && int(from) >= sc.Minutes {
		s.refuse("fault_from", "out-of-range", "", "fault_from: the feed ends before minute %d", from)
	}
}
