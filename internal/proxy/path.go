package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// chatPath is where chat completions are asked for, behind a base URL.
const chatPath = "/chat/completions"

// usual is the path of most base URLs, and what clients put there that know
// the proxy's host only.
const usual = "/v1"

// behind splits a request's path as it was sent, escapes and all: what stands
// behind stable's base URL, or behind /v1. ok is false for a path of the host
// that has nothing to do with the API.
func (p *Proxy) behind(u *url.URL) (rest string, ok bool) {
	path := u.EscapedPath()
	base := basePath(p.o.Stable.BaseURL)
	for _, prefix := range []string{base, usual} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && prefix != "" && (rest == "" || rest[0] == '/') {
			return rest, true
		}
	}
	if base == "" || p.paths[path] {
		return path, true
	}
	return path, false
}

// climbs reports whether a path, unescaped, has a . or .. in it: where it leads
// the server decides, and it may be out of the API that the key is for.
func climbs(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part, _, _ = strings.Cut(part, ";"); part == "." || part == ".." {
			return true
		}
	}
	return false
}

func basePath(u *url.URL) string { return strings.TrimRight(u.EscapedPath(), "/") }

// isReleased reports whether a request is one of those that are routed, copied
// and recorded.
func (p *Proxy) isReleased(r *http.Request, rest string) bool {
	return r.Method == http.MethodPost && p.paths[rest]
}

// address is where a version is asked: rest behind its base URL. A stable
// without a path of its own is asked under the path that the client sent.
func address(base *url.URL, rest, sent, query string) *url.URL {
	path := basePath(base) + rest
	if basePath(base) == "" {
		path = sent
	}
	return onHost(base, path, query)
}

// onHost is a path on the host of a base URL, with the parameters that the base
// URL has before those of the request.
func onHost(base *url.URL, path, query string) *url.URL {
	u := &url.URL{Scheme: base.Scheme, Host: base.Host, RawQuery: query}
	if base.RawQuery != "" {
		u.RawQuery = strings.TrimSuffix(base.RawQuery+"&"+query, "&")
	}
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = plain, path
	} else {
		u.Opaque = path
	}
	return u
}
