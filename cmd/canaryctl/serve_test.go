package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// served is a `canaryctl serve` under way.
type served struct {
	cmd    *exec.Cmd
	url    string
	stderr bytes.Buffer // to be read after wait
}

// startServe runs the real command until it says where it listens.
func startServe(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &served{cmd: exec.CommandContext(ctx, canaryctl(t), append([]string{"serve", "--listen", "127.0.0.1:0", "-o", "json"}, args...)...)}
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // it has ended, if all went well
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		_ = s.cmd.Wait()
		t.Fatalf("no address: %v\n%s", err, s.stderr.String())
	}
	var ready struct {
		Schema int
		URL    string
	}
	if err := json.Unmarshal(line, &ready); err != nil || ready.Schema != 1 || strings.HasSuffix(ready.URL, ":0") {
		t.Fatalf("%q: %v", line, err)
	}
	s.url = ready.URL
	return s
}

// canaryctl is the command: this test binary under that name, as testscript
// has it, or the same without the race detector, which makes a command several
// times as slow and as large. What the commands share is files, which it does
// not see; goroutines are its matter in the tests of the packages.
func canaryctl(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("canaryctl")
	if err != nil {
		t.Fatal(err)
	}
	if !raceDetector {
		return path
	}
	plain := filepath.Join(filepath.Dir(path), "plain", "canaryctl")
	if err := buildPlain(plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

var plainOnce sync.Once

// buildPlain builds this test binary once more, without the race detector.
func buildPlain(path string) (err error) {
	plainOnce.Do(func() {
		var out []byte
		if out, err = exec.Command("go", "test", "-c", "-o", path, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("build the command: %w: %s", err, out)
		}
	})
	return err
}

// wait returns the exit code.
func (s *served) wait(t *testing.T) int {
	t.Helper()
	err := s.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// do sends a request; headers are "Name: value".
func (s *served) do(t *testing.T, method, path, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // read whole
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(got)
}

const served1 = `{"versions":{"stable":{"weight":0.99},"canary":{"weight":0.01}}}`

func TestServeEndsBySignalWithItsOwnCodeAndKeepsWhatItWasGiven(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	dir := filepath.Join(t.TempDir(), "documents")
	const secret = "a-secret-of-the-tests"
	env := []string{"MY_TOKEN=" + secret}
	bearer := "Authorization: Bearer " + secret
	for _, tt := range []struct {
		signal syscall.Signal
		exit   int
	}{{syscall.SIGTERM, 143}, {syscall.SIGINT, 130}} {
		s := startServe(t, env, "--dir", dir, "--token-env", "MY_TOKEN")
		if code, _, body := s.do(t, "GET", "/v1/services", ""); code != 401 {
			t.Errorf("without the token: %d %s", code, body)
		}
		if code, _, body := s.do(t, "GET", "/healthz", ""); code != 200 {
			t.Errorf("health: %d %s", code, body)
		}
		switch tt.exit {
		case 143:
			if code, _, body := s.do(t, "PUT", "/v1/services/order-service", served1, bearer, "If-None-Match: *"); code != 201 {
				t.Errorf("PUT: %d %s", code, body)
			}
		case 130:
			if code, _, body := s.do(t, "GET", "/v1/services/order-service", "", bearer); code != 200 || body != served1 {
				t.Errorf("after the restart: %d %s", code, body)
			}
		}
		if err := s.cmd.Process.Signal(tt.signal); err != nil {
			t.Fatal(err)
		}
		if exit := s.wait(t); exit != tt.exit {
			t.Errorf("%s: exit %d, want %d\n%s", tt.signal, exit, tt.exit, s.stderr.String())
		}
		if strings.Contains(s.stderr.String(), secret) || strings.Contains(s.stderr.String(), "error") {
			t.Errorf("stderr: %s", s.stderr.String())
		}
	}
}

// TestServeGivesTheAnswersUnderWayBeforeItEnds stops it in the middle of a
// request's body.
func TestServeGivesTheAnswersUnderWayBeforeItEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	dir := t.TempDir()
	s := startServe(t, nil, "--dir", dir)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // the server closes first
	// The server says 100 when the handler begins to read the body.
	_, err = fmt.Fprintf(conn, "PUT /v1/services/s HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(served1))
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitRefused(t, s.url)
	if _, err := io.WriteString(conn, served1); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(answers)
	if err != nil || !strings.Contains(string(rest), "201 Created") {
		t.Errorf("%v: %s", err, rest)
	}
	if exit := s.wait(t); exit != 143 {
		t.Errorf("exit %d, want 143\n%s", exit, s.stderr.String())
	}
	if got, err := os.ReadFile(filepath.Join(dir, "s.document")); err != nil || !strings.HasSuffix(string(got), "\n"+served1) {
		t.Errorf("%v: %s", err, got)
	}
}

// waitRefused waits until nothing listens any more.
func waitRefused(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return
		}
		c.Close() // only asked
		if time.Now().After(end) {
			t.Fatal("it still listens")
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestServeRefusesWhatAnotherServerHas(t *testing.T) {
	dir := t.TempDir()
	s := startServe(t, nil, "--dir", dir)
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"the directory", "is in use by another server", []string{"--dir", dir, "--listen", "127.0.0.1:0"}},
		{"a reach without a token", "there is no token", []string{"--dir", t.TempDir(), "--listen", "0.0.0.0:0"}},
		{"the address", "listen on 127.0.0.1", []string{"--dir", t.TempDir(), "--listen", strings.TrimPrefix(s.url, "http://")}},
	} {
		cmd := exec.CommandContext(t.Context(), canaryctl(t), append([]string{"serve"}, tt.args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(out, []byte(tt.want)) || !bytes.Contains(out, []byte("hint: ")) {
			t.Errorf("%s: %v, exit %d: %s", tt.name, err, cmd.ProcessState.ExitCode(), out)
		}
	}
	if code, _, _ := s.do(t, "GET", "/healthz", ""); code != 200 {
		t.Errorf("the first server answers %d", code)
	}
}
