package configapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tokenHeader carries the fencing token of the lock under which a client
// writes: a number that grows with every holder.
const tokenHeader = "Canaryctl-Token"

// summary is a service in the list.
type summary struct {
	Name     string    `json:"name"`
	ETag     string    `json:"etag"`
	Bytes    int       `json:"bytes"`
	Modified time.Time `json:"modified"`
	Canary   *float64  `json:"canary_weight"` // null: the document has none
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) error {
	answer := struct {
		Schema   int       `json:"schema"`
		Services []summary `json:"services"`
	}{Schema: 1, Services: []summary{}}
	all := s.store.snapshot()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		doc := all[name]
		one := summary{Name: name, ETag: doc.etag, Bytes: len(doc.body), Modified: doc.Modified}
		if !math.IsNaN(doc.canary) {
			one.Canary = &doc.canary
		}
		answer.Services = append(answer.Services, one)
	}
	w.Header().Set("Cache-Control", "no-store")
	return sendJSON(w, http.StatusOK, answer)
}

func sendJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	send(w, status, "application/json", body)
	return nil
}

func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	when, err := readPreconditions(r.Header)
	if err != nil {
		return err
	}
	doc := s.store.get(name)
	if doc == nil {
		return notFound.because(fmt.Sprintf("there is no service %s", name))
	}
	if when.match.given() && !when.match.matchesStrong(doc.etag) {
		return failed(doc, name+" has another ETag than If-Match says")
	}
	doc.describe(w.Header())
	if when.noneMatch.matchesWeak(doc.etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	send(w, http.StatusOK, "application/json", doc.body)
	return nil
}

// describe sets the headers that go with a document. no-cache: whoever keeps a
// copy asks before using it.
func (d *document) describe(h http.Header) {
	h.Set("ETag", d.etag)
	h.Set("Cache-Control", "no-cache")
	if d.Token > 0 {
		h.Set(tokenHeader, strconv.FormatUint(d.Token, 10))
	}
}

func nameOf(r *http.Request) (string, error) {
	name := r.PathValue("name")
	if !serviceName.MatchString(name) {
		return "", invalidName.because("a service's name has 1 to 63 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit")
	}
	return name, nil
}

// putRequest is a PUT whose form is right.
type putRequest struct {
	name   string
	when   preconditions
	key    string // "": none
	token  uint64 // 0: none
	body   []byte
	etag   string
	canary float64
}

// readPut reads and checks all that can be checked without looking at what is
// there.
func readPut(w http.ResponseWriter, r *http.Request) (p putRequest, err error) {
	if p.name, err = nameOf(r); err != nil {
		return p, err
	}
	if err := checkMedia(r.Header); err != nil {
		return p, err
	}
	if p.when, err = readPreconditions(r.Header); err != nil {
		return p, err
	}
	if p.key, err = readKey(r.Header); err != nil {
		return p, err
	}
	if p.token, err = readToken(r.Header); err != nil {
		return p, err
	}
	if p.body, err = readBody(w, r); err != nil {
		return p, err
	}
	p.etag = etagOf(p.body)
	p.canary, err = inspect(p.body)
	return p, err
}

func checkMedia(h http.Header) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return unsupportedMedia.because("send the document without Content-Encoding")
	}
	sent := h.Get("Content-Type")
	if sent == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(sent)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return unsupportedMedia.because("send Content-Type: application/json")
	}
	return nil
}

// readKey reads the idempotency key; it means what its bytes are.
func readKey(h http.Header) (string, error) {
	lines := h.Values("Idempotency-Key")
	if len(lines) == 0 {
		return "", nil
	}
	key := lines[0]
	if len(lines) > 1 || key == "" || len(key) > 255 {
		return "", invalidHeader.because("Idempotency-Key: send one, of 1 to 255 characters")
	}
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return "", invalidHeader.because("Idempotency-Key: only printable ASCII")
		}
	}
	return key, nil
}

func readToken(h http.Header) (uint64, error) {
	lines := h.Values(tokenHeader)
	if len(lines) == 0 {
		return 0, nil
	}
	token, err := strconv.ParseUint(lines[0], 10, 64)
	if err != nil || len(lines) > 1 {
		return 0, invalidHeader.because(tokenHeader + ": send one whole number, 0 or above")
	}
	return token, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge.because(fmt.Sprintf("a document has at most %d bytes", MaxBody))
	}
	if err != nil {
		return nil, invalidJSON.because("the body broke off")
	}
	return body, nil
}

// receipt is the body of the answer to a PUT.
type receipt struct {
	Schema  int    `json:"schema"`
	Name    string `json:"name"`
	ETag    string `json:"etag"`
	Created bool   `json:"created"`
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	p, err := readPut(w, r)
	if err != nil {
		return err
	}
	done, err := s.replace(p)
	if err != nil {
		return err
	}
	h := w.Header()
	(&document{etag: done.given.Body, note: note{Token: done.token}}).describe(h)
	if done.replayed {
		h.Set("Idempotency-Replayed", "true")
	}
	created := done.given.Status == http.StatusCreated
	if created {
		h.Set("Location", "/v1/services/"+p.name)
	}
	return sendJSON(w, done.given.Status, receipt{Schema: 1, Name: p.name, ETag: done.given.Body, Created: created})
}

// outcome is what a PUT comes to.
type outcome struct {
	given    answer
	replayed bool      // given is that of an earlier request with the same key
	next     *document // to be stored; nil: nothing changes
	token    uint64    // the highest seen, the request's included
}

// replace carries out a PUT, one at a time. A token that is higher than all
// before is kept even if the document is not replaced: its sender holds the
// lock now, and an older holder must be refused from here on.
func (s *Server) replace(p putRequest) (outcome, error) {
	s.putting.Lock()
	defer s.putting.Unlock()
	have := s.store.get(p.name)
	done, refused := s.decide(p, have)
	if done.next == nil && have != nil && done.token > have.Token {
		next := *have
		next.Token = done.token
		done.next = &next
	}
	var err error
	switch {
	case done.next != nil:
		err = s.store.put(p.name, done.next)
	case done.replayed:
		err = s.store.syncDir() // which may be what failed the first time
	}
	if err != nil {
		return outcome{}, fmt.Errorf("write %s: %w", p.name, err)
	}
	return done, refused
}

// decide says what a PUT comes to. The order matters: a holder whose lock
// another has taken is told so first, even if its request was answered before;
// a repeated request then gets its first answer, though its precondition no
// longer holds, since it was what changed that.
func (s *Server) decide(p putRequest, have *document) (outcome, error) {
	now := s.now().UTC()
	kept := note{Token: p.token, Modified: now}
	if have != nil {
		if p.token > 0 && p.token < have.Token {
			return outcome{token: have.Token}, fenced(p.token, have.Token)
		}
		kept.Token = max(p.token, have.Token)
		kept.Answers = recent(have.Answers, now)
	}
	done := outcome{token: kept.Token}
	if i := slices.IndexFunc(kept.Answers, func(a answer) bool { return a.Key == p.key }); i >= 0 {
		if done.given = kept.Answers[i]; done.given.Body != p.etag {
			return done, keyReused.because("the key was used for another document within the last 24 hours; another intent needs another key")
		}
		done.replayed = true
		return done, nil
	}
	if err := p.when.forPut(p.name, have); err != nil {
		return done, err
	}
	done.given = answer{Key: p.key, Body: p.etag, Status: http.StatusOK, At: now}
	if have == nil {
		done.given.Status = http.StatusCreated
		if s.store.count() >= MaxServices {
			return done, full.because(fmt.Sprintf("this server keeps at most %d services", MaxServices))
		}
	}
	if p.key != "" {
		kept.Answers = append(kept.Answers, done.given)
		kept.Answers = kept.Answers[max(0, len(kept.Answers)-MaxAnswers):]
	}
	done.next = &document{body: p.body, etag: p.etag, canary: p.canary, note: kept}
	return done, nil
}

func fenced(sent, highest uint64) *problem {
	p := staleToken.because(fmt.Sprintf("the request has token %d, but %d has been seen: another holder has the lock now", sent, highest))
	p.Token = highest
	return p
}

// recent returns the answers that are still kept, in memory of their own.
func recent(all []answer, now time.Time) []answer {
	return slices.DeleteFunc(slices.Clone(all), func(a answer) bool { return now.Sub(a.At) >= KeepAnswers })
}
