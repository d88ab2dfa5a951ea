package report_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// inCI says that a missing browser is a failure and not a reason to skip.
const inCI = "CANARYCTL_CI"

// tab is one page in a headless browser, spoken to by the DevTools protocol
// over a pipe: JSON messages that end with a zero byte.
type tab struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
	events  []event
}

type event struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// openTab starts a browser that ends with the test.
func openTab(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	read, write := pipe(t), pipe(t)
	// The page is our own, and a container may have neither the namespaces that
	// the sandbox wants nor a large /dev/shm.
	cmd := exec.CommandContext(ctx, browserPath(t), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars", "--force-device-scale-factor=1", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{read[0], write[1]}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	_, _ = read[0].Close(), write[1].Close()
	b := &tab{t: t, to: read[1], from: bufio.NewReaderSize(write[0], 1<<20)}
	t.Cleanup(func() {
		_ = b.send("Browser.close", nil)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the browser said: %s", complaints.Bytes())
		}
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func pipe(t *testing.T) [2]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return [2]*os.File{r, w}
}

// browserPath finds a browser, or skips and says so.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && runtime.GOOS != "windows" {
			return path
		}
	}
	const text = "no chromium, chromium-browser or google-chrome on PATH: NOBODY HAS LOOKED AT THE PAGE; install the package chromium"
	if os.Getenv(inCI) == "1" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

func (b *tab) send(method string, params any) error {
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" && method != "Browser.close" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = b.to.Write(append(text, 0))
	return err
}

// call sends a command and waits for its answer; events on the way are kept.
func (b *tab) call(method string, params, result any) {
	b.t.Helper()
	if err := b.send(method, params); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		id, answer := b.next(method)
		if id != b.last {
			continue
		}
		if result != nil {
			if err := json.Unmarshal(answer, result); err != nil {
				b.t.Fatalf("%s: %v in %s", method, err, answer)
			}
		}
		return
	}
}

// next reads one message: an answer, or an event with the id 0.
func (b *tab) next(waitingFor string) (id int, result json.RawMessage) {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("%s: the browser hung up: %v", waitingFor, err)
	}
	var m struct {
		event
		ID     int             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatalf("%s: %v", waitingFor, err)
	}
	if m.Error != nil {
		b.t.Fatalf("%s: %s", waitingFor, m.Error.Message)
	}
	if m.Method != "" {
		b.events = append(b.events, m.event)
	}
	return m.ID, m.Result
}

// show loads a file at a width and in a colour scheme, then makes the window
// as high as the page, so that all of it is looked at.
func (b *tab) show(path string, width int, scheme string) {
	b.t.Helper()
	b.events = nil
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.resize(width, 800)
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for loaded := false; !loaded; {
		b.next("load")
		loaded = b.events != nil && b.events[len(b.events)-1].Method == "Page.loadEventFired"
	}
	var height int
	b.evaluate(`document.querySelectorAll('details').forEach(d => d.open = true); document.documentElement.scrollHeight`, &height)
	b.resize(width, height)
}

func (b *tab) resize(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// evaluate runs a script in the page and decodes its value.
func (b *tab) evaluate(script string, value any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		b.t.Fatalf("script: %s %s", e.Text, e.Exception.Description)
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		b.t.Fatalf("script: %v", err)
	}
}

type box struct{ X, Y, W, H float64 }

// picture returns a part of the page as PNG.
func (b *tab) picture(at box) []byte {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "clip": map[string]any{"x": at.X, "y": at.Y, "width": at.W, "height": at.H, "scale": 1}}, &shot)
	return shot.Data
}

// complaints are what the console shows and what was asked of a network. The
// page itself is no request.
func (b *tab) complaints(page string) (out []string) {
	for _, e := range b.events {
		switch e.Method {
		case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
			out = append(out, fmt.Sprintf("%s: %s", e.Method, e.Params))
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &sent); err != nil || sent.Request.URL != "file://"+page {
				out = append(out, "request of "+sent.Request.URL)
			}
		}
	}
	return out
}
