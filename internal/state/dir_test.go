package state_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/state"
)

func holder(command string) state.Holder {
	return state.Holder{PID: os.Getpid(), Who: "ann@ci", Command: command, Since: time.Now().UTC()}
}

func openDir(t testing.TB) *state.Dir {
	t.Helper()
	d, err := state.Open(t.TempDir(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// within ends after so long.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, d *state.Dir) *state.Lease {
	t.Helper()
	l, err := d.Acquire(within(t, time.Minute), holder("promote"))
	if err != nil || l.Unwritten() != nil {
		t.Fatal(err, l.Unwritten())
	}
	return l
}

func preempt(t testing.TB, d *state.Dir, wait time.Duration) *state.Lease {
	t.Helper()
	l, err := d.Preempt(within(t, wait), holder("rollback"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantLost(t testing.TB, what string, err error, by uint64) {
	t.Helper()
	var lost *state.LostError
	if !errors.As(err, &lost) || lost.By.Token != by || lost.By.Command != "rollback" {
		t.Errorf("%s: %v, want it lost to token %d", what, err, by)
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files lists the files of a directory.
func files(t testing.TB, d *state.Dir) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(d.Path())
	noError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestOneAtATime: goroutines take turns, and tokens rise with each.
func TestOneAtATime(t *testing.T) {
	d := openDir(t)
	var wg sync.WaitGroup
	var tokens []uint64 // guarded by the lease
	for range 8 {
		wg.Go(func() {
			for range 6 {
				l, err := d.Acquire(within(t, time.Minute), holder("promote"))
				if err != nil {
					t.Error(err)
					return
				}
				tokens = append(tokens, l.Token())
				if err := errors.Join(l.Check(), l.Save([]byte(strconv.FormatUint(l.Token(), 10))), l.Check(), l.Release()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(tokens) != 48 || !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != 48 {
		t.Errorf("tokens %v", tokens)
	}
	if b, err := d.Load(); err != nil || string(b) != strconv.FormatUint(tokens[47], 10) {
		t.Errorf("saved %s, %v", b, err)
	}
	if got := files(t, d); !slices.Equal(got, []string{"fence.json", "lock", "state.json"}) {
		t.Errorf("files left: %v", got)
	}
}

// TestBusySaysWhoItIs, after the time that was given and not before.
func TestBusySaysWhoItIs(t *testing.T) {
	d := openDir(t)
	l := acquire(t, d)
	began := time.Now()
	_, err := d.Acquire(within(t, 100*time.Millisecond), holder("promote"))
	var busy *state.BusyError
	if !errors.As(err, &busy) || time.Since(began) < 100*time.Millisecond {
		t.Fatalf("%v after %s", err, time.Since(began))
	}
	for _, want := range []string{"promote", "ann@ci", strconv.Itoa(os.Getpid()), busy.Holder.Since.Format(time.RFC3339)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
	if busy.Holder.Token != l.Token() || (&state.BusyError{}).Error() != "another canaryctl holds this release" {
		t.Errorf("%+v", busy.Holder)
	}
	noError(t, l.Check()) // whoever waited in vain has changed nothing
	go func() {
		<-time.After(50 * time.Millisecond)
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}()
	next := acquire(t, d)
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	noError(t, next.Release())
}

// TestPreemptTakesOverAtOnce: the holder may do nothing more from the first
// moment, and is waited for.
func TestPreemptTakesOverAtOnce(t *testing.T) {
	d := openDir(t)
	l := acquire(t, d)
	noError(t, l.Save([]byte("before")))
	var over *state.Lease
	done := make(chan struct{})
	go func() {
		defer close(done)
		over = preempt(t, d, time.Minute)
	}()
	for l.Check() == nil {
		time.Sleep(time.Millisecond) // until the other process has come
	}
	if err := l.Save([]byte("after")); !isLost(err) {
		t.Errorf("saved: %v", err)
	}
	select {
	case <-done:
		t.Error("not waited for")
	case <-time.After(60 * time.Millisecond):
	}
	noError(t, l.Release())
	<-done
	noError(t, errors.Join(over.Check(), over.Save([]byte("rolled back"))))
	wantLost(t, "the holder", l.Check(), over.Token())
	if b, err := d.Load(); string(b) != "rolled back" || err != nil {
		t.Errorf("saved %s, %v", b, err)
	}
	if _, err := d.Acquire(within(t, 50*time.Millisecond), holder("promote")); err == nil {
		t.Error("the lock was not taken with the token")
	}
	noError(t, over.Release())
}

func isLost(err error) bool {
	var lost *state.LostError
	return errors.As(err, &lost)
}

// TestPreemptGoesOnWithoutAHolderThatDoesNotLetGo, as the newest even if another
// came while it waited; what the holder still writes goes nowhere.
func TestPreemptGoesOnWithoutAHolderThatDoesNotLetGo(t *testing.T) {
	d := openDir(t)
	first := acquire(t, d)
	noError(t, os.WriteFile(d.Journal(), []byte("line\n"), 0o600))
	open, err := os.OpenFile(d.Journal(), os.O_RDWR, 0)
	noError(t, err)
	got := make(chan *state.Lease)
	go func() { got <- preempt(t, d, 300*time.Millisecond) }()
	for first.Check() == nil {
		time.Sleep(time.Millisecond)
	}
	second := preempt(t, d, time.Millisecond) // gives up waiting at once
	noError(t, second.Check())
	third := <-got
	noError(t, errors.Join(third.Check(), third.Save([]byte("rolled back"))))
	if third.Token() <= second.Token() || second.Token() <= first.Token() {
		t.Errorf("tokens %d, %d, %d", first.Token(), second.Token(), third.Token())
	}
	wantLost(t, "the holder", first.Check(), third.Token())
	wantLost(t, "who waited less", second.Check(), third.Token())
	_, err = open.WriteAt([]byte("LINE"), 0)
	noError(t, errors.Join(err, open.Close()))
	if b, err := os.ReadFile(d.Journal()); string(b) != "line\n" || err != nil {
		t.Errorf("whoever was overtaken has written into the journal: %s, %v", b, err)
	}
	noError(t, errors.Join(third.Release(), second.Release(), first.Release()))
}

// TestTokensGoByTheClockOverDirectories: a target that was driven from another
// machine has seen a token that an empty directory's first is above.
func TestTokensGoByTheClockOverDirectories(t *testing.T) {
	last := uint64(0)
	for range 3 {
		d := openDir(t)
		for range 5 {
			l := acquire(t, d)
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			noError(t, l.Release())
			time.Sleep(time.Millisecond)
		}
	}
	d := openDir(t)
	for range 3 { // and rise where the clock stands, or has no time
		l, err := d.Acquire(within(t, time.Second), state.Holder{})
		noError(t, err)
		noError(t, errors.Join(l.Check(), l.Release()))
	}
	if h := d.Holder(); h.Token != 3 {
		t.Errorf("token %d", h.Token)
	}
}

// TestADamagedFenceStopsNobody, and tokens rise over it.
func TestADamagedFenceStopsNobody(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": {}, "garbage": []byte("\x00\xff{"), "cut off": []byte(`{"token":7,"pid`), "null": []byte("null"), "no token": []byte("{}"),
		"token 0": []byte(`{"token":0}`), "a token at the end of the numbers": []byte(`{"token":18446744073709551615}`),
		"a token that is no number": []byte(`{"token":"7"}`), "huge": bytes.Repeat([]byte(" "), 4<<20), "huge and good": append(bytes.Repeat([]byte(" "), 4<<20), `{"token":7}`...),
	} {
		t.Run(name, func(t *testing.T) {
			d := openDir(t)
			before := acquire(t, d)
			noError(t, os.WriteFile(filepath.Join(d.Path(), "fence.json"), b, 0o600))
			var damaged *state.DamagedError
			if err := before.Check(); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "fence.json is damaged") {
				t.Errorf("the holder goes on: %v", err)
			}
			if h := d.Holder(); h != (state.Holder{}) {
				t.Errorf("the holder is %+v", h)
			}
			noError(t, before.Release())
			after := acquire(t, d)
			if after.Token() <= before.Token() {
				t.Errorf("token %d after %d", after.Token(), before.Token())
			}
			noError(t, errors.Join(after.Check(), after.Save([]byte("x"))))
			over := preempt(t, d, 50*time.Millisecond)
			if over.Token() <= after.Token() || over.Unwritten() != nil {
				t.Errorf("token %d after %d, %v", over.Token(), after.Token(), over.Unwritten())
			}
			wantLost(t, "the holder", after.Check(), over.Token())
			noError(t, errors.Join(after.Release(), over.Release()))
		})
	}
}

// TestAFenceThatCannotBeWrittenLeavesARollback: a directory in its place.
func TestAFenceThatCannotBeWrittenLeavesARollback(t *testing.T) {
	d := openDir(t)
	noError(t, os.MkdirAll(filepath.Join(d.Path(), "fence.json", "x"), 0o700))
	l := preempt(t, d, time.Second)
	if l.Unwritten() == nil || l.Check() != nil {
		t.Errorf("unwritten: %v, check: %v", l.Unwritten(), l.Check())
	}
	if err := l.Save([]byte("x")); err == nil {
		t.Error("such a lease is for a rollback alone")
	}
	noError(t, l.Release())
	if got := files(t, d); !slices.Equal(got, []string{"fence.json", "lock"}) {
		t.Errorf("files left: %v", got)
	}
}

// TestServicesHaveFoldersOfTheirOwn below the directory, whatever their names.
func TestServicesHaveFoldersOfTheirOwn(t *testing.T) {
	root := t.TempDir()
	seen := map[string]string{}
	long := strings.Repeat("漢", 500)
	for _, service := range []string{
		"order-service", "team/api", "team_api", "team:api", `team\api`, "..", ".", "...", "_..", "", "_", "../../etc", "/etc/passwd", "a b", "ünï漢",
		long, long + "2", strings.Repeat("x", 4000), "x\x00y", "x\ny", "x\xffy", "x\xfey", ".hidden", "a/../b",
	} {
		d, err := state.Open(root, service)
		if err != nil {
			t.Errorf("%q: %v", service, err)
			continue
		}
		if filepath.Dir(d.Path()) != root || d.Path() == root {
			t.Errorf("%q is at %s", service, d.Path())
		}
		if other, ok := seen[d.Path()]; ok {
			t.Errorf("%q and %q share %s", service, other, d.Path())
		}
		seen[d.Path()] = service
		l := acquire(t, d)
		noError(t, errors.Join(l.Save([]byte(service)), l.Release()))
		if b, err := state.At(root, service).Load(); err != nil || string(b) != service {
			t.Errorf("%q: %q, %v", service, b, err)
		}
	}
	for service, want := range map[string]string{"order-service": "order-service", "team_api": "team_api", ".hidden": ".hidden", "ünï漢": "ünï漢"} {
		if got := filepath.Base(state.At(root, service).Path()); got != want {
			t.Errorf("%q is in %s: a name that can be one stays as it is", service, got)
		}
	}
}

// TestWhereNothingCanBeWritten.
func TestWhereNothingCanBeWritten(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	noError(t, os.WriteFile(file, nil, 0o600))
	if _, err := state.Open(file, "s"); err == nil || !strings.Contains(err.Error(), "directory of the release's state") {
		t.Errorf("below a file: %v", err)
	}
	none := state.At(filepath.Join(root, "none"), "s")
	if b, err := none.Load(); b != nil || err != nil {
		t.Errorf("nothing there: %q, %v", b, err)
	}
	if h := none.Holder(); h != (state.Holder{}) {
		t.Errorf("held by %+v", h)
	}
	if _, err := os.Stat(none.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading has made something")
	}
}

// TestADirectoryForReadingLeavesARollback: a lease that cannot write its token.
func TestADirectoryForReadingLeavesARollback(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere")
	}
	d := openDir(t)
	l := acquire(t, d)
	noError(t, errors.Join(l.Save([]byte("x")), l.Release()))
	noError(t, os.Chmod(d.Path(), 0o500))
	defer func() { noError(t, os.Chmod(d.Path(), 0o700)) }()
	l, err := d.Acquire(within(t, time.Second), holder("promote"))
	noError(t, err) // the lock's file is there
	if l.Unwritten() == nil || l.Save([]byte("y")) == nil || l.Check() != nil {
		t.Errorf("unwritten: %v, check: %v", l.Unwritten(), l.Check())
	}
	noError(t, l.Release())
	if b, err := d.Load(); string(b) != "x" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
}

// TestOneDrives.
func TestOneDrives(t *testing.T) {
	d := openDir(t)
	if got := d.Runner(); got != (state.Holder{}) {
		t.Errorf("nobody runs, and it is %+v", got)
	}
	who := holder("run")
	who.PID, who.Who = 42, "runner@host"
	release, ok, err := d.Driving(who)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	l := acquire(t, d) // one that drives does not keep others from a word
	if _, ok, err := d.Driving(holder("run")); ok || err != nil {
		t.Error("two drive", err)
	}
	if got := d.Runner(); got.PID != 42 || got.Who != "runner@host" || !got.Since.Equal(who.Since) {
		t.Errorf("the one that drives is %+v", got)
	}
	noError(t, errors.Join(l.Release(), release()))
	again, ok, err := d.Driving(who)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	noError(t, again())
}

// TestADamagedReleaseIsSetAside whole.
func TestADamagedReleaseIsSetAside(t *testing.T) {
	d := openDir(t)
	l := acquire(t, d)
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	if names, err := l.SetAside(now); len(names) != 0 || err != nil {
		t.Errorf("nothing there: %v, %v", names, err)
	}
	noError(t, errors.Join(os.WriteFile(d.Journal(), []byte("journal"), 0o600), l.Save([]byte("state"))))
	names, err := l.SetAside(now)
	want := []string{d.Journal() + ".damaged-20260302T100000Z", filepath.Join(d.Path(), "state.json.damaged-20260302T100000Z")}
	if err != nil || !slices.Equal(names, want) {
		t.Fatalf("%v, %v", names, err)
	}
	for i, content := range []string{"journal", "state"} {
		if b, err := os.ReadFile(names[i]); string(b) != content || err != nil {
			t.Errorf("%s holds %s, %v", names[i], b, err)
		}
	}
	if b, err := d.Load(); b != nil || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	noError(t, l.Release())
}

func TestTwoThatArePutAsideInOneSecondAreBothKept(t *testing.T) {
	d := openDir(t)
	l := acquire(t, d)
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, content := range []string{"first", "second", "third"} {
		noError(t, errors.Join(os.WriteFile(d.Journal(), []byte(content), 0o600), l.Save([]byte(content))))
		names, err := l.SetAside(now)
		if err != nil || len(names) != 2 {
			t.Fatalf("%v, %v", names, err)
		}
	}
	for mark, want := range map[string]string{"": "first", "-2": "second", "-3": "third"} {
		for _, path := range []string{d.Journal(), filepath.Join(d.Path(), "state.json")} {
			if b, err := os.ReadFile(path + ".damaged-20260302T100000Z" + mark); string(b) != want || err != nil {
				t.Errorf("%s%s holds %q, %v", path, mark, b, err)
			}
		}
	}
	noError(t, l.Release())
}

// TestWhoLostTheReleasePutsNothingAside: the files are the new holder's.
func TestWhoLostTheReleasePutsNothingAside(t *testing.T) {
	d := openDir(t)
	l := acquire(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	next, err := d.Preempt(ctx, state.Holder{PID: 2, Since: time.Now()})
	noError(t, err)
	noError(t, os.WriteFile(d.Journal(), []byte("the new holder's"), 0o600))
	names, err := l.SetAside(time.Now())
	if _, lost := errors.AsType[*state.LostError](err); !lost || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	if b, err := os.ReadFile(d.Journal()); string(b) != "the new holder's" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	noError(t, errors.Join(next.Release(), l.Release()))
}
