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
	codeCancelled = "client_cancelled"
	codeTimeout   = "read_timeout"
	codeConnect   = "connect_timeout"
	codeRefused   = "connection_refused"
	codeReset     = "connection_reset"
	codeDNS       = "name_not_found"
	codeTLS       = "tls"
	codeNetwork   = "unreachable"
)

// errorCode names what kept an upstream from answering. The error itself is not
// shown to anybody: it may hold an address with a password in it.
func errorCode(err error) string {
	_, dns := errors.AsType[*net.DNSError](err)
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case timedOut(err) && network && op.Op == "dial":
		return codeConnect
	case timedOut(err):
		return codeTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return codeRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return codeReset
	case dns:
		return codeDNS
	case cert, host, record:
		return codeTLS
	}
	return codeNetwork
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
	if x := exchangeOf(r.Context()); x != nil && x.body.brokeOff() {
		writeError(w, http.StatusRequestTimeout, codeStalled, "canaryctl did not get the whole request")
		return
	}
	if r.Context().Err() != nil && errors.Is(r.Context().Err(), context.Canceled) {
		panic(http.ErrAbortHandler) // nobody is there to be told
	}
	code := errorCode(err)
	writeError(w, statusOf(attempt{code: code}), code, "canaryctl got no answer from stable: "+strings.ReplaceAll(code, "_", " "))
}
