package trace

import (
	"os"
	"path/filepath"
	"regexp"
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

// Blanks around a value say nothing, in JSON as little as in CSV.
func TestBlanksAroundAValueSayNothing(t *testing.T) {
	const want = "ttft_of 1 ttft_p99_ms 3100 ttft_slow 1 streams 3 aborted 1 status_of 3 errors 1 server_errors 1"
	wantStreams(t, "json", limit3000, want, `"status":" 503 ","ttft_ms":" 3100 "`, `"status":" ","stream_aborted":" true "`, `"status":"\tok\n"`, `"status":" 499","stream_aborted":" client_cancel "`)
	for _, s := range []string{" 503 ", "503\t", "\n503 Service Unavailable ", " server_error "} {
		if o, known := statusOutcome([]byte(s)); o != statusServer || !known {
			t.Errorf("%q: %d %t", s, o, known)
		}
	}
	d := mustRead(t, `{"ts":" 2026-05-04T00:00:00Z ","arm":" canary ","solved":" true ","latency_ms":" 5 "}`+"\n"+"", Options{})
	wantTable(t, d, "2026-05-04T00:00:00Z,canary,1,1,1,,,,,5")
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

// The page names what each status is; each of its words and codes is read so.
func TestStatusesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "input.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]outcome{"ok": statusOK, "a server error": statusServer, "the client hung up": statusGone, "any other number": statusFailed}
	met := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 2 {
			continue
		}
		for name, want := range rows {
			is := strings.HasPrefix(strings.TrimSpace(cells[1]), name) || strings.HasPrefix(strings.TrimSpace(cells[0]), name)
			if !is || !strings.Contains(cells[0], "`") && want != statusFailed {
				continue
			}
			met++
			for _, m := range regexp.MustCompile("`([^`]+)`|-?[0-9]+").FindAllString(cells[0], -1) {
				word := strings.Trim(m, "`")
				if got, known := statusOutcome([]byte(word)); got != want || !known {
					t.Errorf("%s: %d %t, the page says %d", word, got, known, want)
				}
			}
		}
	}
	if met != len(rows) {
		t.Errorf("%d rows of the page's table found", met)
	}
}
