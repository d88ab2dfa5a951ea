package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	// mostTries and leastTrying are how often, and for how long at least, a
	// message is tried on a channel before it is given up.
	mostTries   = 10
	leastTrying = 10 * time.Minute
	// mostLetters bounds what waits to be told; the oldest is given up.
	mostLetters = 200
	// tellTime bounds what a tick spends on messages: the next window comes.
	tellTime = 20 * time.Second
	// hookTime bounds what a tick spends on hooks.
	hookTime = 60 * time.Second
)

// tell puts a message into the outbox: one for each transition, with a key that
// stays the same however often it is sent.
func (r *Release) tell(e *journal.Entry, event notify.Event) {
	o := &r.Last
	m := notify.Message{
		Schema: 1, Event: event, Time: e.T, Service: r.Service, Release: r.ID(), Attempt: r.Ladder.Attempt,
		Step: o.Step, Steps: o.Steps, Pct: r.Ladder.Weight.Share(), Phase: r.Ladder.Breaker.Phase.String(), Reason: o.Reason, RunURL: e.Run,
	}
	r.Messages++
	m.Key = fmt.Sprintf("%s/%d/%d/%s/%d", r.name(), m.Attempt, m.Step, event, r.Messages)
	m.Next = Next(o, m.Release)
	r.word(e, &m)
	m.Next = r.Command(m.Next)
	r.Outbox = append(r.Outbox, Letter{Message: m})
}

// word puts the sentence of a message right where the decision's own is about
// something else.
func (r *Release) word(e *journal.Entry, m *notify.Message) {
	switch m.Event {
	case notify.Started, notify.Advanced, notify.Probing:
		m.Reason = fmt.Sprintf("%s of traffic was read back", r.Ladder.Weight)
	case notify.RolledBack, notify.Locked:
		if r.Record != nil {
			m.Reason = r.Record.Reason
			if b, err := json.Marshal(r.Record); err == nil {
				m.Rollback = b
			}
		}
	case notify.Incomplete:
		m.Reason = "the weight was not read back as 0: " + e.Wrote.Error
		m.Next = "canaryctl rollback"
		if e.Wrote.Exchange {
			m.Reason = "the version that was stable before the swap is not back: " + e.Wrote.Error
		}
		if e.Wrote.GivenUp {
			m.Next = "a person puts the versions right; nothing else is tried"
		}
	case notify.WriteRefused:
		m.Reason = fmt.Sprintf("the target does not take %s: %s", e.Wrote.To, e.Wrote.Error)
		m.Next = "it is asked for again with each look; canaryctl rollback gives the release up"
	case notify.Mismatch, notify.ShareOK:
		m.Reason = fmt.Sprintf("the weight is %s, and the canary is seen to serve %s", r.Ladder.Weight, r.Last.Share)
	case notify.SourceLost:
		m.Reason = r.SourceError
	case notify.TargetLost:
		m.Reason = r.TargetError
	case notify.Drift:
		m.Reason = fmt.Sprintf("the target holds %s, last read back was %s", r.Held.Weight, r.Ladder.Weight)
		if r.Ladder.Stage == ladder.NotStarted {
			m.Reason = fmt.Sprintf("the target holds %s before the release has started, which is more than the first step", r.Held.Weight)
		}
		if r.MovedBy != "" {
			m.Reason += ": moved by " + r.MovedBy
		}
	case notify.DriftOver, notify.TargetBack:
		m.Reason = fmt.Sprintf("the target holds %s, as was last read back", r.Held.Weight)
		if !r.Held.Weight.Same(r.Ladder.Weight) {
			m.Reason = fmt.Sprintf("the target answers again: it holds %s, last read back was %s", r.Held.Weight, r.Ladder.Weight)
		}
	case notify.HookFailed:
		m.Reason = e.Hooked.Hook + ": " + e.Hooked.Error
	case notify.Paused, notify.Resumed, notify.LockCleared:
		m.Reason = done[e.Command.Verb] + " by " + e.Command.By
		if e.Command.Reason != "" {
			m.Reason += ": " + e.Command.Reason
		}
	}
}

// Next says what comes next: what canaryctl will do by itself, or the command
// for a person to give, verbatim.
func Next(o *journal.Outcome, id string) string {
	switch {
	case o.Stage == ladder.NotStarted && o.Move == release.Hold && o.Why != ladder.WhyDrift && o.Why != ladder.WhyFrozen && o.Why != ladder.WhyUnread && o.Why != ladder.WhyConfigChanged:
		return "canaryctl promote starts an attempt at step 1"
	case o.Locked && o.Why == ladder.WhyDrift:
		return "canaryctl rollback"
	case o.Paused && !o.Locked:
		return "canaryctl resume"
	case o.Move == release.AwaitApproval:
		return "canaryctl approve --release " + id + " --step " + strconv.Itoa(o.Step)
	case isRollback(o.Move) && !o.Locked:
		return "a cooldown, then probes at the first step"
	case o.Locked:
		return `canaryctl resume --clear-lock --reason "..."`
	}
	switch o.Why {
	case ladder.WhyCooldown:
		return "probes at the first step when the cooldown is over"
	case ladder.WhyProbing:
		return "a good round closes the breaker and starts the next attempt at step 1; a bad one locks"
	case ladder.WhyDrift:
		if o.Stage == ladder.NotStarted {
			return "put the versions in order and the weight to 0: canaryctl rollback, or on_complete: swap before the next release"
		}
		return "put the weight back to what was last read back, or canaryctl rollback"
	case ladder.WhyOtherCandidate:
		return "finish or roll back that release, or canaryctl promote --restart"
	case ladder.WhyConfigChanged:
		return "canaryctl resume --accept-config"
	case ladder.WhyCompleted, ladder.WhyComplete:
		return "nothing: the release is complete"
	case ladder.WhyFailing, ladder.WhyMismatch, ladder.WhyUnread, ladder.WhySourceFailed, ladder.WhyFrozen, ladder.WhyNoData:
		return "holds until that is over; canaryctl rollback gives it up"
	}
	if o.Step < o.Steps {
		return fmt.Sprintf("step %d of %d when all gates of step %d have passed", o.Step+1, o.Steps, o.Step)
	}
	return "complete when all gates of the last step have passed"
}

// after does what follows a decision and does not decide: the record, hooks,
// messages. None of it can stop a release; what fails is written down.
func (s *session) after(ctx context.Context) {
	s.keepRecord()
	s.runHooks(ctx)
	s.deliver(ctx)
	s.keepRecord()
	s.share(ctx)
}

// note appends a line whose failure changes nothing but is said.
func (s *session) note(e *journal.Entry) {
	if err := s.append(e); err != nil {
		s.err = errors.Join(s.err, err)
	}
}

// keepRecord writes the rollback record when the weight was read back as 0, and
// again when exposure and hooks are final.
func (s *session) keepRecord() {
	rec := s.rel.Record
	if rec == nil || rec.ReadBack.IsZero() || rec.Final {
		return
	}
	final := !s.rel.Until.Before(rec.ReadBack) && len(s.pendingHooks()) == 0
	if s.rel.Written && !final {
		return
	}
	kept := *rec
	kept.Final = final
	s.note(&journal.Entry{Kind: journal.Record, Record: &kept})
}

// closeRecord writes down what is known of the newest rollback before another
// takes its place. A journal that cannot be written to says so with the line
// behind this one.
func (s *session) closeRecord() {
	rec := s.rel.Record
	if rec == nil || rec.Final {
		return
	}
	kept := *rec
	kept.Final = !rec.ReadBack.IsZero() && len(s.pendingHooks()) == 0
	if kept.Final || !s.rel.Written {
		_ = s.append(&journal.Entry{Kind: journal.Record, Record: &kept})
	}
}

// pendingHooks are the hooks that are still to be run for the newest rollback.
func (s *session) pendingHooks() []notify.Hook {
	rec := s.rel.Record
	if rec == nil || rec.ReadBack.IsZero() || rec.Final {
		return nil
	}
	var out []notify.Hook
	for _, h := range s.d.o.Hooks {
		if run, seen := lastRun(rec, h); !seen || !run.OK && !run.GivenUp {
			out = append(out, h)
		}
	}
	return out
}

func lastRun(rec *journal.Rollback, h notify.Hook) (journal.Hooked, bool) {
	for _, x := range rec.Hooks {
		if x.Hook == h.String() {
			return x, true
		}
	}
	return journal.Hooked{}, false
}

// runHooks tries each hook that is due once, all at the same time.
func (s *session) runHooks(ctx context.Context) {
	due := slices.DeleteFunc(s.pendingHooks(), func(h notify.Hook) bool {
		run, _ := lastRun(s.rel.Record, h)
		return run.NotBefore.After(s.d.now()) || s.d.away[h.String()]
	})
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	m := s.rollbackMessage()
	results := each(due, func(h notify.Hook) answer { return answerOf(ctx, h.Run(ctx, m)) })
	for i, h := range due {
		before, _ := lastRun(s.rel.Record, h)
		line := &journal.Hooked{Key: s.rel.Record.Key, Hook: h.String(), Try: before.Try + 1, OK: results[i].err == nil}
		switch a := results[i]; {
		case a.untried():
			line.Error, line.Try = a.err.Error(), before.Try
			s.d.away[h.String()] = true
			s.d.o.Say("%s was not run: %v", h, a.err)
		case a.err != nil:
			line.Error, line.GivenUp = a.err.Error(), line.Try >= h.Tries() || a.final()
			if !line.GivenUp {
				line.NotBefore = s.d.now().Add(notify.Pause(line.Try, a.err))
			}
		}
		s.note(&journal.Entry{Kind: journal.Hook, Hooked: line})
	}
}

// rollbackMessage is what a hook is told: the newest rollback.
func (s *session) rollbackMessage() notify.Message {
	r, rec := s.rel, s.rel.Record
	b, err := json.Marshal(rec)
	if err != nil {
		b = nil // a record of plain fields; the hook goes without
	}
	return notify.Message{
		Schema: 1, Key: rec.Key, Event: notify.RolledBack, Time: rec.ReadBack, Service: r.Service, Release: r.ID(), Attempt: rec.Attempt,
		Step: rec.Step, Steps: r.Last.Steps, Phase: r.Ladder.Breaker.Phase.String(), Reason: rec.Reason, RunURL: s.d.o.RunURL, Rollback: b,
	}
}

func permanent(err error) bool {
	d, ok := errors.AsType[*notify.DeliveryError](err)
	return ok && !d.Retry
}

// answer is what came of one try of a message or a hook.
type answer struct {
	letter int // in the outbox
	err    error
	cutOff bool // by the tick's own time: a later try may well do
}

func answerOf(ctx context.Context, err error) answer {
	return answer{err: err, cutOff: err != nil && ctx.Err() != nil}
}

// final reports whether no later try will do.
func (a *answer) final() bool { return permanent(a.err) && !a.cutOff }

// untried reports whether nothing was tried, because it cannot be from here: it
// is left to another canaryctl.
func (a *answer) untried() bool {
	d, ok := errors.AsType[*notify.DeliveryError](a.err)
	return ok && d.Untried
}

// each runs f for all items at the same time.
func each[T, R any](items []T, f func(T) R) []R {
	out := make([]R, len(items))
	done := make(chan int)
	for i := range items {
		go func() {
			out[i] = f(items[i])
			done <- i
		}()
	}
	for range items {
		<-done
	}
	return out
}

// deliver tries everything in the outbox that is due once, each channel's
// messages in order, the channels at the same time: one that does not answer
// keeps nothing from the others, and what its time was too short for has not
// been tried.
func (s *session) deliver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	s.drop()
	now := s.d.now()
	results := each(s.d.o.Channels, func(c notify.Channel) (out []answer) {
		for i := range s.rel.Outbox {
			l := &s.rel.Outbox[i]
			if ctx.Err() != nil {
				break
			}
			if !l.waitsFor(c) || l.Next[c.String()].After(now) || s.d.away[c.String()] {
				continue
			}
			a := answerOf(ctx, c.Send(ctx, l.Message))
			a.letter = i
			out = append(out, a)
		}
		return out
	})
	for k, c := range s.d.o.Channels {
		for _, a := range results[k] {
			s.note(&journal.Entry{Kind: journal.Tell, Told: s.toldLine(&s.rel.Outbox[a.letter], c, a)})
		}
	}
	s.rel.Outbox = slices.DeleteFunc(s.rel.Outbox, s.delivered)
}

// drop gives the oldest messages up where too many wait.
func (s *session) drop() {
	s.rel.Outbox = slices.DeleteFunc(s.rel.Outbox, s.delivered)
	for i := range max(len(s.rel.Outbox)-mostLetters, 0) {
		l := &s.rel.Outbox[i]
		for _, c := range s.d.o.Channels {
			if !l.waitsFor(c) {
				continue
			}
			s.d.o.Say("%s is not told of %s: too many newer messages wait", c, l.Message.Event)
			s.note(&journal.Entry{Kind: journal.Tell, Told: &journal.Told{
				Key: l.Message.Key, Channel: c.String(), Tries: l.Tries[c.String()], GivenUp: true, Error: "too many newer messages wait",
			}})
		}
	}
	s.rel.Outbox = slices.DeleteFunc(s.rel.Outbox, s.delivered)
}

func (s *session) toldLine(l *Letter, c notify.Channel, a answer) *journal.Told {
	t := &journal.Told{Key: l.Message.Key, Channel: c.String(), OK: a.err == nil, Tries: l.Tries[c.String()] + 1}
	if a.err != nil {
		now := s.d.now()
		t.Error, t.GivenUp = a.err.Error(), t.Tries >= mostTries && now.Sub(l.Message.Time) >= leastTrying || a.final()
		if a.untried() {
			t.Tries, t.GivenUp = t.Tries-1, false
			s.d.away[c.String()] = true
		} else if !t.GivenUp {
			t.NotBefore = now.Add(notify.Pause(t.Tries, a.err))
		}
		s.d.o.Say("%s was not told of %s: %v", c, l.Message.Event, a.err)
	}
	return t
}

// waitsFor reports whether a letter is still to be told on a channel.
func (l *Letter) waitsFor(c notify.Channel) bool {
	return c.Wants(l.Message.Event) && !l.Done[c.String()]
}

// delivered reports whether a letter has nowhere left to go.
func (s *session) delivered(l Letter) bool {
	for _, c := range s.d.o.Channels {
		if l.waitsFor(c) {
			return false
		}
	}
	return true
}
