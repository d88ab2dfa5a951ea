package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/simulate"
)

// stormExpectations reads the list of expectations of a storm.
func (r *reader) stormExpectations(storm *Storm, top *section) {
	items := top.items("expect")
	if len(items) == 0 && !top.bad {
		top.refuse("expect", "out-of-range", "a scenario that expects nothing tests nothing", "expect is empty")
	}
	names := stormFigureNames()
	for _, n := range items {
		s := r.section(n, nil, "the expectation", append([]string{"client", "of"}, names...)...)
		if s.bad {
			continue
		}
		kind := s.one("an expectation is about one of them", names...)
		if kind == "" || !s.need("client", "whose it is") {
			continue
		}
		if e, ok := r.stormExpectation(storm, s, kind); ok {
			storm.expect = append(storm.expect, e)
		}
	}
}

func (r *reader) stormExpectation(storm *Storm, s *section, kind string) (e stormExpectation, ok bool) {
	var clients []string
	for i := range storm.Clients {
		clients = append(clients, storm.Clients[i].Name)
	}
	e.name, _ = s.word("client", clients...)
	e.client = slices.Index(clients, e.name)
	e.lane, _ = s.word("of", "short", "long")
	if s.has("of") && kind != "answered" {
		s.refuse("of", "unknown-key", "only answered is told by the size of the prompt", "%s has no key %q", kind, "of")
	}
	for _, f := range stormFigures {
		if f.name == kind {
			e.figure = f
		}
	}
	if e.figure.time != nil {
		return e, r.stormTime(s, kind, &e) && !s.bad
	}
	return e, r.stormBounds(s, kind, &e) && !s.bad
}

// stormBounds reads {above: X} or {below: X}, or both.
func (r *reader) stormBounds(top *section, kind string, e *stormExpectation) bool {
	s := r.section(top.vals[kind], top.keys[kind], kind, "above", "below")
	e.above, _ = s.ratio("above", 0, 1e9)
	e.below, _ = s.ratio("below", 0, 1e9)
	if !s.bad && e.above.IsZero() && e.below.IsZero() {
		s.refuse("above", "missing-key", kind+": {above: X} or {below: X}", "%s has no bound", kind)
	}
	return !s.bad
}

// stormTime reads {within_s: N} or {never: true}.
func (r *reader) stormTime(top *section, kind string, e *stormExpectation) bool {
	s := r.section(top.vals[kind], top.keys[kind], kind, "within_s", "never")
	switch s.one(kind+": {within_s: N} or {never: true}", "within_s", "never") {
	case "within_s":
		e.within, _ = s.ratio("within_s", 0, 1e9)
	case "never":
		if e.never, _ = s.flag("never"); !e.never && !s.bad {
			s.refuse("never", "out-of-range", "leave the expectation out", "never: false expects nothing")
		}
	}
	return !s.bad
}

// check holds the expectation against the outcome of its client.
func (e *stormExpectation) check(outs []*simulate.StormOutcome) Result {
	o := outs[e.client]
	if e.figure.time != nil {
		return e.checkTime(o)
	}
	count, of := e.figure.ratio(o, e.lane)
	what := e.figure.words
	if e.lane != "" {
		what += " of " + e.lane + " prompts"
	}
	var bounds []string
	r := Result{OK: of > 0}
	if !e.above.IsZero() {
		bounds = append(bounds, "above "+e.above.String())
		r.OK = r.OK && e.above.Compare(count, of) > 0
	}
	if !e.below.IsZero() {
		bounds = append(bounds, "below "+e.below.String())
		r.OK = r.OK && e.below.Compare(count, of) < 0
	}
	r.Want = fmt.Sprintf("%s: %s %s", e.name, what, strings.Join(bounds, " and "))
	r.Got = fmt.Sprintf("%s: %s %s", e.name, what, ratioText(count, of))
	return r
}

func ratioText(count, of int64) string {
	switch of {
	case 0:
		return "of nothing"
	case 1:
		return strconv.FormatInt(count, 10)
	}
	return fmt.Sprintf("%s (%d of %d)", strconv.FormatFloat(float64(count)/float64(of), 'g', 4, 64), count, of)
}

func (e *stormExpectation) checkTime(o *simulate.StormOutcome) Result {
	got := e.figure.time(o)
	r := Result{Want: fmt.Sprintf("%s: %s within %s s", e.name, e.figure.words, e.within), Got: e.name + ": " + e.figure.never}
	if e.never {
		r.Want = e.name + ": " + e.figure.never
	}
	if got == nil {
		r.OK = e.never
		return r
	}
	r.Got = fmt.Sprintf("%s: %s after %s s", e.name, e.figure.words, strconv.FormatFloat(*got, 'g', 4, 64))
	r.OK = !e.never && *got <= e.within.Float64()
	return r
}
