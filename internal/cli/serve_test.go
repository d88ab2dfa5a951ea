package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// quick are limits that a test can wait for.
var quick = httpLimits{
	Header: 200 * time.Millisecond, Read: 400 * time.Millisecond, Write: time.Second, Idle: 200 * time.Millisecond,
	HeaderBytes: 4 << 10, Drain: time.Second,
}

// limited serves a handler that reads the whole body, under quick limits.
func limited(t *testing.T) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "broke off", http.StatusBadRequest)
		}
	})
	srv := newHTTPServer(h, func(format string, args ...any) { t.Logf(format, args...) }, quick)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return l.Addr()
}

// TestASlowClientIsCutOff sends requests that never come to an end, some of
// them a byte at a time.
func TestASlowClientIsCutOff(t *testing.T) {
	const head = "PUT / HTTP/1.1\r\nHost: localhost\r\n"
	for _, tt := range []struct {
		name, sent, drip string
		within           time.Duration
	}{
		{name: "that says nothing", within: quick.Header},
		{name: "whose header does not end", sent: head, within: quick.Header},
		{name: "whose header drips", sent: head, drip: "X-A: b\r\n", within: quick.Header},
		{name: "whose body does not come", sent: head + "Content-Length: 10\r\n\r\n", within: quick.Read},
		{name: "whose body drips", sent: head + "Content-Length: 1000\r\n\r\n", drip: "x", within: quick.Read},
		{name: "that stays after its answer", sent: head + "Content-Length: 0\r\n\r\n", within: quick.Idle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", limited(t).String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() // the server closes first
			start := time.Now()
			if _, err := io.WriteString(conn, tt.sent); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				for tick := time.NewTicker(20 * time.Millisecond); tt.drip != ""; {
					select {
					case <-ended:
						return
					case <-tick.C:
						if _, err := io.WriteString(conn, tt.drip); err != nil {
							return
						}
					}
				}
			}()
			if err := conn.SetReadDeadline(start.Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, conn)
			close(ended)
			took := time.Since(start)
			if netErr, ok := err.(net.Error); ok && netErr.Timeout() || took < tt.within-50*time.Millisecond {
				t.Errorf("cut off after %s (%v), want about %s", took, err, tt.within)
			}
		})
	}
}

func TestAnEndlessHeaderIsRefused(t *testing.T) {
	conn, err := net.Dial("tcp", limited(t).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // only read
	go func() {
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 64<<10)) // refused midway
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("%q, %v: want 431", line, err)
	}
}

func TestTheLimitsOfServeAreSet(t *testing.T) {
	s := newHTTPServer(nil, nil, serveLimits)
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout < s.ReadHeaderTimeout || s.WriteTimeout < s.ReadTimeout || s.IdleTimeout <= 0 || s.MaxHeaderBytes > 64<<10 || s.drain <= 0 {
		t.Errorf("%+v", s.Server)
	}
}

func TestServeSaysWhoMayComeIn(t *testing.T) {
	near, far := &net.TCPAddr{IP: net.IPv6loopback, Port: 8417}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	for _, tt := range []struct {
		name    string
		addr    net.Addr
		token   string
		url     string
		stderr  string
		warning bool
	}{
		{"loopback without a token", near, "", "http://[::1]:8417", "no token is asked for", false},
		{"loopback with one", near, "secret-of-tests", "http://[::1]:8417", "clients must show the token of MY_TOKEN", false},
		{"elsewhere", far, "secret-of-tests", "http://192.0.2.1:80", "clients must show the token of MY_TOKEN", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, format := range []string{"text", "json"} {
				var stdout, stderr bytes.Buffer
				o := &serveOptions{app: &App{Stdout: &stdout, Stderr: &stderr}, Dir: "d", TokenEnv: "MY_TOKEN", format: format}
				if err := o.announce(tt.addr, tt.token); err != nil {
					t.Fatal(err)
				}
				want := "listening on " + tt.url + "\n"
				if format == "json" {
					want = `{"schema":1,"url":"` + tt.url + `"}` + "\n"
				}
				if stdout.String() != want {
					t.Errorf("stdout %q, want %q", stdout.String(), want)
				}
				if !strings.Contains(stderr.String(), tt.stderr) || strings.Contains(stderr.String(), "warning") != tt.warning || strings.Contains(stderr.String(), "secret-of-tests") {
					t.Errorf("stderr %q", stderr.String())
				}
			}
		})
	}
}
