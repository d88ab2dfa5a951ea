package diagnose

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// Share is a count out of a whole. Of 0 it is no share at all.
type Share struct{ Count, Of int64 }

// Known reports whether there is anything to take a share of.
func (s Share) Known() bool { return s.Of > 0 }

// Float64 returns the share; NaN never, 0 where it is not known.
func (s Share) Float64() float64 {
	if s.Of == 0 {
		return 0
	}
	return float64(s.Count) / float64(s.Of)
}

// compare is -1, 0 or 1 as the share is below, at or above r, exactly.
func (s Share) compare(r release.Ratio) int { return r.Compare(s.Count, s.Of) }

// MarshalJSON implements [json.Marshaler]: count, of and share, which is null
// of nothing.
func (s Share) MarshalJSON() ([]byte, error) {
	var share *float64
	if s.Known() {
		share = new(s.Float64())
	}
	return json.Marshal(struct {
		Count int64    `json:"count"`
		Of    int64    `json:"of"`
		Share *float64 `json:"share"`
	}{s.Count, s.Of, share})
}

// Diagnosis is what a log says.
type Diagnosis struct {
	Lines    int64      `json:"lines"`    // read
	Unknown  int64      `json:"unknown"`  // of them, lines that do not say how the attempt ended
	Attempts int64      `json:"attempts"` // the others
	First    *time.Time `json:"first"`    // nil: no line has a time
	Last     *time.Time `json:"last"`
	// Requests are told apart by trace_id, else by first attempts; nil: neither
	// is logged.
	Requests *int64 `json:"requests"`
	// Answered are the requests of which an attempt went well; known only with
	// trace_id.
	Answered *int64 `json:"requests_answered"`

	RateLimited Share    `json:"rate_limited"`      // status 429, of attempts
	Sent        Share    `json:"rate_limited_sent"` // the same without what our own breaker refused
	Failing     Share    `json:"failed_otherwise"`  // neither answered nor 429, of attempts
	Quota       int64    `json:"insufficient_quota"`
	Refusals    Refusals `json:"refusals"`
	Retries     Retries  `json:"retries"`
	InFlight    []Bucket `json:"inflight"`
	// Steady is up to how many calls in flight 429 stay at or under 2 %; nil:
	// they never pass it, they always do, or inflight is not logged.
	Steady   *int64         `json:"inflight_steady"`
	Short    Lane           `json:"short"`
	Long     Lane           `json:"long"`
	Unsized  int64          `json:"unsized"` // attempts without prompt_tokens
	Timeouts Timeouts       `json:"timeouts"`
	Breaker  BreakerCourse  `json:"breaker"`
	Statuses []StatusCount  `json:"statuses"`
	Fields   []FieldPresent `json:"fields"`
	Table    []Row          `json:"table"`
	// Uncovered says why no row of the table speaks of this share of 429; "" if
	// one does, or if the share is unknown.
	Uncovered string   `json:"uncovered"`
	Notes     []string `json:"notes"`
}

// Refusals says where refusals come from.
type Refusals struct {
	Upstream   int64 `json:"upstream"`    // 429 with an upstream id, or with the breaker not OPEN
	OwnBreaker int64 `json:"own_breaker"` // breaker OPEN and no upstream id, whatever the status
	Unknown    int64 `json:"unknown"`     // 429 with neither
}

// Retries says how the client retries.
type Retries struct {
	// Extra is the sum of (attempt - 1) over attempts whose number is known,
	// and RateLimited the 429 among them. Amplification is the one over the
	// other, as published; nil without 429.
	Extra         int64    `json:"extra_attempts"`
	RateLimited   int64    `json:"rate_limited"`
	Amplification *float64 `json:"amplification"`
	// PerRateLimit is retries (attempts above the first) for each 429; nil without 429.
	PerRateLimit *float64 `json:"retries_per_429"`
	Largest      int64    `json:"largest_attempt"` // 0: unknown
	First        int64    `json:"first_attempts"`
	Second       int64    `json:"second_attempts"`
	Third        Share    `json:"third_attempts"` // of first attempts
	Later        int64    `json:"later_attempts"`
	TooSoon      Share    `json:"before_retry_after"` // retries that came before Retry-After was over, of those told
	Vain         Share    `json:"in_vain"`            // retries of what no retry mends, of retries
}

// Bucket is the attempts with so many calls in flight.
type Bucket struct {
	From        int64 `json:"from"`
	To          int64 `json:"to"`
	RateLimited Share `json:"rate_limited"`
}

// Lane is the attempts with short or long prompts.
type Lane struct {
	RateLimited Share `json:"rate_limited"`
	Timeouts    int64 `json:"timeouts"`
}

// Timeouts are time-outs of the client.
type Timeouts struct {
	Read          Share    `json:"read"`             // of attempts that went out
	Other         int64    `json:"other"`            // to connect, to write
	Pool          int64    `json:"pool"`             // to get a place; these never went out
	WithoutRecord Share    `json:"read_no_upstream"` // read time-outs without an upstream id, of attempts that went out
	MedianMS      *float64 `json:"median_elapsed_ms"`
}

// BreakerCourse is what the client's breakers did.
type BreakerCourse struct {
	Closed   int64 `json:"closed_lines"`
	Open     int64 `json:"open_lines"`
	HalfOpen int64 `json:"half_open_lines"`
	Opened   int64 `json:"opened"`
	Failed   int64 `json:"failed_probe_rounds"` // HALF_OPEN back to OPEN
	Soon     int64 `json:"opened_again_soon"`   // of Opened, within a minute of a recovery
}

// StatusCount is how many attempts ended with a status; 0 is none.
type StatusCount struct {
	Status int   `json:"status"`
	Count  int64 `json:"count"`
}

// FieldPresent is on how many lines a field stands.
type FieldPresent struct {
	Field string `json:"field"`
	Lines int64  `json:"lines"`
}

// Diagnosis returns what the log says so far.
func (t *Tally) Diagnosis() *Diagnosis {
	sent := t.attempts - t.byOwn - t.poolTimeouts
	d := &Diagnosis{
		Lines: t.lines, Unknown: t.unknown, Attempts: t.attempts,
		RateLimited: Share{t.limited, t.attempts}, Sent: Share{t.limited - t.limitedOwn, sent}, Quota: t.quota,
		Failing:  Share{t.attempts - t.answered - t.limited, t.attempts},
		Refusals: Refusals{Upstream: t.byUpstream, OwnBreaker: t.byOwn, Unknown: t.byWho},
		Retries:  t.retries(), Short: t.lane(throttle.Short), Long: t.lane(throttle.Long), Unsized: t.unsized,
		Timeouts: Timeouts{Read: Share{t.readTimeouts, sent}, Other: t.otherTimeouts, Pool: t.poolTimeouts, WithoutRecord: Share{t.withoutRecord, sent}, MedianMS: t.median()},
		Breaker: BreakerCourse{
			Closed: t.breakers.lines[release.Closed], Open: t.breakers.lines[release.Open], HalfOpen: t.breakers.lines[release.HalfOpen],
			Opened: t.breakers.opened, Failed: t.breakers.failed, Soon: t.breakers.soon,
		},
		Statuses: []StatusCount{}, Fields: []FieldPresent{}, Notes: []string{},
	}
	if !t.first.IsZero() {
		d.First, d.Last = new(t.first), new(t.last)
	}
	switch {
	case t.traces.seen > 0:
		d.Requests, d.Answered = new(t.traces.seen), new(t.traces.answered)
	case t.numbered > 0:
		d.Requests = new(t.numbers[0])
	}
	for status, n := range t.statuses {
		if n > 0 {
			d.Statuses = append(d.Statuses, StatusCount{status, n})
		}
	}
	for f := range numFields {
		d.Fields = append(d.Fields, FieldPresent{fields[f].name, t.fields[f]})
	}
	d.InFlight, d.Steady = t.buckets()
	d.judge(t)
	t.notes(d)
	return d
}

func (t *Tally) retries() Retries {
	r := Retries{
		Extra: t.extra, RateLimited: t.numberedLimited, Largest: t.largest,
		First: t.numbers[0], Second: t.numbers[1], Third: Share{t.numbers[2], t.numbers[0]}, Later: t.numbers[3],
		TooSoon: Share{t.tooSoon, t.told}, Vain: Share{t.vain, t.again},
	}
	if t.numberedLimited > 0 {
		r.Amplification = new(float64(t.extra) / float64(t.numberedLimited))
		r.PerRateLimit = new(float64(t.numbered-t.numbers[0]) / float64(t.numberedLimited))
	}
	return r
}

func (t *Tally) lane(which throttle.Lane) Lane {
	l := &t.lanes[which]
	return Lane{RateLimited: Share{l.limited, l.attempts}, Timeouts: l.timeouts}
}

// median returns how long half of the read time-outs without a record took at
// most, to a tenth of a second.
func (t *Tally) median() *float64 {
	seen := int64(0)
	for i, n := range t.waited {
		if seen += n; n > 0 && 2*seen >= t.waitedKnown {
			return new(float64(i) * 100)
		}
	}
	return nil
}

// Notch is a step of concurrency: places are found by raising them by so many
// until 429 pass 2 %, then one step back.
const Notch = 8

// enough is how many attempts a bucket needs before its share says something.
const enough = 50

const maxBuckets = 12

// buckets counts attempts by calls in flight, in at most maxBuckets buckets of
// whole notches.
func (t *Tally) buckets() (out []Bucket, steady *int64) {
	top := int64(-1)
	for n := range t.inFlight {
		if t.inFlight[n][0] > 0 {
			top = int64(n)
		}
	}
	width := int64(Notch)
	for (top+width-1)/width > maxBuckets {
		width += Notch
	}
	out = []Bucket{}
	for from := int64(0); from <= top; {
		b := Bucket{From: from, To: (from+width-1)/width*width + width*one(from == 0)}
		for n := b.From; n <= min(b.To, maxInFlight); n++ {
			b.RateLimited.Of += t.inFlight[n][0]
			b.RateLimited.Count += t.inFlight[n][1]
		}
		if b.RateLimited.Of > 0 {
			out = append(out, b)
		}
		if steady == nil && b.From > 0 && b.RateLimited.Of >= enough && b.RateLimited.compare(steadyLimit) > 0 && !passed(out[:len(out)-1]) {
			steady = new(b.From - 1)
		}
		from = b.To + 1
	}
	return out, steady
}

// passed reports whether one of the buckets is past the steady limit.
func passed(buckets []Bucket) bool {
	for _, b := range buckets {
		if b.RateLimited.Of >= enough && b.RateLimited.compare(steadyLimit) > 0 {
			return true
		}
	}
	return false
}

// notes says what the log leaves open.
func (t *Tally) notes(d *Diagnosis) {
	say := func(format string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, args...)) }
	if t.unknown > 0 {
		say("%d of %d lines say neither status, error_code nor an OPEN breaker: how they ended is unknown, and they are in no share", t.unknown, t.lines)
	}
	if t.fields[fieldBreakerState] == 0 && t.limited > 0 {
		say("no line has breaker_state: without it nobody can tell who refused, unless an upstream_request_id does")
	}
	if t.fields[fieldUpstream] == 0 && t.lines > 0 {
		say("no line has upstream_request_id: whether the upstream has a record of a call is unknown")
	}
	if t.quota > 0 {
		say("%d of the 429 are insufficient_quota: the account has no credit, and neither retries nor less concurrency mend that", t.quota)
	}
	if missing := t.attempts - t.numbered; missing > 0 && t.numbered > 0 {
		say("%d attempts have neither a number nor a trace_id and are left out of the figures about retries", missing)
	}
	if t.fields[fieldAttempt] == 0 && t.numbered > 0 {
		say("no line has attempt: attempts are numbered by the lines of their trace_id")
	}
	if t.traces.gone > 0 {
		say("the log has more requests than are kept at once: attempts of one request that lie more than %d requests apart count as two", maxTraces)
	}
	if t.breakers.mixed > 0 {
		say("%d lines are CLOSED straight after OPEN: calls from before the trip, or several breakers in one log; tell those apart with --map breaker=KEY", t.breakers.mixed)
	}
	if t.breakers.unread > 0 {
		say("there are more than %d breakers; %d lines of the others are not followed", maxBreakers, t.breakers.unread)
	}
}
