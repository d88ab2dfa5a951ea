// Package webclient holds the rules that every client of HTTP here keeps.
package webclient

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRedirects bounds a chain of redirects within one host.
const maxRedirects = 5

// SameHost is a CheckRedirect that follows a redirect only to the same scheme
// and host and with the same method: the token goes nowhere else, and a PUT does not become
// a GET that succeeds. What is not followed comes back as the answer.
func SameHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme || req.Method != via[0].Method || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// NoRedirect is a CheckRedirect that follows none: it comes back as the answer.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// RetryAfter reads how long a server asks to be left alone: seconds or a date
// (RFC 9110, 10.2.3). 0: it does not say, or the time is over.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
