//go:build unix

package target

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/config"
)

// reference is the page on targets.
func reference(t *testing.T) string {
	t.Helper()
	return content(t, filepath.Join("..", "..", "docs", "reference", "target.md"))
}

// fenced returns the blocks of a language in a page, by name or number.
func fenced(page, language string) map[string]string {
	blocks := map[string]string{}
	for i, part := range strings.Split(page, "\n```"+language)[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		body, _, _ := strings.Cut(rest, "\n```")
		name := strings.TrimSpace(head)
		if name == "" {
			name = fmt.Sprintf("block %d", i+1)
		}
		blocks[name] = body + "\n"
	}
	return blocks
}

func TestEveryExampleOfTheReferenceIsAConfiguration(t *testing.T) {
	blocks := fenced(reference(t), "yaml")
	if len(blocks) < 8 {
		t.Fatalf("only %d examples found", len(blocks))
	}
	for name, block := range blocks {
		src := "canary:\n  target_service: chat\n  steps: [{pct: 0.01, min_hold_min: 60}, {pct: 1, min_hold_min: 60}]\n" + block
		cfg, list := config.Parse("canary.yaml", []byte(src))
		if cfg == nil {
			for _, f := range list {
				t.Errorf("%s: %s", name, f.Render(config.Mask([]byte(src))))
			}
			continue
		}
		made, err := New(cfg.Target, Options{Service: "chat", Ring: 100, Getenv: func(string) string { return "some-value" }})
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, block)
			continue
		}
		if err := made.Check(weightOf(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFinestStepsOfTheReferenceAreTrue(t *testing.T) {
	for _, row := range []struct {
		unit   scale
		finest string
	}{{fraction, "0.0001 %"}, {percent, "0.01 %"}, {scale{1000, 1}, "0.01 %"}, {basisPoints, "0.01 %"}, {scale{256, 0}, "0.390625 %"}, {scale{100000, 0}, "0.001 %"}, {scale{100, 1}, "0.1 %"}} {
		if got := row.unit.finest().String(); got != row.finest || !strings.Contains(reference(t), "| "+got+" |") {
			t.Errorf("%+v: %s, want %s", row.unit, got, row.finest)
		}
	}
}

// recipe writes a script of the reference into a folder, with programs in
// front of the PATH, and makes its target.
func recipe(t *testing.T, name string, programs map[string]string, unit config.Unit) *command {
	t.Helper()
	dir := t.TempDir()
	script, ok := fenced(reference(t), "sh")[name]
	if !ok {
		t.Fatalf("the reference has no %s", name)
	}
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(name, script)
	for program, text := range programs {
		write(program, "#!/bin/sh\n"+text+"\n")
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	made, err := New(&config.Target{Kind: "exec", Exec: &config.ExecTarget{
		Read: []string{"./" + name, "get"}, Write: []string{"./" + name, "set"}, Unit: unit,
	}}, Options{Ring: 100, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*command)
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: %s is not installed", p)
		}
	}
}

func TestRecipeForNGINX(t *testing.T) {
	x := recipe(t, "nginx-weight", map[string]string{"nginx": `case $1 in -t) ! grep -q "^ *0%" split.conf ;; -s) echo reload >>log ;; esac`}, config.Unit{Whole: 100, Places: 2})
	t.Setenv("SPLIT_CONF", "split.conf")
	conf := filepath.Join(x.dir, "split.conf")
	before := fenced(reference(t), "nginx")["block 1"]
	if err := os.WriteFile(conf, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, slots := range []int64{0, 5, 100, 0} {
		if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(slots)}); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, x).Weight; got != weightOf(slots) {
			t.Errorf("wrote %d, read %v", slots, got)
		}
	}
	if got := content(t, conf); got != before {
		t.Errorf("back at 0 the file is\n%s", got)
	}
	if err := os.WriteFile(filepath.Join(x.dir, "nginx"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); !isA[*RefusedError](err) || content(t, conf) != before {
		t.Errorf("a configuration that nginx refuses: %v\n%s", err, content(t, conf))
	}
}

func TestRecipeForKubectl(t *testing.T) {
	needs(t, "jq")
	const kubectl = `case "$1" in
get) cat route.json ;;
replace)
  cat >new.json
  [ "$(jq .metadata.resourceVersion new.json)" = "$(jq .metadata.resourceVersion route.json)" ] ||
    { echo 'Operation cannot be fulfilled: the object has been modified' >&2; exit 1; }
  [ ! -e rival ] || { echo 'the object has been modified' >&2; exit 1; }
  jq '.metadata.resourceVersion |= (tonumber + 1 | tostring)' new.json >route.json ;;
esac`
	x := recipe(t, "kubectl-weight", map[string]string{"kubectl": kubectl}, config.Unit{Whole: 100})
	t.Setenv("ROUTE", "chat")
	t.Setenv("CANARY", "llm-canary")
	t.Setenv("STABLE", "llm-stable")
	route := filepath.Join(x.dir, "route.json")
	if err := os.WriteFile(route, []byte(`{"metadata": {"resourceVersion": "7"}, "spec": {"rules": [
  {"backendRefs": [{"name": "llm-stable", "weight": 99}, {"name": "llm-canary", "weight": 1}]}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	was := mustRead(t, x)
	if was.Weight != weightOf(1) || was.Revision != "7" {
		t.Fatalf("read %+v", was)
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	if is := mustRead(t, x); is.Weight != weightOf(5) || is.Revision != "8" || !strings.Contains(content(t, route), `"weight": 95`) {
		t.Errorf("read back %+v", is)
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(10)}); !isA[*ConflictError](err) {
		t.Errorf("from an old reading: %v", err)
	}
	if err := os.WriteFile(filepath.Join(x.dir, "rival"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(10)}); !isA[*ConflictError](err) {
		t.Errorf("a rival in between: %v", err)
	}
}

func TestRecipeForLiteLLM(t *testing.T) {
	needs(t, "jq", "curl")
	weights, order := map[string]string{"s1": "100", "c1": "0"}, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-master-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPatch {
			id := strings.Split(r.URL.Path, "/")[2]
			body := make([]byte, 200)
			n, _ := r.Body.Read(body)
			_, rest, _ := strings.Cut(string(body[:n]), `"weight": `)
			weights[id], order = strings.TrimRight(rest, "}"), order+id+" "
			return
		}
		fmt.Fprintf(w, `{"data": [{"model_info": {"id": "s1"}, "litellm_params": {"weight": %s}}, {"model_info": {"id": "c1"}, "litellm_params": {"weight": %s}}]}`, weights["s1"], weights["c1"])
	}))
	t.Cleanup(server.Close)
	x := recipe(t, "litellm-weight", nil, config.Unit{Whole: 100, Places: 2})
	for k, v := range map[string]string{"LITELLM_URL": server.URL, "LITELLM_MASTER_KEY": "sk-master-key", "STABLE_ID": "s1", "CANARY_ID": "c1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"} {
		t.Setenv(k, v)
	}
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5), Move: "advance"}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, x).Weight; got != weightOf(5) || order != "s1 c1 " {
		t.Errorf("holds %v, written in the order %s", got, order)
	}
	weights["s1"] = "99"
	if _, err := x.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "not 100 together") {
		t.Errorf("weights of no sum: %v", err)
	}
	order = ""
	if err := x.Write(t.Context(), Reading{}, Change{To: weightOf(0), Overwrite: true, Move: "roll_back"}); err != nil || order != "c1 s1 " {
		t.Errorf("a rollback: %v, in the order %s", err, order)
	}
	if got := mustRead(t, x).Weight; !got.IsZero() {
		t.Errorf("a rollback left %v", got)
	}
	t.Setenv("LITELLM_MASTER_KEY", "sk-wrong-key")
	if _, err := x.Read(t.Context()); !isA[*RefusedError](err) || strings.Contains(err.Error(), "sk-wrong") {
		t.Errorf("a wrong key: %v", err)
	}
	t.Setenv("LITELLM_MASTER_KEY", "sk-master-key")
	server.Close()
	if _, err := x.Read(t.Context()); !isA[*UnreachableError](err) {
		t.Errorf("nobody there: %v", err)
	}
}
