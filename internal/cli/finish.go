package cli

import (
	"context"

	"github.com/canaryctl/canaryctl/internal/driver"
)

// finish goes on with a write that a broken-off command has asked for and not
// read back. A release without such a write is left alone.
func (l *live) finish(ctx context.Context) error {
	res, err := l.driver.Finish(ctx)
	if err != nil {
		return failure(err)
	}
	if res == nil {
		l.app.say("nothing was left undone")
		return nil
	}
	if err := l.driver.Settle(ctx); err != nil {
		l.app.warn("%v", err)
	}
	code := ExitOK // finished, whatever it was
	switch res.Status {
	case driver.Incomplete, driver.Failed, driver.Conflict, driver.Drifted:
		code = exitOf[res.Status]
	}
	return l.stood(res, code)
}
