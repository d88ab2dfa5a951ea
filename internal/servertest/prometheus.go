package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Prometheus starts a server that holds the history in an OpenMetrics text:
// samples with times in seconds, sorted by series, "# EOF" at the end. It
// returns the server's address.
func Prometheus(t testing.TB, openmetrics string) (url string) {
	t.Helper()
	dir := t.TempDir()
	history := filepath.Join(dir, "history.om")
	writeFile(t, history, openmetrics)
	promtool := Program(t, "promtool", "prometheus")
	if out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", history, filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return startPrometheus(t, dir, "global: {}\n")
}

// PrometheusScraping starts a server that asks the targets, each a host:port
// with /metrics, every second. The first values take some seconds: wait for
// them, not for a time.
func PrometheusScraping(t testing.TB, targets ...string) (url string) {
	t.Helper()
	quoted := make([]string, len(targets))
	for i, target := range targets {
		quoted[i] = fmt.Sprintf("%q", target)
	}
	return startPrometheus(t, t.TempDir(), "global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n"+
		"- job_name: test\n  static_configs: [ { targets: ["+strings.Join(quoted, ", ")+"] } ]\n")
}

func startPrometheus(t testing.TB, dir, config string) (url string) {
	t.Helper()
	file := filepath.Join(dir, "prometheus.yml")
	writeFile(t, file, config)
	address := fmt.Sprintf("127.0.0.1:%d", Port(t))
	url = "http://" + address
	Start(t, Program(t, "prometheus", "prometheus"), []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y",
		"--web.listen-address=" + address, "--log.level=warn",
	}, HTTP(url+"/-/ready"))
	return url
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
