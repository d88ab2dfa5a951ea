package proxy

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// record is one request in the native format of records. What is not known is
// left out.
type record struct {
	TS            string      `json:"ts"`      // when the answer ended
	Started       string      `json:"started"` // when the request came
	RequestID     string      `json:"request_id"`
	Arm           release.Arm `json:"arm"`
	Version       string      `json:"version,omitempty"`
	Scene         string      `json:"scene,omitempty"`
	UserID        string      `json:"user_id,omitempty"`
	Segment       string      `json:"segment,omitempty"`
	Model         string      `json:"model,omitempty"`
	PromptVersion string      `json:"prompt_version,omitempty"`
	Status        string      `json:"status"` // of HTTP; error: in a stream that began with 200; 499: the user went away
	LatencyMS     float64     `json:"latency_ms"`
	TTFTMS        *float64    `json:"ttft_ms,omitempty"`
	ITLMS         *float64    `json:"itl_ms,omitempty"`
	InputTokens   *int64      `json:"input_tokens,omitempty"`
	OutputTokens  *int64      `json:"output_tokens,omitempty"`
	CostUSD       *float64    `json:"cost_usd,omitempty"`
	Solved        *bool       `json:"solved,omitempty"`
	Violation     *bool       `json:"violation,omitempty"`
	Transfer      *bool       `json:"transfer,omitempty"`
	StreamAborted *bool       `json:"stream_aborted,omitempty"` // of streams
	Attempt       int         `json:"attempt"`
	RetryAfterMS  *float64    `json:"retry_after_ms,omitempty"`
	ToolCalls     string      `json:"tool_calls,omitempty"` // names, in order, with commas
	ErrorCode     string      `json:"error_code,omitempty"`
	Fallback      bool        `json:"fallback,omitempty"`        // the canary failed and stable answered the user
	FallbackTo    string      `json:"fallback_status,omitempty"` // the status of that, as status
	Why           string      `json:"why,omitempty"`             // what put it on its arm, where some weight is on the canary
}

// statusCancelled is what servers write for a client that went away before its
// answer was there. No client ever gets it.
const statusCancelled = 499

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// said is what the answer says of itself; nil where it cannot be read.
func (x *exchange) said() *trace.SSE {
	if x.answer == nil {
		return nil
	}
	return x.answer.read()
}

// record says how the exchange went. A request counts for the arm that it was
// sent to: where the canary failed and stable stood in, for the canary, with the
// canary's failure.
func (x *exchange) record(said *trace.SSE) *record {
	v := x.p.upstream(x.arm).version
	r := &record{
		TS: stamp(x.end), Started: stamp(x.start), RequestID: x.id, Arm: x.arm, Version: v.ID, Scene: x.p.o.Scene, UserID: bounded(x.userID()),
		Segment: bounded(x.segment), Model: x.shape.model, PromptVersion: v.Parts.PromptVersion, LatencyMS: millis(x.end.Sub(x.start)), Attempt: len(x.tries), Why: x.why,
	}
	if x.arm == release.Canary && v.ModelID != "" {
		r.Model = v.ModelID
	}
	r.status(x, said)
	if x.canary != nil {
		r.failed(x)
		return r
	}
	if n := len(x.tries); n > 0 {
		last := &x.tries[n-1]
		if r.ErrorCode == "" {
			r.ErrorCode = last.code
		}
		if last.asked {
			r.RetryAfterMS = new(millis(last.retryAfter))
		}
	}
	if a := x.answer; a != nil {
		r.stream(x, a)
		r.labels(a.header)
	}
	if said != nil {
		r.said(said)
	}
	return r
}

// failed is the record of a request whose canary gave no answer.
func (r *record) failed(x *exchange) {
	f := x.canary
	r.Fallback, r.ErrorCode, r.FallbackTo = true, f.code, r.Status
	r.Status = strconv.Itoa(f.status)
	if f.asked {
		r.RetryAfterMS = new(millis(f.retryAfter))
	}
}

// statusError is the status of a request that failed without one of HTTP, or
// after it.
const statusError = "error"

// status says whether it went well.
func (r *record) status(x *exchange, said *trace.SSE) {
	a := x.answer
	switch {
	case x.cancel:
		r.Status, r.ErrorCode = strconv.Itoa(statusCancelled), x.broken
	case a == nil && len(x.tries) > 0:
		r.Status = strconv.Itoa(statusOf(x.tries[len(x.tries)-1]))
	case a == nil:
		r.Status = statusError
	case said != nil && said.Err() != "" && a.status < 400:
		if r.Status, r.ErrorCode = statusError, said.Err(); !isCode(r.ErrorCode) {
			r.ErrorCode = statusError
		}
	case !a.complete() && !a.streamed: // half of a JSON document is none
		r.Status, r.ErrorCode = statusError, codeReset
	case a.status/100 == 2 && !a.streamed && !x.isCompletion():
		r.Status, r.ErrorCode = statusError, codeMalformed
	default:
		r.Status = strconv.Itoa(a.status)
	}
}

// isCompletion reports whether the answer, as far as it can be read, is what was
// asked for: judged as the answers of a pair are. Of other paths than chat
// completions no more is known than that they answer in JSON.
func (x *exchange) isCompletion() bool {
	text, ok := x.answer.text()
	switch {
	case !ok:
		return true // nobody knows
	case strings.HasSuffix(x.rest, chatPath):
		return !shadow.ReadAnswer(text).Failed
	}
	return json.Valid(text)
}

// stream fills in what only streams have.
func (r *record) stream(x *exchange, a *answer) {
	if !a.streamed || a.status >= 300 {
		return
	}
	aborted := !x.cancel && (!a.complete() || a.sse != nil && !a.sse.Done() && a.sse.Finish() == "" && a.sse.Err() == "")
	r.StreamAborted = &aborted
	if a.first.IsZero() {
		return
	}
	r.TTFTMS = new(millis(a.first.Sub(x.start)))
	if n := a.gaps(); n > 0 {
		r.ITLMS = new(millis(a.last.Sub(a.first) / time.Duration(n)))
	}
}

// gaps is between how many tokens the time from the first to the last was: by
// what the answer says of its tokens, else by its events. Reasoning that is
// counted and not streamed would make the gaps too many, so that events are
// taken where tokens are more than eight to an event.
func (a *answer) gaps() int64 {
	events := a.events - a.then
	if u, ok := a.sse.Usage(); ok && u.Output > 1 && u.Output-1 <= 8*events {
		return u.Output - 1
	}
	return events
}

// said fills in what the answer says of itself.
func (r *record) said(s *trace.SSE) {
	if u, ok := s.Usage(); ok {
		r.InputTokens, r.OutputTokens = &u.Input, &u.Output
	}
	r.ToolCalls = strings.Join(boundedAll(s.ToolNames()), ",")
}

// labels takes what an application says of its answer in headers.
func (r *record) labels(h http.Header) {
	r.Solved, r.Violation, r.Transfer = flag(h.Get("X-Solved")), flag(h.Get("X-Violation")), flag(h.Get("X-Transfer"))
	if usd, err := strconv.ParseFloat(h.Get("X-Cost-USD"), 64); err == nil && usd >= 0 && usd < 1e9 {
		r.CostUSD = &usd
	}
}

func flag(text string) *bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1":
		return new(true)
	case "false", "0":
		return new(false)
	}
	return nil
}

// attempt is one call to an upstream, as clients under 429 storms log them.
type attempt struct {
	at         time.Time
	number     int
	arm        release.Arm
	status     int
	code       string
	refused    bool // here, not by the upstream
	retryAfter time.Duration
	asked      bool // how long to wait is known
	phase      release.Phase
	inFlight   int
	tokens     int64
	elapsed    time.Duration
	upstreamID string
}

// attemptLine is an attempt in the published form of the log, which `canaryctl
// diagnose` reads. prompt_tokens is a guess: four bytes a token.
type attemptLine struct {
	TS           string        `json:"ts"`
	TraceID      string        `json:"trace_id"`   // of this request's attempts and no others'
	RequestID    string        `json:"request_id"` // as the client names it, which may be the same for several
	UpstreamID   string        `json:"upstream_request_id,omitempty"`
	Endpoint     string        `json:"endpoint"`
	Arm          release.Arm   `json:"arm"`
	Model        string        `json:"model,omitempty"`
	Attempt      int           `json:"attempt"`
	Status       int           `json:"status,omitempty"` // left out: there was no answer
	RetryAfterMS *float64      `json:"retry_after_ms,omitempty"`
	Breaker      string        `json:"breaker"` // which one: of each version on each lane there is one
	BreakerState release.Phase `json:"breaker_state"`
	InFlight     int           `json:"inflight"`
	PromptTokens int64         `json:"prompt_tokens"`
	Stream       bool          `json:"stream"`
	ElapsedMS    float64       `json:"elapsed_ms"` // to the head of the answer
	ErrorCode    string        `json:"error_code,omitempty"`
}

// trace is this exchange's own name.
func (x *exchange) attemptLine(a *attempt, trace string) *attemptLine {
	l := &attemptLine{
		TS: stamp(a.at), TraceID: trace, RequestID: x.id, UpstreamID: a.upstreamID, Endpoint: strings.ReplaceAll(strings.Trim(x.rest, "/"), "/", "."), Arm: a.arm,
		Model: x.shape.model, Attempt: a.number, Status: a.status, Breaker: string(a.arm) + "/" + x.p.o.Gates.Lane(a.tokens).String(), BreakerState: a.phase, InFlight: a.inFlight, PromptTokens: a.tokens,
		Stream: x.shape.stream, ElapsedMS: millis(a.elapsed), ErrorCode: a.code,
	}
	if a.asked {
		l.RetryAfterMS = new(millis(a.retryAfter))
	}
	if a.refused { // no upstream has said anything
		l.Status = 0
		if a.code == codeOpen { // half open with its trials under way lets no call out either
			l.BreakerState = release.Open
		}
	}
	if id := x.p.upstream(a.arm).version.ModelID; a.arm == release.Canary && id != "" {
		l.Model = id
	}
	return l
}
