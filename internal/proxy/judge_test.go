package proxy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/canaryctl/canaryctl/internal/shadow"
)

// rolledBack is a judge in whose opinion a canary has been rolled back.
func rolledBack(t *testing.T) (*judge, shadow.Pair) {
	t.Helper()
	o := Options{Policy: shadow.DefaultPolicy(), Say: (&sink{}).say}
	j := newJudge(&o)
	bad := shadow.Pair{Stable: shadow.Answer{Parsed: true}, Canary: shadow.Answer{Failed: true}, StableFingerprint: "s", CanaryFingerprint: "bad"}
	for range o.Policy.Window {
		j.add(bad)
	}
	if stand, _, _, _ := j.standings(); stand[0].Action != shadow.RollBack {
		t.Fatalf("%+v", stand)
	}
	return j, bad
}

func TestTheStatusShowsTheWorstAndNamesHowMany(t *testing.T) {
	j, bad := rolledBack(t)
	good := bad
	good.Canary = shadow.Answer{Parsed: true}
	for i := range 300 {
		good.CanaryFingerprint = fmt.Sprintf("a%04d", i)
		j.add(good)
	}
	j.add(good)
	stand, of, pairs, _ := j.standings()
	if len(stand) != maxStandings || of != 301 || stand[0].Fingerprint != "bad" || stand[1].Fingerprint != "a0299" || pairs != 351 {
		t.Errorf("%d of %d, %d pairs: %s, %s", len(stand), of, pairs, stand[0].Fingerprint, stand[1].Fingerprint)
	}
	if text, err := json.Marshal(stand); err != nil || len(text) > 32<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestARollBackOutlivesManyOtherVersions(t *testing.T) {
	j, _ := rolledBack(t)
	for i := range 3 * maxActs {
		j.acts[versions{"s", fmt.Sprint(i)}] = shadow.Observe
		j.forget()
	}
	if len(j.acts) > maxActs || j.acts[versions{"s", "bad"}] != shadow.RollBack || j.allows(0, versions{"s", "bad"}) {
		t.Errorf("%d, %v", len(j.acts), j.acts[versions{"s", "bad"}])
	}
	j.stand = nil // its pairs are given up as well
	for i := range 3 * maxActs {
		j.acts[versions{"t", fmt.Sprint(i)}] = shadow.Observe
		j.forget()
	}
	if j.acts[versions{"s", "bad"}] != shadow.RollBack {
		t.Error("the roll-back was forgotten for others that say nothing")
	}
	for i := range 3 * maxActs {
		j.acts[versions{"u", fmt.Sprint(i)}] = shadow.RollBack
		j.forget()
	}
	if len(j.acts) > maxActs {
		t.Errorf("%d are kept", len(j.acts))
	}
}
