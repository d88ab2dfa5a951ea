package scenario

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// Storm is the storm section of a scenario: an upstream that throttles, and
// clients that are let loose on it one after the other. Such a scenario has
// neither plan nor feed.
type Storm struct {
	Storm   simulate.Storm
	Clients []simulate.StormClient

	expect []stormExpectation
}

// Check holds the outcomes of the clients, in their order, against what is
// expected of them, in the order of the file.
func (s *Storm) Check(outs []*simulate.StormOutcome) []Result {
	results := []Result{}
	for _, e := range s.expect {
		results = append(results, e.check(outs))
	}
	return results
}

var (
	stormKeys         = []string{"seed", "seconds", "short", "long", "faults", "upstream", "clients"}
	stormTrafficKeys  = []string{"per_sec", "tokens", "service_s", "spread"}
	stormFaultKeys    = []string{"from_s", "seconds", "refuse", "short_per_sec", "long_per_sec"}
	stormUpstreamKeys = []string{"places", "refusal_ms", "retry_after_s", "per_sec", "burst", "refusal_cost"}
	stormClientKeys   = []string{"client", "retry", "attempts", "breaker", "gates", "short", "long", "timeout_s", "queue_s"}
)

const (
	maxStormSeconds = 24 * 3600
	maxStormTries   = 10_000
	naiveAttempts   = 20
)

// storm reads a scenario that has a storm in place of plan and feed.
func (r *reader) storm(sc *Scenario, top *section) {
	for _, k := range []string{"plan", "feed", "fault_from", "approve", "start"} {
		if top.has(k) {
			top.refuse(k, "one-of", "a storm is about clients, not about a release: give it a scenario of its own", "%s: a scenario with a storm has no %s", k, k)
		}
	}
	sc.Storm, sc.Drawn, sc.Seed = &Storm{}, true, 1
	s := r.section(top.vals["storm"], top.keys["storm"], "storm", stormKeys...)
	if seed, ok := s.count("seed", 0, 1<<53); ok {
		sc.Seed = uint64(seed)
	}
	w := &sc.Storm.Storm
	if s.need("seconds", "for how long requests arrive") {
		n, _ := s.count("seconds", 1, maxStormSeconds)
		w.Seconds = int(n)
	}
	if !s.bad && !s.has("short") && !s.has("long") {
		s.refuse("short", "missing-key", "short: {per_sec: 20, tokens: 1200, service_s: 2}", "storm has neither short nor long requests")
	}
	w.Short, w.Long = r.stormTraffic(s, "short"), r.stormTraffic(s, "long")
	for _, n := range s.items("faults") {
		w.Faults = append(w.Faults, r.stormFault(n))
	}
	if s.need("upstream", "what it can carry") {
		w.Upstream = r.stormUpstream(s)
	}
	if s.need("clients", "who calls") {
		r.stormClients(sc.Storm, s)
	}
	if top.need("expect", "a list of what must come of it; without expectations nothing is tested") {
		r.stormExpectations(sc.Storm, top)
	}
}

// seconds reads a length of time in seconds.
func (s *section) seconds(key string, most float64) (time.Duration, bool) {
	v, ok := s.number(key, 0, most)
	return time.Duration(v * float64(time.Second)), ok
}

func (r *reader) stormTraffic(top *section, key string) (t simulate.StormTraffic) {
	if !top.has(key) {
		return t
	}
	s := r.section(top.vals[key], top.keys[key], key, stormTrafficKeys...)
	if s.need("per_sec", "requests a second on average") {
		t.PerSec, _ = s.number("per_sec", 0, 1e5)
	}
	if s.need("tokens", "of each prompt; over 32000 is a long one") {
		t.Tokens, _ = s.count("tokens", 1, 1e9)
	}
	if s.need("service_s", "the median time that the upstream works on one") {
		t.Service, _ = s.seconds("service_s", 3600)
	}
	t.Spread, _ = s.number("spread", 0, 3)
	return t
}

func (r *reader) stormFault(n *yaml.Node) (f simulate.StormFault) {
	s := r.section(n, nil, "the fault", stormFaultKeys...)
	if s.need("from_s", "the second in which it begins") {
		from, _ := s.count("from_s", 0, maxStormSeconds)
		f.From = int(from)
	}
	if s.need("seconds", "how long it lasts") {
		long, _ := s.count("seconds", 1, maxStormSeconds)
		f.Seconds = int(long)
	}
	f.Refuse, _ = s.flag("refuse")
	f.Short, _ = s.number("short_per_sec", 0, 1e5)
	f.Long, _ = s.number("long_per_sec", 0, 1e5)
	if !s.bad && !f.Refuse && f.Short == 0 && f.Long == 0 {
		s.refuse("refuse", "missing-key", "refuse: true, or short_per_sec or long_per_sec in addition to the traffic", "the fault changes nothing")
	}
	return f
}

func (r *reader) stormUpstream(top *section) simulate.StormUpstream {
	s := r.section(top.vals["upstream"], top.keys["upstream"], "upstream", stormUpstreamKeys...)
	u := simulate.StormUpstream{Refusal: 50 * time.Millisecond}
	places, _ := s.count("places", 0, 1e6)
	u.Places = int(places)
	if ms, ok := s.number("refusal_ms", 0, 1e6); ok {
		u.Refusal = time.Duration(ms * float64(time.Millisecond))
	}
	u.RetryAfter, _ = s.seconds("retry_after_s", 3600)
	u.PerSec, _ = s.number("per_sec", 0, 1e6)
	u.Burst = max(u.PerSec, 1)
	if burst, ok := s.number("burst", 1, 1e6); ok {
		u.Burst = burst
	}
	u.RefusalCost, _ = s.number("refusal_cost", 0, 1)
	for _, k := range []string{"burst", "refusal_cost"} {
		if s.has(k) && u.PerSec == 0 && !s.bad {
			s.refuse(k, "one-of", "give per_sec: how many calls a second it allows", "%s: without per_sec there is no allowance", k)
		}
	}
	return u
}

func (r *reader) stormClients(storm *Storm, top *section) {
	items := top.items("clients")
	if len(items) == 0 && !top.bad {
		top.refuse("clients", "out-of-range", "", "clients is empty")
	}
	for _, n := range items {
		s := r.section(n, nil, "the client", stormClientKeys...)
		c := r.stormClient(s)
		for _, other := range storm.Clients {
			if other.Name == c.Name && !s.bad {
				s.refuse("client", "duplicate-key", "", "client: there are two clients of that name")
			}
		}
		storm.Clients = append(storm.Clients, c)
	}
}

// stormClient reads a client. What it does not say is as published.
func (r *reader) stormClient(s *section) simulate.StormClient {
	c := simulate.StormClient{Policy: throttle.DefaultGates(), Timeout: 180 * time.Second, Queue: 2 * time.Second}
	if s.need("client", "its name") {
		c.Name, _ = s.text("client")
	}
	if s.need("retry", "none, naive (at once, whatever the answer asks for) or policy") {
		word, _ := s.word("retry", "none", "naive", "policy")
		switch word {
		case "none":
			c.Retry = simulate.NaiveRetry(1)
		case "naive":
			c.Retry = simulate.NaiveRetry(naiveAttempts)
		case "policy":
			c.Retry, c.Heeds = throttle.DefaultRetry(), true
		}
		if n, ok := s.count("attempts", 1, maxStormTries); ok {
			if word == "none" && n > 1 {
				s.refuse("attempts", "one-of", "retry: naive or policy", "attempts: a client with retry: none tries once")
			}
			c.Retry.Attempts = int(n)
		}
	}
	c.Breaker, _ = s.flag("breaker")
	c.Gates, _ = s.flag("gates")
	if n, ok := s.count("short", 1, 1e6); ok {
		c.Policy.Short = int(n)
	}
	if n, ok := s.count("long", 1, 1e6); ok {
		c.Policy.Long = int(n)
	}
	for _, key := range []string{"short", "long", "queue_s"} {
		if s.has(key) && !c.Gates && !s.bad {
			s.refuse(key, "one-of", "gates: true", "%s: without gates nothing waits for a place", key)
		}
	}
	if d, ok := s.seconds("timeout_s", 3600); ok {
		c.Timeout = d
	}
	if d, ok := s.seconds("queue_s", 3600); ok {
		c.Queue = d
	}
	return c
}

// stormFigure is a figure of which something can be expected. A share or ratio
// is a count over a whole, compared exactly; a time is in seconds, nil for
// never.
type stormFigure struct {
	name  string
	words string
	never string // words of a time that never comes
	ratio func(o *simulate.StormOutcome, lane string) (count, of int64)
	time  func(o *simulate.StormOutcome) *float64
}

var stormFigures = []stormFigure{
	{name: "load", words: "calls a request", ratio: func(o *simulate.StormOutcome, _ string) (int64, int64) { return o.Attempts, o.Requests() }},
	{name: "amplification", words: "amplification", ratio: func(o *simulate.StormOutcome, _ string) (int64, int64) { return o.Extra, o.RateLimited }},
	{name: "rate_limited", words: "share of 429", ratio: func(o *simulate.StormOutcome, _ string) (int64, int64) { return o.RateLimited, o.Attempts }},
	{name: "answered", words: "share answered", ratio: answeredShare},
	{name: "calls_while_open", words: "calls through an OPEN breaker", ratio: func(o *simulate.StormOutcome, _ string) (int64, int64) { return o.WhileOpen, 1 }},
	{name: "opened", words: "the breaker opens", never: "the breaker never opens", time: func(o *simulate.StormOutcome) *float64 { return o.OpenedS }},
	{name: "recovered", words: "recovers", never: "never recovers", time: func(o *simulate.StormOutcome) *float64 { return o.RecoveredS }},
}

func answeredShare(o *simulate.StormOutcome, lane string) (count, of int64) {
	switch lane {
	case "short":
		return o.Short.Answered, o.Short.Requests
	case "long":
		return o.Long.Answered, o.Long.Requests
	}
	return o.Answered(), o.Requests()
}

func stormFigureNames() []string {
	names := make([]string, len(stormFigures))
	for i, f := range stormFigures {
		names[i] = f.name
	}
	return names
}

// stormExpectation is what is expected of a figure of a client.
type stormExpectation struct {
	client       int // its place
	name, lane   string
	figure       stormFigure
	above, below release.Ratio // zero: not asked
	within       release.Ratio // seconds
	never        bool
}
