package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// files reads windows, or records that it counts into windows, from files that
// grow. Between readings it keeps where it stands in each file and the windows
// from the time asked for last on, and nothing of what was before.
type files struct {
	name     string
	cfg      *config.Source
	dir      string
	kind     trace.Kind
	opt      trace.Options
	patterns []string

	mu             sync.Mutex
	live           *trace.Live
	follow         *follower
	since          time.Time
	newest         time.Time
	lately, before lines     // of the present and the last stretch of time
	turned         time.Time // when the present one began
	saidArms       bool
	saidScene      bool
	saidStrange    int // of the statuses that are not known
}

func newFiles(c *config.Source, o Options, kind trace.Kind) (*files, error) {
	opt, err := traceOptions(c, o)
	if err != nil {
		return nil, err
	}
	f := &files{cfg: c, dir: o.Dir, kind: kind, opt: opt, name: c.Kind + " " + strings.Join(c.Paths, ", ")}
	for _, p := range c.Paths {
		if _, err := filepath.Match(p, ""); err != nil {
			return nil, &Error{Source: "source." + c.Kind + ".path", Err: fmt.Errorf("%q is not a pattern: %w", p, err), Hint: `write \[ for a bracket in a name`}
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(o.Dir, p)
		}
		f.patterns = append(f.patterns, p)
	}
	if len(f.patterns) == 0 {
		return nil, &Error{Source: "source." + c.Kind, Err: errors.New("no path"), Hint: "set path"}
	}
	return f, nil
}

func (f *files) Span() time.Duration   { return f.cfg.Span }
func (f *files) Settle() time.Duration { return f.cfg.Settle }
func (f *files) String() string        { return f.name }

// Read reads what has been appended since the last reading. A time before that
// of the last reading starts anew.
func (f *files) Read(ctx context.Context, from, now time.Time) (Batch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.cfg.Timeout)
		defer cancel()
	}
	if f.live == nil || from.Before(f.since) {
		f.live = trace.NewLive(f.kind, f.opt)
		f.follow = newFollower(f.live, f.kind, from)
		f.lately, f.before = lines{}, lines{}
	}
	f.since = from
	f.live.Forget(from)
	paths, missing, err := f.paths()
	if err != nil {
		return Batch{}, f.fail(err)
	}
	// Files that have gone may hold lines that were written before they went.
	if err := f.follow.read(ctx, paths, now); err != nil {
		return Batch{}, f.fail(err)
	}
	if missing != "" {
		return Batch{}, &Error{Source: f.name, Err: fmt.Errorf("no file matches %s yet", missing), Hint: "is the path right, and has the service logged anything?"}
	}
	b := Batch{Until: floorTo(now.Add(-f.cfg.Settle), f.cfg.Span), Notes: f.follow.takeNotes()}
	counts := f.live.Counts()
	b.Notes = append(b.Notes, f.notes(counts)...)
	if err := f.tooBad(counts, now); err != nil {
		return Batch{}, err
	}
	b.Windows = ended(f.live.Windows(b.Until), b.Until)
	if n := f.live.Newest(now); n.After(f.newest) {
		f.newest = n
	}
	b.Newest = f.newest
	if f.kind == trace.Records {
		b.Users = f.live.Users(b.Until)
	}
	return b, nil
}

// ended leaves out windows that end after a time: those that do not start at a
// multiple of their span.
func ended(windows []release.Window, until time.Time) []release.Window {
	return slices.DeleteFunc(windows, func(w release.Window) bool { return w.End().After(until) })
}

func (f *files) fail(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not read to the end within %s; the next reading goes on from there", f.cfg.Timeout)
	}
	return &Error{Source: f.name, Err: err, Hint: hintOf(err)}
}

// paths lists the files that there are now, in order, and names a pattern that
// none matches.
func (f *files) paths() (out []string, missing string, err error) {
	for i, pattern := range f.patterns {
		names := []string{pattern}
		switch _, err := os.Stat(pattern); {
		case errors.Is(err, fs.ErrNotExist):
			if names, err = filepath.Glob(pattern); err != nil {
				return nil, "", err
			}
		case err != nil:
			return nil, "", err
		}
		found := false
		for _, name := range names {
			inside, err := regular(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // went away just now
			}
			if err != nil {
				return nil, "", err
			}
			found = found || len(inside) > 0
			out = append(out, inside...)
		}
		if !found && missing == "" {
			missing = f.cfg.Paths[i]
		}
	}
	slices.Sort(out)
	return slices.Compact(out), missing, nil
}

// regular lists the files that a path stands for: itself, or those in it where
// it is a folder, but not hidden ones nor those in folders of its own.
func regular(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return []string{path}, nil
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, name)
		}
	}
	return out, nil
}

// notes says what became of odd rows.
func (f *files) notes(c trace.LiveCounts) (out []string) {
	say := func(n int64, one, many string) {
		switch {
		case n == 1:
			out = append(out, one)
		case n > 1:
			out = append(out, fmt.Sprintf(many, n))
		}
	}
	say(c.Bad, "1 line cannot be read", "%d lines cannot be read")
	out = append(out, c.BadLines...)
	say(c.Late, "1 record came after its window was settled and is not counted; settle_min should cover how late records come",
		"%d records came after their windows were settled and are not counted; settle_min should cover how late records come")
	say(c.Contrary, "1 window is there twice with other figures: the first counts", "%d windows are there twice with other figures: the first of each counts")
	say(c.NonFinite, "1 figure is NaN or infinite: missing, not zero", "%d figures are NaN or infinite: missing, not zero")
	if f.kind == trace.Records {
		say(c.Duplicates, "1 duplicate record dropped", "%d duplicate records dropped")
	}
	if c.LeftOut > 0 && !f.saidArms {
		f.saidArms = true
		others := "they name no version"
		if len(c.OtherArms) > 0 {
			others = strings.Join(c.OtherArms[:min(len(c.OtherArms), 5)], ", ")
		}
		out = append(out, fmt.Sprintf("rows of neither arm are left out (%s); arms says which version is which", printable(others)))
	}
	if note := f.sceneNote(c); note != "" {
		out = append(out, note)
	}
	say(c.Approximate, "1 percentile is within 0.8 % of the exact one: more values came than are held at once",
		"%d percentiles are within 0.8 % of the exact ones: more values came than are held at once")
	if len(c.Strange) > f.saidStrange {
		f.saidStrange = len(c.Strange)
		out = append(out, fmt.Sprintf("a status that is not known counts as an error (%s); if that is no status, map another column", printable(strings.Join(c.Strange, ", "))))
	}
	return out
}

// sceneNote says once that rows name no scene, or that none so far is of the
// one asked for. That other scenes have rows is no news.
func (f *files) sceneNote(c trace.LiveCounts) string {
	switch {
	case f.saidScene || f.opt.Scene == "":
	case c.Sceneless > 0:
		f.saidScene = true
		return fmt.Sprintf("rows that name no scene are left out: which of them are of %s is not known; map scene if another column says", printable(f.opt.Scene))
	case c.OtherScenes > 0 && c.OtherScenes == c.Rows-c.Bad:
		f.saidScene = true
		return fmt.Sprintf("none of the %d rows read is of the scene %s; is its name right?", c.OtherScenes, printable(f.opt.Scene))
	}
	return ""
}

// lines counts those that were read, and those of them that cannot be.
type lines struct{ bad, rows int64 }

const (
	// mostLately and longestLately are a stretch of lines and of time. What was
	// wrong before the last one has been mended, or is wrong again by now.
	mostLately    = 10_000
	longestLately = 30 * time.Minute
)

// tooBad refuses a source of which too many lines cannot be read lately. A
// single one is always let pass: a logger was killed. A file that was replaced
// is a new beginning.
func (f *files) tooBad(c trace.LiveCounts, now time.Time) error {
	if f.follow.takeReplaced() {
		f.lately, f.before = lines{}, lines{}
	}
	if age := now.Sub(f.turned); f.lately.rows > mostLately || age >= longestLately || age < 0 {
		if f.before = f.lately; age >= 2*longestLately {
			f.before = lines{}
		}
		f.lately, f.turned = lines{}, now
	}
	f.lately.bad, f.lately.rows = f.lately.bad+c.Bad, f.lately.rows+c.Rows
	bad, rows := f.lately.bad+f.before.bad, f.lately.rows+f.before.rows
	limit := f.cfg.MaxBad
	if limit.IsZero() {
		limit = release.NewRatio(1, 1000)
	}
	if bad > 1 && limit.Compare(bad, rows) > 0 && limit.Compare(bad, 1000) > 0 {
		err := fmt.Errorf("%d of the last %d lines cannot be read", bad, rows)
		if len(c.BadLines) > 0 {
			err = fmt.Errorf("%w; %s", err, c.BadLines[0])
		}
		return &Error{Source: f.name, Err: err, Hint: "mend what writes them, or allow more with max_bad"}
	}
	return nil
}
