package metrics

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"time"
)

// Joint serves the newest views of several exporters as one: the scenes of a
// service, each a release of its own.
type Joint []*Exporter

// WriteAll is [Write] of several views of one program: each metric once, with
// the series of all.
func WriteAll(w io.Writer, views []View, now time.Time) error {
	var f Families
	for i := range views {
		if i == 0 {
			f.Build(views[i].Version)
		}
		views[i].add(&f, now)
	}
	return f.Write(w)
}

// Handler answers with the metrics of the newest views, with nothing before the
// first.
func (j Joint) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var views []View
		now := time.Time{}
		for _, e := range j {
			now = e.now()
			if v := e.view.Load(); v != nil {
				views = append(views, *v)
			}
		}
		var body bytes.Buffer
		if len(views) > 0 {
			if err := WriteAll(&body, views, now); err != nil {
				http.Error(w, "metrics: "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", ContentType)
		_, _ = w.Write(body.Bytes()) // the scraper has gone
	})
}

// Health answers 200 while decisions are made in time for all, else 503. The
// age is that of the one that was decided for longest ago, of those for which
// anything is left to decide.
func (j Joint) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all, code := health{Schema: 1, Status: "ok"}, http.StatusOK
		for _, e := range j {
			if e.ended.Load() {
				continue
			}
			h, c := e.health()
			if h.Age != nil && (all.Age == nil || *h.Age > *all.Age) {
				all.Age = h.Age
			}
			all.AgeLimit = max(all.AgeLimit, h.AgeLimit)
			if c != http.StatusOK || h.Status != "ok" && code == http.StatusOK {
				all.Status, code = h.Status, c
			}
		}
		answerHealth(w, all, code)
	})
}

// health is how one exporter is.
func (e *Exporter) health() (health, int) {
	h := health{Schema: 1, Status: "ok", AgeLimit: e.limit.Seconds()}
	now, since := e.now(), e.started
	if v := e.view.Load(); v != nil && !v.LastDecision.IsZero() {
		since = v.LastDecision
		h.Age = new(math.Round(age(since, now)*1000) / 1000)
	} else {
		h.Status = "starting"
	}
	if now.Sub(since) > e.limit {
		h.Status = "stale"
		return h, http.StatusServiceUnavailable
	}
	return h, http.StatusOK
}

func answerHealth(w http.ResponseWriter, h health, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(h) // whoever asked has gone
}
