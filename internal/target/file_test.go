package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

func weightOf(slots int64) release.Weight { return release.Weight{Slots: slots, Ring: 100} }

const plainWeights = `{
  "versions": {
    "stable": {"weight": 0.99, "model_id": "m-1"},
    "canary": {"weight": 0.01, "model_id": "m-2"}
  }
}
`

func newTestFile(t *testing.T, cfg config.FileTarget, content string) *file {
	t.Helper()
	dir := t.TempDir()
	if cfg.Path == "" {
		cfg.Path = "weights.json"
	}
	if content != "" {
		if err := os.WriteFile(filepath.Join(dir, cfg.Path), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	made, err := New(&config.Target{Kind: "file", File: &cfg}, Options{Ring: 100, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*file)
}

func content(t *testing.T, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func mustRead(t *testing.T, made Target) Reading {
	t.Helper()
	r, err := made.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFileChangesTheWeightsAndNoOtherByte(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg           config.FileTarget
		before, after string
	}{
		"the embedded default": {
			config.FileTarget{}, plainWeights,
			strings.NewReplacer("0.99", "0.95", "0.01", "0.05").Replace(plainWeights),
		},
		"yaml with comments, percent, by name": {
			config.FileTarget{
				Path: "route.yaml", Canary: "refs[name=canary].weight", Stable: "refs[name=stable].weight",
				Unit: config.Unit{Whole: 100},
			},
			"# weights\nrefs:\n- name: stable # the old one\n  weight: 99\n- {name: canary, weight: 1} # new\n",
			"# weights\nrefs:\n- name: stable # the old one\n  weight: 95\n- {name: canary, weight: 5} # new\n",
		},
		"one number and no stable": {
			config.FileTarget{Path: "values.yaml", Canary: "canary.weight", Stable: "-", Unit: config.Unit{Whole: 100}},
			"canary: {weight: \"1\"}\n", "canary: {weight: \"5\"}\n",
		},
		"CRLF and numbers with 30 digits": {
			config.FileTarget{},
			"{\"id\": 123456789012345678901234567890,\r\n\"versions\":{\"canary\":{\"weight\":1e-2},\"stable\":{\"weight\":0.990}}}",
			"{\"id\": 123456789012345678901234567890,\r\n\"versions\":{\"canary\":{\"weight\":0.05},\"stable\":{\"weight\":0.95}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFile(t, tc.cfg, tc.before)
			was := mustRead(t, f)
			if was.Weight != weightOf(1) {
				t.Fatalf("read %+v", was)
			}
			if err := f.Write(t.Context(), was, Change{To: weightOf(5)}); err != nil {
				t.Fatal(err)
			}
			if got := content(t, f.path); got != tc.after {
				t.Errorf("the file is now\n%s\nwant\n%s", got, tc.after)
			}
			if is := mustRead(t, f); is.Weight != weightOf(5) {
				t.Errorf("read back %+v", is)
			}
		})
	}
}

func TestFileKeepsPermissionsAndFollowsLinks(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(f.path, link); err != nil {
		t.Skip(err)
	}
	linked := *f
	linked.path = link
	if err := linked.Write(t.Context(), mustRead(t, &linked), Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions: %v, %v", info, err)
	}
	if got := mustRead(t, f).Weight; got != weightOf(5) {
		t.Errorf("the file behind the link holds %v", got)
	}
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil || len(entries) != 2 { // the file and its lock
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestFileThatIsNotThereSaysWhatToWriteAndIsNotCreated(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, "")
	_, err := f.Read(t.Context())
	shape, ok := errors.AsType[*ShapeError](err)
	if !ok || !strings.Contains(shape.Hint, `{"versions":{"canary":{"weight":0},"stable":{"weight":1}}}`) || !strings.Contains(err.Error(), f.path) {
		t.Errorf("%v, hint %q", err, shape.Hint)
	}
	if err := f.Write(t.Context(), Reading{}, Change{To: weightOf(5)}); !isA[*RefusedError](err) {
		t.Errorf("a write: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(f.path)); len(entries) != 0 {
		t.Errorf("something was created: %v", entries)
	}
}

// isA reports whether an error is of a type, wrapped or not.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestFileThatIsNotWhatTheConfigurationSaysIsAShapeError(t *testing.T) {
	for name, src := range map[string]string{
		"no such key":     `{"versions": {"stable": {"weight": 1}}}`,
		"no number":       `{"versions": {"canary": {"weight": "five"}, "stable": {"weight": 1}}}`,
		"null":            `{"versions": {"canary": {"weight": null}, "stable": {"weight": 1}}}`,
		"a list":          `{"versions": {"canary": {"weight": [1]}, "stable": {"weight": 1}}}`,
		"negative":        `{"versions": {"canary": {"weight": -0.1}, "stable": {"weight": 1.1}}}`,
		"both 0":          `{"versions": {"canary": {"weight": 0}, "stable": {"weight": 0}}}`,
		"cut off":         `{"versions": {"canary": {"weight": 0.01}, "stable": {"wei`,
		"empty":           ` `,
		"stable is empty": `{"versions": {"canary": {"weight": 0.1}, "stable": {"weight": ""}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFile(t, config.FileTarget{}, src)
			if r, err := f.Read(t.Context()); !isA[*ShapeError](err) {
				t.Errorf("read %+v, %v", r, err)
			}
			if err := f.Write(t.Context(), Reading{}, Change{To: weightOf(5)}); !isA[*RefusedError](err) {
				t.Errorf("a write: %v", err)
			}
			if got := content(t, f.path); got != src {
				t.Errorf("it was touched: %s", got)
			}
		})
	}
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	f.path = filepath.Dir(f.path)
	if _, err := f.Read(t.Context()); !isA[*ShapeError](err) {
		t.Errorf("a directory: %v", err)
	}
	big := newTestFile(t, config.FileTarget{}, plainWeights+strings.Repeat(" ", maxDocument))
	if _, err := big.Read(t.Context()); !isA[*ShapeError](err) {
		t.Errorf("a huge file: %v", err)
	}
}

func TestFileWriteIsCompareAndSwap(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	was := mustRead(t, f)
	rival := strings.NewReplacer("0.99", "0.7", "0.01", "0.3").Replace(plainWeights)
	if err := os.WriteFile(f.path, []byte(rival), 0o640); err != nil {
		t.Fatal(err)
	}
	err := f.Write(t.Context(), was, Change{To: weightOf(5)})
	if c, ok := errors.AsType[*ConflictError](err); !ok || c.Held == nil || *c.Held != weightOf(30) {
		t.Fatalf("got %v", err)
	}
	if got := content(t, f.path); got != rival {
		t.Errorf("the rival's file was touched: %s", got)
	}
	if err := f.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, f).Weight; !got.IsZero() {
		t.Errorf("a rollback left %v", got)
	}
}

func TestFileRollbackWritesOverAWeightThatIsNoShare(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, strings.Replace(plainWeights, "0.01", "-7", 1))
	if err := f.Write(t.Context(), Reading{}, Change{To: weightOf(0), Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, f).Weight; !got.IsZero() {
		t.Errorf("left %v", got)
	}
}

func TestFileRefusesAStaleHolder(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	write := func(slots int64, token uint64) error {
		return f.Write(t.Context(), mustRead(t, f), Change{To: weightOf(slots), Token: token})
	}
	for i, step := range []struct {
		token   uint64
		refused bool
	}{{7, false}, {7, false}, {6, true}, {0, false}, {1 << 63, false}, {7, true}, {1<<63 + 1, false}} {
		if err := write(int64(i), step.token); isA[*ConflictError](err) != step.refused || err != nil && !step.refused {
			t.Errorf("write %d with token %d: %v", i, step.token, err)
		}
	}
	if got := content(t, f.path+".lock"); got != fmt.Sprintf("%020d\n", uint64(1<<63+1)) {
		t.Errorf("the lock holds %q", got)
	}
	if err := f.Write(t.Context(), Reading{}, Change{Token: 3, Overwrite: true}); err != nil {
		t.Errorf("a rollback by a clock that is behind was refused: %v", err)
	}
	if err := os.WriteFile(f.path+".lock", []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(9, 9); !isA[*RefusedError](err) {
		t.Errorf("a lock of somebody else's: %v", err)
	}
}

func TestFileOneOfEightWritersWins(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	oneOfEightWins(t, f)
}

// oneOfEightWins has eight writers move the same reading: exactly one may.
func oneOfEightWins(t *testing.T, made Target) {
	t.Helper()
	was := mustRead(t, made)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = made.Write(t.Context(), was, Change{To: weightOf(int64(i + 10)), Key: fmt.Sprint(i)})
		})
	}
	wg.Wait()
	var winner []int
	for i, err := range errs {
		if err == nil {
			winner = append(winner, i)
		} else if !isA[*ConflictError](err) {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if len(winner) != 1 {
		t.Fatalf("%d writers won: %v", len(winner), errs)
	}
	if got := mustRead(t, made).Weight; got != weightOf(int64(winner[0]+10)) {
		t.Errorf("writer %d won and %v is held", winner[0], got)
	}
}

func TestFileWaitsForTheLockNoLongerThanItMay(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	held, err := lockedfile.OpenFile(f.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	was := mustRead(t, f) // a read needs no lock
	f.lockWait = 20 * time.Millisecond
	if err := f.Write(t.Context(), was, Change{To: weightOf(5)}); !isA[*UnreachableError](err) || !strings.Contains(err.Error(), ".lock") {
		t.Errorf("beyond the wait: %v", err)
	}
	f.lockWait = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Write(ctx, was, Change{To: weightOf(5)}); !isA[*UnreachableError](err) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	held.Close()
	if err := f.Write(t.Context(), was, Change{To: weightOf(5)}); err != nil {
		t.Errorf("after the holder has gone: %v", err)
	}
}

// TestAWaitForTheLockLeavesNothingBehind guards against waits that go on in the
// background: a held lock under a driver that tries again and again would eat
// threads and descriptors.
func TestAWaitForTheLockLeavesNothingBehind(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	held, err := lockedfile.OpenFile(f.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	was := mustRead(t, f)
	f.lockWait = time.Millisecond
	open := func() int {
		files, _ := os.ReadDir("/proc/self/fd") // empty where there is no such place
		return len(files)
	}
	routines, files := runtime.NumGoroutine(), open()
	for range 100 {
		if err := f.Write(t.Context(), was, Change{To: weightOf(5)}); !isA[*UnreachableError](err) {
			t.Fatal(err)
		}
	}
	if more := runtime.NumGoroutine() - routines; more > 5 {
		t.Errorf("100 waits left %d goroutines", more)
	}
	if more := open() - files; more > 5 {
		t.Errorf("100 waits left %d open files", more)
	}
}

func TestFileThatCannotBeWrittenStaysAsItWas(t *testing.T) {
	for name, tc := range map[string]struct {
		fault error
		is    func(error) bool
	}{
		"a full disk":      {syscall.ENOSPC, isA[*UnreachableError]},
		"a quota":          {syscall.EDQUOT, isA[*UnreachableError]},
		"a read-only disk": {syscall.EROFS, isA[*RefusedError]},
		"no permission":    {syscall.EACCES, isA[*RefusedError]},
		"a broken disk":    {syscall.EIO, isA[*UnreachableError]},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFile(t, config.FileTarget{}, plainWeights)
			f.sync = func(*os.File) error { return tc.fault }
			err := f.Write(t.Context(), mustRead(t, f), Change{To: weightOf(5)})
			if !tc.is(err) || !errors.Is(err, tc.fault) || !strings.Contains(err.Error(), "the file is as it was") {
				t.Errorf("got %v", err)
			}
			if got := content(t, f.path); got != plainWeights {
				t.Errorf("the file was touched: %s", got)
			}
			if entries, _ := os.ReadDir(filepath.Dir(f.path)); len(entries) != 2 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	if err := os.Chmod(filepath.Dir(f.path), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(f.path), 0o755) })
	if os.Getuid() != 0 { // root may write anywhere
		if err := f.Write(t.Context(), mustRead(t, f), Change{To: weightOf(5)}); !isA[*RefusedError](err) {
			t.Errorf("a directory without permission: %v", err)
		}
	}
}

func TestFileRecoversFromAWriterThatWasKilled(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	aside := filepath.Join(filepath.Dir(f.path), ".weights.json.canaryctl")
	if err := os.WriteFile(aside, []byte(`{"half`), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), mustRead(t, f), Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, f).Weight; got != weightOf(5) {
		t.Errorf("holds %v", got)
	}
}

// TestFileReadersNeverSeeHalfAFile reads while others write.
func TestFileReadersNeverSeeHalfAFile(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, plainWeights)
	done := make(chan error)
	go func() {
		var err error
		for i := int64(1); i <= 40 && err == nil; i++ {
			err = f.Write(context.Background(), Reading{}, Change{To: weightOf(i), Overwrite: true})
		}
		done <- err
	}()
	for {
		if src, err := os.ReadFile(f.path); err != nil || !bytes.HasSuffix(src, []byte("}\n")) {
			t.Errorf("read %q, %v", src, err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

func TestFileTooFineIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	f := newTestFile(t, config.FileTarget{Unit: config.Unit{Whole: 1, Places: 2}}, plainWeights)
	if err := f.Write(t.Context(), mustRead(t, f), Change{To: release.Weight{Slots: 5, Ring: 1000}}); !isA[*FineError](err) || !strings.Contains(err.Error(), "finest step is 1 %") {
		t.Errorf("got %v", err)
	}
	if got := content(t, f.path); got != plainWeights {
		t.Errorf("touched: %s", got)
	}
}

func TestNewRefusesWhatIsNoConfiguration(t *testing.T) {
	for name, tc := range map[string]*config.Target{
		"no such kind":        {Kind: "ftp"},
		"no path":             {Kind: "file", File: &config.FileTarget{}},
		"no selector":         {Kind: "file", File: &config.FileTarget{Path: "a", Canary: "a..b", Stable: "-"}},
		"no stable selector":  {Kind: "file", File: &config.FileTarget{Path: "a", Canary: "a.b"}},
		"no URL":              {Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: "localhost:80"}},
		"no mode":             {Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: "http://h", Mode: "patch"}},
		"no way of if_match":  {Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: "http://h", IfMatch: "yes"}},
		"a body without use":  {Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: "http://h", Body: "{canary}"}},
		"a body of no weight": {Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: "http://h", Mode: "template", Body: `{"w": 1}`}},
		"a body of no JSON":   {Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: "http://h", Mode: "template", Body: `{"w": {canary}`}},
		"no read program":     {Kind: "exec", Exec: &config.ExecTarget{Write: []string{"true"}}},
		"no write program":    {Kind: "exec", Exec: &config.ExecTarget{Read: []string{"true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := New(tc, Options{Ring: 100, Getenv: func(string) string { return "" }})
			if err == nil || made != nil || !strings.HasPrefix(err.Error(), "target") {
				t.Errorf("got %v, %v", made, err)
			}
		})
	}
}

// TestALockThatHoldsNoTokenKeepsNoRollback, only what goes forward.
func TestALockThatHoldsNoTokenKeepsNoRollback(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weights.json")
	for name, text := range map[string]string{"weights.json": `{"versions":{"stable":{"weight":0.9},"canary":{"weight":0.1}}}`, "weights.json.lock": "what?"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := New(&config.Target{Kind: "file", File: &config.FileTarget{Path: path}}, Options{Ring: 100})
	if err != nil {
		t.Fatal(err)
	}
	was, err := f.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), was, Change{To: release.Weight{Slots: 20, Ring: 100}, Token: 5}); !isA[*RefusedError](err) {
		t.Errorf("a step forward: %v", err)
	}
	if err := f.Write(t.Context(), was, Change{To: release.Weight{Ring: 100}, Overwrite: true, Token: 5}); err != nil {
		t.Errorf("a rollback: %v", err)
	}
}
