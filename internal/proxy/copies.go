package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/shadow"
)

// copies are requests that the canary gets without anybody waiting for its
// answers.
type copies struct {
	places chan struct{} // one for each that may be under way

	sent, dropped, unfit, failed, panics atomic.Int64
}

// offer sends a copy of a request that stable has answered, if it is one of
// those that are copied and there is a place. It does not wait.
func (p *Proxy) offer(x *exchange) {
	if !x.sampled(x.passed) || x.cancel || x.answer == nil || !x.answer.complete() || x.answer.status/100 != 2 {
		return
	}
	answer, readable := x.answer.text()
	if !readable || !x.read || x.shapeEr != nil {
		p.copies.unfit.Add(1) // nothing that could be compared
		return
	}
	stable, canary := p.versionsOf(&x.shape)
	if !p.judge.allows(x.number, versions{stable.Fingerprint(), canary.Fingerprint()}) {
		return
	}
	select {
	case p.copies.places <- struct{}{}:
	default:
		p.copies.dropped.Add(1)
		return
	}
	p.copies.sent.Add(1)
	p.background.Go(func() {
		defer func() {
			<-p.copies.places
			if r := recover(); r != nil {
				p.copies.panics.Add(1)
				p.o.Warn("a copy was given up: internal error: %v", r)
			}
		}()
		p.copy(x, answer, stable, canary)
	})
}

// versionsOf returns the versions that answer a request: as configured, and
// where that leaves something open, as the request asks for it.
func (p *Proxy) versionsOf(s *shape) (stable, canary shadow.Version) {
	fill := func(v shadow.Version, model string) shadow.Version {
		if v.Model = model; model == "" {
			v.Model = s.model
		}
		if s.temperature != "" {
			v.Temperature = s.temperature
		}
		if v.ToolsVersion == "" {
			v.ToolsVersion = s.tools
		}
		return v
	}
	return fill(p.stable.version.Parts, s.model), fill(p.canary.version.Parts, p.canary.version.ModelID)
}

// copy asks the canary and adds the pair.
func (p *Proxy) copy(x *exchange, stableText []byte, stable, canary shadow.Version) {
	ctx, cancel := context.WithTimeout(p.running, p.o.Limits.Copy)
	defer cancel()
	began := p.o.Now()
	text, status, code := p.askCopy(ctx, x)
	took := p.o.Now().Sub(began)
	if p.running.Err() != nil {
		return // the proxy ends; nothing is known of the canary
	}
	pair := shadow.Pair{Stable: shadow.ReadAnswer(stableText), Canary: shadow.Answer{Failed: true}}
	pair.Stable.LatencyMS, pair.Stable.Timed = millis(x.end.Sub(x.start)), true
	if code == "" && status/100 == 2 {
		pair.Canary = shadow.ReadAnswer(text)
	}
	pair.Canary.LatencyMS, pair.Canary.Timed = millis(took), true
	pair.Align(stable, canary, p.o.Policy.Changes)
	if pair.Canary.Failed {
		p.copies.failed.Add(1)
	}
	p.judge.add(pair)
	if p.pairs != nil {
		p.pairs.put(p.pairLine(x, &pair, sideOf(stable, x.answer.status, "", stableText), sideOf(canary, status, code, text)))
	}
}

// askCopy sends the copy and reads the answer.
func (p *Proxy) askCopy(ctx context.Context, x *exchange) (answer []byte, status int, code string) {
	text := x.shape.withModel(x.text, p.canary.version.ModelID)
	in := x.in.WithContext(ctx)
	in.Header = x.in.Header.Clone()
	withoutHops(in.Header)
	in.RequestURI, in.Body, in.TransferEncoding, in.ContentLength, in.Close = "", io.NopCloser(bytes.NewReader(text)), nil, int64(len(text)), false
	in.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	in.Trailer = nil
	r := p.shadowed.prepare(in, x)
	r.Header.Del("Accept-Encoding")
	r.Header.Del("Expect")
	r.Header.Set(copyHeader, "true")
	resp, err := p.shadowed.roundTrip(r, "")
	if err != nil {
		return nil, 0, errorCode(err)
	}
	defer resp.Body.Close()
	limit := 8 * p.o.Limits.Answer
	answer, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, resp.StatusCode, errorCode(err)
	case int64(len(answer)) > limit:
		return nil, resp.StatusCode, codeLong
	}
	answer, ok := unpack(answer, strings.ToLower(resp.Header.Get("Content-Encoding")), limit)
	if !ok {
		return nil, resp.StatusCode, codePacked
	}
	if resp.StatusCode/100 != 2 {
		return answer, resp.StatusCode, p.shadowed.keyless(codeIn(answer), r)
	}
	return answer, resp.StatusCode, ""
}

const (
	// copyHeader tells the canary's side that nobody waits for the answer.
	copyHeader = "X-Canaryctl-Copy"

	codeLong   = "answer_too_long"
	codePacked = "answer_packed" // in an encoding that was not asked for
)

// hops are headers of one connection (RFC 9110, 7.6.1).
var hops = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func withoutHops(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hops {
		h.Del(name)
	}
}

// pairLine is a pair as it is written, in the form that `canaryctl shadow decide`
// reads: what was compared and, where bodies are wanted, the request and the two
// answers.
type pairLine struct {
	TS        string          `json:"ts"`
	RequestID string          `json:"request_id"`
	Scene     string          `json:"scene,omitempty"`
	Stable    *sideLine       `json:"stable"`
	Canary    *sideLine       `json:"canary"`
	Request   json.RawMessage `json:"request,omitempty"`
}

// sideLine is one answer of a pair.
type sideLine struct {
	Fingerprint   string          `json:"fingerprint"`
	Model         string          `json:"model,omitempty"`
	PromptVersion string          `json:"prompt_version,omitempty"`
	ToolsVersion  string          `json:"tools_version,omitempty"`
	Temperature   string          `json:"temperature,omitempty"`
	Parsed        bool            `json:"parsed"`
	Tools         []string        `json:"tools"` // [] for none: absent is unknown
	Failed        bool            `json:"failed,omitempty"`
	Status        int             `json:"status,omitempty"`
	Error         string          `json:"error,omitempty"`
	LatencyMS     float64         `json:"latency_ms"`
	Body          json.RawMessage `json:"body,omitempty"`
}

func (p *Proxy) pairLine(x *exchange, pair *shadow.Pair, stable, canary sideLine) *pairLine {
	stable.of(&pair.Stable, pair.StableFingerprint)
	canary.of(&pair.Canary, pair.CanaryFingerprint)
	l := &pairLine{TS: stamp(x.start), RequestID: x.id, Scene: p.o.Scene, Stable: &stable, Canary: &canary}
	if p.o.Bodies {
		l.Request = raw(x.text)
	} else {
		stable.Body, canary.Body = nil, nil
	}
	return l
}

// shorter is the line without the texts, for where they make it longer than
// anybody reads: the verdict counts all the same.
func (l *pairLine) shorter() any {
	short, stable, canary := *l, *l.Stable, *l.Canary
	stable.Body, canary.Body = nil, nil
	short.Request, short.Stable, short.Canary = nil, &stable, &canary
	return &short
}

// of fills in what was seen of an answer.
func (s *sideLine) of(a *shadow.Answer, fingerprint string) {
	s.Fingerprint, s.Parsed, s.Tools, s.Failed, s.LatencyMS = fingerprint, a.Parsed, boundedAll(a.Tools), a.Failed, a.LatencyMS
}

// sideOf is an answer with what is known of its version and its call.
func sideOf(v shadow.Version, status int, code string, body []byte) sideLine {
	return sideLine{
		Model: v.Model, PromptVersion: v.PromptVersion, ToolsVersion: v.ToolsVersion, Temperature: v.Temperature, Status: status, Error: code, Body: raw(body),
	}
}

// raw is a body as a JSON value: itself where it is JSON, else as a text.
func raw(text []byte) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	if json.Valid(text) {
		return text
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		return nil // a string is always encoded
	}
	return quoted
}

// copiesState is how the copying goes, for the status.
type copiesState struct {
	Sample   float64 `json:"sample"` // as configured; see standings for what is done
	Sent     int64   `json:"sent"`
	InFlight int     `json:"in_flight"`
	Places   int     `json:"places"`
	Dropped  int64   `json:"dropped"` // no place was free
	Unfit    int64   `json:"unfit"`   // request or answer could not be read, or was longer than is kept
	Failed   int64   `json:"failed"`  // the canary gave no answer in time
	Panics   int64   `json:"internal_errors"`
	TimeMS   float64 `json:"timeout_ms"`
}

func (p *Proxy) copiesState() copiesState {
	c := &p.copies
	return copiesState{
		Sample: p.o.Sample.Float64(), Sent: c.sent.Load(), InFlight: len(c.places), Places: cap(c.places), Dropped: c.dropped.Load(),
		Unfit: c.unfit.Load(), Failed: c.failed.Load(), Panics: c.panics.Load(), TimeMS: float64(p.o.Limits.Copy / time.Millisecond),
	}
}
