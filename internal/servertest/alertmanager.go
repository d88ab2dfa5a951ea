package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Alertmanager starts an Alertmanager until the end of the test and returns
// its address. It sends every alert and every end of one to webhook at once,
// each by itself; "" sends nowhere.
func Alertmanager(t testing.TB, webhook string) (url string) {
	t.Helper()
	program := Program(t, "prometheus-alertmanager", "prometheus-alertmanager")
	dir, address := t.TempDir(), "127.0.0.1:"+strconv.Itoa(Port(t))
	receiver := "{name: test}"
	if webhook != "" {
		receiver = fmt.Sprintf("{name: test, webhook_configs: [{url: %q, send_resolved: true}]}", webhook)
	}
	config := "route: {receiver: test, group_by: ['...'], group_wait: 10ms, group_interval: 100ms, repeat_interval: 1h}\n" +
		"receivers: [" + receiver + "]\n"
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	url = "http://" + address
	Start(t, program, []string{
		"--config.file=" + file, "--storage.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + address, "--cluster.listen-address=",
	}, HTTP(url+"/-/ready"))
	return url
}
