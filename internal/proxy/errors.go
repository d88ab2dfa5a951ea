package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Codes of errors that are the proxy's and not an upstream's. They stand in
// answers, records and logs of attempts.
const (
	codeOpen      = "canaryctl_breaker_open"
	codeFull      = "canaryctl_pool_timeout"
	codeClientKey = "canaryctl_unauthorized"
	codeForeign   = "canaryctl_forbidden"
	codeStalled   = "canaryctl_request_incomplete"
	codePath      = "canaryctl_bad_path"
	codeMethod    = "canaryctl_bad_method"
	codeNoSocket  = "canaryctl_no_socket"
	codeEnding    = "canaryctl_ending"
	codeCancelled = "client_cancelled"
	codeTimeout   = "read_timeout"
	codeConnect   = "connect_timeout"
	codeRefused   = "connection_refused"
	codeReset     = "connection_reset"
	codeDNS       = "name_not_found"
	codeTLS       = "tls"
	codeNetwork   = "unreachable"
	codeMalformed = "malformed_answer"
)

// noSocket reports whether it was this machine that had no file or no port for a
// connection.
func noSocket(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// errMalformed is an answer whose head is none of HTTP's.
var errMalformed = errors.New("the head of the answer is malformed")

// errorCode names what kept an upstream from answering. The error itself is not
// shown to anybody: it may hold an address with a password in it.
func errorCode(err error) string {
	_, dns := errors.AsType[*net.DNSError](err)
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case noSocket(err):
		return codeNoSocket
	case timedOut(err) && network && op.Op == "dial":
		return codeConnect
	case timedOut(err):
		return codeTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return codeRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return codeReset
	case errors.Is(err, errMalformed):
		return codeMalformed
	case dns:
		return codeDNS
	case cert, host, record:
		return codeTLS
	case network:
		return codeNetwork
	}
	return headCode(err)
}

// headCode tells a head that is none of HTTP's from one that was cut off, which
// net/http calls malformed as well: it quotes the line that it could not read,
// and of one that was cut off that is the start of a line.
func headCode(err error) string {
	_, text, broken := strings.Cut(err.Error(), "HTTP/1.x transport connection broken: ")
	if !broken {
		return codeNetwork
	}
	what, line, _ := strings.Cut(strings.TrimSuffix(text, `"`), ` "`)
	cut := false
	switch what {
	case "malformed MIME header: missing colon:":
		cut = isCode(line) || len(line) > maxCode && !strings.ContainsAny(line, ` \`)
	case "malformed HTTP status code":
		cut = len(line) < len("200") && strings.Trim(line, "0123456789") == ""
	case "malformed HTTP response":
		cut = strings.HasPrefix("HTTP/1.1 ", line) || strings.HasPrefix("HTTP/1.0 ", line)
	}
	if cut {
		return codeReset
	}
	return codeMalformed
}

// errorBody is an error in the form in which clients of this API expect one.
func errorBody(code, message string) []byte {
	var body struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    string  `json:"code"`
		} `json:"error"`
	}
	body.Error.Message, body.Error.Type, body.Error.Code = message, "canaryctl_proxy", code
	text, err := json.Marshal(body)
	if err != nil {
		return nil // texts are always encoded
	}
	return append(text, '\n')
}

// refusal is an answer that was made here.
func refusal(status int, code, message string, wait time.Duration) *http.Response {
	text := errorBody(code, message)
	h := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(text))}}
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(string(text))),
	}
}

// writeError answers with an error that was made here.
func writeError(w http.ResponseWriter, status int, code, message string) {
	text := errorBody(code, message)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the user may have gone
}

// unanswered tells the user that stable did not answer.
func (p *Proxy) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	if x := exchangeOf(r.Context()); x != nil && x.brokeOff() {
		writeError(w, http.StatusRequestTimeout, codeStalled, "canaryctl did not get the whole request")
		return
	}
	if r.Context().Err() != nil && errors.Is(r.Context().Err(), context.Canceled) {
		panic(http.ErrAbortHandler) // nobody is there to be told
	}
	code := errorCode(err)
	message := "canaryctl got no answer from stable: " + strings.ReplaceAll(code, "_", " ")
	if code == codeNoSocket {
		w.Header().Set("Retry-After", "1")
		message = "canaryctl has no more files or ports for connections"
	}
	writeError(w, statusOf(attempt{code: code}), code, message)
}
