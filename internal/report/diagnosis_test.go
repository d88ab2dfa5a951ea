package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/diagnose"
	"github.com/canaryctl/canaryctl/internal/report"
)

func diagnosisOf(t *testing.T, lines ...string) *report.Diagnosis {
	t.Helper()
	tally := diagnose.NewTally()
	for _, l := range lines {
		a, err := (&diagnose.Names{}).Attempt([]byte(l))
		if err != nil {
			t.Fatal(err)
		}
		tally.Add(&a)
	}
	return &report.Diagnosis{Files: []string{"a.jsonl"}, Diagnosis: tally.Diagnosis()}
}

// TestDiagnosisOfAPoorLog: what a log does not say is no data, and is neither a
// zero nor a clean bill.
func TestDiagnosisOfAPoorLog(t *testing.T) {
	d := diagnosisOf(t, `{"status":200}`, `{"status":200}`, `{"error_code":"read_timeout"}`)
	var b strings.Builder
	if err := d.Text(&b, report.Style{}); err != nil {
		t.Fatal(err)
	}
	want := `diagnose: 3 attempts

what to do
  not covered by the table: 429 under 1 %, but over 5 % of attempts fail otherwise: throttling is not what is the matter; see their statuses and time-outs
  no data for third_attempts (third attempts over 5 % of first ones): the log has no attempt
  no data for fewer_probes (the breaker flaps: 3 times or more open again out of its probes): the log has no breaker_state
  no data for longer_read_timeout (read time-outs of the client that the upstream has no record of, 1 % or more): the log has no upstream_request_id

figures
  429              0.00 % (0 of 3)
  failed otherwise 33.33 % (1 of 3)
  refused by       upstream 0, own breaker 0, nobody knows 0
  statuses         none: 1, 200: 2
  retries          no data: the log has neither attempt nor trace_id
  time-outs        read 33.33 % (1 of 3), without an upstream id 1; to connect or write 0, for a place 0
  prompts          no data: the log has no prompt_tokens
  in flight        no data: the log has no inflight

notes
  no line has upstream_request_id: whether the upstream has a record of a call is unknown
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	text, err := json.Marshal(d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"schema":1,"files":["a.jsonl"],"bad":0,"bad_lines":[],"verdicts":[],"lines":3,`, `"requests":null`, `"amplification":null`,
		`"third_attempts":{"count":0,"of":0,"share":null}`, `"holds":"no_data"`, `"missing":"breaker_state"`, `"inflight":[]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
