package probe

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"testing"
)

// The rules of NO_PROXY are those of golang.org/x/net/http/httpproxy.
func TestWhichProxyIsChosen(t *testing.T) {
	for _, tc := range []struct {
		name, address, env, proxy, variable string
	}{
		{"none", "https://api.example.com/v1", "", "", ""},
		{"by scheme", "https://api.example.com/v1", "HTTP_PROXY=a:1 HTTPS_PROXY=b:2", "http://b:2", "HTTPS_PROXY"},
		{"by scheme, plain", "http://api.example.com/v1", "HTTP_PROXY=a:1 HTTPS_PROXY=b:2", "http://a:1", "HTTP_PROXY"},
		{"not the other scheme's", "https://api.example.com/v1", "HTTP_PROXY=a:1", "", ""},
		{"capitals first", "https://api.example.com/v1", "https_proxy=a:1 HTTPS_PROXY=b:2", "http://b:2", "HTTPS_PROXY"},
		{"all", "https://api.example.com/v1", "ALL_PROXY=socks5://a:1", "socks5://a:1", "ALL_PROXY"},
		{"own before all", "https://api.example.com/v1", "ALL_PROXY=a:1 https_proxy=b:2", "http://b:2", "https_proxy"},
		{"localhost has none", "http://localhost:8000/v1", "HTTP_PROXY=a:1", "", ""},
		{"loopback has none", "http://127.0.0.2:8000/v1", "HTTP_PROXY=a:1", "", ""},
		{"loopback of IPv6 has none", "http://[::1]:8000/v1", "HTTP_PROXY=a:1", "", ""},
		{"exempt by name", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=x.test,api.example.com", "", ""},
		{"exempt by name, whatever its case", "https://API.example.com./v1", "HTTPS_PROXY=b:2 no_proxy=Api.Example.com", "", ""},
		{"exempt by domain", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=example.com", "", ""},
		{"exempt by domain with a dot", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=.example.com", "", ""},
		{"exempt by domain with a star", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=*.example.com", "", ""},
		{"a domain with a dot is not itself", "https://example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=.example.com", "http://b:2", "HTTPS_PROXY"},
		{"the end of a name is no domain", "https://badexample.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=example.com", "http://b:2", "HTTPS_PROXY"},
		{"everything exempt", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=*", "", ""},
		{"exempt with its port", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=api.example.com:443", "", ""},
		{"another port", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=api.example.com:8443", "http://b:2", "HTTPS_PROXY"},
		{"exempt by address", "http://10.1.2.3:8000/v1", "HTTP_PROXY=a:1 NO_PROXY=10.1.2.3", "", ""},
		{"exempt by network", "http://10.1.2.3:8000/v1", "HTTP_PROXY=a:1 NO_PROXY=10.0.0.0/8", "", ""},
		{"outside of the network", "http://11.1.2.3:8000/v1", "HTTP_PROXY=a:1 NO_PROXY=10.0.0.0/8", "http://a:1", "HTTP_PROXY"},
		{"the end of an address is no domain", "http://10.1.2.3:8000/v1", "HTTP_PROXY=a:1 NO_PROXY=2.3", "http://a:1", "HTTP_PROXY"},
		{"exempt by IPv6", "http://[fd00::1]:8000/v1", "HTTP_PROXY=a:1 NO_PROXY=[fd00::1]:8000", "", ""},
		{"empty entries exempt nothing", "https://api.example.com/v1", "HTTPS_PROXY=b:2 NO_PROXY=,,", "http://b:2", "HTTPS_PROXY"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, err := url.Parse(tc.address)
			if err != nil {
				t.Fatal(err)
			}
			getenv := func(name string) string {
				for pair := range strings.FieldsSeq(tc.env) {
					if value, ok := strings.CutPrefix(pair, name+"="); ok {
						return value
					}
				}
				return ""
			}
			proxy, variable, err := proxyFor(u, getenv)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if proxy != nil {
				got = bareProxy(proxy)
			}
			if got != tc.proxy || variable != tc.variable {
				t.Errorf("proxy %q from %q, want %q from %q", got, variable, tc.proxy, tc.variable)
			}
		})
	}
}

// What needs a server that cannot be started here.
func TestFailuresOfTheNetworkAreWorded(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "llm.example.test"}
	for _, tc := range []struct {
		name  string
		err   error
		kind  Kind
		words string
	}{
		{"name server down", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, DNS, "did not answer"},
		{"another host's certificate", &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}}, TLS, "not for llm.example.test"},
		{"a client's certificate wanted", &net.OpError{Op: "remote error", Err: tls.AlertError(116)}, TLS, "did not agree"},
		{"no route", &net.OpError{Op: "dial", Err: net.UnknownNetworkError("x")}, Unreachable, "llm.example.test:443 could not be reached"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := &question{arm: "canary", url: u, timeout: defaultTimeout, mask: newMask("")}
			r := q.unanswered(t.Context(), &url.Error{Op: "Post", URL: "https://secret@llm.example.test", Err: tc.err}, connecting)
			if r.Kind != tc.kind || !strings.Contains(r.Explain, tc.words) || r.Fix == "" {
				t.Errorf("%+v", r)
			}
		})
	}
}
