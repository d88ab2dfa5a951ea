package probe

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// proxyStatusError says that a proxy did not open a way to the server.
type proxyStatusError struct{ status int }

// Error implements error.
func (e *proxyStatusError) Error() string {
	return fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
}

// proxyFor returns the proxy for an address and the variable that names it;
// nil for none. The variables are those of net/http and of most clients:
// HTTPS_PROXY or HTTP_PROXY by the address's scheme, then ALL_PROXY, each in
// capitals or not, and NO_PROXY. Loopback has no proxy.
//
// net/http's own reading of them is done once a process, knows no ALL_PROXY
// and does not say which variable it was.
func proxyFor(u *url.URL, getenv func(string) string) (proxy *url.URL, variable string, err error) {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if loopback(host) || exempt(host, port(u), firstSet(getenv, "NO_PROXY", "no_proxy")) {
		return nil, "", nil
	}
	own := strings.ToUpper(u.Scheme) + "_PROXY"
	for _, name := range []string{own, strings.ToLower(own), "ALL_PROXY", "all_proxy"} {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			proxy, err := parseProxy(value)
			return proxy, name, err
		}
	}
	return nil, "", nil
}

func firstSet(getenv func(string) string, names ...string) string {
	for _, name := range names {
		if v := getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// parseProxy reads the value of a proxy variable; host:port alone is HTTP. Its
// errors do not quote it, since it may hold a password.
func parseProxy(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" || u.Host == "" {
		if u, err = url.Parse("http://" + value); err != nil || u.Hostname() == "" {
			return nil, errors.New("it is no address")
		}
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fmt.Errorf("%.20q is none of http, https, socks5 and socks5h", u.Scheme)
}

func bareProxy(u *url.URL) string { return u.Scheme + "://" + u.Host }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// exempt reports whether NO_PROXY names a host: by itself or a domain above
// it, with or without a port, as an address, a network (10.0.0.0/8), or *. A
// leading dot means the names below a domain only.
func exempt(host, port, list string) bool {
	ip, ipErr := netip.ParseAddr(host)
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "*" {
			return true
		}
		if network, err := netip.ParsePrefix(entry); err == nil {
			if ipErr == nil && network.Contains(ip.Unmap()) {
				return true
			}
			continue
		}
		if h, p, err := net.SplitHostPort(entry); err == nil {
			if p != port {
				continue
			}
			entry = h
		}
		entry = strings.TrimPrefix(strings.Trim(entry, "[]"), "*")
		domain := strings.TrimPrefix(entry, ".")
		if domain == "" {
			continue
		}
		if entry == host || ipErr != nil && strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}
