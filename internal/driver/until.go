package driver

import "context"

// Until promotes once a window until is says so of a result, or the context
// ends: then the newest result comes with the context's error.
func (d *Driver) Until(ctx context.Context, is func(*Result) bool) (*Result, error) {
	var newest *Result
	for {
		res, err := d.Promote(ctx)
		switch {
		case err == nil && is(res):
			return res, nil
		case err == nil:
			newest = res
			err = d.o.Wait(ctx, d.untilNext(res))
		case ctx.Err() == nil && !isLost(err):
			return res, err
		}
		if ctx.Err() != nil {
			return newest, err
		}
	}
}
