package servertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// haproxyCfg splits by the weights of two servers, 198 to 2 at first, and logs
// a record of each request as a line of JSON. HAProxy writes no files, so the
// lines go to a socket.
//
// What only the application knows about its answer comes from headers of the
// answer: X-Solved, X-Violation and X-Transfer (true or false) and X-Cost-USD.
const haproxyCfg = `global
  stats socket %[1]s mode 600 level admin
  log %[2]s len 4096 format raw local0
defaults
  mode http
  log global
  option dontlognull
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend in
  bind 127.0.0.1:%[3]d
  http-request set-var(txn.user) req.hdr(x-user-id)
  http-response set-var(txn.solved) res.hdr(x-solved) if { res.hdr(x-solved) true false }
  http-response set-var(txn.violation) res.hdr(x-violation) if { res.hdr(x-violation) true false }
  http-response set-var(txn.transfer) res.hdr(x-transfer) if { res.hdr(x-transfer) true false }
  http-response set-var(txn.cost) res.hdr(x-cost-usd) if { res.hdr(x-cost-usd) -m reg ^[0-9]+(\.[0-9]+)?$ }
  log-format '{"ts":%%[date(0,ms)],"arm":"%%s","user_id":"%%[var(txn.user),json(utf8s)]","status":%%ST,"latency_ms":%%Ta,"solved":%%[var(txn.solved,null)],"violation":%%[var(txn.violation,null)],"transfer":%%[var(txn.transfer,null)],"cost_usd":%%[var(txn.cost,null)]}'
  default_backend llm
backend llm
  balance roundrobin
  server stable %[4]s weight 198
  server canary %[5]s weight 2
`

// HAProxy starts a balancer before two servers, given by their host:port. It
// returns the URL of its frontend, the path of its admin socket, on which the
// servers are llm/stable and llm/canary, and the path of the growing file of
// records, JSON lines whose arm is the server's name and whose ts, in
// milliseconds, is the end of the request: %Ts would be that of the connection,
// which serves many, and the lines are in order.
func HAProxy(t testing.TB, stable, canary string) (frontend, socket, logs string) {
	t.Helper()
	program := Program(t, "haproxy", "haproxy")
	dir := shortDir(t)
	logs = filepath.Join(dir, "records.jsonl")
	socket = filepath.Join(dir, "admin.sock")
	port := Port(t)
	cfg := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Sprintf(haproxyCfg, socket, logFile(t, logs), port, stable, canary)
	if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	Start(t, program, []string{"-f", cfg, "-db"}, Dial("tcp", address))
	return "http://" + address, socket, logs
}

// shortDir returns a folder whose path leaves room in the 108 bytes that the
// path of a socket may have; one named for the test may not.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) // as testing does with its own
	return dir
}

// logFile appends every datagram that a new socket gets to a file, as a line,
// until the end of the test. It returns the socket's address.
func logFile(t testing.TB, path string) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		datagram := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(datagram)
			if err != nil {
				return // closed
			}
			line := strings.TrimRight(string(datagram[:n]), "\r\n\x00") + "\n"
			if _, err := file.WriteString(line); err != nil {
				t.Errorf("records of HAProxy: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close() // ends the loop
		<-done
		file.Close() // every line was written and checked
	})
	return conn.LocalAddr().String()
}
