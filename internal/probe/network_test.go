package probe_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/probe"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

func dead(t *testing.T) string { return fmt.Sprintf("127.0.0.1:%d", servertest.Port(t)) }

func TestAPortThatNobodyListensOnIsNamed(t *testing.T) {
	at := dead(t)
	r := ask(t, version("http://"+at+"/v1"))
	want(t, r, probe.Refused, at, "on this machine")
	if r.LatencyMS != nil {
		t.Error("a latency without an answer")
	}
}

func TestAProxyVariableThatPointsAtADeadPortIsNamed(t *testing.T) {
	at := dead(t)
	for _, tc := range []struct{ variable, value, base string }{
		{"HTTP_PROXY", "http://" + at, "http://llm.example.test/v1"},
		{"http_proxy", at, "http://llm.example.test/v1"},
		{"HTTPS_PROXY", "http://" + at, "https://llm.example.test/v1"},
		{"https_proxy", "http://someone:p4ssw0rd-of-proxy@" + at, "https://llm.example.test/v1"},
		{"ALL_PROXY", "socks5://" + at, "https://llm.example.test/v1"},
		{"all_proxy", "http://" + at, "http://10.1.2.3:8000/v1"},
	} {
		r := ask(t, version(tc.base), tc.variable, tc.value)
		want(t, r, probe.ProxyRefused, tc.variable, at, "NO_PROXY")
		hides(t, r, "p4ssw0rd-of-proxy")
		if r.ProxyEnv != tc.variable || !strings.HasSuffix(r.Proxy, at) {
			t.Errorf("%+v", r)
		}
	}
}

func TestAProxyThatWorksIsUsedAndAnswersForItself(t *testing.T) {
	status := http.StatusOK
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Host + r.Host
		w.WriteHeader(status)
		io.WriteString(w, completion)
	}))
	defer proxy.Close()
	at := strings.TrimPrefix(proxy.URL, "http://")
	r := ask(t, version("http://llm.example.test/v1"), "HTTP_PROXY", at)
	want(t, r, probe.OK)
	if !strings.Contains(asked, "llm.example.test") || r.Proxy != proxy.URL {
		t.Errorf("asked %q: %+v", asked, r)
	}
	status = http.StatusProxyAuthRequired
	want(t, ask(t, version("http://llm.example.test/v1"), "HTTP_PROXY", at), probe.Proxy, "user and a password")
	want(t, ask(t, version("https://llm.example.test/v1"), "HTTPS_PROXY", at), probe.Proxy, "user and a password", "HTTPS_PROXY")
	status = http.StatusForbidden
	want(t, ask(t, version("https://llm.example.test/v1"), "HTTPS_PROXY", at), probe.Proxy, "answered 403", "llm.example.test:443")
}

func TestProxiesThatCannotBeUsedAreSaid(t *testing.T) {
	for _, value := range []string{"socks4://someone:p4ssw0rd@127.0.0.1:1080", "http://%zz:p4ssw0rd@h", "://p4ssw0rd"} {
		r := ask(t, version("https://llm.example.test/v1"), "ALL_PROXY", value)
		want(t, r, probe.Proxy, "ALL_PROXY")
		hides(t, r, "p4ssw0rd")
	}
	want(t, ask(t, version("https://llm.example.test/v1"), "HTTPS_PROXY", "http://no..such.test:1"), probe.Proxy, "no address is known")
}

func TestNamesThatDoNotExistAreSaid(t *testing.T) {
	want(t, ask(t, version("https://no..such.test/v1")), probe.DNS, "no..such.test")
}

func TestCertificatesAreExplained(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the key was sent to a stranger") })
	start := func(cert *tls.Certificate) string {
		s := httptest.NewUnstartedServer(handler)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if cert != nil {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	want(t, ask(t, version(start(nil))), probe.TLS, "nobody whom this machine trusts", "SSL_CERT_FILE")
	want(t, ask(t, version(start(expired(t)))), probe.TLS, "only from 2020-01-01 to 2020-02-01")

	plain := httptest.NewServer(handler)
	defer plain.Close()
	want(t, ask(t, version(strings.Replace(plain.URL, "http:", "https:", 1))), probe.TLS, "does not encrypt")
	want(t, ask(t, version(strings.Replace(start(nil), "https:", "http:", 1))), probe.TLS, "write https://")
}

// expired returns a certificate that was valid in January 2020.
func expired(t *testing.T) *tls.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// slow returns a server whose handler is let go when the test ends.
func slow(t *testing.T, begin func(http.ResponseWriter)) string {
	t.Helper()
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		begin(w)
		w.(http.Flusher).Flush()
		<-done
	}))
	t.Cleanup(func() { close(done); s.Close() })
	return s.URL
}

func TestAServerThatDoesNotAnswerInTimeIsSaid(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	o := probe.Options{Getenv: env("LLM_API_KEY", key), Timeout: 150 * time.Millisecond}
	want(t, probe.Ask(t.Context(), version("http://"+silent.Addr().String()), o), probe.Timeout, "took the request", "150ms")
	want(t, probe.Ask(t.Context(), version("https://"+silent.Addr().String()), o), probe.Timeout, "no connection")
	headers := slow(t, func(w http.ResponseWriter) { io.WriteString(w, `{"choices":`) })
	r := probe.Ask(t.Context(), version(headers), o)
	want(t, r, probe.Timeout)
	if r.Status != 200 {
		t.Errorf("status %d", r.Status)
	}
}

func TestAnEventStreamIsNotReadToItsEnd(t *testing.T) {
	url := slow(t, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": hello\n\ndata: {\"choices\":[{\"delta\":{}}]}\n\n")
	})
	want(t, ask(t, version(url)), probe.Streamed)
}

func TestTheCallerMayGiveUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := slow(t, func(http.ResponseWriter) { cancel() })
	want(t, probe.Ask(ctx, version(url), probe.Options{Getenv: env("LLM_API_KEY", key)}), probe.Interrupted)
}

func TestAnAnswerThatBreaksOffIsSaid(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half/chat/completions" {
			w.Header().Set("Content-Length", "500")
			io.WriteString(w, `{"choices":`)
		}
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	want(t, ask(t, version(s.URL)), probe.Unreachable, "broke off")
	want(t, ask(t, version(s.URL+"/half")), probe.Unreachable, "broke off")
}

func TestAnEndlessAnswerIsCut(t *testing.T) {
	want(t, ask(t, version(server(t, 200, "", `{"choices":["`+strings.Repeat("x", 2<<20)))), probe.NotJSON, "longer than")
}

func TestRedirectsAreSaidAndNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("followed") }))
	defer other.Close()
	for _, tc := range []struct {
		status        int
		location, say string
	}{
		{307, other.URL + "/v1/chat/completions?token=abcdefgh12345678", other.URL + "/v1/chat/completions, which was not followed"},
		{308, "https://llm.example.test/v1", "if that host is the right one"},
		{301, "/v2/chat/completions", "needs no redirect"},
		{302, "https://example.test/login?next=x", "people sign in"},
		{302, "https://" + key + "@example.test/" + key, "example.test"},
		{302, "", "without saying where to"},
	} {
		r := ask(t, version(server(t, tc.status, "Location: "+tc.location, "")))
		want(t, r, probe.Redirect, tc.say)
		hides(t, r, "abcdefgh12345678")
	}
}
