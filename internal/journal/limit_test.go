//go:build unix

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/canaryctl/canaryctl/internal/journal"
)

// limited names the journal in the environment of the child process of
// TestAWriteThatFailsHalfway.
const limited = "CANARYCTL_TEST_LIMITED"

func TestMain(m *testing.M) {
	if path := os.Getenv(limited); path != "" {
		if err := appendLimited(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// appendLimited appends a long line that the limit cuts off in the middle, and
// then a short one that has its place.
func appendLimited(path string) error {
	j, err := journal.Open(path)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := uint64(j.Head().Size) + 1000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	head := j.Head()
	for range 3 {
		if err := j.Append(note(strings.Repeat("x", 5000))); !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("a line past the limit: %w", err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != head.Size || j.Head() != head {
			return fmt.Errorf("after the failed write the file has %d bytes, want %d (%w)", info.Size(), head.Size, err)
		}
	}
	return errors.Join(j.Append(note("short")), j.Close())
}

// TestAWriteThatFailsHalfway leaves the journal as it was: the part that was
// written is taken away, and a shorter line finds its place.
func TestAWriteThatFailsHalfway(t *testing.T) {
	path := written(t, kinds()...)
	before := load(t, path)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), limited+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after := load(t, path)
	if !bytes.HasPrefix(after, before) {
		t.Fatal("the lines before it are not what they were")
	}
	entries, _, err := readFrom(path, journal.Head{})
	if err != nil || len(entries) != len(kinds())+1 || entries[len(entries)-1].Note != "short" {
		t.Fatalf("%d lines, %v", len(entries), err)
	}
}
