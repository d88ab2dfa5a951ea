package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// command is a proxy that runs.
type command struct {
	cmd  *exec.Cmd
	dir  string
	url  string
	once sync.Once
	err  error
}

// start starts the program in front of the two mocks. Nothing that the pairs say
// ends the copies: they are what is measured.
func start(ctx context.Context, program string, m *mocks, more ...string) (*command, error) {
	dir, err := os.MkdirTemp("", "proxyload-")
	if err != nil {
		return nil, err
	}
	c := &command{dir: dir}
	conf := fmt.Sprintf("canary:\n  target_service: load\n  steps: [{pct: 1.00, min_hold_min: 1, gate: [time]}]\nversions:\n"+
		"  stable: {base_url: %q, model_id: m-1}\n  canary: {base_url: %q, model_id: m-2}\n", m.stable.URL+"/v1", m.canary.URL+"/v1")
	file := filepath.Join(dir, "canary.yaml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	args := append([]string{"shadow", "proxy", "-c", file, "--listen", "127.0.0.1:0", "--sample", "1", "-o", "json",
		"--records", filepath.Join(dir, "records.jsonl"), "--pairs", filepath.Join(dir, "pairs.jsonl"), "--attempt-log", filepath.Join(dir, "attempts.jsonl"),
		"--parse-gap", "1", "--tool-mismatch", "1", "--throttle-to", "1"}, more...)
	c.cmd = exec.CommandContext(ctx, program, args...)
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = 10 * time.Second
	c.cmd.Stderr = &quiet{}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var said struct {
		URL string `json:"url"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(line), &said)
	}
	if c.url = said.URL; err != nil {
		err = fmt.Errorf("the proxy does not start: %w\n%s", err, c.cmd.Stderr)
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// quiet keeps what the program says, for when it fails.
type quiet struct{ strings.Builder }

// stop ends the program as a user would, once.
func (c *command) stop() error {
	c.once.Do(func() {
		if c.cmd != nil && c.cmd.Process != nil {
			c.err = c.cmd.Process.Signal(syscall.SIGTERM)
			err := c.cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 143 {
				c.err = errors.Join(c.err, fmt.Errorf("the proxy ended with %w, not with 143: %s", err, c.cmd.Stderr))
			}
		}
		c.err = errors.Join(c.err, os.RemoveAll(c.dir))
	})
	return c.err
}

// status is what is looked at of /-/status.
type status struct {
	Requests struct {
		Cancelled  int64 `json:"cancelled"`
		Unanswered int64 `json:"unanswered"`
	} `json:"requests"`
	Copies struct {
		Sent     int64 `json:"sent"`
		Dropped  int64 `json:"dropped"`
		Failed   int64 `json:"failed"`
		InFlight int64 `json:"in_flight"`
	} `json:"copies"`
	Pairs int64 `json:"pairs"`
}

func (c *command) status() (s status, err error) {
	text, err := c.get("/-/status")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (c *command) get(path string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true // its connection is none of those that are counted
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// holds is what the process holds.
type holds struct {
	goroutines, heap float64
	files            int // -1 where the system does not say
}

func (c *command) holds() (h holds, err error) {
	text, err := c.get("/-/metrics")
	if err != nil {
		return h, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "canaryctl_proxy_goroutines":
			h.goroutines, err = strconv.ParseFloat(value, 64)
		case "canaryctl_proxy_heap_live_bytes":
			h.heap, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return h, err
		}
	}
	h.files = -1
	if list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)); err == nil {
		h.files = len(list)
	}
	return h, nil
}
