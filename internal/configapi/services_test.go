package configapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestADocumentIsReadAsTheBytesThatWerePut(t *testing.T) {
	c := local(t)
	for i, body := range []string{
		one,
		" \n{ \"versions\" : {\"canary\":{\"weight\":1e-2 , \"model_id\":\"\\u00e9 é\", \"mine\":[1,2.50,null]}} }\r\n\n",
		`{"state":"{\"attempt\":2}","versions":{},"unknown":{"a":{"b":1.000}}}`,
	} {
		name := "s" + strconv.Itoa(i)
		put := c.create(name, body)
		got := c.do(http.MethodGet, "/v1/services/"+name, "")
		if string(got.body) != body {
			t.Errorf("put %q, read %q", body, got.body)
		}
		if got.etag() != put.etag() || got.etag() != etagOf([]byte(body)) {
			t.Errorf("ETag %s at the PUT, %s at the GET", put.etag(), got.etag())
		}
		if head := c.do(http.MethodHead, "/v1/services/"+name, ""); head.etag() != put.etag() || head.ContentLength != int64(len(body)) || len(head.body) != 0 {
			t.Errorf("HEAD: %v, %d bytes", head.Header, head.ContentLength)
		}
	}
}

func TestReplacementNamesWhatItReplaces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		exists  bool
		headers []string // %s: the present ETag
		status  int
		kind    string
	}{
		{name: "creation with If-None-Match: *", headers: []string{"If-None-Match: *"}, status: 201},
		{name: "creation without a precondition", status: 428, kind: "precondition-required"},
		{name: "creation with If-Match", headers: []string{"If-Match: %s"}, status: 412, kind: "precondition-failed"},
		{name: "creation with If-Match: *", headers: []string{"If-Match: *"}, status: 412, kind: "precondition-failed"},
		{name: "replacement with the present ETag", exists: true, headers: []string{"If-Match: %s"}, status: 200},
		{name: "with it among others", exists: true, headers: []string{`If-Match: "x", %s`}, status: 200},
		{name: "with it in a second line", exists: true, headers: []string{`If-Match: W/"x"`, `If-Match: ,%s ,`}, status: 200},
		{name: "with any", exists: true, headers: []string{"If-Match: *"}, status: 200},
		{name: "with another ETag", exists: true, headers: []string{`If-Match: "0000"`}, status: 412, kind: "precondition-failed"},
		{name: "with the present ETag made weak", exists: true, headers: []string{"If-Match: W/%s"}, status: 412, kind: "precondition-failed"},
		{name: "without a precondition", exists: true, status: 428, kind: "precondition-required"},
		{name: "with If-None-Match of an old ETag alone", exists: true, headers: []string{`If-None-Match: "0000"`}, status: 428, kind: "precondition-required"},
		{name: "creation of what is there", exists: true, headers: []string{"If-None-Match: *"}, status: 412, kind: "precondition-failed"},
		{name: "both headers at odds", exists: true, headers: []string{"If-Match: %s", "If-None-Match: *"}, status: 412, kind: "precondition-failed"},
		{name: "an ETag without quotes", exists: true, headers: []string{"If-Match: 0000"}, status: 400, kind: "invalid-header"},
		{name: "an ETag that does not end", exists: true, headers: []string{`If-Match: "0000`}, status: 400, kind: "invalid-header"},
		{name: "two ETags without a comma", exists: true, headers: []string{`If-Match: "a" "b"`}, status: 400, kind: "invalid-header"},
		{name: "an empty If-Match", exists: true, headers: []string{"If-Match:"}, status: 400, kind: "invalid-header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := local(t)
			want, etag := "", etagOf([]byte(one))
			if tt.exists {
				etag = c.create("s", one).etag()
				want = one
			}
			var headers []string
			for _, h := range tt.headers {
				headers = append(headers, strings.ReplaceAll(h, "%s", etag))
			}
			r := c.do(http.MethodPut, "/v1/services/s", five, headers...)
			if r.StatusCode != tt.status || r.kind() != tt.kind {
				t.Fatalf("%d %q, want %d %q: %s", r.StatusCode, r.kind(), tt.status, tt.kind, r.body)
			}
			if tt.status == 412 && tt.exists && r.problem.ETag != etag {
				t.Errorf("the problem names %q, the document has %s", r.problem.ETag, etag)
			}
			if tt.status < 300 {
				want = five
			}
			if want == "" {
				if r := c.do(http.MethodGet, "/v1/services/s", ""); r.StatusCode != http.StatusNotFound {
					t.Errorf("a refused creation left %s", r.body)
				}
			} else if got := c.stored("s"); got != want {
				t.Errorf("stored is %s, want %s", got, want)
			}
		})
	}
}

func TestReadingIsConditional(t *testing.T) {
	c := local(t)
	etag := c.create("s", one).etag()
	for _, tt := range []struct {
		header string
		status int
	}{
		{"If-None-Match: " + etag, 304},
		{"If-None-Match: W/" + etag, 304}, // the weak comparison: RFC 9110, section 13.1.2
		{"If-None-Match: *", 304},
		{`If-None-Match: "0000"`, 200},
		{"If-Match: " + etag, 200},
		{"If-Match: W/" + etag, 412},
		{`If-Match: "0000"`, 412},
		{"If-None-Match: 0000", 400},
	} {
		r := c.do(http.MethodGet, "/v1/services/s", "", tt.header)
		if r.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d", tt.header, r.StatusCode, tt.status)
		}
		if r.StatusCode == 304 && (len(r.body) > 0 || r.etag() != etag) {
			t.Errorf("%s: body %q, ETag %s", tt.header, r.body, r.etag())
		}
	}
}

func TestWhatIsNotAServiceOrARouteIsAProblem(t *testing.T) {
	c := local(t)
	long := strings.Repeat("a", 63)
	c.create(long, one)
	c.create("0.a_b-c", one)
	for _, tt := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"GET", "/v1/services/nobody", 404, "not-found"},
		{"GET", "/v1/services/" + long + "a", 400, "invalid-name"},
		{"PUT", "/v1/services/UPPER", 400, "invalid-name"},
		{"PUT", "/v1/services/.hidden", 400, "invalid-name"},
		{"PUT", "/v1/services/..%2Fescape", 400, "invalid-name"},
		{"PUT", "/v1/services/a%00b", 400, "invalid-name"},
		{"PUT", "/v1/services/%C3%A9", 400, "invalid-name"},
		{"DELETE", "/v1/services/" + long, 405, "method-not-allowed"},
		{"POST", "/v1/services", 405, "method-not-allowed"},
		{"PATCH", "/metrics", 405, "method-not-allowed"},
		{"GET", "/", 404, "not-found"},
		{"GET", "/v1/services/", 404, "not-found"},
		{"GET", "/v1/services/a/b", 404, "not-found"},
		{"PUT", "/v2/services/a", 404, "not-found"},
	} {
		r := c.do(tt.method, tt.path, one, "If-None-Match: *")
		if r.StatusCode != tt.status || r.kind() != tt.kind {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, r.StatusCode, r.kind(), tt.status, tt.kind)
		}
	}
	if got := c.do("DELETE", "/v1/services/x", "").Header.Get("Allow"); got != "GET, HEAD, PUT" {
		t.Errorf("Allow: %s", got)
	}
}

func TestOnlyJSONIsTaken(t *testing.T) {
	for _, tt := range []struct {
		header string
		status int
	}{
		{"Content-Type: application/json", 201},
		{"Content-Type: application/json; charset=utf-8", 201},
		{"Content-Type: application/vnd.team+json", 201},
		{"Content-Type: application/x-www-form-urlencoded", 415},
		{"Content-Type: text/plain", 415},
		{"Content-Type: ;;", 415},
		{"Content-Encoding: gzip", 415},
		{"Content-Encoding: identity", 201},
	} {
		c := local(t)
		if r := c.do(http.MethodPut, "/v1/services/s", one, "If-None-Match: *", tt.header); r.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d: %s", tt.header, r.StatusCode, tt.status, r.body)
		}
	}
}

func TestADocumentOfAMebibyteIsTakenAndNotAByteMore(t *testing.T) {
	c := local(t)
	fill := strings.Repeat(" ", MaxBody-len(one))
	c.create("s", one+fill)
	if r := c.do(http.MethodPut, "/v1/services/t", one+fill+" ", "If-None-Match: *"); r.StatusCode != 413 || r.kind() != "too-large" {
		t.Errorf("%d %s, want 413", r.StatusCode, r.body)
	}
}

// put is a PUT under a key and a fencing token; "" leaves a header out.
func (c *client) put(body, etag, key, token string) *reply {
	c.t.Helper()
	headers := []string{"If-Match: " + etag}
	if key != "" {
		headers = append(headers, "Idempotency-Key: "+key)
	}
	if token != "" {
		headers = append(headers, tokenHeader+": "+token)
	}
	return c.do(http.MethodPut, "/v1/services/s", body, headers...)
}

func TestARepeatedRequestGetsItsFirstAnswer(t *testing.T) {
	c := local(t)
	etag := c.create("s", one).etag()
	first := c.put(five, etag, "r/1/2/advance", "")
	again := c.put(five, etag, "r/1/2/advance", "") // its If-Match is stale by now
	if first.StatusCode != 200 || again.StatusCode != 200 || !bytes.Equal(first.body, again.body) || first.etag() != again.etag() {
		t.Fatalf("first %d %s\nagain %d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	if first.Header.Get("Idempotency-Replayed") != "" || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: %q, then %q", first.Header.Get("Idempotency-Replayed"), again.Header.Get("Idempotency-Replayed"))
	}
	if r := c.put(one, first.etag(), "r/1/2/advance", ""); r.StatusCode != 422 || r.kind() != "key-reused" {
		t.Errorf("the key with another document: %d %s, want 422", r.StatusCode, r.body)
	}
	if r := c.put(five, etag, "r/1/3/advance", ""); r.StatusCode != 412 {
		t.Errorf("another key: %d, want 412", r.StatusCode)
	}
	// A replay changes nothing, even after others have moved on.
	back := c.put(one, first.etag(), "", "")
	if again = c.put(five, etag, "r/1/2/advance", ""); again.StatusCode != 200 || c.stored("s") != one {
		t.Errorf("replay after a move: %d, stored %s", again.StatusCode, c.stored("s"))
	}
	// Keys are forgotten after 24 hours, not before.
	c.pass(KeepAnswers - time.Nanosecond)
	if r := c.put(five, etag, "r/1/2/advance", ""); r.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("just before 24 hours: %d %s", r.StatusCode, r.body)
	}
	c.pass(time.Nanosecond)
	if r := c.put(five, back.etag(), "r/1/2/advance", ""); r.StatusCode != 200 || r.Header.Get("Idempotency-Replayed") != "" || c.stored("s") != five {
		t.Errorf("after 24 hours: %d %s, stored %s", r.StatusCode, r.body, c.stored("s"))
	}
}

func TestARepeatedCreationIsAnsweredAsCreated(t *testing.T) {
	c := local(t)
	for range 2 {
		if r := c.do(http.MethodPut, "/v1/services/s", one, "If-None-Match: *", "Idempotency-Key: k"); r.StatusCode != 201 || r.Header.Get("Location") != "/v1/services/s" {
			t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
		}
	}
	if r := c.do(http.MethodPut, "/v1/services/other", one, "If-None-Match: *", "Idempotency-Key: k"); r.StatusCode != 201 || r.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the key at another service: %d %s", r.StatusCode, r.body)
	}
}

func TestARefusalIsNotRemembered(t *testing.T) {
	c := local(t)
	etag := c.create("s", one).etag()
	if r := c.put(five, `"0000"`, "k", ""); r.StatusCode != 412 {
		t.Fatalf("%d, want 412", r.StatusCode)
	}
	if r := c.put(five, etag, "k", ""); r.StatusCode != 200 || r.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the same key after a lost race: %d %s, want a 200 of its own", r.StatusCode, r.body)
	}
}

func TestKeysAreBounded(t *testing.T) {
	c := local(t)
	etag := c.create("s", one).etag()
	first := etag
	bodies := []string{five, one}
	for i := range MaxAnswers + 1 {
		etag = c.put(bodies[i%2], etag, "k"+strconv.Itoa(i), "").etag()
	}
	if n := len(c.server.store.get("s").Answers); n != MaxAnswers {
		t.Errorf("%d answers kept, want %d", n, MaxAnswers)
	}
	if r := c.put(five, first+`, "0000"`, "k1", ""); r.StatusCode != 422 {
		t.Errorf("a key that is still kept: %d, want 422", r.StatusCode)
	}
	if r := c.put(five, `"0000"`, "k0", ""); r.StatusCode != 412 {
		t.Errorf("the oldest key: %d, want 412 as for a new one", r.StatusCode)
	}
	for _, bad := range []string{"Idempotency-Key:", "Idempotency-Key: " + strings.Repeat("k", 256), "Idempotency-Key: k\xff"} {
		if r := c.do(http.MethodPut, "/v1/services/s", one, "If-Match: *", bad); r.StatusCode != 400 || r.kind() != "invalid-header" {
			t.Errorf("%.30q: %d %s, want 400", bad, r.StatusCode, r.body)
		}
	}
	if r := c.do(http.MethodPut, "/v1/services/s", one, "If-Match: *", "Idempotency-Key: a", "Idempotency-Key: b"); r.StatusCode != 400 {
		t.Errorf("two keys: %d, want 400", r.StatusCode)
	}
}

func TestAnOlderHolderOfTheLockIsRefused(t *testing.T) {
	c := local(t)
	etag := c.create("s", one).etag()
	put := func(token string) *reply {
		t.Helper()
		r := c.put(one, etag, "", token)
		return r
	}
	for _, tt := range []struct {
		token  string
		status int
		seen   string
	}{
		{"", 200, ""}, {"0", 200, ""}, {"7", 200, "7"}, {"7", 200, "7"}, {"6", 409, ""}, {"1", 409, ""},
		{"0", 200, "7"}, {"", 200, "7"}, {"18446744073709551615", 200, "18446744073709551615"}, {"8", 409, ""},
	} {
		r := put(tt.token)
		if r.StatusCode != tt.status || r.Header.Get(tokenHeader) != tt.seen {
			t.Errorf("token %q: %d with %s %q, want %d with %q", tt.token, r.StatusCode, tokenHeader, r.Header.Get(tokenHeader), tt.status, tt.seen)
		}
		if tt.status == 409 && (r.kind() != "stale-token" || r.problem.Token < 7) {
			t.Errorf("token %q: %s", tt.token, r.body)
		}
	}
	for _, bad := range []string{"-1", "x", "1.0", "18446744073709551616", "+1", "0x1"} {
		if r := put(bad); r.StatusCode != 400 {
			t.Errorf("token %q: %d, want 400", bad, r.StatusCode)
		}
	}
	if r := c.do(http.MethodGet, "/v1/services/s", ""); r.Header.Get(tokenHeader) != "18446744073709551615" {
		t.Errorf("GET says %q", r.Header.Get(tokenHeader))
	}
}

func TestATokenCountsEvenIfItsRequestLostARace(t *testing.T) {
	dir := t.TempDir()
	c := serve(t, Options{Dir: dir, Loopback: true})
	etag := c.create("s", one).etag()
	if r := c.put(five, `"0000"`, "", "9"); r.StatusCode != 412 {
		t.Fatalf("%d, want 412", r.StatusCode)
	}
	if r := c.put(five, etag, "", "8"); r.StatusCode != 409 {
		t.Errorf("the older holder with the right ETag: %d, want 409", r.StatusCode)
	}
	// The same for a replay by the new holder of the old one's request.
	if r := c.put(five, etag, "k", "9"); r.StatusCode != 200 {
		t.Fatalf("%d, want 200", r.StatusCode)
	}
	if r := c.put(five, etag, "k", "10"); r.Header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("%d %s, want a replay", r.StatusCode, r.body)
	}
	if r := c.put(five, etag, "k", "9"); r.StatusCode != 409 {
		t.Errorf("the older holder's repeated request: %d, want 409", r.StatusCode)
	}
	if got, err := onDisk(dir, "s"); err != nil || got.Token != 10 {
		t.Errorf("on disk: %+v, %v", got, err)
	}
}

func TestOfEightWritersOneWins(t *testing.T) {
	c := local(t)
	etag := c.create("s", one).etag()
	codes := make([]int, 8)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			body := fmt.Sprintf(`{"versions":{"canary":{"weight":0.%d}}}`, i+1)
			codes[i] = c.do(http.MethodPut, "/v1/services/s", body, "If-Match: "+etag).StatusCode
		})
	}
	wg.Wait()
	won := -1
	for i, code := range codes {
		switch {
		case code == 200 && won < 0:
			won = i
		case code != 412:
			t.Fatalf("codes %v: want one 200, the others 412", codes)
		}
	}
	if want := fmt.Sprintf(`{"versions":{"canary":{"weight":0.%d}}}`, won+1); won < 0 || c.stored("s") != want {
		t.Errorf("codes %v, stored %s", codes, c.stored("s"))
	}
}

func TestThereIsRoomForAThousandServices(t *testing.T) {
	c := local(t)
	c.server.store.mu.Lock()
	for i := range MaxServices - 1 {
		c.server.store.docs["filler"+strconv.Itoa(i)] = &document{body: []byte(one), etag: etagOf([]byte(one))}
	}
	c.server.store.mu.Unlock()
	etag := c.create("last", one).etag()
	if r := c.do(http.MethodPut, "/v1/services/more", one, "If-None-Match: *"); r.StatusCode != 507 || r.kind() != "full" {
		t.Errorf("one more: %d %s, want 507", r.StatusCode, r.body)
	}
	if r := c.do(http.MethodPut, "/v1/services/last", five, "If-Match: "+etag); r.StatusCode != 200 {
		t.Errorf("a replacement: %d %s, want 200", r.StatusCode, r.body)
	}
}

func TestTheListIsSortedAndSaysTheWeights(t *testing.T) {
	c := local(t)
	if r := c.do(http.MethodGet, "/v1/services", ""); string(r.body) != `{"schema":1,"services":[]}` {
		t.Errorf("an empty list: %s", r.body)
	}
	c.create("b", five)
	c.create("a", `{"versions":{}}`)
	var got struct{ Services []summary }
	if err := json.Unmarshal(c.do(http.MethodGet, "/v1/services", "").body, &got); err != nil {
		t.Fatal(err)
	}
	s := got.Services
	if len(s) != 2 || s[0].Name != "a" || s[0].Canary != nil || s[1].Name != "b" || s[1].Canary == nil || *s[1].Canary != 0.05 {
		t.Fatalf("%+v", s)
	}
	if !s[1].Modified.Equal(c.now()) || s[1].Bytes != len(five) || s[1].ETag != etagOf([]byte(five)) {
		t.Errorf("%+v", s[1])
	}
}

func TestMetricsCountRequestsAndShowWeights(t *testing.T) {
	c := serve(t, Options{Dir: t.TempDir(), Loopback: true, Version: "1.2.3"})
	c.create("b", five)
	c.create("a", `{"versions":{}}`)
	c.do(http.MethodGet, "/v1/services/nobody", "")
	c.do("BREW", "/v1/services/nobody", "")
	c.do("MELT", "/v1/services/nobody", "")
	text := c.do(http.MethodGet, "/metrics", "").body
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range families {
		if f.GetHelp() == "" || !bytes.Contains(page, []byte("`"+name)) {
			t.Errorf("%s: help %q; it must stand in docs/reference/metrics.md", name, f.GetHelp())
		}
	}
	for _, want := range []string{
		`canaryctl_build_info{version="1.2.3",go="`,
		`canaryctl_serve_requests_total{method="PUT",code="201"} 2` + "\n",
		`canaryctl_serve_requests_total{method="GET",code="404"} 1` + "\n",
		`canaryctl_serve_requests_total{method="other",code="405"} 2` + "\n",
		"canaryctl_serve_services 2\n",
		`canaryctl_serve_canary_weight_ratio{service="b"} 0.05` + "\n",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if bytes.Contains(text, []byte(`weight_ratio{service="a"}`)) {
		t.Errorf("a weight that is not known is shown:\n%s", text)
	}
}
