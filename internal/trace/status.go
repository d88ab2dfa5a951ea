package trace

import (
	"bytes"
	"sync"
)

// outcome is what a status says of a request.
type outcome uint8

const (
	statusUnknown outcome = iota // nothing
	statusOK
	statusFailed // not ok, and not by the server's fault
	statusServer // not ok, 5xx
	statusGone   // the client did not wait for the end: neither ok nor failed
)

// statusOutcome reads a status: an HTTP or other code, or a word. known is
// false for a word that is in no table; it counts as failed.
//
//	100 to 399, and 0                ok
//	499                              the client hung up (nginx)
//	500 to 599                       the server failed
//	any other number, below 0 too    failed
//
// Words are those of [okWords] and its neighbours, in any case and whatever
// separates them (ServerError, server-error); NaN is nothing. Names of gRPC codes are taken
// for the HTTP status that google/rpc/code.proto gives beside them. A code may
// be followed by its reason: "503 Service Unavailable". Blanks around it say nothing.
func statusOutcome(text []byte) (o outcome, known bool) {
	if string(text) == "ok" { // most of them, in most logs
		return statusOK, true
	}
	if text = bytes.TrimSpace(text); isMissing(text) {
		return statusUnknown, true
	}
	head := text
	for i, c := range text {
		if c == ' ' {
			head = text[:i]
			break
		}
	}
	switch n, fig := parseNumber(head); fig {
	case nonFinite: // NaN, as pandas writes a cell that is missing
		return statusUnknown, true
	case finite:
		if code, ok := n.whole(); ok {
			return codeOutcome(code), true
		}
		return statusFailed, true
	}
	return wordOutcome(text)
}

func codeOutcome(code int64) outcome {
	switch {
	case code == 499:
		return statusGone
	case code >= 500 && code < 600:
		return statusServer
	case code >= 100 && code < 400 || code == 0:
		return statusOK
	}
	return statusFailed
}

// wordOutcome looks a word up, folded to lower case without what separates its
// parts. It allocates nothing.
func wordOutcome(text []byte) (o outcome, known bool) {
	var buf [32]byte
	n := 0
	for _, c := range text {
		switch {
		case c == '_' || c == '-' || c == ' ' || c == '.':
			continue
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if n == len(buf) {
			return statusFailed, endsInError(text)
		}
		buf[n] = c
		n++
	}
	if o, ok := statusWords()[string(buf[:n])]; ok {
		return o, true
	}
	return statusFailed, endsInError(text)
}

// endsInError knows the names of error classes, such as RateLimitError.
func endsInError(text []byte) bool {
	for _, end := range [...]string{"error", "exception"} {
		if n := len(text) - len(end); n >= 0 && foldedEqual(text[n:], end) {
			return true
		}
	}
	return false
}

// The words of a status. What is in none of them counts as failed, and is told.
var (
	okWords = []string{"ok", "success", "successful", "succeeded", "complete", "completed", "done", "finished", "passed", "true", "unset", "2xx", "3xx"}
	// clientWords say that the client did not wait for the end.
	clientWords = []string{"clientcancel", "clientcanceled", "clientcancelled", "canceled", "cancelled", "clientclosed", "clientclosedrequest", "clientdisconnect", "clientdisconnected"}
	serverWords = []string{"5xx", "servererror", "internal", "internalerror", "internalservererror", "badgateway", "badgatewayerror",
		"unavailable", "serviceunavailable", "serviceunavailableerror", "gatewaytimeout", "overloaded", "overloadederror",
		"unknown", "dataloss", "unimplemented", "deadlineexceeded"} // the last four and internal, unavailable: gRPC
	failedWords = []string{"error", "err", "failed", "failure", "false", "timeout", "timedout", "4xx", "ratelimited", "ratelimit", "throttled",
		"refused", "rejected", "invalidargument", "notfound", "alreadyexists", "permissiondenied", "unauthenticated", "resourceexhausted",
		"failedprecondition", "aborted", "outofrange"} // the last eight and invalidargument: gRPC
)

var statusWords = sync.OnceValue(func() map[string]outcome {
	out := make(map[string]outcome)
	for o, words := range map[outcome][]string{statusOK: okWords, statusGone: clientWords, statusServer: serverWords, statusFailed: failedWords} {
		for _, w := range words {
			out[w] = o
		}
	}
	return out
})
