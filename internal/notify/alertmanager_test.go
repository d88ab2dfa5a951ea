package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

func TestAlertmanagerEndsWhatItWasAskedToBegin(t *testing.T) {
	am, err := newAlertmanager(nil, eventSet{Drift: true, Paused: true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[Event]string{
		Drift: "[CanaryDrift begins]", Paused: "[CanaryPaused begins]", DriftOver: "[CanaryDrift ends]", Resumed: "[CanaryPaused ends]",
		RolledBack: "[CanaryDrift ends]", Locked: "[CanaryDrift ends]", Test: "[CanaryTest begins]",
		Started: "[CanaryDrift ends CanaryPaused ends]", Advanced: "[CanaryDrift ends CanaryPaused ends]", Completed: "[CanaryDrift ends CanaryPaused ends]",
	}
	for e := range words {
		if got := am.wants(e); e != Test && got != (want[e] != "") {
			t.Errorf("wants(%s) is %v", e, got)
		}
		out, err := am.request(Message{Event: e, Time: at, Service: "s"}, at)
		if want[e] == "" {
			if err == nil {
				t.Errorf("%s: sent %s", e, out.body)
			}
			continue
		}
		var posted []postedAlert
		if err := json.Unmarshal(out.body, &posted); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range posted {
			does := "ends"
			if p.StartsAt != "" {
				does = "begins"
			}
			got = append(got, p.Labels["alertname"]+" "+does)
		}
		if fmt.Sprint(got) != want[e] {
			t.Errorf("%s: got %v, want %s", e, got, want[e])
		}
	}
}

// delivery is what Alertmanager's webhook sends, version 4.
type delivery struct {
	Status string
	Alerts []struct {
		Status      string
		Labels      map[string]string
		Annotations map[string]string
	}
}

func TestRealAlertmanagerBeginsTellsAndEnds(t *testing.T) {
	told := make(chan delivery, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var d delivery
		if err := json.NewDecoder(r.Body).Decode(&d); err == nil {
			told <- d
		}
	}))
	t.Cleanup(hook.Close)
	url := servertest.Alertmanager(t, hook.URL)
	ch := mustNew(t, config.Channel{Kind: "alertmanager", URL: url + "/", Labels: map[string]string{"team": "llm"}}, Options{})

	m := rollback()
	m.Time = time.Now().Add(-time.Minute)
	send := func(m Message) {
		t.Helper()
		if err := ch.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	send(m)
	send(m) // a retry of what had got through changes nothing
	if got, want := active(t, url), "[CanaryRolledBack critical order-service llm]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	begin := next(t, told)
	if begin.Status != "firing" || len(begin.Alerts) != 1 || begin.Alerts[0].Annotations["summary"] != "order-service: rolled back, step 3 of 5, weight 0 %" ||
		begin.Alerts[0].Annotations["next"] != m.Next {
		t.Fatalf("got %+v", begin)
	}

	m.Event, m.Time, m.Attempt, m.Step, m.Reason = Recovered, time.Now().Add(-time.Second), 3, 1, "5 of 5 probes good"
	send(m)
	end := next(t, told)
	if end.Status != "resolved" || len(end.Alerts) != 1 || end.Alerts[0].Labels["alertname"] != "CanaryRolledBack" || end.Alerts[0].Annotations["description"] != m.Reason {
		t.Fatalf("got %+v", end)
	}
	if got := active(t, url); got != "[]" {
		t.Fatalf("still there: %s", got)
	}
	select {
	case d := <-told: // ends of alerts that never began are told to nobody
		t.Errorf("told once more: %+v", d)
	case <-time.After(300 * time.Millisecond):
	}
}

func next(t *testing.T, told <-chan delivery) delivery {
	t.Helper()
	select {
	case d := <-told:
		return d
	case <-time.After(10 * time.Second):
		t.Fatal("Alertmanager told nobody within 10 s")
		return delivery{}
	}
}

// active lists the alerts that stand.
func active(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url + "/api/v2/alerts?active=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []struct {
		Labels map[string]string
		EndsAt time.Time
	}
	if err := json.Unmarshal(body, &alerts); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	names := []string{}
	for _, a := range alerts {
		if time.Until(a.EndsAt) < 24*time.Hour {
			t.Errorf("%s ends by itself at %s", a.Labels["alertname"], a.EndsAt)
		}
		names = append(names, a.Labels["alertname"]+" "+a.Labels["severity"]+" "+a.Labels["service"]+" "+a.Labels["team"])
	}
	return fmt.Sprint(names)
}

// TestRealAlertmanagerRefusesInBothShapes keeps judge honest about what the
// server says.
func TestRealAlertmanagerRefusesInBothShapes(t *testing.T) {
	url := servertest.Alertmanager(t, "")
	for body, want := range map[string]string{
		`[{"labels":{}}]`:                          "answered 400 Bad Request: at least one label pair required",
		`[{"labels":{"a":"b"},"startsAt":"soon"}]`: `answered 400 Bad Request: parsing alerts body from "" failed, because parsing time "soon" as "2006-01-02 15:04:05": cannot parse "soon" as "2006"`,
	} {
		ch := mustNew(t, config.Channel{Kind: "alertmanager", URL: url}, Options{}).(*channel)
		a, err := ch.link.do(t.Context(), outgoing{body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.say.judge(a); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
