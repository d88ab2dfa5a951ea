package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

// unleashServer is an Unleash under test: the fake, or a real one whose URL
// and admin token are in the environment.
type unleashServer struct {
	url, token, feature string
}

func (u unleashServer) target(t *testing.T, change func(*config.UnleashTarget)) Target {
	t.Helper()
	cfg := config.UnleashTarget{URL: u.url, TokenEnv: "TOKEN", Feature: u.feature, Environment: "development"}
	if change != nil {
		change(&cfg)
	}
	env := map[string]string{"TOKEN": u.token, "CLIENT": "default:development.client-token"}
	tgt, err := newUnleash(&cfg, Options{Ring: 100, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	return tgt
}

// post asks the admin API itself, below the flag's environment.
func (u unleashServer) post(t *testing.T, method, path, body string) (id string) {
	t.Helper()
	where := u.url + "/api/admin/projects/default/features"
	if path != "" {
		where += "/" + u.feature + "/environments/development/" + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, where, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", u.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	var got struct{ ID string }
	json.Unmarshal(text, &got) // what has no id gives none
	return got.ID
}

func (u unleashServer) rollout(t *testing.T, id, percent string) {
	t.Helper()
	u.post(t, http.MethodPatch, "strategies/"+id, fmt.Sprintf(`[{"op":"replace","path":"/parameters/rollout","value":%q}]`, percent))
}

const unleashRollout = `{"name":"flexibleRollout","parameters":{"rollout":"%s","stickiness":"userId","groupId":"llm"},"constraints":[]}`

func TestUnleash(t *testing.T) {
	server := unleashServer{url: os.Getenv("CANARYCTL_UNLEASH_URL"), token: os.Getenv("CANARYCTL_UNLEASH_TOKEN")}
	if server.url == "" {
		server = unleashServer{url: newFakeUnleash(t).URL, token: fakeUnleashToken}
	}
	for i, tt := range []struct {
		name string
		run  func(t *testing.T, u unleashServer, strategy string)
	}{
		{"a share is written as a text and read back", unleashWrites},
		{"somebody else has moved", unleashConflict},
		{"a disabled environment has nobody on the canary", unleashDisabled},
		{"clients count whole percents", unleashWholePercents},
		{"several strategies", unleashSeveral},
		{"what is not there", unleashMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := server
			u.feature = fmt.Sprintf("llm-%d-%d", i, time.Now().UnixNano())
			u.post(t, http.MethodPost, "", fmt.Sprintf(`{"name":%q,"type":"release"}`, u.feature))
			id := u.post(t, http.MethodPost, "strategies", fmt.Sprintf(unleashRollout, "1"))
			u.post(t, http.MethodPost, "on", "")
			tt.run(t, u, id)
		})
	}
}

func unleashWrites(t *testing.T, u unleashServer, id string) {
	tgt := u.target(t, nil)
	wantHeld(t, tgt, hundredths(1))
	for _, w := range []release.Weight{hundredths(5), {Slots: 1, Ring: 10}, hundredths(100), hundredths(0)} {
		moveTo(t, tgt, w)
	}
	moveTo(t, u.target(t, func(c *config.UnleashTarget) { c.Strategy = id }), hundredths(30))
}

func unleashConflict(t *testing.T, u unleashServer, id string) {
	tgt := u.target(t, nil)
	was := wantHeld(t, tgt, hundredths(1))
	u.rollout(t, id, "50")
	err := tgt.Write(t.Context(), was, Change{To: hundredths(5)})
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || conflict.Held == nil || !conflict.Held.Same(hundredths(50)) {
		t.Fatalf("%v, want a conflict with 50 %%", err)
	}
	wantHeld(t, tgt, hundredths(50))
	if err := tgt.Write(t.Context(), was, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, tgt, hundredths(0))
}

func unleashDisabled(t *testing.T, u unleashServer, id string) {
	u.rollout(t, id, "30")
	u.post(t, http.MethodPost, "off", "")
	tgt := u.target(t, nil)
	was := wantHeld(t, tgt, hundredths(0))
	err := tgt.Write(t.Context(), was, Change{To: hundredths(5)})
	if hint, ok := isRefused(err); !ok || !strings.Contains(err.Error(), "environment development is disabled") || !strings.Contains(hint, "enable it") {
		t.Errorf("%v (%s)", err, hint)
	}
	if err := tgt.Write(t.Context(), was, Change{To: hundredths(0)}); err != nil {
		t.Error(err)
	}
	u.post(t, http.MethodPost, "on", "")
	wantHeld(t, tgt, hundredths(0)) // the 30 % do not come back with it
}

func unleashWholePercents(t *testing.T, u unleashServer, id string) {
	tgt := u.target(t, nil)
	half := release.Weight{Slots: 1, Ring: 200}
	for _, err := range []error{tgt.Check(half), tgt.Write(t.Context(), Reading{Weight: hundredths(1)}, Change{To: half})} {
		if fine, ok := errors.AsType[*FineError](err); !ok || !fine.Finest.Same(hundredths(1)) || fine.Target == "" {
			t.Errorf("%v, want a finest step of 1 %%", err)
		}
	}
	for _, rollout := range []string{"7.5", "abc", "100.01", "-1"} { // Unleash takes them all
		u.rollout(t, id, rollout)
		_, err := tgt.Read(t.Context())
		if hint, ok := isShape(err); !ok || hint == "" {
			t.Errorf("rollout %s: %v (%s)", rollout, err, hint)
		}
		if _, ok := errors.AsType[*ConflictError](tgt.Write(t.Context(), Reading{}, Change{To: hundredths(5)})); !ok {
			t.Errorf("rollout %s is written over", rollout)
		}
	}
	if err := tgt.Write(t.Context(), Reading{}, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Errorf("a rollback from -1: %v", err)
	}
	wantHeld(t, tgt, hundredths(0))
}

func unleashSeveral(t *testing.T, u unleashServer, id string) {
	tgt := u.target(t, nil)
	for _, narrow := range []string{
		`{"name":"userWithId","parameters":{"userIds":"staff-1"},"constraints":[]}`,
		`{"name":"default","parameters":{},"constraints":[{"contextName":"userId","operator":"IN","values":["staff-2"]}]}`,
		`{"name":"default","disabled":true,"parameters":{},"constraints":[]}`,
	} {
		u.post(t, http.MethodPost, "strategies", narrow)
		wantHeld(t, tgt, hundredths(1))
	}
	other := u.post(t, http.MethodPost, "strategies", fmt.Sprintf(unleashRollout, "50"))
	_, err := tgt.Read(t.Context())
	if hint, ok := isShape(err); !ok || !strings.Contains(err.Error(), id+", "+other) || !strings.Contains(hint, "target.unleash.strategy") {
		t.Errorf("%v (%s)", err, hint)
	}
	if hint, ok := isRefused(tgt.Write(t.Context(), Reading{}, Change{Overwrite: true})); !ok || hint == "" {
		t.Error("a rollback picks one of two strategies")
	}
	chosen := u.target(t, func(c *config.UnleashTarget) { c.Strategy = id })
	_, err = chosen.Read(t.Context())
	if _, ok := isShape(err); !ok || !strings.Contains(err.Error(), other+" of type flexibleRollout is for everybody too") {
		t.Errorf("%v, want that the other adds users", err)
	}
	if err := chosen.Write(t.Context(), Reading{}, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Errorf("a rollback beside another strategy: %v", err)
	}
	u.rollout(t, other, "0")
	wantHeld(t, chosen, hundredths(0))
	u.post(t, http.MethodPost, "strategies", `{"name":"default","parameters":{},"constraints":[]}`)
	if _, err = chosen.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "of type default") {
		t.Errorf("%v, want that everybody is on the canary", err)
	}
}

func unleashMissing(t *testing.T, u unleashServer, id string) {
	for name, tt := range map[string]struct {
		change func(*config.UnleashTarget)
		want   string
		kind   func(error) (string, bool)
	}{
		"flag":         {func(c *config.UnleashTarget) { c.Feature = "nope" }, "Could not find nope", isShape},
		"environment":  {func(c *config.UnleashTarget) { c.Environment = "nope" }, "in nope", isShape},
		"project":      {func(c *config.UnleashTarget) { c.Project = "nope" }, "target.unleash.project", isShape},
		"strategy":     {func(c *config.UnleashTarget) { c.Strategy = "nope" }, "no strategy nope", isShape},
		"client token": {func(c *config.UnleashTarget) { c.TokenEnv = "CLIENT" }, "token_env", isRefused},
	} {
		_, err := u.target(t, tt.change).Read(t.Context())
		if hint, ok := tt.kind(err); !ok || !strings.Contains(err.Error()+hint, tt.want) || strings.Contains(err.Error()+hint, "client-token") {
			t.Errorf("%s: %v (%s), want %q", name, err, hint, tt.want)
		}
	}
}

func TestUnleashTroubleIsSortedByWhoCanHelp(t *testing.T) {
	status, body := 0, ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer srv.Close()
	tgt := unleashServer{url: srv.URL, token: "token-of-admin", feature: "llm"}.target(t, nil)
	for _, tt := range []struct {
		status int
		body   string
		kind   func(error) (string, bool)
	}{
		{401, `{"message":"no token-of-admin here"}`, isRefused},
		{403, "", isRefused},
		{429, "", isUnreachable},
		{503, "", isUnreachable},
		{200, "<html>log in</html>", isShape},
		{200, `{"enabled":"yes"}`, isShape},
		{200, `{}`, isShape},
	} {
		status, body = tt.status, tt.body
		_, err := tgt.Read(t.Context())
		if _, ok := tt.kind(err); !ok || strings.Contains(err.Error(), "token-of-admin") {
			t.Errorf("%d %s: %T: %v", tt.status, tt.body, err, err)
		}
		if e, ok := errors.AsType[*UnreachableError](err); ok && e.After != 3*time.Second {
			t.Errorf("%d: after %s", tt.status, e.After)
		}
	}
	srv.Close()
	_, err := tgt.Read(t.Context())
	if _, ok := isUnreachable(err); !ok || strings.Contains(err.Error(), srv.URL) {
		t.Errorf("%v", err)
	}
	if _, err := newUnleash(&config.UnleashTarget{URL: srv.URL, Feature: "f", Environment: "e", TokenEnv: "UNSET"}, Options{Getenv: func(string) string { return "" }}); err == nil || !strings.Contains(err.Error(), "UNSET") {
		t.Errorf("%v, want that UNSET is not set", err)
	}
}
