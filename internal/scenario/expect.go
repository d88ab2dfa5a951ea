package scenario

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// expectKinds are the keys of which an item of expect has exactly one.
var expectKinds = []string{
	"transition", "transitions", "decision", "exposure_below", "never", "final", "trips_at_least", "trips_below", "runs",
}

var (
	timeKeys       = []string{"minute", "within", "between"}
	transitionKeys = append([]string{"from", "to", "signal", "escalated", "locked"}, timeKeys...)
	phases         = []string{"CLOSED", "OPEN", "HALF_OPEN"}
	moves          = []string{"start", "advance", "roll_back", "probe", "complete", "await_approval", "lock", "adjust"}
)

// span is when something is expected: minutes low to high, or any time.
type span struct {
	low, high int
	any       bool
}

func (s span) holds(minute int) bool { return s.any || s.low <= minute && minute <= s.high }

// transition is what is expected of a transition of the breaker; nil fields
// are not looked at.
type transition struct {
	when              span
	from, to          *release.Phase
	signal            *release.Signal
	escalated, locked *bool
}

// expectations reads the list of expectations.
func (r *reader) expectations(sc *Scenario, top *section) {
	items := top.items("expect")
	if len(items) == 0 && !top.bad {
		top.refuse("expect", "out-of-range", "a scenario that expects nothing tests nothing", "expect is empty")
	}
	for _, n := range items {
		s := r.section(n, nil, "the expectation", append(append([]string{"step"}, timeKeys...), expectKinds...)...)
		if s.bad {
			continue
		}
		kind := s.one("an expectation is one of them", expectKinds...)
		if kind == "" {
			continue
		}
		for _, k := range append([]string{"step"}, timeKeys...) {
			if s.has(k) && kind != "decision" {
				s.r.at(s.keys[k], "unknown-key", "only a decision has it here; a transition has its minute inside its braces", "%s has no key %q", kind, k)
				s.bad = true
			}
		}
		if e, ok := r.expectation(sc, s, kind); ok && !s.bad {
			sc.expect = append(sc.expect, e)
		}
	}
}

// expectation reads one expectation of a kind.
func (r *reader) expectation(sc *Scenario, s *section, kind string) (e expectation, ok bool) {
	switch kind {
	case "transition":
		t, ok := r.transition(s.vals[kind], s.keys[kind])
		return expectation{one: t.check}, ok
	case "transitions":
		return r.transitions(s)
	case "decision":
		return r.decision(sc, s)
	case "exposure_below":
		n, ok := s.count(kind, 1, maxAmount)
		if ok && sc.FaultFrom == nil {
			s.refuse(kind, "missing-key", "give fault_from: the minute in which the canary turns bad", "exposure_below counts from the fault, and the feed has none")
		}
		return expectation{one: exposureBelow(n)}, ok
	case "trips_at_least":
		n, ok := s.count(kind, 1, maxAmount)
		return expectation{one: tripsAtLeast(int(n))}, ok
	case "trips_below":
		n, ok := s.count(kind, 1, maxAmount)
		return expectation{one: tripsBelow(int(n))}, ok
	case "never":
		return r.never(s)
	case "final":
		return r.final(sc, s)
	}
	return r.runs(sc, s)
}

// when reads minute with or without within, or between.
func (s *section) when() span {
	switch {
	case s.has("between"):
		if s.has("minute") || s.has("within") {
			s.refuse("between", "one-of", "minute, minute and within, or between", "between stands beside minute or within")
		}
		return s.between()
	case s.has("minute"):
		minute, _ := s.count("minute", 0, maxMinutes)
		within, _ := s.count("within", 0, maxMinutes)
		return span{low: int(minute), high: int(minute + within)}
	case s.has("within"):
		s.refuse("within", "missing-key", "minute: N, within: M is any minute from N to N+M", "within says nothing without minute")
	}
	return span{any: true}
}

func (s *section) between() span {
	var ends []int
	for _, n := range s.items("between") {
		one := &section{r: s.r, label: s.label, node: n, vals: map[string]*yaml.Node{"between": n}}
		if minute, ok := one.count("between", 0, maxMinutes); ok {
			ends = append(ends, int(minute))
		} else {
			s.bad = true
		}
	}
	if !s.bad && (len(ends) != 2 || ends[0] > ends[1]) {
		s.refuse("between", "out-of-range", "write [first, last]", "between: want two minutes, the first not after the last")
	}
	if s.bad {
		return span{any: true}
	}
	return span{low: ends[0], high: ends[1]}
}

// transition reads one transition.
func (r *reader) transition(n, at *yaml.Node) (t transition, ok bool) {
	s := r.section(n, at, "the transition", transitionKeys...)
	if s.bad {
		return t, false
	}
	s.need("to", "the state it leads to: "+listing(phases))
	t.when = s.when()
	t.from, t.to = s.phase("from"), s.phase("to")
	if word, ok := s.word("signal", signalNames()...); ok {
		t.signal = new(release.Signal)
		_ = t.signal.UnmarshalText([]byte(word)) // the word is one of its names
	}
	t.escalated, t.locked = s.maybe("escalated"), s.maybe("locked")
	return t, !s.bad
}

func (s *section) phase(key string) *release.Phase {
	word, ok := s.word(key, phases...)
	if !ok {
		return nil
	}
	p := new(release.Phase)
	_ = p.UnmarshalText([]byte(word)) // the word is one of its names
	return p
}

func (s *section) maybe(key string) *bool {
	if v, ok := s.flag(key); ok {
		return &v
	}
	return nil
}

// signalNames are the signals that a transition can rest on.
func signalNames() (names []string) {
	for s := release.Violations; s <= release.Probes; s++ {
		names = append(names, s.String())
	}
	return names
}

func (r *reader) transitions(s *section) (expectation, bool) {
	list := transitions{}
	for _, n := range s.items("transitions") {
		t, ok := r.transition(n, nil)
		if !ok {
			s.bad = true
			continue
		}
		list = append(list, t)
	}
	return expectation{one: list.check}, !s.bad
}

func (r *reader) decision(sc *Scenario, s *section) (expectation, bool) {
	d := decision{when: s.when()}
	word, ok := s.word("decision", moves...)
	if !ok {
		return expectation{}, false
	}
	_ = d.move.UnmarshalText([]byte(word)) // the word is one of its names
	if step, ok := s.count("step", 1, 1<<20); ok {
		d.step = int(step)
		if sc.Config != nil && d.step > len(sc.Config.Steps) {
			s.refuse("step", "out-of-range", "", "step: the plan has %d steps", len(sc.Config.Steps))
		}
	}
	return expectation{one: d.check}, true
}

func (r *reader) never(s *section) (expectation, bool) {
	n := s.vals["never"]
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && r.plain(n) {
		items = n.Content
	}
	var words []string
	known := slices.Concat(phases[1:], moves)
	for _, item := range items {
		one := &section{r: r, label: "never", node: item, vals: map[string]*yaml.Node{"never": item}}
		if word, ok := one.word("never", known...); ok {
			words = append(words, word)
		} else {
			s.bad = true
		}
	}
	if len(words) == 0 && !s.bad {
		s.refuse("never", "out-of-range", "", "never is empty")
	}
	return expectation{one: never(words).check}, !s.bad
}

// whyNames are the reasons of decisions.
func whyNames() (names []string) {
	for w := ladder.WhyStart; ; w++ {
		if name := w.String(); !strings.HasPrefix(name, "why(") {
			names = append(names, name)
			continue
		}
		return names
	}
}

func (r *reader) final(sc *Scenario, top *section) (expectation, bool) {
	s := r.section(top.vals["final"], top.keys["final"], "final", "state", "pct", "locked", "decision", "why", "step", "attempt")
	if s.bad {
		return expectation{}, false
	}
	f := final{state: s.phase("state"), locked: s.maybe("locked")}
	if pct, ok := s.ratio("pct", 0, 1); ok {
		f.pct = &pct
	}
	f.decision, _ = s.word("decision", append([]string{"hold"}, moves...)...)
	f.why, _ = s.word("why", whyNames()...)
	if step, ok := s.count("step", 1, 1<<20); ok {
		f.step = int(step)
		if sc.Config != nil && f.step > len(sc.Config.Steps) {
			s.refuse("step", "out-of-range", "", "step: the plan has %d steps", len(sc.Config.Steps))
		}
	}
	if attempt, ok := s.count("attempt", 1, 1<<20); ok {
		f.attempt = int(attempt)
	}
	if !s.bad && len(s.vals) == 0 {
		top.refuse("final", "missing-key", "state, pct, locked, decision, why, step, attempt", "final says nothing")
	}
	return expectation{one: f.check}, !s.bad
}

// maxRuns bounds what an expectation may ask for.
const maxRuns = 100_000

func (r *reader) runs(sc *Scenario, top *section) (expectation, bool) {
	s := r.section(top.vals["runs"], top.keys["runs"], "runs", "of", "false_trips_per_week_below", "trips_at_least", "exposure_below", "detected_within")
	if s.bad || !s.need("of", "how many runs, each with a seed of its own") {
		return expectation{}, false
	}
	of, _ := s.count("of", 1, maxRuns)
	e := expectation{of: int(of)}
	kind := s.one("an expectation over runs is one of them", "false_trips_per_week_below", "trips_at_least", "exposure_below", "detected_within")
	switch kind {
	case "false_trips_per_week_below":
		limit, _ := s.ratio(kind, 0, maxAmount)
		e.runs = falseTripsBelow(limit)
	case "trips_at_least":
		n, _ := s.count(kind, 1, maxAmount)
		e.runs = everyRunTrips(int(n))
	case "exposure_below":
		n, _ := s.count(kind, 1, maxAmount)
		e.runs = everyExposureBelow(n)
	case "detected_within":
		n, _ := s.count(kind, 1, maxMinutes)
		e.runs = everyDelayWithin(int(n))
	}
	if !s.bad && sc.FaultFrom == nil && (kind == "exposure_below" || kind == "detected_within") {
		s.refuse(kind, "missing-key", "give fault_from: the minute in which the canary turns bad", "%s counts from the fault, and the feed has none", kind)
	}
	if !s.bad && !sc.Drawn && sc.Files == nil {
		top.refuse("runs", "one-of", "mode: drawn", "runs: a feed in mode exact is the same in every run")
	}
	if sc.Files != nil {
		top.refuse("runs", "one-of", "remove it", "runs: recorded files are the same in every run")
	}
	return e, !s.bad && kind != ""
}
