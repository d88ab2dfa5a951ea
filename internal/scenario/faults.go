package scenario

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// fault is a row of the table of faults.
type fault struct {
	name   string
	target simulate.Target
	how    []how       // exactly one of these keys says how much; none: the first has a default
	def    *float64    // the value where no key says it
	arm    release.Arm // where the fault does not say
	harm   bool        // the canary is bad because of it
}

// how is a key that says how much of a fault there is.
type how struct {
	key    string
	change simulate.Change
	high   float64
}

// table is every fault by name; flapping and diurnal have forms of their own.
var table = []fault{
	{"violation_burst", simulate.ViolationLevel, events, nil, release.Canary, true},
	{"hand_off_surge", simulate.TransferLevel, events, nil, release.Canary, true},
	{"cost_doubling", simulate.CostLevel, []how{{"factor", simulate.Times, 1e6}}, new(2.0), release.Canary, true},
	{"tail_latency", simulate.Latency, latency, nil, release.Canary, true},
	{"slow_decay", simulate.Solve, []how{{"pp_per_hour", simulate.DecayPP, 100}}, nil, release.Canary, true},
	{"solve_drop", simulate.Solve, []how{{"rate", simulate.ToRate, 1}, {"count", simulate.ToCount, maxAmount}, {"pp", simulate.DropPP, 100}}, nil, release.Canary, true},
	{"traffic_drop", simulate.Traffic, []how{{"factor", simulate.Times, 1e6}}, new(0.0), release.All, false},
	{"ttft_rise", simulate.TTFT, latency, nil, release.Canary, true},
	{"slow_first_tokens", simulate.SlowStreams, events, nil, release.Canary, true},
	{"itl_rise", simulate.InterToken, latency, nil, release.Canary, true},
	{"stream_aborts", simulate.BrokenStreams, events, nil, release.Canary, true},
	{"server_error_burst", simulate.ServerErrorLevel, events, nil, release.Canary, true},
	{"refusal_burst", simulate.RefusalLevel, events, nil, release.Canary, true},
	{"kv_fill", simulate.KVCacheLevel, []how{{"rate", simulate.ToRate, 1}, {"pp_per_hour", simulate.FillPP, 6000}}, nil, release.Canary, true},
	{"label_lag", simulate.Labels, []how{{"lag", simulate.LateMinutes, maxMinutes}}, nil, release.All, false},
}

var latency = []how{{"factor", simulate.Times, 1e6}, {"ms", simulate.ToMS, maxAmount}}

var events = []how{{"rate", simulate.ToRate, 1}, {"count", simulate.ToCount, maxAmount}, {"factor", simulate.Times, 1e6}}

// faultNames are the names of all faults, flapping and diurnal last.
func faultNames() []string {
	var names []string
	for _, f := range table {
		names = append(names, f.name)
	}
	return append(names, "flapping", "diurnal")
}

func faultNamed(name string) *fault {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

// faults reads the list of faults and returns the node of each of
// sc.spec.Faults.
func (r *reader) faults(sc *Scenario, feed *section) (nodes []*yaml.Node) {
	for _, n := range feed.items("faults") {
		before := len(sc.spec.Faults)
		r.fault(sc, n)
		for range len(sc.spec.Faults) - before {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// every key that any fault may have; which one may have which is said with
// better words than "unknown".
var faultKeys = []string{
	"fault", "from", "minutes", "arm", "rate", "count", "factor", "ms", "pp", "pp_per_hour", "lag",
	"of", "every", "for", "traffic", "solve_pp", "peak_hour",
}

// fault reads one fault.
func (r *reader) fault(sc *Scenario, n *yaml.Node) {
	s := r.section(n, nil, "the fault", faultKeys...)
	if s.bad || !s.need("fault", "its name, one of "+listing(faultNames())) {
		return
	}
	name, ok := s.word("fault", faultNames()...)
	if !ok {
		return
	}
	s.label = name
	f := simulate.Fault{}
	if from, ok := s.count("from", 0, maxMinutes); ok {
		f.From = int(from)
	}
	if minutes, ok := s.count("minutes", 1, maxMinutes); ok {
		f.Until = f.From + int(minutes)
	}
	if !s.bad && sc.Minutes > 0 && f.From >= sc.Minutes {
		s.refuse("from", "out-of-range", "", "from: the feed ends before minute %d", f.From)
	}
	harm := false
	switch name {
	case "diurnal":
		r.diurnal(sc, s, f)
	case "flapping":
		harm = r.flapping(sc, s, f)
	default:
		row := faultNamed(name)
		s.allow(row.keys()...)
		row.read(s, &f)
		harm = row.harm && f.Arm != release.Stable
		sc.spec.Faults = append(sc.spec.Faults, f)
	}
	if harm && (sc.FaultFrom == nil || f.From < *sc.FaultFrom) {
		sc.FaultFrom = new(f.From)
	}
}

// keys are those of a plain fault.
func (row *fault) keys() []string {
	keys := []string{"fault", "from", "minutes", "arm"}
	for _, h := range row.how {
		keys = append(keys, h.key)
	}
	return keys
}

// allow refuses the keys of other faults.
func (s *section) allow(keys ...string) {
	for _, k := range faultKeys {
		if s.has(k) && !slices.Contains(keys, k) {
			s.bad = true
			s.r.at(s.keys[k], "unknown-key", "its keys are "+listing(keys), "%s has no key %q", s.label, k)
		}
	}
}

// read reads how much of a fault there is, and on which arm.
func (row *fault) read(s *section, f *simulate.Fault) {
	f.Target, f.Arm = row.target, armOf(s, row.arm)
	var keys []string
	for _, h := range row.how {
		keys = append(keys, h.key)
	}
	given := slices.ContainsFunc(keys, s.has)
	if !given && row.def != nil {
		f.Change, f.Value = row.how[0].change, *row.def
		return
	}
	key := s.one("it says how much", keys...)
	for _, h := range row.how {
		if h.key == key {
			f.Change = h.change
			f.Value, _ = s.number(key, 0, h.high)
		}
	}
}

// flapping is another fault that comes and goes.
func (r *reader) flapping(sc *Scenario, s *section, f simulate.Fault) (harm bool) {
	if !s.need("of", "the fault that comes and goes, such as violation_burst") || !s.need("every", "the length of a period, in minutes") {
		return false
	}
	var names []string
	for _, row := range table {
		names = append(names, row.name)
	}
	of, ok := s.word("of", names...)
	if !ok {
		return false
	}
	row := faultNamed(of)
	s.label = "flapping " + of
	s.allow(append(row.keys(), "of", "every", "for")...)
	every, _ := s.count("every", 2, maxMinutes)
	f.Every, f.For = int(every), 1
	if on, ok := s.count("for", 1, maxMinutes); ok {
		f.For = int(on)
		if !s.bad && f.For >= f.Every {
			s.refuse("for", "out-of-range", "", "for: on for %d of every %d minutes is no flapping", f.For, f.Every)
		}
	}
	row.read(s, &f)
	sc.spec.Faults = append(sc.spec.Faults, f)
	return row.harm && f.Arm != release.Stable
}

// diurnal is a swing of 24 hours in traffic, solve rate or both.
func (r *reader) diurnal(sc *Scenario, s *section, f simulate.Fault) {
	s.allow("fault", "from", "minutes", "arm", "traffic", "solve_pp", "peak_hour")
	f.Arm, f.PeakHour = armOf(s, release.All), 14
	if hour, ok := s.number("peak_hour", 0, 24); ok {
		f.PeakHour = hour
	}
	if !s.bad && !s.has("traffic") && !s.has("solve_pp") {
		s.need("traffic", "by which share traffic swings, such as 0.5; or solve_pp, by how many points the solve rate does")
	}
	if share, ok := s.number("traffic", 0, 1); ok {
		f.Target, f.Change, f.Value = simulate.Traffic, simulate.SwingShare, share
		sc.spec.Faults = append(sc.spec.Faults, f)
	}
	if pp, ok := s.number("solve_pp", 0, 100); ok {
		f.Target, f.Change, f.Value = simulate.Solve, simulate.SwingPP, pp
		sc.spec.Faults = append(sc.spec.Faults, f)
	}
}
