package metrics

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"
)

// Exporter serves the newest view. It may be set and asked from several
// goroutines.
type Exporter struct {
	view    atomic.Pointer[View]
	ended   atomic.Bool
	started time.Time
	limit   time.Duration
	now     func() time.Time
}

// NewExporter returns an exporter whose health ends when the last decision is
// older than a limit; before the first one the age counts from now on.
func NewExporter(limit time.Duration, now func() time.Time) *Exporter {
	return &Exporter{started: now(), limit: limit, now: now}
}

// Set replaces the view.
func (e *Exporter) Set(v View) { e.view.Store(&v) }

// End says that nothing more will be decided: the release is complete, or waits
// for a person. Its last view is served on, beside those of others.
func (e *Exporter) End() { e.ended.Store(true) }

// Handler answers with the metrics of the newest view, with nothing before the
// first.
func (e *Exporter) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var body bytes.Buffer
		if v := e.view.Load(); v != nil {
			if err := Write(&body, *v, e.now()); err != nil {
				http.Error(w, "metrics: "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", ContentType)
		_, _ = w.Write(body.Bytes()) // the scraper has gone
	})
}

// health is the body of /healthz.
type health struct {
	Schema   int      `json:"schema"`
	Status   string   `json:"status"`         // ok, starting, stale
	Age      *float64 `json:"decision_age_s"` // null before the first decision
	AgeLimit float64  `json:"decision_age_limit_s"`
}

// Health answers 200 while decisions are made in time, else 503.
func (e *Exporter) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h, code := e.health()
		answerHealth(w, h, code)
	})
}
