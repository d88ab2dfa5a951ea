package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"runtime"
	rtmetrics "runtime/metrics"

	"github.com/canaryctl/canaryctl/internal/metrics"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// adminPrefix is where the proxy answers about itself.
const adminPrefix = "/-/"

// Admin answers /-/healthy, /-/status and /-/metrics.
func (p *Proxy) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n")) // whoever asked has gone
	})
	mux.HandleFunc("GET /-/status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		_ = out.Encode(p.Status()) // whoever asked has gone
	})
	mux.HandleFunc("GET /-/metrics", p.metrics)
	return mux
}

// AdminAside is [Proxy.Admin] for an address of its own: with loopback for
// programs of this machine only, else for whoever shows the key of the clients,
// if there is one. Whether it is alive needs no key: who looks for that often
// has none.
func (p *Proxy) AdminAside(loopback bool) http.Handler {
	admin := p.Admin()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case loopback && !fromThisMachine(r):
			refuseForeign(w)
		case !loopback && r.URL.Path != adminPrefix+"healthy" && !p.knowsClient(r):
			wantKey(w)
		default:
			admin.ServeHTTP(w, r)
		}
	})
}

// Status is how the proxy stands.
type Status struct {
	Schema  int          `json:"schema"`
	UptimeS float64      `json:"uptime_s"`
	Weight  *weightState `json:"weight"` // null: no target, everybody is on stable

	Requests struct {
		Stable     int64 `json:"stable"` // answered by it
		Canary     int64 `json:"canary"`
		PassedOn   int64 `json:"passed_on"` // paths that are neither routed nor copied
		Fallbacks  int64 `json:"fallbacks"` // the canary failed, stable answered
		Retries    int64 `json:"retries"`
		Refused    int64 `json:"refused"` // by the gates and breakers here
		Unanswered int64 `json:"unanswered"`
		Cancelled  int64 `json:"cancelled"` // by users
		Unroutable int64 `json:"unroutable"`
		Malformed  int64 `json:"malformed"`
		Unrecorded int64 `json:"unrecorded"`
		Panics     int64 `json:"internal_errors"`
	} `json:"requests"`

	Gates     map[release.Arm]map[string]gateState `json:"gates"`
	Copies    copiesState                          `json:"copies"`
	Pairs     int64                                `json:"pairs"`
	Unaligned int64                                `json:"unaligned"`
	Standings []shadow.Standing                    `json:"standings"` // the worst, twenty at most
	Standing  int                                  `json:"standings_in_all"`

	Records  *linesState `json:"records_file"` // null: not wanted
	Attempts *linesState `json:"attempt_log"`
	Lines    *linesState `json:"pairs_file"`
}

// gateState is one lane of one version.
type gateState struct {
	Breaker  release.Phase `json:"breaker"`
	WaitS    float64       `json:"wait_s"` // for how long nothing goes out
	InFlight int           `json:"in_flight"`
	Places   *int          `json:"places"` // null: no bound
	Opened   int64         `json:"opened"`
}

// Status returns how the proxy stands now.
func (p *Proxy) Status() *Status {
	s := &Status{Schema: 1, UptimeS: seconds(p.o.Now().Sub(p.began)), Weight: p.weights.state(), Gates: map[release.Arm]map[string]gateState{}}
	c, r := &p.count, &s.Requests
	r.Stable, r.Canary, r.PassedOn = c.stable.Load(), c.canary.Load(), c.passed.Load()
	r.Fallbacks, r.Retries, r.Refused, r.Unanswered = c.fallbacks.Load(), c.retries.Load(), c.refused.Load(), c.unanswered.Load()
	r.Cancelled, r.Unroutable, r.Malformed = c.cancelled.Load(), c.unroutable.Load(), c.malformed.Load()
	r.Unrecorded, r.Panics = c.unfinished.Load(), c.panics.Load()
	for _, u := range []*upstream{p.stable, p.canary} {
		s.Gates[u.arm] = u.guard.states()
	}
	s.Copies = p.copiesState()
	s.Standings, s.Standing, s.Pairs, s.Unaligned = p.judge.standings()
	if s.Standings == nil {
		s.Standings = []shadow.Standing{}
	}
	s.Records, s.Attempts, s.Lines = p.records.state(), p.attempts.state(), p.pairs.state()
	return s
}

func (g *guard) states() map[string]gateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	out, now := map[string]gateState{}, g.now()
	for lane := range throttle.Lane(throttle.Lanes) {
		l := g.gates.State(lane, now)
		state := gateState{Breaker: l.Phase, WaitS: seconds(l.Wait), InFlight: l.InFlight, Opened: l.Opened}
		if l.Places < unbounded {
			state.Places = &l.Places
		}
		out[lane.String()] = state
	}
	return out
}

// metrics answers in Prometheus' text format.
func (p *Proxy) metrics(w http.ResponseWriter, _ *http.Request) {
	s := p.Status()
	var f metrics.Families
	const requests, requestsHelp = "canaryctl_proxy_requests_total", "Requests by what became of them."
	for _, c := range []struct {
		result string
		n      int64
	}{
		{"stable", s.Requests.Stable}, {"canary", s.Requests.Canary}, {"passed_on", s.Requests.PassedOn}, {"unanswered", s.Requests.Unanswered},
		{"cancelled", s.Requests.Cancelled},
	} {
		f.Counter(requests, requestsHelp, c.n, "result", c.result)
	}
	f.Counter("canaryctl_proxy_fallbacks_total", "Requests that the canary failed and stable answered.", s.Requests.Fallbacks)
	f.Counter("canaryctl_proxy_retries_total", "Attempts after the first.", s.Requests.Retries)
	f.Counter("canaryctl_proxy_refused_total", "Calls refused by the gates and breakers of the proxy.", s.Requests.Refused)
	for _, c := range []struct {
		result string
		n      int64
	}{{"sent", s.Copies.Sent}, {"dropped", s.Copies.Dropped}, {"unfit", s.Copies.Unfit}, {"failed", s.Copies.Failed}} {
		f.Counter("canaryctl_proxy_copies_total", "Copies to the canary by what became of them.", c.n, "result", c.result)
	}
	f.Gauge("canaryctl_proxy_copies_in_flight", "Copies under way.", float64(s.Copies.InFlight))
	if s.Weight != nil && s.Weight.Known {
		f.Gauge("canaryctl_proxy_weight", "The canary's share that requests are routed by, a fraction of 1.", s.Weight.Pct)
		f.Gauge("canaryctl_proxy_weight_age_seconds", "Since the weight was last read.", *s.Weight.Age)
	}
	for _, arm := range []release.Arm{release.Stable, release.Canary} {
		for _, lane := range []throttle.Lane{throttle.Short, throttle.Long} {
			g := s.Gates[arm][lane.String()]
			f.Gauge("canaryctl_proxy_in_flight", "Calls under way.", float64(g.InFlight), "arm", string(arm), "lane", lane.String())
			f.Flag("canaryctl_proxy_breaker_open", "1 while calls are refused.", g.Breaker == release.Open, "arm", string(arm), "lane", lane.String())
		}
	}
	for _, l := range []struct {
		file string
		is   *linesState
	}{{"records", s.Records}, {"attempts", s.Attempts}, {"pairs", s.Lines}} {
		if l.is != nil {
			f.Counter("canaryctl_proxy_lines_lost_total", "Lines that were not written.", l.is.Dropped+l.is.Failed, "file", l.file)
		}
	}
	f.Gauge("canaryctl_proxy_goroutines", "Goroutines of the process.", float64(runtime.NumGoroutine()))
	live := []rtmetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if rtmetrics.Read(live); live[0].Value.Kind() == rtmetrics.KindUint64 {
		f.Gauge("canaryctl_proxy_heap_live_bytes", "Memory in use when it was last looked for garbage.", float64(live[0].Value.Uint64()))
	}
	var body bytes.Buffer
	if err := f.Write(&body); err != nil {
		http.Error(w, "metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = w.Write(body.Bytes()) // the scraper has gone
}
