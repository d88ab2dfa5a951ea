package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// pairReader reads JSON lines of pairs and counts those that cannot be read.
type pairReader struct {
	app    *App
	maxBad release.Ratio

	rows, bad int64
	gone      int64 // pairs of which a client did not wait for an answer
	badLines  []trace.BadLine
	strange   string // what the file is instead of pairs, by its first lines
}

// shownBadLines is how many bad lines are shown.
const shownBadLines = 10

// defaultMaxBad is the share of bad lines up to which input is used.
var defaultMaxBad = release.NewRatio(1, 1000)

// read calls each for every pair of the files. An error of each makes the line
// a bad one.
func (r *pairReader) read(ctx context.Context, files []string, each func(p *pair) error) error {
	if slices.Contains(files, "") {
		return usage(errNameless, "name files of pairs, or - for standard input")
	}
	if err := trace.SameFile(files); err != nil {
		return inputError("", err)
	}
	meter := r.app.meter(files)
	defer meter.line.done()
	for _, file := range files {
		err := trace.EachLine(ctx, file, r.app.Stdin, meter.add, func(line trace.Line) error { return r.line(file, line, each) })
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if stop, ok := errors.AsType[*stopError](err); ok {
			return stop.err
		}
		if err != nil {
			return inputError("", err)
		}
	}
	return nil
}

// errNameless is about a file whose name is empty, as an unset variable makes it.
var errNameless = errors.New("the name of a file is empty")

// line reads one line. The error is one that ends the reading.
func (r *pairReader) line(file string, line trace.Line, each func(p *pair) error) error {
	r.rows++
	p, err := readPair(line)
	if err == nil {
		p.file, p.line = file, line.Number
		if p.stable.gone || p.canary.gone {
			r.gone++
			return nil
		}
		err = each(p)
	}
	if stop, ok := errors.AsType[*stopError](err); ok {
		return stop
	}
	if err != nil {
		r.refuse(file, line.Number, err)
		if r.strange == "" {
			r.strange = notLines(line.Text)
		}
	}
	return nil
}

// notLines names what a file is that is no lines of JSON, by one of its lines.
func notLines(text []byte) string {
	switch {
	case bytes.IndexByte(text, 0) >= 0:
		return "it looks like UTF-16: convert it to UTF-8"
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")):
		return "it looks like one JSON array: write an object a line, as jq -c '.[]' does"
	}
	return ""
}

// stopError ends the reading: what is wrong is not the line.
type stopError struct{ err error }

// Error implements error.
func (e *stopError) Error() string { return e.err.Error() }

func (r *pairReader) refuse(file string, line int64, err error) {
	r.bad++
	if len(r.badLines) < shownBadLines {
		r.badLines = append(r.badLines, trace.BadLine{File: file, Line: line, Message: err.Error()})
	}
}

// finish says which lines could not be read, and refuses the input if they are
// too many or all of it.
func (r *pairReader) finish() error {
	r.app.sayBad(r.bad, r.rows, r.badLines)
	limit := r.maxBad
	if limit.IsZero() {
		limit = defaultMaxBad
	}
	const form = "one JSON object a line: {\"request_id\": ..., \"stable\": ..., \"canary\": ...}"
	switch {
	case r.rows == 0:
		return usage(errors.New("no pairs in the input"), form)
	case r.rows == r.bad:
		return usage(errors.New("no line of the input can be read"), cmp.Or(r.strange, form))
	case limit.Compare(r.bad, r.rows) > 0:
		return inputError("", &trace.BadLinesError{Bad: r.bad, Rows: r.rows, Limit: sharePercent(limit)})
	}
	if r.gone > 0 {
		r.app.warn("%d of %d pairs are left out: a client did not wait for an answer (status 499), which says nothing of either version", r.gone, r.rows-r.bad)
	}
	if r.gone == r.rows-r.bad {
		return usage(errors.New("no pair of the input has two answers"), "")
	}
	return nil
}

// pairs is how many pairs were read and looked at.
func (r *pairReader) pairs() int64 { return r.rows - r.bad - r.gone }

// sharePercent writes a share in percent.
func sharePercent(r release.Ratio) string { return shadow.Percent(r) + " %" }

// pair is one line: what stable and the canary answered to a request.
type pair struct {
	file string
	line int64

	id             string // request_id, or id
	contract       string
	version        shadow.Version // of both sides
	fingerprint    string         // of both sides
	gold           json.RawMessage
	stable, canary side
	record         recordFields
}

// recordFields are written into records as they stand.
type recordFields struct{ ts, scene, user, conversation json.RawMessage }

// side is one of the two answers.
type side struct {
	body        json.RawMessage // as logged: a value, a string, a completion; null if there was none
	version     shadow.Version  // its own parts, over those of the pair
	fingerprint string
	latencyMS   float64
	timed       bool
	failed      bool
	gone        bool           // the client did not wait for the end
	judged      *shadow.Answer // where only the verdict was logged
}

var errNotObject = errors.New("not a JSON object")

// readPair reads a line. Its errors quote nothing of the answers.
func readPair(line trace.Line) (*pair, error) {
	if line.Err != nil {
		return nil, line.Err
	}
	m, err := membersOf(line.Text)
	if err != nil {
		return nil, err
	}
	p := &pair{gold: m["gold"], record: recordFields{m["ts"], m["scene"], m["user_id"], m["conversation_id"]}}
	for _, name := range [...]string{"stable", "canary"} {
		if _, there := m[name]; !there {
			return nil, fmt.Errorf("the pair has no %q; write null if there was no answer", name)
		}
	}
	for _, name := range [...]string{"request_id", "id", "ts", "scene", "user_id", "conversation_id", "contract"} {
		if _, err := scalarText(m, name); err != nil {
			return nil, fmt.Errorf("%s is neither a string nor a number", name)
		}
	}
	if p.id, err = scalarText(m, "request_id", "id"); err != nil {
		return nil, err
	}
	if p.contract, err = scalarText(m, "contract"); err != nil {
		return nil, err
	}
	if p.version, p.fingerprint, err = readVersion(m); err != nil {
		return nil, err
	}
	if p.stable, err = readSide(m["stable"]); err != nil {
		return nil, fmt.Errorf("stable: %w", err)
	}
	if p.canary, err = readSide(m["canary"]); err != nil {
		return nil, fmt.Errorf("canary: %w", err)
	}
	return p, nil
}

var errTwice = errors.New("a key stands twice in the object")

// membersOf returns the members of a JSON object. A key that stands twice is
// refused: readers of JSON take different ones. The error is [errTwice] or
// [errNotObject], or says that it is no JSON.
func membersOf(text []byte) (map[string]json.RawMessage, error) {
	text = bytes.TrimSpace(text)
	if !json.Valid(text) {
		return nil, errors.New("not JSON")
	}
	if text[0] != '{' {
		return nil, errNotObject
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	m := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, errNotObject
		}
		if _, twice := m[key]; twice {
			return nil, errTwice
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errors.New("not JSON")
		}
		m[key] = value
	}
	return m, nil
}

// scalarText returns the first of some members that is there, as text.
func scalarText(m map[string]json.RawMessage, names ...string) (string, error) {
	for _, name := range names {
		raw := bytes.TrimSpace(m[name])
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var s string
		if raw[0] == '"' {
			return s, json.Unmarshal(raw, &s)
		}
		if raw[0] == '{' || raw[0] == '[' || raw[0] == 't' || raw[0] == 'f' {
			return "", errNotObject
		}
		return string(raw), nil
	}
	return "", nil
}

// maxVersion bounds the parts of a version and its fingerprint, which are kept.
const maxVersion = 1024

func readVersion(m map[string]json.RawMessage) (v shadow.Version, fingerprint string, err error) {
	for _, part := range []struct {
		name string
		into *string
	}{
		{"model", &v.Model}, {"prompt_version", &v.PromptVersion}, {"tools_version", &v.ToolsVersion},
		{"temperature", &v.Temperature}, {"fingerprint", &fingerprint},
	} {
		if *part.into, err = scalarText(m, part.name); err != nil {
			return v, "", fmt.Errorf("%s is neither a string nor a number", part.name)
		}
		if len(*part.into) > maxVersion {
			return v, "", fmt.Errorf("%s is longer than %d bytes", part.name, maxVersion)
		}
	}
	return v, fingerprint, nil
}

// envelopeKeys are the keys of a side that says more than its body. One with
// any other key is the answer itself, unless it has both body and latency_ms.
var envelopeKeys = []string{
	"body", "latency_ms", "status", "error", "timed_out", "failed", "parsed", "tools",
	"model", "prompt_version", "tools_version", "temperature", "fingerprint",
	"ts", "id", "request_id", "upstream_request_id", "ttft_ms", "itl_ms", "cost_usd",
	"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "stream", "stream_aborted", "attempt",
}

// readSide reads an answer: the body alone, or an object with the body, or with
// what was seen of it, and with what is known of the call.
func readSide(raw json.RawMessage) (side, error) {
	m, err := membersOf(raw)
	if err != nil && !errors.Is(err, errTwice) {
		return side{body: raw}, nil
	}
	if twice := err; twice != nil {
		var last map[string]json.RawMessage
		if json.Unmarshal(raw, &last) == nil && isEnvelope(last) {
			return side{}, twice
		}
		return side{body: raw}, nil // the answer itself, which is judged for it
	}
	if !isEnvelope(m) {
		s := side{body: raw}
		if _, completion := m["choices"]; completion {
			s.latencyMS, s.timed, err = milliseconds(m["latency_ms"])
		}
		return s, err
	}
	s := side{body: m["body"]}
	if s.version, s.fingerprint, err = readVersion(m); err != nil {
		return s, err
	}
	if s.latencyMS, s.timed, err = milliseconds(m["latency_ms"]); err != nil {
		return s, err
	}
	if s.failed, s.gone, err = callFailed(m); err != nil {
		return s, err
	}
	if _, seen := m["parsed"]; seen {
		a := shadow.Answer{}
		if json.Unmarshal(m["parsed"], &a.Parsed) != nil {
			return s, errors.New("parsed is neither true nor false")
		}
		if tools := m["tools"]; len(tools) > 0 && json.Unmarshal(tools, &a.Tools) != nil {
			return s, errors.New("tools is no list of names")
		}
		a.ToolsUnknown = a.Parsed && a.Tools == nil // absent or null is not the same as []
		s.judged = &a
	}
	if _, there := m["body"]; !there && s.judged == nil && !s.failed && !s.gone {
		return s, errors.New("it says neither what was answered (body, parsed) nor that the call failed")
	}
	return s, nil
}

// isEnvelope knows the object around an answer by its keys.
func isEnvelope(m map[string]json.RawMessage) bool {
	_, body := m["body"]
	if _, timed := m["latency_ms"]; body && timed {
		return true
	}
	for key := range m {
		if !slices.Contains(envelopeKeys, key) {
			return false
		}
	}
	for _, key := range [...]string{"body", "parsed", "failed", "timed_out", "latency_ms"} {
		if _, there := m[key]; there {
			return true
		}
	}
	return false
}

func milliseconds(raw json.RawMessage) (ms float64, known bool, err error) {
	text := string(bytes.TrimSpace(raw))
	if text == "" || text == "null" {
		return 0, false, nil
	}
	ms, err = strconv.ParseFloat(text, 64)
	if err != nil || !(ms >= 0) || ms > 1e12 {
		return 0, false, errors.New("latency_ms is no number of milliseconds from 0 to 1e12")
	}
	return ms, true, nil
}

// callFailed reads whether there was an answer at all: failed and timed_out say
// so, an error does, and a status that is not ok, by the table of records. gone
// says that the client did not wait for it.
func callFailed(m map[string]json.RawMessage) (failed, gone bool, err error) {
	for _, name := range [...]string{"failed", "timed_out"} {
		var yes bool
		if raw := m[name]; len(raw) > 0 && json.Unmarshal(raw, &yes) != nil {
			return false, false, fmt.Errorf("%s is neither true nor false", name)
		}
		failed = failed || yes
	}
	if raw := bytes.TrimSpace(m["error"]); len(raw) > 0 && string(raw) != "null" && string(raw) != "false" && string(raw) != `""` {
		failed = true
	}
	status, err := scalarText(m, "status")
	if err != nil {
		return false, false, errors.New("status is neither a string nor a number")
	}
	end := trace.ReadStatus(status)
	return failed || end == trace.CallFailed, end == trace.CallGone && !failed, nil
}

// answer returns what decide looks at.
func (s *side) answer() shadow.Answer {
	a := shadow.Answer{Failed: true}
	switch {
	case s.judged != nil:
		a = *s.judged
		a.Failed = s.failed
	case !s.failed:
		a = readBody(s.body)
	}
	a.LatencyMS, a.Timed = s.latencyMS, s.timed
	return a
}

// readBody reads a body that was logged as JSON, or as a string that holds it
// or the events of a stream.
func readBody(raw json.RawMessage) shadow.Answer {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return shadow.ReadAnswer([]byte(text))
	}
	return shadow.ReadAnswer(raw)
}

// model is the one that a completion says it is from.
func (s *side) model() string {
	var of struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(s.body, &of) != nil {
		return ""
	}
	return of.Model
}

// structured returns the answer that compare judges; a call that failed has
// none.
func (s *side) structured() (json.RawMessage, error) {
	switch {
	case s.failed:
		return nil, nil
	case s.body == nil:
		return nil, errors.New("the pair holds what was seen of the answers and not the answers: decide reads it")
	}
	return s.body, nil
}
