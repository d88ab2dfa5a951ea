//go:build unix

package notify

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own and kills the group
// when its time is over: what a shell started must not live on.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
