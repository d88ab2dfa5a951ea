//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// model plays a version behind shadow proxy.
type model struct {
	*httptest.Server
	asked, copied atomic.Int64
	key           atomic.Value // Authorization of the last request
	bad           atomic.Bool  // hands every customer over to a person
	slow          atomic.Bool  // takes a while
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Canaryctl-Copy") != "" {
			m.copied.Add(1)
		} else {
			m.asked.Add(1)
		}
		m.key.Store(r.Header.Get("Authorization"))
		if m.slow.Load() {
			<-time.After(300 * time.Millisecond)
		}
		bad := m.bad.Load()
		w.Header().Set("X-Solved", fmt.Sprint(!bad))
		w.Header().Set("X-Transfer", fmt.Sprint(bad))
		w.Header().Set("X-Violation", "false")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	}))
	t.Cleanup(m.Close)
	return m
}

const (
	stableKey = "sk-stable-of-the-tests"
	canaryKey = "sk-canary-of-the-tests"
)

// proxied is a scene with two models and a proxy in front of them.
func proxied(t *testing.T, more string) (s *scene, stable, canary *model) {
	t.Helper()
	stable, canary = newModel(t), newModel(t)
	s = newScene(t, fmt.Sprintf(`
canary:
  target_service: order-service
  steps:
    - { pct: 0.20, min_hold_min: 10 }
    - { pct: 1.00, min_hold_min: 10 }
versions:
  stable: { base_url: "%s/v1", model_id: order-7b, api_key_env: STABLE_KEY }
  canary: { base_url: "%s/v1", model_id: order-8b, api_key_env: CANARY_KEY }
source: { records: { path: requests.jsonl, span_min: 0.005, settle_min: 0.002, stale_min: 0 } }
target: { file: { path: weights.json } }
%s`, stable.URL, canary.URL, more))
	s.env = append(s.env, "STABLE_KEY="+stableKey, "CANARY_KEY="+canaryKey)
	return s, stable, canary
}

// startProxy starts shadow proxy and returns where it answers.
func (s *scene) startProxy(args ...string) (p *started, url string) {
	s.t.Helper()
	p = s.start(append([]string{"shadow", "proxy", "--listen", "127.0.0.1:0", "-o", "json", "--poll", "20ms"}, args...)...)
	eventually(s.t, "does the proxy listen: "+p.said(), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		var ready struct {
			Schema int
			URL    string
		}
		if json.Unmarshal(p.out.Bytes(), &ready) == nil {
			url = ready.URL
		}
		return url != ""
	})
	return p, url
}

// ask asks as a user and returns the status.
func ask(t *testing.T, url, user string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/chat/completions", strings.NewReader(`{"model":"order-7b","messages":[{"role":"user","content":"a secret of the user"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User-Id", user)
	r.Header.Set("Authorization", "Bearer sk-of-the-user")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestWhatTheProxyWritesIsReadByTheOtherCommands(t *testing.T) {
	s, stable, canary := proxied(t, "")
	p, url := s.startProxy("--sample", "1", "--records", "requests.jsonl", "--pairs", "pairs.jsonl", "--attempt-log", "attempts.jsonl")
	for i := range 30 {
		if status := ask(t, url, fmt.Sprint("user-", i%10)); status != 200 {
			t.Fatal(status)
		}
	}
	eventually(t, "was all copied", func() bool { return canary.copied.Load() == 30 })
	eventually(t, "were all pairs written", func() bool { return strings.Count(s.read("pairs.jsonl"), "\n") == 30 })
	slow := make(chan int)
	stable.slow.Store(true)
	go func() { slow <- ask(t, url, "user-1") }()
	eventually(t, "is a last request under way", func() bool { return stable.asked.Load() == 31 })
	if stable.key.Load() != "Bearer "+stableKey || canary.key.Load() != "Bearer "+canaryKey || canary.asked.Load() != 0 {
		t.Errorf("%v %v", stable.key.Load(), canary.key.Load())
	}
	second := s.want(2, "shadow", "proxy", "--listen", strings.TrimPrefix(url, "http://"))
	if !strings.Contains(second.err, "address already in use") || !strings.Contains(second.err, "--listen") {
		t.Errorf("%s", second)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if status := <-slow; status != 200 {
		t.Errorf("the request under way got %d", status)
	}
	if got := p.wait(t); got.code != 143 || !strings.Contains(got.err, "31 requests answered by stable, 0 by the canary; ") || !strings.Contains(got.err, "finishing the answers under way") {
		t.Errorf("%s", got)
	}
	for _, name := range []string{"requests.jsonl", "pairs.jsonl", "attempts.jsonl"} {
		text := s.read(name)
		want := 31
		if name == "pairs.jsonl" {
			want = 30 // the proxy ends before the last copy does
		}
		if n := strings.Count(text, "\n"); n < want || n > 31 || !strings.HasSuffix(text, "}\n") {
			t.Errorf("%s: %d lines", name, strings.Count(text, "\n"))
		}
		for _, secret := range []string{stableKey, canaryKey, "sk-of-the-user", "a secret of the user", "user-1"} {
			if strings.Contains(text+p.said(), secret) {
				t.Errorf("%s or what was said holds %q", name, secret)
			}
		}
		if info, err := os.Stat(s.path(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if got := s.want(0, "windows", "requests.jsonl", "--span", "24h", "-o", "csv"); !strings.Contains(got.out, "stable") {
		t.Errorf("%s", got)
	}
	if got := s.want(0, "shadow", "decide", "-o", "json", "pairs.jsonl"); !strings.Contains(got.out, `"promote_ready"`) {
		t.Errorf("%s", got)
	}
	s.want(0, "diagnose", "attempts.jsonl")
}

func TestBodiesGoOnlyIntoFilesThatNobodyElseReads(t *testing.T) {
	s, _, _ := proxied(t, "")
	s.put("pairs.jsonl", "")
	if err := os.Chmod(s.path("pairs.jsonl"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := s.want(2, "shadow", "proxy", "--listen", "127.0.0.1:0", "--pairs", "pairs.jsonl", "--bodies")
	if !strings.Contains(got.err, "others may read it") || !strings.Contains(got.err, "chmod 600") {
		t.Errorf("%s", got)
	}
	p, url := s.startProxy("--sample", "1", "--pairs", "private.jsonl", "--bodies")
	ask(t, url, "u")
	eventually(t, "was the pair written", func() bool {
		text, err := os.ReadFile(s.path("private.jsonl"))
		return err == nil && strings.Contains(string(text), "a secret of the user")
	})
	p.cmd.Process.Signal(syscall.SIGINT)
	if got := p.wait(t); got.code != 130 {
		t.Errorf("%s", got)
	}
}

func TestAProxyThatCannotStartSaysWhy(t *testing.T) {
	s, _, _ := proxied(t, "")
	for _, c := range []struct {
		name, want string
		change     func()
		args       []string
	}{
		{"a key that is not set", "CANARY_KEY is not set or empty", func() { s.env = []string{"STABLE_KEY=x", "CANARY_KEY="} }, nil},
		{"an address that others reach", "no key is asked for", func() { s.env = []string{"STABLE_KEY=x", "CANARY_KEY=y"} }, []string{"--listen", "0.0.0.0:0"}},
		{"an address for the status that others reach", "--admin-listen 0.0.0.0:0 can be reached", nil, []string{"--admin-listen", "0.0.0.0:0"}},
		{"lines behind the weights", "--records ./weights.json: it is the file of the weights as well", nil, []string{"--records", "./weights.json"}},
		{"two outputs in one", "--pairs requests.jsonl: it is the file of --records as well", nil, []string{"--records", "requests.jsonl", "--pairs", "requests.jsonl"}},
		{"no name of a header", `--user-header "X User" is no name of a header`, nil, []string{"--user-header", "X User"}},
		{"a key for clients that is not set", `"CLIENT_KEY" holds no key`, nil, []string{"--client-key-env", "CLIENT_KEY"}},
		{"more than all", "is not a share between 0 and 1", nil, []string{"--sample", "1.5"}},
		{"bodies for nobody", "none are written", nil, []string{"--bodies"}},
		{"a copy that may hang", "--timeout-ms 0: a copy takes from 1 ms", nil, []string{"--timeout-ms", "0"}},
		{"no places", "--max-copies is out of range", nil, []string{"--max-copies", "0"}},
		{"a file that cannot be", "no such file or directory", nil, []string{"--records", "no/such/file.jsonl"}},
		{"no canary", "versions.canary is not configured", func() { s.edit("  canary: { base", "  # canary: { base") }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change()
			}
			got := s.want(2, append([]string{"shadow", "proxy", "--listen", "127.0.0.1:0"}, c.args...)...)
			if !strings.Contains(got.err, c.want) || got.out != "" {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestARunAndAProxyReleaseByThemselves has the proxy route by the weights that
// run writes, and run judge by the records that the proxy writes: with a canary
// that turns bad nobody but the two notices.
func TestARunAndAProxyReleaseByThemselves(t *testing.T) {
	s, stable, canary := proxied(t, "")
	s.put("requests.jsonl", "")
	proxy, url := s.startProxy("--sample", "0", "--records", "requests.jsonl")
	var users atomic.Int64
	stop := make(chan struct{})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				ask(t, url, fmt.Sprint("user-", users.Add(1)%200))
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	run := s.start("run")
	eventually(t, "does the canary get its first step", func() bool { return s.weight() == 0.2 })
	before := canary.asked.Load()
	eventually(t, "do users reach it", func() bool { return canary.asked.Load() > before+20 })
	if stable.asked.Load() < canary.asked.Load() {
		t.Errorf("stable %d, canary %d", stable.asked.Load(), canary.asked.Load())
	}
	canary.bad.Store(true)
	eventually(t, "is it rolled back", func() bool { return s.weight() == 0 })
	eventually(t, "does the proxy send everybody to stable", func() bool {
		was := canary.asked.Load()
		<-time.After(100 * time.Millisecond)
		return canary.asked.Load() == was
	})
	close(stop)
	<-asked
	if said := run.said(); !strings.Contains(said, "handed to a human") {
		t.Errorf("run said:\n%s\nthe proxy said:\n%s", said, proxy.said())
	}
	for _, p := range []*started{run, proxy} {
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.wait(t)
	}
	s.verify()
}
