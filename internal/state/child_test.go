//go:build unix

package state_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/state"
)

// childDir names the directory in the environment of a child process.
const childDir = "CANARYCTL_TEST_STATE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := obey(dir, os.Stdin, os.Stdout); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// big is a state of a megabyte that says the same word all over.
func big(word string) []byte { return []byte(strings.Repeat(word, 1<<20/len(word))) }

// obey does in a child process what it is told, a line each, and answers with
// a line.
func obey(path string, in io.Reader, out io.Writer) error {
	dir, err := state.Open(path, "s")
	if err != nil {
		return err
	}
	who := state.Holder{PID: os.Getpid(), Who: "child@host", Command: "promote", Since: time.Now().UTC()}
	var lease *state.Lease
	take := func(how func(context.Context, state.Holder) (*state.Lease, error), wait string) error {
		d, err := time.ParseDuration(wait)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		lease, err = how(ctx, who)
		return err
	}
	for s := bufio.NewScanner(in); s.Scan(); {
		verb, arg, _ := strings.Cut(s.Text(), " ")
		answer := "ok"
		switch verb {
		case "acquire":
			err = take(dir.Acquire, arg)
		case "preempt":
			err = take(dir.Preempt, arg)
		case "token":
			answer = strconv.FormatUint(lease.Token(), 10)
		case "check":
			err = lease.Check()
		case "save":
			err = lease.Save([]byte(arg))
		case "release":
			err = lease.Release()
		case "drive":
			var ok bool
			if _, ok, err = dir.Driving(state.Holder{Command: "run"}); !ok {
				answer = "no"
			}
		case "turns": // takes the lock so many times, and tells each token
			n, _ := strconv.Atoi(arg)
			for range n {
				if err = take(dir.Acquire, "1m"); err != nil {
					break
				}
				fmt.Fprintln(out, lease.Token())
				err = lease.Release()
			}
		case "save-for-ever":
			fmt.Fprintln(out, "ok")
			for i := 0; err == nil; i++ {
				err = lease.Save(big([]string{"left ", "right "}[i%2]))
			}
		case "preempt-for-ever":
			fmt.Fprintln(out, "ok")
			for err == nil {
				if err = take(dir.Preempt, "1ms"); err == nil {
					err = lease.Release()
				}
			}
		}
		if err != nil {
			answer, err = "error: "+err.Error(), nil
		}
		fmt.Fprintln(out, answer)
	}
	return nil
}

// child is another process at the same release.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	dead bool
}

func newChild(t *testing.T, dir string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childDir+"="+dir)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	t.Cleanup(c.kill)
	return c
}

// say tells the child to do something and returns its answer.
func (c *child) say(line string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	return c.hear()
}

func (c *child) hear() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the child has gone: %v", c.out.Err())
	}
	return c.out.Text()
}

// want tells the child to do something and fails unless the answer is this.
func (c *child) want(line, answer string) {
	c.t.Helper()
	if got := c.say(line); !strings.Contains(got, answer) || answer == "ok" && got != "ok" {
		c.t.Fatalf("%s: %s, want %s", line, got, answer)
	}
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// kill ends the child, however it stands, and waits for that.
func (c *child) kill() {
	if !c.dead {
		c.dead = true
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait() // it was killed
	}
}
