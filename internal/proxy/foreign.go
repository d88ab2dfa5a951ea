package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// plainHeaders are what a request to another host than stable's keeps of the
// user's headers. A list of those that are secret would never be whole: each
// gateway has names of its own.
var plainHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Content-Encoding", "Content-Type", "Openai-Beta", "Traceparent", "Tracestate", "User-Agent",
	"X-Request-Id",
}

// plainParameters are what it keeps of the query.
var plainParameters = map[string]bool{"api-version": true}

// plainHeader returns the headers that every host may see. User-Agent is there
// in any case: net/http would put in a name of its own for one that is missing.
func plainHeader(h http.Header) http.Header {
	out := http.Header{"User-Agent": {""}}
	for _, name := range plainHeaders {
		if v, ok := h[name]; ok {
			out[name] = append([]string(nil), v...)
		}
	}
	return out
}

// plainQuery returns the parameters that every host may see, as they were
// written.
func plainQuery(query string) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err == nil && plainParameters[name] && !strings.Contains(part, ";") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}
