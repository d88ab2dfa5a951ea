package configapi

import (
	"bytes"
	"cmp"
	_ "embed"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/canaryctl/canaryctl/internal/metrics"
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the API's description, an OpenAPI 3.1 document in JSON.
func OpenAPI() []byte { return bytes.Clone(openAPI) }

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	send(w, http.StatusOK, "application/json", openAPI)
	return nil
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	return sendJSON(w, http.StatusOK, struct {
		Schema int    `json:"schema"`
		Status string `json:"status"`
	}{1, "ok"})
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	var f metrics.Families
	f.Build(s.version)
	for _, c := range s.requests.sorted() {
		f.Counter("canaryctl_serve_requests_total", "Requests answered, by method and status.", c.count, "method", c.method, "code", strconv.Itoa(c.code))
	}
	all := s.store.snapshot()
	f.Gauge("canaryctl_serve_services", "Services that have a document.", float64(len(all)))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.Gauge("canaryctl_serve_canary_weight_ratio", "The canary's weight in the service's document, 0 to 1.", all[name].canary, "service", name)
		f.Time("canaryctl_serve_modified_timestamp_seconds", "When the service's document was last replaced, in seconds since 1970.", all[name].Modified, "service", name)
	}
	var body bytes.Buffer
	if err := f.Write(&body); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, metrics.ContentType, body.Bytes())
	return nil
}

// requestCounts counts answers.
type requestCounts struct {
	mu     sync.Mutex
	counts map[requestKind]int64
}

type requestKind struct {
	method string
	code   int
}

// countedMethods have series of their own; others share one, for a client may
// invent any number of them.
var countedMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

func (c *requestCounts) add(method string, code int) {
	if !slices.Contains(countedMethods, method) {
		method = "other"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[requestKind]int64{}
	}
	c.counts[requestKind{method, code}]++
}

type requestCount struct {
	requestKind
	count int64
}

func (c *requestCounts) sorted() []requestCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]requestCount, 0, len(c.counts))
	for k, n := range c.counts {
		all = append(all, requestCount{k, n})
	}
	slices.SortFunc(all, func(a, b requestCount) int {
		return cmp.Or(cmp.Compare(a.method, b.method), cmp.Compare(a.code, b.code))
	})
	return all
}
