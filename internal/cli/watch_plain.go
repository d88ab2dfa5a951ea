package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// watchLines prints a line for each change of the live release, until a signal
// or until nobody reads them.
func (app *App) watchLines(ctx context.Context) error {
	feed, err := app.feed(ctx, "watch")
	if err != nil {
		return err
	}
	return app.lines(ctx, feed)
}

// lines prints what a feed shows. A journal that cannot be trusted ends it; what
// else fails is said once and looked at again.
func (app *App) lines(ctx context.Context, feed tui.Feed) error {
	var prev *watch.Snapshot
	var notes remarks
	trouble := complaint{app: app}
	for {
		now, err := feed.Next(ctx)
		switch {
		case app.readerGone():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case driver.Damaged(err):
			return failure(err)
		}
		if trouble.take(err); err != nil {
			if err := driver.Sleep(ctx, watch.Glance); err != nil {
				return err
			}
			continue
		}
		if err := app.printLines(watch.Lines(prev, &now)); err != nil {
			return err
		}
		for _, n := range notes.fresh(now.Notes) {
			app.say("%s", n)
		}
		prev = &now
	}
}

// complaint warns of what goes wrong, once until it is over.
type complaint struct {
	app  *App
	last string
}

func (c *complaint) take(err error) {
	text := ""
	if err != nil {
		text = inLine(err)
	}
	if text != "" && text != c.last {
		c.app.warn("%s", text)
	}
	c.last = text
}

// watchJSON prints the document of status for each change of the live release.
func (app *App) watchJSON(ctx context.Context) error {
	l, err := app.live("watch", needs{source: true, reads: true})
	if err != nil {
		return err
	}
	last, trouble := "", complaint{app: app}
	for {
		res, err := l.driver.Peek(ctx)
		switch {
		case app.readerGone():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (last == "" || driver.Damaged(err)):
			return failure(err)
		}
		trouble.take(err)
		if err == nil && where(res) != last {
			last = where(res)
			if err := encodeLine(app.Stdout, l.standing(res, exitOf[res.Status])); err != nil {
				return err
			}
		}
		if err := l.untilNews(ctx); err != nil {
			return err
		}
	}
}

// untilNews waits until the journal has changed, or long enough.
func (l *live) untilNews(ctx context.Context) error {
	size := func() int64 {
		if info, err := os.Stat(l.dir.Journal()); err == nil {
			return info.Size()
		}
		return 0
	}
	was := size()
	for left := min(watch.Unseen, max(l.source.Span(), watch.Glance)); left > 0 && size() == was; left -= watch.Glance {
		if err := driver.Sleep(ctx, min(left, watch.Glance)); err != nil {
			return err
		}
	}
	return nil
}

// printLines prints lines of what was seen, of which nothing may steer the
// terminal.
func (app *App) printLines(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(app.Stdout, harmless(line)); err != nil {
			return err
		}
	}
	return nil
}

// remarks are notes that have been said, without the figures in them: what is
// odd about a source is odd each time that it is read.
type remarks map[string]bool

// fresh is the notes that the look before has not given, whatever the figures in
// them.
func (r *remarks) fresh(notes []string) []string {
	var out []string
	said := remarks{}
	for _, n := range notes {
		plain := strings.Map(func(c rune) rune {
			if unicode.IsDigit(c) {
				return -1
			}
			return c
		}, n)
		said[plain] = true
		if !(*r)[plain] {
			out = append(out, n)
		}
	}
	if len(notes) > 0 {
		*r = said
	}
	return out
}
