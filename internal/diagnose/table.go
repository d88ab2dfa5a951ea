package diagnose

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/release"
)

// The limits of the table. Those of the first block are published; where the
// published table has none the second block has ours.
var (
	fewLimit    = release.NewRatio(1, 100) // under it 429 are left alone
	manyLimit   = release.NewRatio(5, 100) // over it the retry policy is looked at
	eagerLimit  = release.NewRatio(2, 1)   // amplification over it is too eager
	thirdLimit  = release.NewRatio(5, 100) // third attempts over it want less concurrency
	steadyLimit = release.NewRatio(2, 100) // 429 over it end a step of concurrency

	timeoutLimit = release.NewRatio(1, 100) // as of 429: under it they are left alone
	failingLimit = release.NewRatio(5, 100) // as of 429: over it something else than throttling is the matter
)

// flapLimit is how often a breaker comes back open before it flaps. Ours: once
// is bad luck, twice a coincidence.
const flapLimit = 3

// Rule names a row of the table.
type Rule string

// The rules, in the order in which they are told: a wrong configuration makes
// every other figure mislead.
const (
	FixConfiguration Rule = "fix_configuration"
	LeaveIt          Rule = "leave_it"
	LessConcurrency  Rule = "less_concurrency"
	FewerRetries     Rule = "fewer_retries"
	ThirdAttempts    Rule = "third_attempts"
	FewerProbes      Rule = "fewer_probes"
	LongerTimeout    Rule = "longer_read_timeout"
)

// Holds says whether a rule's condition is met.
type Holds string

// The answers; never merged.
const (
	Yes    Holds = "yes"
	No     Holds = "no"
	NoData Holds = "no_data" // the log does not say
)

// Row is a rule held against the log.
type Row struct {
	Rule  Rule   `json:"rule"`
	When  string `json:"when"` // its condition
	Holds Holds  `json:"holds"`
	// Advice is what to do when it holds.
	Advice   string     `json:"advice"`
	Evidence []Evidence `json:"evidence"`
	// Missing says which field the log would need; "" unless there is no data.
	Missing string `json:"missing,omitempty"`
}

// Evidence is a figure that a rule rests on. Count and Of are 0 where it is no
// share of anything.
type Evidence struct {
	Figure string  `json:"figure"`
	Value  float64 `json:"value"`
	Count  int64   `json:"count"`
	Of     int64   `json:"of"`
}

func shareOf(figure string, s Share) Evidence {
	return Evidence{Figure: figure, Value: s.Float64(), Count: s.Count, Of: s.Of}
}

func countOf(figure string, n int64) Evidence { return Evidence{Figure: figure, Value: float64(n)} }

// judge fills the table.
func (d *Diagnosis) judge(t *Tally) {
	configuration, third := d.configuration(t), d.thirdAttempts()
	d.Table = []Row{configuration, d.leaveIt(configuration.Holds == Yes), d.lessConcurrency(), d.fewerRetries(), third, d.fewerProbes(t), d.longerTimeout(t)}
	d.Uncovered = d.uncovered(configuration.Holds == Yes, third.Holds == Yes)
}

func answer(b bool) Holds {
	if b {
		return Yes
	}
	return No
}

func (d *Diagnosis) configuration(t *Tally) Row {
	r := Row{Rule: FixConfiguration, When: "401 or 404 mixed in",
		Advice: "fix the configuration first: keys, model names, URLs; until then the other figures mislead"}
	if t.fields[fieldStatus] == 0 {
		r.Holds, r.Missing = NoData, "status"
		return r
	}
	r.Holds = answer(t.statuses[401]+t.statuses[404] > 0)
	r.Evidence = []Evidence{shareOf("401", Share{t.statuses[401], d.Attempts}), shareOf("404", Share{t.statuses[404], d.Attempts})}
	return r
}

// leaveIt holds where few attempts meet 429 and nothing else is the matter: where
// most fail otherwise, few 429 are no reason to leave anything.
func (d *Diagnosis) leaveIt(misconfigured bool) Row {
	r := Row{Rule: LeaveIt, When: "429 under 1 %, no more than 5 % fail otherwise, no 401 or 404", Advice: "leave it: retries carry that much"}
	if !d.RateLimited.Known() {
		r.Holds, r.Missing = NoData, "status"
		return r
	}
	r.Holds = answer(d.few() && !d.failing() && !misconfigured)
	r.Evidence = []Evidence{shareOf("rate_limited", d.RateLimited), shareOf("failed_otherwise", d.Failing)}
	return r
}

// few reports whether 429 are under 1 %.
func (d *Diagnosis) few() bool {
	return d.RateLimited.Known() && d.RateLimited.compare(fewLimit) < 0
}

// failing reports whether over 5 % of attempts fail otherwise than by 429.
func (d *Diagnosis) failing() bool {
	return d.Failing.Known() && d.Failing.compare(failingLimit) > 0
}

// some reports whether 429 are from 1 to 5 %, both included.
func (d *Diagnosis) some() bool {
	return d.RateLimited.Known() && d.RateLimited.compare(fewLimit) >= 0 && d.RateLimited.compare(manyLimit) <= 0
}

// many reports whether 429 are over 5 %.
func (d *Diagnosis) many() bool {
	return d.RateLimited.Known() && d.RateLimited.compare(manyLimit) > 0
}

func (d *Diagnosis) lessConcurrency() Row {
	r := Row{Rule: LessConcurrency, When: "429 from 1 to 5 %, and no request tries more than twice",
		Advice: fmt.Sprintf("allow one notch less concurrency: %d calls in flight fewer", Notch)}
	switch {
	case !d.RateLimited.Known():
		r.Holds, r.Missing = NoData, "status"
		return r
	case d.some() && d.Retries.Largest == 0:
		r.Holds, r.Missing = NoData, "attempt"
	default:
		r.Holds = answer(d.some() && d.Retries.Largest == 2)
	}
	r.Evidence = append(r.Evidence, shareOf("rate_limited", d.RateLimited))
	if d.Retries.Largest > 0 {
		r.Evidence = append(r.Evidence, countOf("largest_attempt", d.Retries.Largest))
	}
	if d.Steady != nil {
		r.Evidence = append(r.Evidence, countOf("inflight_steady", *d.Steady))
	}
	return r
}

// eager reports whether amplification is over 2, exactly.
func (d *Diagnosis) eager() bool {
	return d.Retries.RateLimited > 0 && eagerLimit.Compare(d.Retries.Extra, d.Retries.RateLimited) > 0
}

func (d *Diagnosis) fewerRetries() Row {
	r := Row{Rule: FewerRetries, When: "429 over 5 %, and amplification over 2", Advice: "first fewer retries, then less concurrency"}
	switch {
	case !d.RateLimited.Known():
		r.Holds, r.Missing = NoData, "status"
		return r
	case d.many() && d.Retries.Amplification == nil:
		r.Holds, r.Missing = NoData, "attempt"
	default:
		r.Holds = answer(d.many() && d.eager())
	}
	r.Evidence = append(r.Evidence, shareOf("rate_limited", d.RateLimited))
	if a := d.Retries.Amplification; a != nil {
		r.Evidence = append(r.Evidence, Evidence{Figure: "amplification", Value: *a, Count: d.Retries.Extra, Of: d.Retries.RateLimited})
	}
	return r
}

func (d *Diagnosis) thirdAttempts() Row {
	r := Row{Rule: ThirdAttempts, When: "third attempts over 5 % of first ones", Advice: "allow less concurrency"}
	if !d.Retries.Third.Known() {
		r.Holds, r.Missing = NoData, "attempt"
		return r
	}
	r.Holds = answer(d.Retries.Third.compare(thirdLimit) > 0)
	r.Evidence = []Evidence{shareOf("third_attempts", d.Retries.Third)}
	return r
}

func (d *Diagnosis) fewerProbes(t *Tally) Row {
	r := Row{Rule: FewerProbes, When: fmt.Sprintf("the breaker flaps: %d times or more open again out of its probes", flapLimit),
		Advice: "let fewer probes through while the breaker is HALF_OPEN"}
	if t.fields[fieldBreakerState] == 0 {
		r.Holds, r.Missing = NoData, "breaker_state"
		return r
	}
	r.Holds = answer(t.breakers.flaps() >= flapLimit)
	r.Evidence = []Evidence{countOf("opened", t.breakers.opened), countOf("failed_probe_rounds", t.breakers.failed), countOf("opened_again_soon", t.breakers.soon)}
	return r
}

func (d *Diagnosis) longerTimeout(t *Tally) Row {
	r := Row{Rule: LongerTimeout, When: "read time-outs of the client that the upstream has no record of, 1 % or more",
		Advice: "the read time-out is too short: raise it; what the client gives up still holds its place upstream"}
	switch {
	case t.fields[fieldStatus] == 0 && t.fields[fieldCode] == 0:
		r.Holds, r.Missing = NoData, "error_code"
		return r
	case t.readTimeouts > 0 && t.fields[fieldUpstream] == 0:
		r.Holds, r.Missing = NoData, "upstream_request_id"
	default:
		r.Holds = answer(d.Timeouts.WithoutRecord.Known() && d.Timeouts.WithoutRecord.compare(timeoutLimit) >= 0)
	}
	r.Evidence = []Evidence{shareOf("read_no_upstream", d.Timeouts.WithoutRecord)}
	if ms := d.Timeouts.MedianMS; ms != nil {
		r.Evidence = append(r.Evidence, Evidence{Figure: "median_elapsed_ms", Value: *ms})
	}
	return r
}

// uncovered says why no row speaks of this share of 429, or of what else fails.
func (d *Diagnosis) uncovered(misconfigured, third bool) string {
	switch {
	case d.few() && d.failing() && !misconfigured:
		return "429 under 1 %, but over 5 % of attempts fail otherwise: throttling is not what is the matter; see their statuses and time-outs"
	case d.some() && d.Retries.Largest > 2:
		return fmt.Sprintf("429 from 1 to 5 %% with up to %d attempts: the table covers them only where no request tries more than twice", d.Retries.Largest)
	case d.some() && d.Retries.Largest == 1:
		return "429 from 1 to 5 % without a single retry: the table covers them only where requests try twice"
	case d.many() && d.Retries.Amplification != nil && !d.eager() && third:
		return "" // the row about third attempts speaks of it
	case d.many() && d.Retries.Amplification != nil && !d.eager():
		return "429 over 5 % with an amplification of no more than 2: retries are not what makes them, and the table says nothing else"
	}
	return ""
}
