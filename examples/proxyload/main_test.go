package main

import (
	"testing"
	"time"
)

func TestTheMocksAnswerAsIsExpectedOfThem(t *testing.T) {
	m, err := newMocks(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	m.gap.Store(int64(time.Millisecond))
	m.canaryIs("healthy")
	for _, url := range []string{m.stable.URL, m.canary.URL} {
		c := newClient(url, 1)
		defer c.close()
		var f figures
		for range 10 {
			f.add(c.ask(t.Context(), m, time.Now()))
		}
		if f.wrong+f.failed != 0 || f.streams != 2 || len(f.latencies) != 8 || (len(f.delays) > 0) != (url == m.stable.URL) {
			t.Errorf("%+v", f)
		}
	}
	m.canaryIs("resetting")
	c := newClient(m.canary.URL, 1)
	defer c.close()
	if f := c.ask(t.Context(), m, time.Now()); f.failed != 1 {
		t.Errorf("%+v", f)
	}
}

func TestAQuantileIsOneOfTheValues(t *testing.T) {
	d := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(d, q); got != want {
			t.Errorf("%g: %d, want %d", q, got, want)
		}
	}
}
