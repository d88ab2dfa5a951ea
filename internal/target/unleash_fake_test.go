package target

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

const fakeUnleashToken = "*:*.unleash-insecure-admin-api-token"

// fakeUnleash answers as Unleash 6.10.1 did when it was asked the same: the
// bodies, the statuses, and what it does not look at (If-Match).
type fakeUnleash struct {
	mu       sync.Mutex
	features map[string]*fakeFeature // by name, of project default
	made     int                     // strategies
}

type fakeFeature struct {
	enabled    bool
	strategies []map[string]any
}

func newFakeUnleash(t *testing.T) *httptest.Server {
	f := &fakeUnleash{features: map[string]*fakeFeature{}}
	const features = "/api/admin/projects/{project}/features"
	const env = features + "/{feature}/environments/{env}"
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+features, f.create)
	mux.HandleFunc("GET "+env, f.within(f.environment))
	mux.HandleFunc("GET "+env+"/strategies", f.within(func(w http.ResponseWriter, r *http.Request, x *fakeFeature) { fakeAnswer(w, 200, x.strategies) }))
	mux.HandleFunc("POST "+env+"/strategies", f.within(f.add))
	mux.HandleFunc("PATCH "+env+"/strategies/{id}", f.within(f.patch))
	mux.HandleFunc("POST "+env+"/on", f.within(func(w http.ResponseWriter, r *http.Request, x *fakeFeature) { x.enabled = true }))
	mux.HandleFunc("POST "+env+"/off", f.within(func(w http.ResponseWriter, r *http.Request, x *fakeFeature) { x.enabled = false }))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch r.Header.Get("Authorization") {
		case fakeUnleashToken:
			mux.ServeHTTP(w, r)
		case "":
			fakeError(w, 401, "AuthenticationRequired", "You must log in to use Unleash. Your request had no authorization header, so we could not authorize you.")
		default:
			fakeAnswer(w, 403, map[string]any{"message": "invalid token: expected a different token type for this endpoint"})
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func fakeAnswer(w http.ResponseWriter, status int, body any) {
	text, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("ETag", fmt.Sprintf(`W/"%x-weak"`, len(text))) // weak, as Express makes them
	w.WriteHeader(status)
	w.Write(text)
}

func fakeError(w http.ResponseWriter, status int, name, message string) {
	fakeAnswer(w, status, map[string]any{"id": "aed43065-8561-4f6c-a5b9-7ee8407225eb", "name": name, "message": message,
		"details": []any{map[string]any{"message": message}}})
}

func (f *fakeUnleash) create(w http.ResponseWriter, r *http.Request) {
	var body struct{ Name string }
	text, _ := io.ReadAll(r.Body)
	json.Unmarshal(text, &body)
	f.features[body.Name] = &fakeFeature{strategies: []map[string]any{}}
	fakeAnswer(w, 201, map[string]any{"name": body.Name, "project": r.PathValue("project")})
}

// within finds the feature. Under another project there is the flag, but it
// has no strategies.
func (f *fakeUnleash) within(do func(http.ResponseWriter, *http.Request, *fakeFeature)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := f.features[r.PathValue("feature")]
		switch {
		case x == nil, r.PathValue("env") != "development":
			fakeError(w, 404, "NotFoundError", "Could not find "+r.PathValue("feature")+" in "+r.PathValue("env"))
		case r.PathValue("project") != "default":
			do(w, r, &fakeFeature{strategies: []map[string]any{}})
		default:
			do(w, r, x)
		}
	}
}

// environment has the strategies without their segments.
func (f *fakeUnleash) environment(w http.ResponseWriter, r *http.Request, x *fakeFeature) {
	fakeAnswer(w, 200, map[string]any{"name": r.PathValue("feature"), "environment": r.PathValue("env"), "enabled": x.enabled, "strategies": []any{}})
}

func (f *fakeUnleash) add(w http.ResponseWriter, r *http.Request, x *fakeFeature) {
	s := map[string]any{"constraints": []any{}, "segments": []any{}, "disabled": false, "parameters": map[string]any{}}
	json.NewDecoder(r.Body).Decode(&s)
	f.made++
	s["id"] = fmt.Sprintf("293aa710-d465-4060-bef4-%012d", f.made)
	x.strategies = append(x.strategies, s)
	fakeAnswer(w, 200, s)
}

// patch takes the operations that Unleash's schema has, and texts only.
func (f *fakeUnleash) patch(w http.ResponseWriter, r *http.Request, x *fakeFeature) {
	const invalid = "Request validation failed: your request body or params contain invalid data. Refer to the `details` list for more information."
	var ops []struct {
		Op, Path string
		Value    any
	}
	if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&ops) != nil {
		fakeError(w, 400, "BadDataError", invalid)
		return
	}
	i := slices.IndexFunc(x.strategies, func(s map[string]any) bool { return s["id"] == r.PathValue("id") })
	if i < 0 {
		fakeError(w, 404, "NotFoundError", "Could not find strategy with id: "+r.PathValue("id"))
		return
	}
	for _, op := range ops {
		text, isText := op.Value.(string)
		if op.Op != "replace" || op.Path != "/parameters/rollout" || !isText {
			fakeError(w, 400, "BadDataError", invalid)
			return
		}
		x.strategies[i]["parameters"].(map[string]any)["rollout"] = text // checked by nobody: "abc" is taken
	}
	fakeAnswer(w, 200, x.strategies[i])
}
