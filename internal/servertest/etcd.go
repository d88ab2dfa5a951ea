package servertest

import (
	"fmt"
	"testing"
)

// Etcd starts an etcd of one member, without authentication, and returns its
// URL.
func Etcd(t testing.TB) (url string) {
	t.Helper()
	program := Program(t, "etcd", "etcd-server")
	url = fmt.Sprintf("http://127.0.0.1:%d", Port(t))
	peers := fmt.Sprintf("http://127.0.0.1:%d", Port(t))
	Start(t, program, []string{
		"--data-dir", t.TempDir(),
		"--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default=" + peers,
	}, HTTP(url+"/health"))
	return url
}
