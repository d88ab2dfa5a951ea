//go:build unix

package program

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// OwnGroup has a command start in a process group of its own, and the whole
// group killed when its time is over: what a shell started must not live on.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
