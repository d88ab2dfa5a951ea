package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// logOf reads lines as the command does; a line that cannot be read fails the
// test.
func logOf(t *testing.T, lines ...string) *Diagnosis {
	t.Helper()
	tally, names := NewTally(), Names{}
	for _, l := range lines {
		a, err := names.Attempt([]byte(l))
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		tally.Add(&a)
	}
	return tally.Diagnosis()
}

// attempts writes n lines of an attempt with a status.
func attempts(n, attempt, status int) []string {
	return slices.Repeat([]string{fmt.Sprintf(`{"attempt":%d,"status":%d,"upstream_request_id":"u","breaker_state":"CLOSED"}`, attempt, status)}, n)
}

func join(parts ...[]string) []string { return slices.Concat(parts...) }

func held(d *Diagnosis) string {
	var rules []string
	for _, r := range d.Table {
		if r.Holds == Yes {
			rules = append(rules, string(r.Rule))
		}
	}
	return strings.Join(rules, " ")
}

func row(t *testing.T, d *Diagnosis, rule Rule) Row {
	t.Helper()
	for _, r := range d.Table {
		if r.Rule == rule {
			return r
		}
	}
	t.Fatalf("no rule %s", rule)
	return Row{}
}

// TestTheTable holds every row of the published table to its borders, where
// counts are compared and not shares.
func TestTheTable(t *testing.T) {
	tests := []struct {
		name      string
		log       []string
		want      string
		uncovered string // part of it
	}{
		{"no 429 at all is left alone", attempts(100, 1, 200), "leave_it", ""},
		{"9 of 1000 are left alone", join(attempts(991, 1, 200), attempts(9, 1, 429)), "leave_it", ""},
		{"1 % exactly, two attempts: a notch less", join(attempts(980, 1, 200), attempts(10, 1, 429), attempts(10, 2, 200)), "less_concurrency", ""},
		{"5 % exactly, two attempts: a notch less", join(attempts(90, 1, 200), attempts(5, 1, 429), attempts(5, 2, 200)), "less_concurrency", ""},
		{"3 % with three attempts is not covered", join(attempts(964, 1, 200), attempts(30, 1, 429), attempts(6, 3, 200)), "", "up to 3 attempts"},
		{"3 % without retries is not covered", join(attempts(97, 1, 200), attempts(3, 1, 429)), "", "without a single retry"},
		{"51 of 1000 with an amplification of 2 exactly is not covered", join(attempts(915, 1, 200), attempts(51, 1, 429), attempts(34, 4, 200)), "", "no more than 2"},
		{"51 of 1000 with one extra attempt more: fewer retries", join(attempts(914, 1, 200), attempts(51, 1, 429), attempts(34, 4, 200), attempts(1, 2, 200)), "fewer_retries", ""},
		{"5 % exactly is not over 5 %, however eager", join(attempts(910, 1, 200), attempts(50, 1, 429), attempts(40, 9, 200)), "", "up to 9 attempts"},
		{"third attempts of 5 % exactly are no reason", join(attempts(1000, 1, 200), attempts(50, 3, 200)), "leave_it", ""},
		{"third attempts over 5 %", join(attempts(1000, 1, 200), attempts(51, 3, 200)), "leave_it third_attempts", ""},
		{"a 401 comes first", join(attempts(97, 1, 200), attempts(2, 1, 429), attempts(1, 2, 401)), "fix_configuration less_concurrency", ""},
		{"a 404 too", join(attempts(999, 1, 200), attempts(1, 1, 404)), "fix_configuration", ""},
		{"nothing works, and not by 429", attempts(100, 1, 500), "", "over 5 % of attempts fail otherwise"},
		{"5 % of other failures are left alone", join(attempts(95, 1, 200), attempts(5, 1, 503)), "leave_it", ""},
		{"51 of 1000 are not", join(attempts(949, 1, 200), attempts(51, 1, 503)), "", "over 5 % of attempts fail otherwise"},
		{"nothing goes out", slices.Repeat([]string{`{"breaker_state":"OPEN","error_code":"circuit_open"}`}, 100), "", "over 5 % of attempts fail otherwise"},
		{"nothing is known but 401", attempts(100, 1, 401), "fix_configuration", ""},
		{"where third attempts are spoken of, the share is covered", join(attempts(10, 1, 429), attempts(10, 2, 429), attempts(10, 3, 429), attempts(10, 4, 200)), "third_attempts", ""},
		{"a 403 is no row of the table", join(attempts(999, 1, 200), attempts(1, 1, 403)), "leave_it", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := logOf(t, tt.log...)
			if got := held(d); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if (d.Uncovered == "") != (tt.uncovered == "") || !strings.Contains(d.Uncovered, tt.uncovered) {
				t.Errorf("uncovered: %q, want %q", d.Uncovered, tt.uncovered)
			}
		})
	}
}

// TestAmplificationAsPublished: the sum of (attempt - 1) over all attempts,
// for each 429. A client that tries four times at most and meets nothing else
// stays at 2; one that tries six times does not.
func TestAmplificationAsPublished(t *testing.T) {
	storm := func(tries int) (lines []string) {
		for n := 1; n < tries; n++ {
			lines = append(lines, attempts(10, n, 429)...)
		}
		return append(lines, attempts(10, tries, 200)...)
	}
	for tries, want := range map[int]float64{2: 1, 3: 1.5, 4: 2, 5: 2.5, 6: 3} {
		r := logOf(t, storm(tries)...).Retries
		if r.Amplification == nil || *r.Amplification != want || *r.PerRateLimit != 1 {
			t.Errorf("%d attempts: %v, want %g", tries, r.Amplification, want)
		}
	}
	if d := logOf(t, storm(4)...); held(d) != "third_attempts" {
		t.Errorf("four attempts: %q", held(d))
	}
	if d := logOf(t, storm(5)...); held(d) != "fewer_retries third_attempts" {
		t.Errorf("five attempts: %q", held(d))
	}
	if r := logOf(t, attempts(3, 2, 200)...).Retries; r.Amplification != nil {
		t.Errorf("without a 429: %v, want none", *r.Amplification)
	}
}

func TestWhoRefused(t *testing.T) {
	d := logOf(t,
		`{"status":429,"breaker_state":"CLOSED"}`,
		`{"status":429,"breaker_state":"HALF_OPEN"}`,
		`{"status":429,"upstream_request_id":"u1"}`,
		`{"status":429,"breaker_state":"OPEN","upstream_request_id":"u2"}`, // in flight when it opened
		`{"status":429,"breaker_state":"OPEN"}`,
		`{"status":503,"breaker_state":"open"}`,
		`{"breaker_state":"OPEN","error_code":"circuit_open"}`,
		`{"status":429}`,
		`{"status":200,"breaker_state":"OPEN"}`, // went out before
		`{"status":null,"breaker_state":"OPEN","error_code":"read_timeout"}`,
	)
	if want := (Refusals{Upstream: 4, OwnBreaker: 3, Unknown: 1}); d.Refusals != want {
		t.Errorf("%+v, want %+v", d.Refusals, want)
	}
	if d.RateLimited != (Share{6, 10}) || d.Sent != (Share{5, 7}) {
		t.Errorf("429: %v of all, %v of what went out", d.RateLimited, d.Sent)
	}
}

func TestWithoutBreakerStateNobodyCanTell(t *testing.T) {
	d := logOf(t, `{"status":429,"attempt":1}`, `{"status":200,"attempt":2}`)
	if d.Refusals.Unknown != 1 || row(t, d, FewerProbes).Holds != NoData || row(t, d, FewerProbes).Missing != "breaker_state" {
		t.Errorf("%+v, %+v", d.Refusals, row(t, d, FewerProbes))
	}
	if !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, "nobody can tell who refused") }) {
		t.Errorf("not said: %q", d.Notes)
	}
}

func TestMissingFieldsAreNoData(t *testing.T) {
	tests := []struct {
		name    string
		log     []string
		rule    Rule
		missing string
	}{
		{"no status: nothing about 429", []string{`{"breaker_state":"OPEN"}`}, FixConfiguration, "status"},
		{"no attempt: no third attempts", []string{`{"status":200}`}, ThirdAttempts, "attempt"},
		{"no attempt at 3 %", slices.Concat(slices.Repeat([]string{`{"status":200}`}, 97), slices.Repeat([]string{`{"status":429}`}, 3)), LessConcurrency, "attempt"},
		{"no attempt at 50 %", []string{`{"status":200}`, `{"status":429}`}, FewerRetries, "attempt"},
		{"a time-out where no id is ever logged", []string{`{"error_code":"read_timeout"}`}, LongerTimeout, "upstream_request_id"},
	}
	for _, tt := range tests {
		if r := row(t, logOf(t, tt.log...), tt.rule); r.Holds != NoData || r.Missing != tt.missing {
			t.Errorf("%s: %s, missing %q", tt.name, r.Holds, r.Missing)
		}
	}
}

func TestTimeouts(t *testing.T) {
	lines := func(n int, l string) []string { return slices.Repeat([]string{l}, n) }
	ok := `{"status":200,"upstream_request_id":"u"}`
	timeout := `{"status":0,"error_code":"read_timeout","elapsed_ms":30021}`
	tests := []struct {
		name string
		log  []string
		want Holds
	}{
		{"1 % without a record upstream", join(lines(99, ok), lines(1, timeout)), Yes},
		{"less than 1 %", join(lines(100, ok), lines(1, timeout)), No},
		{"with a record upstream", join(lines(9, ok), lines(5, `{"error_code":"ReadTimeout","upstream_request_id":"u"}`)), No},
		{"to connect", join(lines(9, ok), lines(5, `{"error_code":"connect_timeout"}`)), No},
		{"a place in the pool", join(lines(9, ok), lines(5, `{"error_code":"PoolTimeout"}`)), No},
		{"a gateway's 504", join(lines(9, ok), lines(5, `{"status":504,"error_code":"timeout"}`)), No},
		{"by a word for the status", join(lines(9, ok), lines(5, `{"status":"timeout"}`)), Yes},
		{"by other names", join(lines(9, ok), lines(5, `{"status":null,"error_code":"APITimeoutError"}`)), Yes},
		{"a deadline", join(lines(9, ok), lines(5, `{"error_code":"DEADLINE_EXCEEDED"}`)), Yes},
	}
	for _, tt := range tests {
		if got := row(t, logOf(t, tt.log...), LongerTimeout).Holds; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	d := logOf(t, join(lines(9, ok), lines(3, `{"error_code":"canaryctl_pool_timeout","inflight":48}`), lines(2, `{"error_code":"connect_timeout"}`))...)
	if d.Timeouts.Pool != 3 || d.Timeouts.Other != 2 || d.Sent.Of != 11 || len(d.InFlight) != 0 {
		t.Errorf("what waits for a place in vain never went out: %+v, sent %d", d.Timeouts, d.Sent.Of)
	}
	d = logOf(t, join(lines(9, ok), lines(3, timeout))...)
	if d.Timeouts.MedianMS == nil || *d.Timeouts.MedianMS != 30000 {
		t.Errorf("median %v, want 30000", d.Timeouts.MedianMS)
	}
}

// states writes lines of breaker states: C, O and H, each a second after the one
// before, and . for a second without a line.
func states(text string) (lines []string) {
	for i, c := range text {
		state := map[rune]string{'C': "CLOSED", 'O': "OPEN", 'H': "HALF_OPEN"}[c]
		if c != '.' {
			at := time.Date(2026, 3, 2, 2, 17, i, 0, time.UTC).Format(time.RFC3339)
			lines = append(lines, fmt.Sprintf(`{"ts":%q,"status":200,"breaker_state":%q}`, at, state))
		}
	}
	return lines
}

func TestFlapping(t *testing.T) {
	open := strings.Repeat("O", 15)
	tests := []struct {
		name                 string
		states               string
		opened, failed, soon int64
		flaps                Holds
	}{
		{"never open", "CCCCC", 0, 0, 0, No},
		{"opened and recovered", "CC" + open + "HHHCC", 1, 0, 0, No},
		{"two failed rounds", "C" + open + "H" + open + "H" + open + "HHHC", 1, 2, 0, No},
		{"three failed rounds", "C" + open + "H" + open + "H" + open + "H" + open, 1, 3, 0, Yes},
		{"probes of one round that end one after the other", "C" + open + "HOHOHO" + open, 1, 1, 0, No},
		{"open again soon after each recovery", strings.Repeat("C"+open+"HHHCC", 4), 4, 0, 3, Yes},
		{"open again long after", "C" + open + "HC" + strings.Repeat(".", 70) + "C" + open + "HC" + strings.Repeat(".", 70) + "C" + open + "HC", 3, 0, 0, No},
		{"calls from before the trip that end late", "CCOCOCOCOC" + open + "HC", 1, 0, 0, No},
		{"half-open without a line while open", "C" + strings.Repeat(".", 15) + "HHHC", 1, 0, 0, No},
	}
	for _, tt := range tests {
		d := logOf(t, states(tt.states)...)
		got := [3]int64{d.Breaker.Opened, d.Breaker.Failed, d.Breaker.Soon}
		if got != [3]int64{tt.opened, tt.failed, tt.soon} || row(t, d, FewerProbes).Holds != tt.flaps {
			t.Errorf("%s: opened, failed, soon %v, flaps %s", tt.name, got, row(t, d, FewerProbes).Holds)
		}
	}
}

func TestInFlightAgainst429(t *testing.T) {
	var lines []string
	add := func(n, inflight, status int) {
		lines = append(lines, slices.Repeat([]string{fmt.Sprintf(`{"status":%d,"inflight":%d}`, status, inflight)}, n)...)
	}
	add(100, 8, 200)
	add(98, 9, 200)
	add(2, 16, 429) // 2 % exactly is not past 2 %
	add(97, 17, 200)
	add(3, 24, 429)
	add(10, 25, 429) // too few to say anything
	d := logOf(t, lines...)
	want := []Bucket{{0, 8, Share{0, 100}}, {9, 16, Share{2, 100}}, {17, 24, Share{3, 100}}, {25, 32, Share{10, 10}}}
	if !slices.Equal(d.InFlight, want) {
		t.Errorf("%v, want %v", d.InFlight, want)
	}
	if d.Steady == nil || *d.Steady != 16 {
		t.Errorf("steady up to %v, want 16", d.Steady)
	}
	lines = nil
	add(100, 3, 429)
	add(100, 500, 429)
	d = logOf(t, lines...)
	if d.Steady != nil {
		t.Errorf("429 from the first call on: steady up to %d", *d.Steady)
	}
	if n := len(d.InFlight); n != 2 || d.InFlight[1].To-d.InFlight[1].From != 47 {
		t.Errorf("%v", d.InFlight)
	}
}

func TestLongAgainstShortPrompts(t *testing.T) {
	d := logOf(t, `{"status":200,"prompt_tokens":32000}`, `{"status":429,"prompt_tokens":32001}`, `{"status":429}`,
		`{"error_code":"timeout","prompt_tokens":90000}`, `{"status":429,"prompt_tokens":90000,"breaker_state":"OPEN"}`)
	if d.Short != (Lane{RateLimited: Share{0, 1}}) || d.Long != (Lane{RateLimited: Share{1, 2}, Timeouts: 1}) || d.Unsized != 1 {
		t.Errorf("short %+v, long %+v, unsized %d", d.Short, d.Long, d.Unsized)
	}
}

func TestRequestsByTrace(t *testing.T) {
	at := func(s float64, trace, rest string) string {
		return fmt.Sprintf(`{"ts":%.3f,"trace_id":%q,%s}`, 1772417820+s, trace, rest)
	}
	d := logOf(t,
		at(0, "a", `"status":429,"retry_after_ms":1000`),
		at(0.4, "a", `"status":429,"retry_after_ms":1000`), // too soon
		at(1.4, "a", `"status":200`),                       // in time
		at(2, "b", `"status":401`),
		at(3, "b", `"status":401`), // in vain
		at(4, "c", `"status":429,"error_code":"insufficient_quota"`),
		at(5, "c", `"status":429,"error_code":"insufficient_quota"`), // in vain
		at(6, "d", `"status":200`),
	)
	r := d.Retries
	if d.Requests == nil || *d.Requests != 4 || *d.Answered != 2 {
		t.Errorf("requests %v, answered %v", d.Requests, d.Answered)
	}
	if r.TooSoon != (Share{1, 2}) || r.Vain != (Share{2, 4}) {
		t.Errorf("too soon %v, in vain %v", r.TooSoon, r.Vain)
	}
	if r.First != 4 || r.Second != 3 || r.Third.Count != 1 || r.Largest != 3 || r.Extra != 5 {
		t.Errorf("numbered by their places: %+v", r)
	}
}

func TestMemoryOfRequestsIsBounded(t *testing.T) {
	defer func(n int) { maxTraces = n }(maxTraces)
	maxTraces = 10
	tally := NewTally()
	for i := range 1000 {
		for range 2 {
			tally.Add(&Attempt{Trace: fmt.Sprint(i), Status: 429})
		}
	}
	if n := len(tally.traces.young) + len(tally.traces.old); n > 20 {
		t.Errorf("%d requests are kept", n)
	}
	d := tally.Diagnosis()
	if *d.Requests != 1000 || d.Retries.Second != 1000 {
		t.Errorf("%d requests, %d second attempts", *d.Requests, d.Retries.Second)
	}
	if !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, "more than 10 requests apart") }) {
		t.Errorf("not said: %q", d.Notes)
	}
}

func TestAnotherFileIsAnotherBreaker(t *testing.T) {
	tally := NewTally()
	for range 5 {
		tally.NextFile()
		for _, l := range states("HO") {
			a, _ := (&Names{}).Attempt([]byte(l))
			tally.Add(&a)
		}
	}
	if got := tally.Diagnosis().Breaker; got.Failed != 5 || got.Opened != 0 {
		t.Errorf("%+v", got)
	}
}
