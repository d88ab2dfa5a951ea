//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether whoever read the output has gone away: a pipe says
// so without being written to.
func (app *App) readerGone() bool {
	f, ok := app.Stdout.(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
