package driver_test

import (
	"context"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
)

func TestALoopSaysHowLongATickTookWithoutTheWaitForTheNext(t *testing.T) {
	w := newWorld(t)
	w.goes = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := 0
	_, err := w.driver().Loop(ctx, func(res *driver.Result, err error) {
		if err != nil || res.Took <= 0 || res.Took > time.Second {
			t.Errorf("tick %d took %s, %v", ticks, res.Took, err)
		}
		if ticks++; ticks == 5 {
			cancel()
		}
	})
	if ctx.Err() == nil || ticks != 5 {
		t.Errorf("%d ticks, %v", ticks, err)
	}
}
