package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/state"
)

const (
	// Glance is how often the release's files are looked at for a change.
	Glance = time.Second
	// oldest is how old a snapshot becomes before another follows, and how long
	// a look may take before the view goes on without it.
	oldest = 5 * time.Second
	// Unseen is how long target and source are left alone, at most.
	Unseen = 15 * time.Second
)

// LiveOptions are what a live view works with.
type LiveOptions struct {
	Driver *driver.Driver // over Source and the target; nobody else may use it
	Source *Wide
	Target string // as people name it
	Dir    *state.Dir
	Config *config.Config

	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error // [driver.Sleep], but for tests
}

// Live is the feed of a real release. It only reads: the journal when it has
// changed, and the target and the source through [driver.Driver.Peek]. Any
// number of them look at one release, beside whatever drives it.
type Live struct {
	o      LiveOptions
	poked  chan struct{}
	looked chan sighting

	tail  tail
	files [2]string // journal and saved state, as last seen
	ill   string    // why the journal could not be read; "": it could

	plan  *ladder.Plan // as of the newest look
	last  *sighting    // the newest good one; nil: there was none
	err   error        // of the newest look
	begun time.Time    // since when a look is out; zero: none is
	next  time.Time    // when one is due
	due   bool         // one is due at once
	news  bool         // what the newest look gave has not been shown
	shown time.Time    // when the newest snapshot was given
	clock anchor       // of what is left of a hold
	quiet time.Time    // since when no look has found everything; zero: the newest did
}

// sighting is what a look gave.
type sighting struct {
	seen   Seen
	at     time.Time // when it began
	err    error
	ended  bool   // by the context, not by itself
	broken string // by this panic
}

// silence says that a target or a source has not answered yet.
type silence struct{ since time.Duration }

func (e silence) Error() string { return "it has not answered for " + Clock(e.since) }

// NewLive returns the feed of a release.
func NewLive(o LiveOptions) *Live {
	return &Live{
		o: o, poked: make(chan struct{}, 1), looked: make(chan sighting, 1), tail: tail{path: o.Dir.Journal()}, plan: o.Driver.Plan(), due: true,
	}
}

// Poke lets the next look happen at once, as after an action. It may be called
// from anywhere.
func (l *Live) Poke() {
	select {
	case l.poked <- struct{}{}:
	default: // it was poked and has not looked yet
	}
}

// Next returns the next snapshot: after each look, and else after a few seconds.
// A look that hangs keeps no snapshot back; it is left to end by itself, or with
// the context, which is the whole view's. An error says that nothing could be
// seen of the release so far. It is for one goroutine.
func (l *Live) Next(ctx context.Context) (Snapshot, error) {
	for ctx.Err() == nil {
		now := l.o.Now()
		l.glance(ctx, now)
		if l.begun.IsZero() && (l.due || !now.Before(l.next)) {
			l.look(ctx, now)
		}
		if l.news || !now.Before(l.late()) {
			return l.show(ctx, now)
		}
		l.rest(ctx, now)
	}
	return Snapshot{}, ctx.Err()
}

// late is when a snapshot is due in any case: the first one is waited for from
// the first look on.
func (l *Live) late() time.Time {
	if l.shown.IsZero() {
		return l.begun.Add(oldest)
	}
	return l.shown.Add(oldest)
}

// Glance looks whether the release's files have changed, and reads on in the
// journal if so.
func (l *Live) glance(ctx context.Context, now time.Time) {
	files := [2]string{versionOf(l.o.Dir.Journal()), versionOf(filepath.Join(l.o.Dir.Path(), "state.json"))}
	if files == l.files && l.ill == "" {
		return
	}
	l.ill = ""
	if err := l.tail.read(ctx, now); err != nil {
		l.ill = "the journal cannot be read: " + err.Error()
	}
	l.due = l.due || files != l.files
	l.files = files
}

// versionOf tells one state of a file from another.
func versionOf(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "none"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
}

// look begins a look. There is one at a time.
func (l *Live) look(ctx context.Context, now time.Time) {
	l.begun, l.due = now, false
	if l.quiet.IsZero() {
		l.quiet = now
	}
	go func() {
		s := sighting{at: now}
		defer func() {
			if broken := recover(); broken != nil {
				s.broken = fmt.Sprintf("%v\n%s", broken, debug.Stack())
			}
			l.looked <- s
		}()
		res, err := l.o.Driver.Peek(ctx)
		if s.err, s.ended = err, ctx.Err() != nil; err == nil {
			s.seen = l.seen(res, l.o.Driver.Plan())
			s.seen.Canary, s.seen.Stable = l.o.Source.windows()
		}
	}()
}

// seen is what is known with a result.
func (l *Live) seen(res *driver.Result, p *ladder.Plan) Seen {
	return Seen{
		Service: l.o.Config.ServiceName(), Config: l.o.Config, Plan: p, Result: res,
		TargetName: l.o.Target, SourceName: l.o.Source.String(), Settle: l.o.Source.Settle(), Span: spanOf(l.o.Source),
	}
}

// rest waits until there may be something new.
func (l *Live) rest(ctx context.Context, now time.Time) {
	wait := Glance
	for _, t := range []time.Time{l.next, l.late()} {
		if d := t.Sub(now); d > 0 {
			wait = min(wait, d)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	waited := make(chan error, 1)
	go func() { waited <- l.o.Wait(ctx, wait) }()
	select {
	case s := <-l.looked:
		l.take(s)
	case <-l.poked:
		l.due = true
	case <-waited:
		cancel()
		return
	}
	cancel()
	<-waited
}

// take takes a look's result in, and says when the next is due: when a window
// has become final since this one began, and before long in any case.
func (l *Live) take(s sighting) {
	if s.broken != "" {
		panic(s.broken) // where whoever owns the terminal can put it back
	}
	l.begun = time.Time{}
	if s.ended && s.err != nil {
		l.due = true
		return
	}
	span, settle := spanOf(l.o.Source), l.o.Source.Settle()
	window := s.at.Add(-settle).Truncate(span).Add(span + settle)
	l.next = l.o.Now().Add(min(span, Unseen))
	if window.Before(l.next) {
		l.next = window
	}
	if l.err, l.news = s.err, true; s.err == nil {
		l.last, l.plan = &s, s.seen.Plan
		if res := s.seen.Result; res.SourceErr == nil && res.TargetErr == nil {
			l.quiet = time.Time{}
		}
	}
}

// show forms the snapshot of what is known by now.
func (l *Live) show(ctx context.Context, now time.Time) (Snapshot, error) {
	l.shown, l.news = now, false
	last := l.last
	switch {
	case last != nil:
	case l.err != nil:
		return Snapshot{}, l.err
	default:
		var err error
		if last, err = l.told(ctx); err != nil {
			return Snapshot{}, err
		}
	}
	s := last.seen
	res := *s.Result
	if l.out(now) >= oldest {
		l.overtake(ctx, &res)
	}
	if s.At = now; l.err != nil || l.out(now) > viewAge {
		s.At = last.at // the view is so old
	}
	res.Outcome.LeftS = l.clock.left(&res.Outcome, last.at, s.At)
	l.silent(&res, now)
	s.Result, s.Events, s.Decider = &res, l.tail.events, l.tail.decider
	s.Notes = l.notes(res.Notes)
	if l.err != nil {
		s.LookErr = strings.Join(strings.Fields(l.err.Error()), " ")
	}
	if l.elsewhere(res.Release) {
		s.Decider = Decider{At: res.Release.LastAt, Elsewhere: true}
		s.Notes = append([]string{"the release is driven from another directory or machine: what happened there is in the journal there"}, s.Notes...)
	}
	return Build(&s), nil
}

// overtake puts what the journal says in the place of an older look while the
// next one hangs: a rollback that was made meanwhile must not be missing because
// a target does not answer.
func (l *Live) overtake(ctx context.Context, res *driver.Result) {
	if l.tail.head.N <= res.Release.Head.N {
		return
	}
	r, err := driver.Load(ctx, l.o.Dir, l.o.Config.ServiceName())
	if err == nil && r.Head.N > res.Release.Head.N {
		res.Release, res.Outcome = r, r.Last
	}
}

// out is for how long a look has been out.
func (l *Live) out(now time.Time) time.Duration {
	if l.begun.IsZero() {
		return 0
	}
	return now.Sub(l.begun)
}

// elsewhere reports whether the newest decision was made under another journal:
// the target kept it, and keeps none of the holds since.
func (l *Live) elsewhere(r *driver.Release) bool {
	return r.Published > 0 && r.LastAt.After(l.tail.decider.At)
}

// silent says what a look that hangs is waiting for.
func (l *Live) silent(res *driver.Result, now time.Time) {
	switch out := l.out(now); {
	case out < oldest:
	case l.o.Source.busy():
		res.SourceErr = silence{now.Sub(l.quiet)}
	default:
		res.TargetErr = silence{now.Sub(l.quiet)}
	}
}

// anchor is when the ladder first said what is left of a hold. A hold has only
// seen whole windows, so that looks within one window say the same although time
// goes by.
type anchor struct {
	key string
	at  time.Time
}

// left is what is left at a time of what a look at an earlier one said.
func (a *anchor) left(o *journal.Outcome, said, now time.Time) *int64 {
	if o.LeftS == nil {
		a.key = ""
		return nil
	}
	if key := fmt.Sprint(o.Why, o.Attempt, o.Step, o.HeldS, *o.LeftS); key != a.key {
		a.key, a.at = key, said
	}
	return new(max(*o.LeftS-int64(now.Sub(a.at)/time.Second), 0))
}

// errSilent says that the first look has not come back and nothing else is known
// of a release.
var errSilent = errors.New("neither target nor source has answered yet, and there is no release here so far")

// told stands in for the first look while it hangs: what the journal says, which
// needs neither target nor source.
func (l *Live) told(ctx context.Context) (*sighting, error) {
	r, err := driver.Load(ctx, l.o.Dir, l.o.Config.ServiceName())
	if err != nil {
		return nil, err
	}
	if r.LastAt.IsZero() {
		return nil, errSilent
	}
	return &sighting{seen: l.seen(&driver.Result{Outcome: r.Last, Release: r, DryRun: true}, l.plan), at: r.LastAt}, nil
}

// notes is what people are told beside the figures.
func (l *Live) notes(of []string) []string {
	var out []string
	if l.ill != "" {
		out = append(out, l.ill)
	}
	return slices.Concat(out, l.tail.notes(), of) // what is the view's own comes first
}
