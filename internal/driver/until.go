package driver

import "context"

// Until promotes once a window until is says so of a result, or the context
// ends: then the newest result comes with the context's error.
func (d *Driver) Until(ctx context.Context, is func(*Result) bool) (*Result, error) {
	for {
		res, err := d.Promote(ctx)
		if err != nil && !isLost(err) {
			return res, err
		}
		if err == nil && is(res) {
			return res, nil
		}
		if err == nil {
			err = d.o.Wait(ctx, d.untilNext(res))
		}
		if ctx.Err() != nil {
			return res, err
		}
	}
}
