package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

const calm = `scenario: calm
about: Nothing happens.
storm:
  seconds: 20
  short: { per_sec: 5, tokens: 1200, service_s: 1 }
  upstream: { places: 60 }
  clients:
    - { client: a, retry: policy, breaker: true, gates: true }
    - { client: b, retry: naive }
expect:
  - { client: a, answered: { above: 0.99 } }
`

func parseStorm(t *testing.T, text string) *Scenario {
	t.Helper()
	sc, list := Parse("calm.yaml", []byte(text))
	for _, f := range list {
		t.Error(f.Render([]byte(text)))
	}
	if sc == nil {
		t.FailNow()
	}
	return sc
}

// TestWhatAClientDoesNotSayIsAsPublished names every figure of the policy.
func TestWhatAClientDoesNotSayIsAsPublished(t *testing.T) {
	sc := parseStorm(t, calm)
	a, b := sc.Storm.Clients[0], sc.Storm.Clients[1]
	if a.Retry != throttle.DefaultRetry() || !a.Heeds || !a.Breaker || !a.Gates || a.Policy != throttle.DefaultGates() || a.Timeout != 180*time.Second || a.Queue != 2*time.Second {
		t.Errorf("policy: %+v", a)
	}
	if b.Retry != simulate.NaiveRetry(20) || b.Heeds || b.Breaker || b.Gates {
		t.Errorf("naive: %+v", b)
	}
	if !sc.Drawn || sc.Seed != 1 || sc.Config != nil {
		t.Errorf("%+v", sc)
	}
}

func TestStormsThatAreRefused(t *testing.T) {
	tests := []struct {
		name, from, to string
		want           string
	}{
		{"a plan beside it", "storm:", "approve: true\nstorm:", "a scenario with a storm has no approve"},
		{"an unknown key", "places: 60", "place: 60", `did you mean "places"`},
		{"no requests", "  short: { per_sec: 5, tokens: 1200, service_s: 1 }\n", "", "neither short nor long"},
		{"no clients", "  clients:\n    - { client: a, retry: policy, breaker: true, gates: true }\n    - { client: b, retry: naive }\n", "  clients: []\n", "clients is empty"},
		{"two clients of a name", "client: b", "client: a", "two clients of that name"},
		{"an unknown client", "client: a, answered", "client: c, answered", `client: "c" is not known`},
		{"no bound", "{ above: 0.99 }", "{}", "answered has no bound"},
		{"a bound of a time", "answered: { above: 0.99 }", "recovered: { above: 3 }", "unknown key"},
		{"two figures", "answered: { above: 0.99 }", "answered: { above: 0.99 }, load: { above: 1 }", "want exactly one"},
		{"no expectations", "expect:\n  - { client: a, answered: { above: 0.99 } }\n", "expect: []\n", "expect is empty"},
		{"a lane of a load", "answered: { above: 0.99 }", "load: { above: 0.99 }, of: short", `load has no key "of"`},
		{"an empty fault", "  upstream:", "  faults: [ { from_s: 1, seconds: 2 } ]\n  upstream:", "the fault changes nothing"},
		{"an allowance without a rate", "places: 60", "places: 60, burst: 5", "without per_sec there is no allowance"},
		{"places without gates", "retry: naive", "retry: naive, short: 3", "without gates nothing waits"},
		{"retries of none", "retry: naive", "retry: none, attempts: 3", "tries once"},
		{"never: false", "answered: { above: 0.99 }", "opened: { never: false }", "expects nothing"},
		{"negative seconds", "seconds: 20", "seconds: -1", "is negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(calm, tt.from, tt.to, 1)
			if text == calm {
				t.Fatal("nothing changed")
			}
			sc, list := Parse("calm.yaml", []byte(text))
			var said strings.Builder
			for _, f := range list {
				said.WriteString(f.Render([]byte(text)))
			}
			if sc != nil || !strings.Contains(said.String(), tt.want) {
				t.Errorf("want %q in\n%s", tt.want, said.String())
			}
		})
	}
}

// The reference names every key and figure of storms.
func TestReferenceNamesEveryKeyOfStorms(t *testing.T) {
	text := page(t)
	for _, w := range slices.Concat(stormKeys, stormTrafficKeys, stormFaultKeys, stormUpstreamKeys, stormClientKeys, stormFigureNames()) {
		if !strings.Contains(text, "`"+w) && !strings.Contains(text, w+":") {
			t.Errorf("%s is not in docs/reference/scenario.md", w)
		}
	}
}

// TestChecksOfStorms: shares are compared exactly, and what did not happen is
// neither within a time nor a share of nothing.
func TestChecksOfStorms(t *testing.T) {
	out := &simulate.StormOutcome{
		Client: "a", Attempts: 200, RateLimited: 10, Extra: 20, OpenedS: new(9.5),
		Short: simulate.StormLane{Requests: 100, Answered: 99},
	}
	for expect, want := range map[string]bool{
		"load: { above: 1.999, below: 2.001 }":        true,
		"load: { above: 2 }":                          false,
		"load: { below: 2 }":                          false,
		"amplification: { below: 2 }":                 false,
		"amplification: { below: 2.0001 }":            true,
		"rate_limited: { above: 0.05 }":               false,
		"rate_limited: { above: 0.0499 }":             true,
		"answered: { above: 0.98 }":                   true,
		"answered: { above: 0.99 }":                   false,
		"answered: { above: 0.98 }, of: short":        true,
		"answered: { above: 0.98 }, of: long":         false,
		"answered: { below: 0.98 }, of: long":         false,
		"opened: { within_s: 10 }":                    true,
		"opened: { within_s: 9.4 }":                   false,
		"opened: { never: true }":                     false,
		"recovered: { within_s: 1000 }":               false,
		"recovered: { never: true }":                  true,
		"calls_while_open: { below: 1 }":              true,
		"calls_while_open: { above: 0 }":              false,
		"rate_limited: { above: 0.01, below: 0.0501}": true,
	} {
		sc := parseStorm(t, strings.Replace(calm, "answered: { above: 0.99 }", expect, 1))
		if r := sc.Storm.Check([]*simulate.StormOutcome{out, out})[0]; r.OK != want || r.Want == "" || r.Got == "" {
			t.Errorf("%s: %+v, want %t", expect, r, want)
		}
	}
}
