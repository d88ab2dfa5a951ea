package trace

import (
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	for want, statuses := range map[outcome]string{
		statusUnknown: "|null|None|NA|NaN",
		statusOK:      "ok|OK|Ok|success|Succeeded|completed|true|200|200.0|201|204|302|399|101|0|200 OK|2xx|Unset",
		statusFailed: "error|timeout|rate_limited|RateLimitError|ValidationException|400|401|404|429|429 Too Many Requests|418|600|-1|-100|7|false|4xx|" +
			"RESOURCE_EXHAUSTED|InvalidArgument|PERMISSION_DENIED|APIConnectionError|200.5",
		statusServer: "500|502|503.0|599|503 Service Unavailable|server_error|internal_error|InternalServerError|Internal Server Error|5xx|overloaded_error|" +
			"UNAVAILABLE|DeadlineExceeded|DEADLINE_EXCEEDED|INTERNAL|DATA_LOSS|Unknown",
		statusGone: "499|499.0|client_cancel|client cancelled|cancelled|Canceled|CANCELLED|client_closed|ClientClosedRequest|client-disconnected",
	} {
		for s := range strings.SplitSeq(statuses, "|") {
			if got, known := statusOutcome([]byte(s)); got != want || !known {
				t.Errorf("%q: %d, known %t, want %d", s, got, known, want)
			}
		}
	}
}

// A word that is in no table is no success: it counts as an error, and is told.
func TestAStatusThatIsNotKnownIsAnErrorAndSaid(t *testing.T) {
	d := wantStreams(t, "stop", Options{}, "status_of 3 errors 2 server_errors 0", `"status":"stop"`, `"status":"ok"`, `"user_id":"b","status":"stop"`)
	if len(d.Strange) != 1 || d.Strange[0] != "stop" || !noted(d, "a status that is not known counts as an error: stop") {
		t.Errorf("%q, %q", d.Strange, d.Notes)
	}
	long := strings.Repeat("very_", 20) + "odd"
	if got, known := statusOutcome([]byte(long)); got != statusFailed || known {
		t.Errorf("%d %t", got, known)
	}
}

func FuzzStatus(f *testing.F) {
	for _, s := range []string{"ok", "499", "-100", "503 Service Unavailable", "RateLimitError", "\xff", "1e400", " ", "____"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, known := statusOutcome(text)
		folded, knownToo := statusOutcome([]byte(strings.ToLower(string(text))))
		if isASCII(text) && (o != folded || known != knownToo) {
			t.Errorf("%q: %d, in lower case %d", text, o, folded)
		}
		if !known && o != statusFailed {
			t.Errorf("%q is not known and %d", text, o)
		}
	})
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
