//go:build unix

package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/state"
)

// openAt opens the directory that a child process has.
func openAt(t *testing.T, root string) *state.Dir {
	t.Helper()
	d, err := state.Open(root, "s")
	noError(t, err)
	return d
}

// TestProcessesTakeTurns, and no token comes twice.
func TestProcessesTakeTurns(t *testing.T) {
	root := t.TempDir()
	const each = 15
	children := []*child{newChild(t, root), newChild(t, root), newChild(t, root)}
	for _, c := range children {
		if _, err := fmt.Fprintf(c.in, "turns %d\n", each); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[uint64]bool{}
	for _, c := range children {
		last := uint64(0)
		for range each {
			token, err := strconv.ParseUint(c.hear(), 10, 64)
			if err != nil || seen[token] || token <= last {
				t.Fatalf("token %d after %d, %v", token, last, err)
			}
			seen[token], last = true, token
		}
		c.hear()
		c.kill()
	}
	if l := acquire(t, openAt(t, root)); l.Token() <= 3*each || l.Release() != nil {
		t.Errorf("token %d after %d turns", l.Token(), 3*each)
	}
}

// TestAKilledHolderHoldsNothing.
func TestAKilledHolderHoldsNothing(t *testing.T) {
	root := t.TempDir()
	d, c := openAt(t, root), newChild(t, root)
	c.want("acquire 10s", "ok")
	c.want("save of the child", "ok")
	c.want("drive", "ok")
	_, err := d.Acquire(within(t, 50*time.Millisecond), holder("promote"))
	var busy *state.BusyError
	if !errors.As(err, &busy) || busy.Holder.PID != c.cmd.Process.Pid || busy.Holder.Who != "child@host" {
		t.Fatalf("%v", err)
	}
	if _, ok, _ := d.Driving(holder("run")); ok {
		t.Fatal("two drive")
	}
	c.kill()
	l := acquire(t, d)
	if b, err := d.Load(); string(b) != "of the child" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	free, ok, err := d.Driving(holder("run"))
	if !ok {
		t.Fatal("a killed run still drives", err)
	}
	noError(t, errors.Join(free(), l.Release()))
}

// TestAStoppedHolderIsOvertaken: a rollback waits for it as long as it was told
// to, and when it wakes up it can neither check nor save.
func TestAStoppedHolderIsOvertaken(t *testing.T) {
	root := t.TempDir()
	d, c := openAt(t, root), newChild(t, root)
	c.want("acquire 10s", "ok")
	c.want("save before", "ok")
	c.signal(syscall.SIGSTOP)
	began := time.Now()
	over := preempt(t, d, 200*time.Millisecond)
	if took := time.Since(began); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("waited for %s", took)
	}
	noError(t, errors.Join(over.Check(), over.Unwritten(), over.Save([]byte("rolled back"))))
	if _, err := d.Acquire(within(t, 50*time.Millisecond), holder("promote")); err == nil {
		t.Error("a stopped process's lock was taken without taking over")
	}
	noError(t, over.Check()) // whoever waited in vain changed nothing
	c.signal(syscall.SIGCONT)
	c.want("check", "taken over by rollback of ann@ci")
	c.want("save again", "taken over by rollback of ann@ci")
	c.want("release", "ok")
	if b, err := d.Load(); string(b) != "rolled back" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	noError(t, errors.Join(over.Check(), over.Release()))
	next := acquire(t, d)
	if next.Token() <= over.Token() {
		t.Errorf("token %d after %d", next.Token(), over.Token())
	}
	c.want("check", "taken over by promote of ann@ci")
	noError(t, next.Release())
}

// TestAStoppedWriterHarmsNobody: stopped anywhere in the middle of a save and
// overtaken, it goes on, and what the new holder saved stands.
func TestAStoppedWriterHarmsNobody(t *testing.T) {
	root := t.TempDir()
	d := openAt(t, root)
	for i := range 30 {
		c := newChild(t, root)
		c.want("acquire 10s", "ok")
		c.want("save-for-ever", "ok")
		time.Sleep(time.Duration(i) * 400 * time.Microsecond)
		c.signal(syscall.SIGSTOP)
		over := preempt(t, d, time.Millisecond)
		mine := big(fmt.Sprintf("rollback %d ", i))
		noError(t, over.Save(mine))
		c.signal(syscall.SIGCONT)
		if got := c.hear(); !strings.Contains(got, "taken over") {
			t.Fatalf("the stopped writer: %s", got)
		}
		if b, err := d.Load(); err != nil || !bytes.Equal(b, mine) {
			t.Fatalf("round %d: %d bytes, %.20q, %v", i, len(b), b, err)
		}
		c.kill()
		noError(t, over.Release())
	}
}

// TestKillsLeaveOneOrTheOther: whenever a writer is killed, a whole state is
// there, and what kills leave behind is taken away.
func TestKillsLeaveOneOrTheOther(t *testing.T) {
	root := t.TempDir()
	d := openAt(t, root)
	left, right := big("left "), big("right ")
	lefts, most := 0, 0
	for i := range 50 {
		c := newChild(t, root)
		verb := "save-for-ever"
		if i%2 == 1 {
			verb = "preempt-for-ever"
		}
		c.want("acquire 10s", "ok")
		c.want(verb, "ok")
		for b := []byte(nil); b == nil; b, _ = d.Load() { // the first has saved once
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(i%10) * 700 * time.Microsecond)
		c.kill()
		b, err := d.Load()
		switch {
		case err == nil && bytes.Equal(b, left):
			lefts++
		case err != nil || !bytes.Equal(b, right):
			t.Fatalf("kill %d left %d bytes, %.20q, %v", i, len(b), b, err)
		}
		most = max(most, len(files(t, d)))
		if h := d.Holder(); h.Token == 0 {
			t.Fatalf("kill %d left no fence", i)
		}
		makeOld(t, d)
	}
	l := acquire(t, d)
	noError(t, l.Release())
	if got := files(t, d); len(got) != 3 {
		t.Errorf("files left after 50 kills: %v", got)
	}
	t.Logf("%d of 50 kills left the one, the others the other; %d files at most", lefts, most)
	if most > 5 { // three, one aside of this kill and one of the last
		t.Errorf("%d files", most)
	}
}

// makeOld makes every file of a directory ten minutes old.
func makeOld(t *testing.T, d *state.Dir) {
	t.Helper()
	old := time.Now().Add(-10 * time.Minute)
	for _, name := range files(t, d) {
		noError(t, os.Chtimes(filepath.Join(d.Path(), name), old, old))
	}
}
