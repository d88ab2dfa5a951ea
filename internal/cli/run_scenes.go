package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/canaryctl/canaryctl/internal/driver"
)

// overallLine is the last line of `run -o json` over several scenes.
type overallLine struct {
	Schema  int         `json:"schema"`
	Overall overallJSON `json:"overall"`
}

// runScenes drives every scene until each has ended by itself: one that fails
// or locks ends alone. A signal ends all.
func (app *App) runScenes(ctx context.Context, rs []*running, o runOptions) error {
	ends := make([]sceneEnd, len(rs))
	results := make([]*driver.Result, len(rs))
	var all sync.WaitGroup
	for i, r := range rs {
		end := &ends[i]
		end.name = r.l.cfg.Scene
		r.l.later = func(code ExitCode, do func()) { end.later, end.code = append(end.later, do), code }
		all.Go(func() {
			res, err := r.begun(ctx, o)
			results[i] = res
			if err == nil {
				r.exporter.End() // one that failed goes stale
			}
			if end.err = r.closed(res, err); end.err != nil && !errors.Is(end.err, context.Canceled) {
				r.l.app.report(end.err)
			}
		})
	}
	all.Wait()
	tellInOrder(ends)
	worst := worstOf(ends)
	code := codeOf(worst.err)
	if err := interrupted(ends); err != nil {
		return err
	}
	if rs[0].format == "json" {
		line := overallLine{Schema: 1, Overall: overallJSON{ExitCode: int(code), Scene: worst.name}}
		for i := range ends {
			if &ends[i] == worst && results[i] != nil {
				line.Overall.Decision, line.Overall.Reason = results[i].Outcome.Move.String(), results[i].Outcome.Reason
			}
		}
		if err := encodeLine(app.Stdout, line); err != nil && !isBrokenPipe(err) {
			return err
		}
	} else {
		fmt.Fprintln(app.Stdout, overallText(ends, worst)) //nolint:errcheck // the exit code is for those who read no output
	}
	if code != ExitOK {
		return silent(code)
	}
	return nil
}

// begun is [running.drive] with what is asked for before it.
func (r *running) begun(ctx context.Context, o runOptions) (*driver.Result, error) {
	if err := r.restart(ctx, o); err != nil {
		return nil, err
	}
	return r.drive(ctx)
}
