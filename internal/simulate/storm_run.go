package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// stormStart is the instant at which virtual time starts. Which one it is
// changes nothing.
var stormStart = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// Streams of the dice of a storm.
const (
	stormShort = iota
	stormLong
	stormJitter
)

// RunStorm lets a client loose on a storm. Storm, client and seed give the same
// outcome every time, and every client meets the same requests. done, if not
// nil, is asked now and then and ends the run early with its error.
func RunStorm(s *Storm, c StormClient, seed uint64, done func() error) (*StormOutcome, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	r := &stormRun{storm: s, client: c, upstream: newStormUpstream(s), out: &StormOutcome{Client: c.Name}}
	r.policy = c.gates()
	r.gates = throttle.NewGates(r.policy)
	r.dice.init(seed)
	r.arrivals()
	r.dice.at(stormJitter, 0)
	for n := 1; len(r.events) > 0; n++ {
		if n > maxStormEvents {
			return nil, fmt.Errorf("%w: client %s, more than %d events", ErrStormTooLarge, c.Name, maxStormEvents)
		}
		if done != nil && n%65536 == 0 {
			if err := done(); err != nil {
				return nil, err
			}
		}
		e := r.events.pop()
		r.now = e.at
		r.handle(e)
	}
	r.finish()
	return r.out, nil
}

// stormRun is one client in one storm.
type stormRun struct {
	storm    *Storm
	client   StormClient
	upstream stormUpstream
	policy   throttle.GatesPolicy
	gates    *throttle.Gates
	dice     dice
	requests []stormRequest
	queues   [throttle.Lanes][]int // requests that wait for a place
	events   stormEvents
	order    uint64
	now      time.Duration
	out      *StormOutcome
}

type stormRequest struct {
	at      time.Duration
	service time.Duration
	tokens  int64
	attempt int
	long    bool
	waiting bool // in its lane's queue
	since   int  // which wait in a queue this is
	pass    throttle.Pass
}

type stormKind uint8

const (
	stormTry     stormKind = iota // an attempt is due
	stormEnd                      // the client has the end of a call
	stormFree                     // the upstream is done with a call
	stormNoPlace                  // a wait in a queue is over
)

type stormEvent struct {
	at      time.Duration
	order   uint64 // of events at the same instant
	kind    stormKind
	request int
	since   int
	outcome throttle.Outcome
}

// stormEvents is a heap by time, then order. It is typed: storms have millions
// of events.
type stormEvents []stormEvent

func (h stormEvents) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

func (h *stormEvents) push(e stormEvent) {
	*h = append(*h, e)
	q := *h
	for i := len(q) - 1; i > 0 && q.less(i, (i-1)/2); i = (i - 1) / 2 {
		q[i], q[(i-1)/2] = q[(i-1)/2], q[i]
	}
}

func (h *stormEvents) pop() stormEvent {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	q = q[:last]
	for i := 0; ; {
		next := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.less(child, next) {
				next = child
			}
		}
		if next == i {
			break
		}
		q[i], q[next] = q[next], q[i]
		i = next
	}
	*h = q
	return first
}

// gates is the client's policy: without gates one lane without end, without
// breaker one that never opens.
func (c *StormClient) gates() throttle.GatesPolicy {
	p := c.Policy
	if !c.Gates {
		p.Short, p.SplitTokens = math.MaxInt, math.MaxInt64
	}
	if !c.Breaker {
		p.Breaker = throttle.BreakerPolicy{} // no failures come within a span of nothing
	}
	return p
}

// arrivals draws the requests, a second at a time.
func (r *stormRun) arrivals() {
	for second := range r.storm.Seconds {
		short, long := r.storm.Short.PerSec, r.storm.Long.PerSec
		for _, f := range r.storm.Faults {
			if second >= f.From && second < f.From+f.Seconds {
				short, long = short+f.Short, long+f.Long
			}
		}
		r.arrive(second, stormShort, short, &r.storm.Short)
		r.arrive(second, stormLong, long, &r.storm.Long)
	}
	slices.SortStableFunc(r.requests, func(a, b stormRequest) int { return cmp.Compare(a.at, b.at) })
	for i := range r.requests {
		r.at(r.requests[i].at, stormEvent{kind: stormTry, request: i})
	}
	r.out.Buckets = make([]StormBucket, (r.storm.Seconds+StormBucketSeconds-1)/StormBucketSeconds)
	for i := range r.out.Buckets {
		r.out.Buckets[i].Second = i * StormBucketSeconds
	}
}

func (r *stormRun) arrive(second, stream int, perSec float64, t *StormTraffic) {
	d := r.dice.at(stream, second)
	for range d.poisson(perSec) {
		r.requests = append(r.requests, stormRequest{
			at:      time.Duration(second)*time.Second + time.Duration(d.rng.Float64()*float64(time.Second)),
			service: time.Duration(float64(t.Service) * math.Exp(float64(t.Spread*d.rng.NormFloat64()))),
			tokens:  t.Tokens, long: stream == stormLong,
		})
	}
}

// at puts an event on the heap.
func (r *stormRun) at(when time.Duration, e stormEvent) {
	r.order++
	e.at, e.order = when, r.order
	r.events.push(e)
}

func (r *stormRun) clock() time.Time { return stormStart.Add(r.now) }

func (r *stormRun) handle(e stormEvent) {
	q := &r.requests[e.request]
	switch e.kind {
	case stormTry:
		if q.attempt++; q.attempt == 1 {
			r.lane(q).Requests++
			r.bucket(q.at).Arrived++
		}
		r.enter(e.request)
	case stormEnd:
		r.end(e.request, e.outcome)
	case stormFree:
		r.upstream.busy--
	case stormNoPlace:
		if q.waiting && q.since == e.since {
			r.leaveQueue(e.request)
			r.out.ByGate++
		}
	}
}

// enter asks the client's own gates first.
func (r *stormRun) enter(i int) {
	q := &r.requests[i]
	pass, refusal := r.gates.Enter(r.clock(), q.tokens)
	switch refusal {
	case throttle.Admitted:
		q.pass = pass
		r.send(i)
	case throttle.Full:
		q.waiting = true
		q.since++
		which := r.policy.Lane(q.tokens)
		r.queues[which] = append(r.queues[which], i)
		r.at(r.now+r.client.Queue, stormEvent{kind: stormNoPlace, request: i, since: q.since})
	case throttle.Broken: // fails at once: see [throttle.Gates.Enter]
		r.out.ByBreaker++
	}
}

func (r *stormRun) leaveQueue(i int) {
	q := &r.requests[i]
	q.waiting = false
	which := r.policy.Lane(q.tokens)
	if at := slices.Index(r.queues[which], i); at >= 0 {
		r.queues[which] = slices.Delete(r.queues[which], at, at+1)
	}
}

// send lets a call out.
func (r *stormRun) send(i int) {
	q := &r.requests[i]
	r.out.Attempts++
	r.out.Extra += int64(q.attempt - 1)
	b := r.bucket(r.now)
	b.Attempts++
	if r.gates.State(q.pass.Lane, r.clock()).Phase == release.Open {
		r.out.WhileOpen++
	}
	if !r.upstream.take(r.now) {
		r.out.RateLimited++
		b.RateLimited++
		r.at(r.now+r.upstream.Refusal, stormEvent{kind: stormEnd, request: i, outcome: r.upstream.refusal()})
		return
	}
	r.at(r.now+q.service, stormEvent{kind: stormFree, request: i})
	if r.client.Timeout > 0 && q.service > r.client.Timeout { // the upstream works on: a ghost
		r.at(r.now+r.client.Timeout, stormEvent{kind: stormEnd, request: i, outcome: throttle.Outcome{TimedOut: true}})
		return
	}
	r.at(r.now+q.service, stormEvent{kind: stormEnd, request: i, outcome: throttle.Outcome{Status: 200}})
}

// end is when the client has the end of a call.
func (r *stormRun) end(i int, o throttle.Outcome) {
	q := &r.requests[i]
	if o.TimedOut {
		r.out.Timeouts++
	}
	r.gates.Leave(r.clock(), q.pass, o)
	r.opened()
	r.admit(q.pass.Lane)
	if !o.Failed() {
		l := r.lane(q)
		l.Answered++
		l.took = append(l.took, r.now-q.at)
		r.bucket(q.at).Answered++
		return
	}
	if !r.client.Heeds {
		o.RetryAfterKnown = false
	}
	wait, again := r.client.Retry.Next(q.attempt, o, r.dice.rng.Float64())
	if !again {
		r.out.NoRetry++
		return
	}
	r.at(r.now+wait, stormEvent{kind: stormTry, request: i})
}

// admit lets in who has waited longest, as long as there are places.
func (r *stormRun) admit(which throttle.Lane) {
	for len(r.queues[which]) > 0 {
		if s := r.gates.State(which, r.clock()); s.InFlight >= s.Places {
			return
		}
		i := r.queues[which][0]
		r.leaveQueue(i)
		r.enter(i)
	}
}

func (r *stormRun) lane(q *stormRequest) *StormLane {
	if q.long {
		return &r.out.Long
	}
	return &r.out.Short
}

// bucket is the span of an instant; what comes after the last request belongs
// to the last span.
func (r *stormRun) bucket(at time.Duration) *StormBucket {
	n := int(at / (StormBucketSeconds * time.Second))
	return &r.out.Buckets[min(n, len(r.out.Buckets)-1)]
}

// opened notes how often a breaker opened, and when it first did: at the end of
// a call.
func (r *stormRun) opened() {
	n := int64(0)
	for l := range throttle.Lane(throttle.Lanes) {
		n += r.gates.State(l, r.clock()).Opened
	}
	if n > 0 && r.out.Opened == 0 {
		from, _, _ := r.storm.faultSpan()
		r.out.OpenedS = new((r.now - time.Duration(from)*time.Second).Seconds())
	}
	r.out.Opened = n
}

// finish works out what can be told only at the end.
func (r *stormRun) finish() {
	for _, l := range []*StormLane{&r.out.Short, &r.out.Long} {
		slices.Sort(l.took)
		if n := len(l.took); n > 0 {
			l.MedianMS = new(float64(l.took[(n-1)/2].Microseconds()) / 1000)
			l.P99MS = new(float64(l.took[rankOf99(int64(n))-1].Microseconds()) / 1000)
		}
	}
	r.out.RecoveredS = r.recovered()
}

// recovered looks back from the end for the first span that was not all right.
func (r *stormRun) recovered() *float64 {
	_, to, ok := r.storm.faultSpan()
	if !ok {
		return nil
	}
	from := -1
	for i, b := range slices.Backward(r.out.Buckets) {
		if b.Second < to || 100*b.Answered < 98*b.Arrived {
			break
		}
		from = r.out.Buckets[i].Second
	}
	if from < 0 {
		return nil
	}
	return new(float64(from - to))
}
