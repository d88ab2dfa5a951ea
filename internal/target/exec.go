package target

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/program"
	"github.com/canaryctl/canaryctl/internal/release"
)

// What programs exit with, besides 0: 8 is canaryctl's own code for a
// conflict, 75 EX_TEMPFAIL of sysexits.h.
const (
	exitConflict = 8
	exitTempFail = 75
)

const (
	defaultExecTimeout = 30 * time.Second
	maxOutput          = 64 << 10 // bytes of a program's output that are kept
	shownLines         = 3        // of its standard error, in messages
	// execGrace is how long a killed program's children may hold its output.
	execGrace = time.Second
)

// command is two programs of the user's own: one prints the weight, the other
// sets it.
type command struct {
	name    string
	read    []string
	write   []string
	scale   scale
	service string
	ring    int64
	dir     string
	timeout time.Duration
}

func newExec(cfg *config.ExecTarget, o Options) (Target, error) {
	for key, args := range map[string][]string{"read": cfg.Read, "write": cfg.Write} {
		if len(args) == 0 || args[0] == "" {
			return nil, fmt.Errorf("target.exec.%s: missing: name a program and its arguments", key)
		}
	}
	return &command{
		name:    "exec " + cfg.Write[0],
		read:    cfg.Read,
		write:   cfg.Write,
		scale:   scaleOf(cmp.Or(cfg.Unit, defaultUnit)),
		service: o.Service,
		ring:    o.Ring,
		dir:     o.Dir,
		timeout: cmp.Or(cfg.Timeout, defaultExecTimeout),
	}, nil
}

// prefix is what the variables of programs begin with.
const prefix = "CANARYCTL_"

// figures are what the read program prints when it prints JSON, and what the
// write program gets.
type figures struct {
	Schema       int    `json:"schema"`
	Weight       string `json:"weight"`        // in the unit
	StableWeight string `json:"stable_weight"` // what is left of the whole
	From         string `json:"from"`          // the weight that was read
	Percent      string `json:"percent"`
	Revision     string `json:"revision"`
	Service      string `json:"service"`
	Release      string `json:"release"`
	Attempt      int    `json:"attempt"`
	Step         int    `json:"step"`
	Move         string `json:"move"`
	Key          string `json:"key"`
	Reason       string `json:"reason"`
	Token        string `json:"token"` // a text: JSON numbers are too short for it
}

// variables are the same as environment variables.
func (f figures) variables() []string {
	var out []string
	for _, v := range [][2]string{
		{"WEIGHT", f.Weight},
		{"STABLE_WEIGHT", f.StableWeight},
		{"FROM", f.From},
		{"PERCENT", f.Percent},
		{"REVISION", f.Revision},
		{"SERVICE", f.Service},
		{"RELEASE", f.Release},
		{"ATTEMPT", strconv.Itoa(f.Attempt)},
		{"STEP", strconv.Itoa(f.Step)},
		{"MOVE", f.Move},
		{"KEY", f.Key},
		{"REASON", f.Reason},
		{"TOKEN", f.Token},
	} {
		// A 0 in one would end the program before it began.
		out = append(out, prefix+v[0]+"="+strings.ReplaceAll(v[1], "\x00", ""))
	}
	return out
}

// Read implements [Target].
func (x *command) Read(ctx context.Context) (Reading, error) {
	out, err := x.run(ctx, x.read, figures{Schema: 1, Service: x.service})
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		err = &RefusedError{Target: x.name, Err: conflict.Err}
	}
	if err != nil {
		return Reading{}, err
	}
	weight, revision, err := readFigures(out)
	if err != nil {
		return Reading{}, x.shape(err)
	}
	w, err := x.scale.parse(weight, "", x.ring)
	if err != nil {
		return Reading{}, x.shape(err)
	}
	return Reading{Weight: w, Revision: revision}, nil
}

func (x *command) shape(err error) error {
	return &ShapeError{
		Target: "exec " + x.read[0], Err: err,
		Hint: fmt.Sprintf(`the read program prints the canary's weight as a multiple of %d, or {"weight": "...", "revision": "..."}`, x.scale.whole),
	}
}

// readFigures reads what the read program printed: a number, or JSON.
func readFigures(out []byte) (weight, revision string, err error) {
	full := len(out) >= maxOutput
	out = bytes.TrimSpace(out)
	switch {
	case len(out) == 0:
		return "", "", errors.New("the read program printed nothing")
	case full:
		return "", "", fmt.Errorf("the read program printed %d KiB or more", maxOutput>>10)
	case out[0] != '{':
		return string(out), "", nil
	}
	var f struct {
		Weight   json.RawMessage `json:"weight"`
		Revision string          `json:"revision"`
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return "", "", fmt.Errorf("the read program printed no JSON: %w", err)
	}
	var text string
	if json.Unmarshal(f.Weight, &text) != nil {
		text = string(f.Weight) // a number, as it is written
	}
	if text == "" {
		return "", "", errors.New(`the read program printed no "weight"`)
	}
	return text, f.Revision, nil
}

// Write implements [Target].
func (x *command) Write(ctx context.Context, was Reading, c Change) error {
	canary, stable, err := x.scale.render(c.To)
	if err != nil {
		return nameFine(x.name, err)
	}
	now, err := x.Read(ctx)
	switch {
	case c.Overwrite && err == nil:
		was = now
	case c.Overwrite: // it is written whatever stands there, readable or not
	case err != nil:
		return refusedShape(err)
	case !now.Weight.Same(was.Weight) || now.Revision != was.Revision:
		return &ConflictError{Target: x.name, Held: &now.Weight}
	}
	from, _, err := x.scale.render(was.Weight)
	if err != nil {
		from = "" // somebody set what the unit cannot write
	}
	percent, _, err := scale{100, 18}.render(c.To)
	if err != nil {
		percent = strings.TrimSuffix(c.To.String(), " %") // periodic: as people see it
	}
	_, err = x.run(ctx, x.write, figures{
		Schema: 1, Weight: canary, StableWeight: stable, From: from, Percent: percent, Revision: was.Revision,
		Service: cmp.Or(c.Service, x.service), Release: c.Release, Attempt: c.Attempt, Step: c.Step, Move: c.Move,
		Key: c.Key, Reason: c.Reason, Token: strconv.FormatUint(c.Token, 10),
	})
	return err
}

// run runs a program with the figures and returns what it printed.
func (x *command) run(ctx context.Context, args []string, f figures) ([]byte, error) {
	in, err := json.Marshal(f)
	if err != nil {
		return nil, &RefusedError{Target: x.name, Err: err}
	}
	limited, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	cmd.Dir = x.dir
	cmd.Env = append(os.Environ(), f.variables()...)
	cmd.Stdin = bytes.NewReader(append(in, '\n'))
	out, said := &bounded{}, &bounded{last: true}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.WaitDelay = execGrace
	program.OwnGroup(cmd)
	err = cmd.Run()
	if limited.Err() == nil && errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; a child of its own goes on holding its output
	}
	return out.buf, x.outcome(ctx, limited, args[0], err, said.buf)
}

// outcome is the error of how a program ended.
func (x *command) outcome(ctx, limited context.Context, program string, err error, said []byte) error {
	name := "exec " + program
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &UnreachableError{Target: name, Err: ctx.Err()}
	case limited.Err() != nil:
		return &UnreachableError{Target: name, Err: fmt.Errorf("it did not end within %s and was killed%s", x.timeout, lastLines(said))}
	case !ended:
		return &RefusedError{Target: name, Err: fmt.Errorf("it cannot be started: %w", err), Hint: "name a program in PATH or by its path; a line for a shell is [sh, -c, LINE]"}
	}
	why := fmt.Errorf("it ended with %s%s", exit.ProcessState, lastLines(said))
	switch code := exit.ExitCode(); {
	case code == exitTempFail, code < 0, code > 128 && code < 160: // a signal; a shell's word for its child's
		return &UnreachableError{Target: name, Err: why}
	case code == exitConflict:
		return &ConflictError{Target: name, Err: why}
	}
	return &RefusedError{Target: name, Err: why, Hint: fmt.Sprintf("exit %d says that it may work later, %d that somebody else has moved", exitTempFail, exitConflict)}
}

// lastLines is the end of what a program said, for a message, without what is
// or looks like a secret.
func lastLines(said []byte) string {
	lines := strings.Split(strings.TrimSpace(envsecret.HidePrinted(string(said), os.Environ())), "\n")
	lines = lines[max(len(lines)-shownLines, 0):]
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(lines) == 0 {
		return ""
	}
	for i := range lines {
		lines[i] = oneLine(lines[i], shownAnswer)
	}
	return ": " + strings.Join(lines, " / ")
}

// bounded keeps the first maxOutput bytes of an output, or the last.
type bounded struct {
	buf  []byte
	last bool
}

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) > maxOutput {
		if b.last {
			b.buf = append(b.buf[:0], b.buf[len(b.buf)-maxOutput:]...)
		} else {
			b.buf = b.buf[:maxOutput]
		}
	}
	return len(p), nil
}

// Check implements [Target].
func (x *command) Check(w release.Weight) error { return x.scale.check(x.name, w) }

// KeepsState implements [Target].
func (x *command) KeepsState() bool { return false }

// ReadBack implements [Target]: how long the program's answer may be stale is
// not known; the default of HTTP targets is as good.
func (x *command) ReadBack() time.Duration { return defaultReadBack }

// String implements [Target].
func (x *command) String() string { return x.name }
