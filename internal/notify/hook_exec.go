package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/program"
)

// Exit statuses by which a shell says that no later try will do: a command
// that cannot be run, and one that is not there (POSIX 2.8.2).
const (
	notExecutable = 126
	notFound      = 127
)

const (
	// tailLimit is how much of a command's output an error shows, in bytes.
	tailLimit = 500
	// variableLimit bounds the reason in the environment.
	variableLimit = 4096
	// pipeWait is how long output is waited for after the command ended, where
	// something it left behind still holds it.
	pipeWait = 500 * time.Millisecond
)

// execHook runs a command. Status 0 is success.
type execHook struct {
	hookBase
	command []string
	timeout time.Duration
	dir     string
}

func newExecHook(h config.Hook, base hookBase, o Options) (*execHook, error) {
	if len(h.Command) == 0 || h.Command[0] == "" {
		return nil, errors.New("it needs command, a list of the program and its arguments")
	}
	out := &execHook{hookBase: base, command: h.Command, timeout: h.Timeout, dir: o.Dir}
	if out.timeout <= 0 {
		out.timeout = hookTimeout
	}
	return out, nil
}

// Run implements [Hook].
func (h *execHook) Run(ctx context.Context, m Message) error {
	if len(m.Rollback) == 0 {
		return &DeliveryError{To: h.name, Err: errNoRecord}
	}
	bounded, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var out tail
	cmd := exec.CommandContext(bounded, h.command[0], h.command[1:]...)
	cmd.Dir = h.dir
	cmd.Stdin = bytes.NewReader(m.Rollback)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), variables(m)...)
	cmd.WaitDelay = pipeWait
	program.OwnGroup(cmd)
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && bounded.Err() == nil {
		return nil // what it left in the background is not waited for
	}
	return h.failure(ctx, bounded, err, out.String())
}

// failure says what became of a command, and whether again may help.
func (h *execHook) failure(ctx, bounded context.Context, err error, said string) error {
	out := &DeliveryError{To: h.name, Retry: true}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil: // the caller gave up
		out.Err, out.Retry = ctx.Err(), false
		return out
	case bounded.Err() != nil:
		out.Err = fmt.Errorf("did not end within %s and was killed: %w", h.timeout, context.DeadlineExceeded)
	case !ended: // it did not start
		out.Err, out.Retry = fmt.Errorf("run %s: %w", h.command[0], err), false
	default:
		out.Err = fmt.Errorf("ended with %s", exit)
		out.Retry = exit.ExitCode() != notExecutable && exit.ExitCode() != notFound
	}
	if said != "" {
		out.Err = fmt.Errorf("%w: %s", out.Err, said)
	}
	return out
}

// variables are what a command is told beside the record.
func variables(m Message) []string {
	line := func(s string) string { return cut(oneLine(s), variableLimit) }
	return []string{
		"CANARYCTL_SERVICE=" + line(m.Service),
		"CANARYCTL_RELEASE=" + line(m.Release),
		"CANARYCTL_ATTEMPT=" + strconv.Itoa(m.Attempt),
		"CANARYCTL_EVENT=" + line(string(m.Event)),
		"CANARYCTL_KEY=" + line(m.Key),
		"CANARYCTL_REASON=" + line(m.Reason),
	}
}

// tail keeps the end of what is written to it: far more than is shown, so that
// what is taken out of it is there whole.
type tail struct{ buf []byte }

// tailKept is how much of it is kept, in bytes.
const tailKept = 64 << 10

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailKept; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns the end of it in one line, without what is or looks like a
// secret: it goes into the journal and to every channel.
func (t *tail) String() string {
	s := oneLine(envsecret.HidePrinted(strings.ToValidUTF8(string(t.buf), ""), os.Environ()))
	if len(s) <= tailLimit {
		return s
	}
	from := len(s) - tailLimit
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return more + s[from:]
}
