package configapi

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// onDisk reads a service's file as another server would.
func onDisk(dir, name string) (*document, error) {
	data, err := os.ReadFile(filepath.Join(dir, name+suffix))
	if err != nil {
		return nil, err
	}
	return parseFile(data)
}

func TestEverythingOutlivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "down")
	o := Options{Dir: dir, Loopback: true}
	var etag, second string
	t.Run("before", func(t *testing.T) {
		c := serve(t, o)
		etag = c.create("s", one).etag()
		c.create("other.one", " "+five)
		second = c.put(five, etag, "r/1/1/start", "41").etag()
	})
	c := serve(t, o)
	if got := c.stored("other.one"); got != " "+five {
		t.Errorf("stored is %q", got)
	}
	if r := c.do(http.MethodGet, "/v1/services/s", ""); r.etag() != second || r.Header.Get(tokenHeader) != "41" || string(r.body) != five {
		t.Errorf("%v %s", r.Header, r.body)
	}
	if r := c.put(five, etag, "r/1/1/start", "41"); r.StatusCode != 200 || r.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repeated request: %d %s", r.StatusCode, r.body)
	}
	if r := c.put(one, second, "", "40"); r.StatusCode != 409 {
		t.Errorf("the older holder: %d, want 409", r.StatusCode)
	}
}

func TestTwoServersNeverShareADirectory(t *testing.T) {
	dir := t.TempDir()
	first, err := New(Options{Dir: dir, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{Dir: dir, Loopback: true})
	if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.Dir != dir {
		t.Errorf("%v, want *InUseError of %s", err, dir)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := New(Options{Dir: dir, Loopback: true})
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedFileStopsTheStartAndIsNamed(t *testing.T) {
	whole, err := fileOf(&document{body: []byte(one), note: note{Token: 3}})
	if err != nil {
		t.Fatal(err)
	}
	broken, err := fileOf(&document{body: []byte(`{"versions":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file, data string
	}{
		{"cut off", "s.document", string(whole[:len(whole)-1])},
		{"longer", "s.document", string(whole) + " "},
		{"empty", "s.document", ""},
		{"of another program", "s.document", one},
		{"with a document that is against the rules", "s.document", string(broken)},
		{"with a name that is no service's", "S.document", string(whole)},
		{"too large", "s.document", string(whole) + strings.Repeat(" ", maxFile)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tt.file)
			if err := os.WriteFile(path, []byte(tt.data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := New(Options{Dir: dir, Loopback: true})
			if corrupt, ok := errors.AsType[*CorruptError](err); !ok || corrupt.Path != path || !strings.Contains(err.Error(), path) {
				t.Fatalf("%v, want *CorruptError of %s", err, path)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != tt.data {
				t.Errorf("the file was touched: %v", err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			s, err := New(Options{Dir: dir, Loopback: true}) // the lock was given back
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnyChangedByteOfAFileIsNoticed(t *testing.T) {
	doc := &document{body: []byte(one), note: note{Token: 3, Modified: time.Unix(1, 0).UTC(), Answers: []answer{{Key: "k", Status: 200}}}}
	whole, err := fileOf(doc)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for _, flip := range []byte{0x01, 0x20, 0x80} {
			bad := append([]byte{}, whole...)
			bad[i] ^= flip
			if got, err := parseFile(bad); err == nil {
				t.Fatalf("byte %d as %q: taken as %+v", i, bad[i], got)
			}
		}
	}
}

func TestOtherFilesOfTheDirectoryAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"README": "mine", ".s.document.aside": "half", ".hidden.document": "mine", "s.documents": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := serve(t, Options{Dir: dir, Loopback: true})
	if r := c.do(http.MethodGet, "/v1/services", ""); string(r.body) != `{"schema":1,"services":[]}` {
		t.Errorf("%s", r.body)
	}
	for name, want := range map[string]bool{"README": true, ".s.document.aside": false, ".hidden.document": true, "s.documents": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", name, err == nil, want)
		}
	}
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	c := serve(t, Options{Dir: dir, Loopback: true})
	etag := c.create("s", one).etag()
	// A directory stands where the file is written aside.
	blocker := filepath.Join(dir, ".s"+suffix+aside)
	if err := os.Mkdir(blocker, 0o700); err != nil {
		t.Fatal(err)
	}
	r := c.put(five, etag, "k", "5")
	if r.StatusCode != 500 || r.kind() != "internal" || strings.Contains(string(r.body), dir) {
		t.Errorf("%d %s, want a 500 that tells nothing of the inside", r.StatusCode, r.body)
	}
	if got := c.reports(); len(got) != 1 || !strings.HasPrefix(got[0].Error(), "write s: ") {
		t.Errorf("reported: %v", got)
	}
	if got := c.stored("s"); got != one {
		t.Errorf("stored is %s", got)
	}
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	if r := c.put(five, etag, "k", "5"); r.StatusCode != 200 || r.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("again: %d %s", r.StatusCode, r.body)
	}
}

func TestAClosedServerWritesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Options{Dir: dir, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPut, "/v1/services/s", strings.NewReader(one))
	req.Host = "localhost"
	req.Header.Set("If-None-Match", "*")
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	if rec.Code != 500 {
		t.Errorf("%d %s, want 500", rec.Code, rec.Body)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such permissions")
	}
	dir := filepath.Join(t.TempDir(), "made")
	c := serve(t, Options{Dir: dir, Loopback: true})
	c.create("s", one)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "s.document"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// childDir asks this test binary to serve a directory instead of testing, and
// says which.
const childDir = "CONFIGAPI_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := beServer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beServer serves until it is killed.
func beServer(dir string) error {
	s, err := New(Options{Dir: dir, Loopback: true})
	if err != nil {
		return err
	}
	h := httptest.NewServer(s.Handler())
	fmt.Println(h.URL)
	select {}
}

// startChild starts such a server and returns its address.
func startChild(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(url)
}

// numbered is a document that says which it is and is long enough for a write
// to be caught in the middle.
func numbered(n int) string {
	return fmt.Sprintf(`{"versions":{},"n":%d,"fill":"%s","end":%d}`, n, strings.Repeat(strconv.Itoa(n%10), 300<<10), n)
}

// TestAKillAmidWritesLeavesAWholeDocument kills a server while it replaces a
// document, each time at another moment of the write: what is found afterwards
// is the last that was answered for, or the one that was under way.
func TestAKillAmidWritesLeavesAWholeDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for a few seconds")
	}
	const rounds = 10
	dir := t.TempDir()
	acked, old, fresh := -1, 0, 0
	for round := range rounds {
		cmd, url := startChild(t, dir)
		var took time.Duration
		for range 2 {
			start := time.Now()
			if acked++; !putNumbered(url, acked) {
				t.Fatalf("round %d: document %d was refused", round, acked)
			}
			took = time.Since(start)
		}
		time.AfterFunc(took*time.Duration(round)/rounds, func() { _ = cmd.Process.Kill() })
		tried := acked + 1
		for putNumbered(url, tried) {
			acked = tried
			tried++
		}
		_ = cmd.Wait() // it was killed
		doc, err := onDisk(dir, "s")
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		switch string(doc.body) {
		case numbered(tried):
			acked = tried
			fresh++
		case numbered(acked):
			old++
		default:
			t.Fatalf("round %d: neither document %d nor %d: %.60s", round, acked, tried, doc.body)
		}
	}
	t.Logf("after %d kills %d old and %d new documents, %d writes in all", rounds, old, fresh, acked+1)
}

// putNumbered puts document n over whatever is there and reports whether it
// was answered for.
func putNumbered(url string, n int) bool {
	req, err := http.NewRequest(http.MethodPut, url+"/v1/services/s", strings.NewReader(numbered(n)))
	if err != nil {
		return false
	}
	req.Header.Set("If-Match", "*")
	if n == 0 {
		req.Header.Del("If-Match")
		req.Header.Set("If-None-Match", "*")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close() // only the status is wanted
	return resp.StatusCode < 300
}
