package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// winRefused is what Windows calls a refused connection (WSAECONNREFUSED).
const winRefused = syscall.Errno(10061)

func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, winRefused)
}

// unanswered says why there was no answer over HTTP. None of its words are the
// error's own, which may carry the address with its secrets.
func (q *question) unanswered(ctx context.Context, err error, stage int32) *Result {
	timeout, isTimeout := errors.AsType[net.Error](err)
	if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
		return q.result(Interrupted, "given up before the server answered", "")
	} else if cause != nil || isTimeout && timeout.Timeout() {
		return q.late(stage)
	}
	if r := q.proxyFault(err); r != nil {
		return r
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return q.unresolved(dns)
	}
	if r := q.tlsFault(err); r != nil {
		return r
	}
	switch {
	case refused(err):
		fix := "look at host and port of base_url, and whether the server is up"
		if loopback(q.url.Hostname()) {
			fix = "start the server or gateway on this machine, or correct the port of base_url; inside a container this address is the container itself"
		}
		return q.result(Refused, fmt.Sprintf("nothing listens on %s", q.at()), fix)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return q.result(Unreachable, fmt.Sprintf("%s broke off before its answer was complete%s", q.at(), q.via()),
			"look into the log of the server or of what stands before it; a firewall may do this too")
	}
	return q.result(Unreachable, fmt.Sprintf("%s could not be reached%s", q.at(), q.via()),
		"look at the network: the way out of this machine, a firewall, a VPN that is not up")
}

// at is the host and port that is asked.
func (q *question) at() string { return net.JoinHostPort(q.url.Hostname(), port(q.url)) }

func (q *question) late(stage int32) *Result {
	limit := q.timeout.Round(time.Millisecond)
	if stage == connecting {
		return q.result(Timeout, fmt.Sprintf("no connection to %s within %s%s", q.at(), limit, q.via()),
			"look at the network: a firewall that drops packets, a VPN that is not up, a proxy variable that is missing here")
	}
	return q.result(Timeout, fmt.Sprintf("%s took the request and did not answer within %s%s", q.at(), limit, q.via()),
		"try again: a model that is still being loaded answers late the first time; then look at the server's queue")
}

// proxyFault explains failures of the proxy itself; nil where there is none.
func (q *question) proxyFault(err error) *Result {
	if q.proxy == nil {
		return nil
	}
	around := fmt.Sprintf("or unset %s, or put %s into NO_PROXY", q.proxyEnv, q.url.Hostname())
	if status, ok := errors.AsType[*proxyStatusError](err); ok {
		return q.proxyStatus(status.status)
	}
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "proxyconnect" && op.Op != "socks connect" {
		return nil
	}
	named := fmt.Sprintf("%s names the proxy %s", q.proxyEnv, bareProxy(q.proxy))
	if refused(err) {
		return q.result(ProxyRefused, named+", and nothing listens there", "start the proxy, "+around)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return q.result(Proxy, named+", and no address is known under that name", "correct the name, "+around)
	}
	return q.result(Proxy, named+", which did not open a connection", "look at the proxy and its protocol, "+around)
}

// proxyStatus explains what a proxy answered in the server's place.
func (q *question) proxyStatus(status int) *Result {
	explain := fmt.Sprintf("the proxy %s from %s answered %d to the request for %s", bareProxy(q.proxy), q.proxyEnv, status, q.at())
	around := fmt.Sprintf("or unset %s, or put %s into NO_PROXY", q.proxyEnv, q.url.Hostname())
	if status == http.StatusProxyAuthRequired {
		return q.result(Proxy, explain+": it wants a user and a password", fmt.Sprintf("put them into %s as http://USER:PASSWORD@HOST:PORT, %s", q.proxyEnv, around))
	}
	return q.result(Proxy, explain, "have the host allowed there, "+around)
}

func (q *question) unresolved(err *net.DNSError) *Result {
	host := q.url.Hostname()
	if !err.IsNotFound {
		return q.result(DNS, fmt.Sprintf("the name server did not answer for %s", host), "look at this machine's name servers and network")
	}
	return q.result(DNS, fmt.Sprintf("no address is known under the name %s", host),
		"correct the host of base_url; a name inside a cluster or a company is known only there")
}

// tlsFault explains failures of the encryption; nil where it is none.
func (q *question) tlsFault(err error) *Result {
	host := q.url.Hostname()
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired && invalid.Cert != nil {
		from, to := invalid.Cert.NotBefore.UTC().Format(time.DateOnly), invalid.Cert.NotAfter.UTC().Format(time.DateOnly)
		return q.result(TLS, fmt.Sprintf("the certificate of %s is not valid today: only from %s to %s", host, from, to),
			"have it renewed, or set this machine's clock right")
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return q.result(TLS, fmt.Sprintf("the certificate of %s was issued by nobody whom this machine trusts%s", host, q.via()),
			"a gateway with a certificate of its own or a company's proxy: name a file with the issuer's certificate in SSL_CERT_FILE")
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return q.result(TLS, fmt.Sprintf("the certificate that came back is not for %s", host), "write the host of base_url as the certificate names it")
	}
	_, record := errors.AsType[tls.RecordHeaderError](err)
	if record || errors.Is(err, http.ErrSchemeMismatch) {
		return q.result(TLS, fmt.Sprintf("%s does not encrypt, and base_url says https", q.at()), "write http:// in base_url, or the port that encrypts")
	}
	_, alert := errors.AsType[tls.AlertError](err)
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	if alert || verify {
		return q.result(TLS, fmt.Sprintf("%s and this machine did not agree on how to encrypt", q.at()),
			"look at what stands before the server: it may want a client's certificate, another name, or only speak old protocols")
	}
	return nil
}
