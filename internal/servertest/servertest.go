// Package servertest starts real servers for tests: on loopback, each in a
// folder of its own, ended by the test that started it.
//
//	dir := t.TempDir()
//	port := servertest.Port(t)
//	servertest.Start(t, servertest.Program(t, "caddy", "caddy"), []string{"run", "--config", cfg}, servertest.HTTP(url))
//
// A program that is not installed skips the test, loudly, and fails it in CI,
// where CANARYCTL_CI is set.
package servertest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// ready is how long a server may take to answer.
const ready = 30 * time.Second

// Program returns the path of a program, from the Debian package that has it.
func Program(t testing.TB, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin/", "/usr/local/sbin/"} {
		if _, err := os.Stat(dir + name); err == nil {
			return dir + name
		}
	}
	if os.Getenv("CANARYCTL_CI") != "" {
		t.Fatalf("%s is not installed: CI installs the Debian package %s", name, debian)
	}
	t.Skipf("SKIPPED: %s is not installed; install the Debian package %s", name, debian)
	return ""
}

// Port returns a port of loopback that nobody listens on.
func Port(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // frees the port
	return l.Addr().(*net.TCPAddr).Port
}

// Server is a program under way.
type Server struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Start runs a program until the end of the test and waits until it is ready.
// Its output is shown if it does not become so, or if the test fails.
func Start(t testing.TB, path string, args []string, isReady func() bool) *Server {
	t.Helper()
	s := &Server{cmd: exec.Command(path, args...), done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // it is killed in the end
	}()
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", path, s.Output())
		}
	})
	for deadline := time.Now().Add(ready); !isReady(); {
		select {
		case <-s.done:
			t.Fatalf("%s ended:\n%s", path, s.Output())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready after %s:\n%s", path, ready, s.Output())
		}
	}
	return s
}

// Write takes the program's output.
func (s *Server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// Output returns what the program has printed so far.
func (s *Server) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// Kill ends the program at once.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.done
}

// HTTP is ready when a URL answers 200.
func HTTP(url string) func() bool {
	return func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close() // only the status is wanted
		return resp.StatusCode == http.StatusOK
	}
}

// Dial is ready when an address accepts connections; network is tcp or unix.
func Dial(network, address string) func() bool {
	return func() bool {
		c, err := net.DialTimeout(network, address, time.Second)
		if err != nil {
			return false
		}
		c.Close() // only asked
		return true
	}
}
