package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
)

// Release is where a release stands: what the lines of the journal come to. It
// is saved after each change, and formed anew from the journal by [Verify].
type Release struct {
	Schema  int          `json:"schema"`          // 1
	Service string       `json:"service"`         // of a scene SERVICE/SCENE
	Scene   string       `json:"scene,omitempty"` // "": the whole service
	Head    journal.Head `json:"journal"`         // the last line in it
	// Published is the number of this state in a target that keeps it, as it was
	// last read there: of two states the one with more is the newer. Tried is the
	// highest number that this directory has given one, which may never have
	// arrived; no two of its states have the same.
	Published int64  `json:"published"`
	Tried     int64  `json:"tried,omitempty"`
	Writer    string `json:"writer,omitempty"`  // Journal of the directory that published it
	Journal   string `json:"chain,omitempty"`   // sum of the journal's first line: tells this directory from others
	Offered   string `json:"offered,omitempty"` // what the target was last given to keep, and did not show

	Config    string       `json:"config"` // id of the configuration in force
	Candidate string       `json:"release"`
	Stable    string       `json:"stable"` // digest of versions.stable
	Ladder    ladder.State `json:"ladder"`
	// Digest is of Ladder, as the last line that changed it has it: a saved state
	// that was damaged or edited is found by it.
	Digest string `json:"ladder_digest,omitempty"`

	Last   journal.Outcome `json:"last"` // the newest decision or command
	LastAt time.Time       `json:"last_at,omitzero"`
	Until  time.Time       `json:"until,omitzero"`  // windows before it have been shown to the ladder
	Newest time.Time       `json:"newest,omitzero"` // end of the newest window with requests

	Target      string           `json:"target,omitempty"` // where a weight was read back last
	Held        journal.Observed `json:"held"`             // the target's weight as last read
	SourceError string           `json:"source_error,omitempty"`
	TargetError string           `json:"target_error,omitempty"`
	MovedBy     string           `json:"moved_by,omitempty"`

	Exchange *Exchange         `json:"exchange,omitempty"` // of the versions in the target, the newest
	Exposure Exposure          `json:"exposure"`
	Record   *journal.Rollback `json:"record,omitempty"`  // the newest rollback
	Written  bool              `json:"written,omitempty"` // Record is in the journal as far as it is known
	Refused  *Refused          `json:"refused,omitempty"` // the step forward that was given up last

	Standing []notify.Event `json:"standing,omitempty"` // what has been told and still is so
	Outbox   []Letter       `json:"outbox,omitempty"`
	// Messages and Asked number the messages and the rollbacks of the release for
	// their keys. They travel with the state: another machine goes on counting.
	Messages int64  `json:"messages"`
	Asked    int64  `json:"rollbacks_asked"`
	Counts   Counts `json:"counts"`

	rebuilt bool // from the journal, because the saved state was not what was saved
}

// Refused is a step forward that the target did not take.
type Refused struct {
	Move  release.Move   `json:"move"`
	To    release.Weight `json:"to"`
	Times int            `json:"times"` // in a row
}

// is reports whether a decision asks for the same step again.
func (x *Refused) is(move release.Move, to release.Weight) bool {
	return x != nil && x.Move == move && x.To.Same(to)
}

// Exposure is what the canary has served in the present attempt.
type Exposure struct {
	From     time.Time `json:"from,omitzero"` // read-back of the attempt's first weight
	To       time.Time `json:"to,omitzero"`   // read-back of 0; zero while it serves
	Requests int64     `json:"requests"`
}

// Letter is a message that has not been delivered everywhere.
type Letter struct {
	Message notify.Message       `json:"message"`
	Done    map[string]bool      `json:"done,omitempty"` // by channel: delivered, or given up
	Tries   map[string]int       `json:"tries,omitempty"`
	Next    map[string]time.Time `json:"next,omitempty"` // by channel: not to be tried before
}

// Counts are what metrics tell.
type Counts struct {
	Decisions   map[string]int64 `json:"decisions,omitempty"` // by move; a step that the target refuses again and again is one
	Repeated    int64            `json:"repeated,omitempty"`  // steps that were asked for again after a refusal
	Trips       map[string]int64 `json:"trips,omitempty"`     // by signal
	Rollbacks   int64            `json:"rollbacks"`
	SourceErr   int64            `json:"source_errors"`
	TargetErr   int64            `json:"target_errors"`
	Undelivered int64            `json:"undelivered"`
}

func newRelease(service string, dir *state.Dir) *Release {
	return &Release{Schema: 1, Service: service, Scene: sceneOf(service, dir)}
}

// ID is the release's id as people see it.
func (r *Release) ID() string { return journal.Brief(r.Candidate) }

// clone copies a state so that Decide may change the copy.
func clone(st *ladder.State) (*ladder.State, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("copy the release's state: %w", err)
	}
	var out ladder.State
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("copy the release's state: %w", err)
	}
	return &out, nil
}

// stateDigest names a ladder's state.
func stateDigest(st *ladder.State) (string, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return "", fmt.Errorf("write the release's state: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// before is what of the state is needed to tell what a decision changed.
type before struct {
	pending ladder.Pending
	seen    time.Time
	weight  release.Weight
}

func beforeOf(st *ladder.State) before { return before{st.Pending, st.Seen, st.Weight} }

// confirmed reports whether a reading completed the write that was pending.
func (b *before) confirmed(o journal.Observed) bool {
	return b.pending.Move != release.Hold && o.Known && o.Weight.Same(b.pending.Weight)
}

// decided takes a decision into the release. d was made by ladder.Decide on
// r.Ladder, which is st now.
func (r *Release) decided(e *journal.Entry, d *ladder.Decision, was before, st *ladder.State) {
	in := e.Decided
	r.Ladder, r.Last, r.LastAt, r.Config, r.Digest = *st, in.Outcome, in.Now, in.Config, in.State
	r.named()
	r.SourceError, r.TargetError, r.MovedBy = in.SourceError, in.TargetError, in.MovedBy
	if in.Observed.Known {
		r.Held = in.Observed
	}
	if in.Newest.After(r.Newest) || r.Newest.After(in.Now) && !in.Newest.IsZero() {
		r.Newest = in.Newest // of a clock that was ahead nothing is kept
	}
	r.count(in, d)
	r.expose(in.Canary, was.seen)
	if was.confirmed(in.Observed) {
		r.confirm(e, was)
	}
	if d.Why == ladder.WhyRecovered {
		r.Exposure = Exposure{From: r.Ladder.At}
		r.tell(e, notify.Recovered)
	}
	if d.Move == release.Complete {
		r.tell(e, notify.Completed)
	}
	if d.Write && !d.Again && isRollback(d.Move) {
		r.open(e, d, was)
	}
	if !in.More {
		r.stand(e, d, isRollback(was.pending.Move) && was.confirmed(in.Observed))
	}
	if quiet(d) && (in.Until.After(r.Until) || r.Until.After(in.Now) && !in.Until.IsZero()) {
		r.Until = in.Until
	}
}

// named takes the candidate's name from the ladder. Another one has nothing to
// do with the versions that the one before exchanged.
func (r *Release) named() {
	if r.Ladder.Candidate == "" || r.Ladder.Candidate == r.Candidate {
		return
	}
	r.Candidate = r.Ladder.Candidate
	if !r.Exchange.returning() {
		r.Exchange = nil
	}
}

// quiet reports whether a decision ends a tick: nothing more to fold or do.
func quiet(d *ladder.Decision) bool {
	return !d.Write && !d.Happened && d.Move != release.Complete
}

func isRollback(m release.Move) bool { return m == release.RollBackMove || m == release.Lock }

func (r *Release) count(in *journal.Decided, d *ladder.Decision) {
	add := func(m *map[string]int64, key string) { put(m, key, (*m)[key]+1) }
	switch {
	case d.Again:
	case r.Refused.is(d.Move, d.Weight):
		r.Counts.Repeated++
	default:
		add(&r.Counts.Decisions, d.Move.String())
	}
	if d.Happened && d.Event.To == release.Open {
		add(&r.Counts.Trips, d.Event.Finding.Signal.String())
	}
	if in.SourceFailed {
		r.Counts.SourceErr++
	}
	if !in.Observed.Known {
		r.Counts.TargetErr++
	}
}

// expose counts what the canary served in the windows that were new.
func (r *Release) expose(windows []journal.Window, seen time.Time) {
	x := &r.Exposure
	for i := range windows {
		w := windows[i].Release(release.Canary)
		if !w.T.After(seen) || w.T.After(r.Ladder.Seen) || x.From.IsZero() {
			continue
		}
		if w.End().After(x.From) && (x.To.IsZero() || w.T.Before(x.To)) {
			x.Requests += w.Total
		}
	}
	if r.Record != nil && !r.Record.Final && !x.To.IsZero() && x.To.Equal(r.Record.ReadBack) { // no attempt has begun since
		r.Record.Exposure.Requests = x.Requests
	}
}

// confirm takes note that a write was read back.
func (r *Release) confirm(e *journal.Entry, was before) {
	at := e.Decided.Observed.At
	r.taken()
	switch was.pending.Move {
	case release.Start:
		r.Exposure = Exposure{From: at}
		r.tell(e, notify.Started)
	case release.Advance:
		r.tell(e, notify.Advanced)
	case release.Probe:
		r.Exposure.To = time.Time{}
		r.tell(e, notify.Probing)
	case release.RollBackMove, release.Lock:
		r.rolledBack(e, was, at)
	}
}

// taken takes note that the target took a write of the weight.
func (r *Release) taken() {
	r.Refused = nil
	r.fall(notify.WriteRefused)
}

func (r *Release) rolledBack(e *journal.Entry, was before, at time.Time) {
	r.Exposure.To = at
	r.fall(notify.Incomplete) // a later look may be the one that reads it back
	r.Counts.Rollbacks++
	if r.Record != nil && r.Record.ReadBack.IsZero() {
		r.Record.ReadBack, r.Record.Exposure.Requests, r.Written = at, r.Exposure.Requests, false
	}
	event := notify.RolledBack
	if was.pending.Move == release.Lock {
		event = notify.Locked
	}
	r.tell(e, event)
}

// open begins the record of a rollback that was asked for.
func (r *Release) open(e *journal.Entry, d *ladder.Decision, was before) {
	rec := r.newRecord(e, was.weight)
	rec.T, rec.Reason, rec.By, rec.Finding = d.T, d.Reason(), "gate", new(d.Finding)
	rec.Step, rec.Attempt, rec.Locked = d.Step+1, d.Attempt, d.Move == release.Lock
	if d.Happened {
		rec.By, rec.Finding, rec.Escalated = "breaker", new(d.Event.Finding), d.Event.Escalated
		rec.From, rec.To = d.Event.First, d.Event.Last
	}
	r.Record, r.Written = rec, false
	r.turnBack()
}

func (r *Release) newRecord(e *journal.Entry, share release.Weight) *journal.Rollback {
	r.Asked++
	return &journal.Rollback{
		Key: r.name() + "/" + strconv.Itoa(r.Ladder.Attempt) + "/rollback/" + strconv.FormatInt(r.Asked, 10), AskedAt: e.T,
		Service: r.Service, Release: r.Candidate, Stable: r.returns(), Config: r.Ladder.Digest, Share: share,
		Exposure: release.Exposure{Requests: r.Exposure.Requests},
	}
}

// commanded takes a person's word into the release.
func (r *Release) commanded(e *journal.Entry, d *ladder.Decision, was before, st *ladder.State) {
	c := e.Command
	r.Ladder, r.Last, r.LastAt, r.Config, r.Digest = *st, c.Outcome, c.At, c.Config, c.State
	r.named()
	switch c.Verb {
	case ladder.DoRollBack:
		if r.unfinished(was) {
			r.finishedBy(c)
		} else {
			r.openFor(e, d, was)
		}
		r.turnBack()
	case ladder.DoPause:
		r.tell(e, notify.Paused)
	case ladder.DoResume:
		r.tell(e, notify.Resumed)
	case ladder.DoClearLock:
		r.tell(e, notify.LockCleared)
	case ladder.DoRestart:
		r.Exposure = Exposure{}
		r.taken()
		r.Exchange = nil // whatever the versions are now
	case ladder.DoSwap:
		if r.Exchange != nil {
			r.Exchange.Done = true
		}
	}
	r.Standing = slices.DeleteFunc(r.Standing, func(x notify.Event) bool { return x == notify.Approval })
}

// unfinished reports whether a rollback was asked for and has not been read
// back: what a person asks for now is the same one.
func (r *Release) unfinished(was before) bool {
	return isRollback(was.pending.Move) && r.Record != nil && r.Record.ReadBack.IsZero()
}

// finishedBy keeps the record of what made a rollback necessary, and adds who
// wanted it finished.
func (r *Release) finishedBy(c *journal.Commanded) {
	if rec := r.Record; rec.Who == "" {
		rec.Who, rec.Why = c.By, c.Reason
	}
	r.Record.Locked, r.Written = true, false
}

// openFor begins the record of a rollback that a person asked for.
func (r *Release) openFor(e *journal.Entry, d *ladder.Decision, was before) {
	c, rec := e.Command, r.newRecord(e, was.weight)
	rec.T, rec.Reason, rec.By, rec.Who, rec.Why = c.At, "rolled back by "+c.By, "person", c.By, c.Reason
	if c.Reason != "" {
		rec.Reason += ": " + c.Reason
	}
	rec.Step, rec.Attempt, rec.Locked = d.Step+1, d.Attempt, true
	r.Record, r.Written = rec, false
}

// wrote takes what came of a write into the release.
func (r *Release) wrote(e *journal.Entry) {
	w := e.Wrote
	if w.Exchange {
		r.exchanged(e)
	}
	if w.Begun != nil {
		return // nothing was written yet
	}
	r.Tried = r.number()
	if w.Kept {
		r.Published, r.Writer = r.Tried, r.Journal
	}
	if w.Held.Known {
		r.Held = w.Held
	}
	if w.ReadBack && w.Target != "" {
		r.Target = w.Target
	}
	if w.Abandoned {
		r.refused(e)
	}
	if isRollback(w.Move) && !w.ReadBack {
		r.rise(e, notify.Incomplete)
	}
	if w.ReadBack && w.Move != release.Hold {
		r.fall(notify.Incomplete)
		r.taken()
	}
}

// refused gives a step forward up that the target did not take. The first time
// is nobody's business: the next look asks again.
func (r *Release) refused(e *journal.Entry) {
	w := e.Wrote
	ladder.Abandon(&r.Ladder)
	r.Digest, _ = stateDigest(&r.Ladder) // plain fields; without it the saved state is taken as it is
	if !r.Refused.is(w.Move, w.To) {
		r.Refused = &Refused{Move: w.Move, To: w.To}
	}
	if r.Refused.Times++; r.Refused.Times > 1 && !w.Conflict {
		r.rise(e, notify.WriteRefused)
	}
}

// stand tells of what holds for a while when it begins and, where nothing else
// that is told says so, as that it was rolled back, when it ends. Not being able
// to see any more is no end.
func (r *Release) stand(e *journal.Entry, d *ladder.Decision, rolledBack bool) {
	in := e.Decided
	over := r.Ladder.Stage != ladder.Climbing
	for _, s := range []struct {
		event   notify.Event
		begins  bool
		ends    bool
		ended   notify.Event // "": silently
		silence bool
	}{
		{event: notify.Approval, begins: d.Why == ladder.WhyApproval, ends: d.Why != ladder.WhyApproval},
		{event: notify.Overdue, begins: isOverdue(d), ends: !isOverdue(d)},
		{event: notify.Drift, begins: d.Why == ladder.WhyDrift, ended: notify.DriftOver, silence: rolledBack,
			ends: d.Why != ladder.WhyDrift && in.Observed.Known && in.Observed.Weight.Same(r.Ladder.Weight)},
		{event: notify.Mismatch, begins: d.Off && d.Why != ladder.WhyDrift, ends: !d.Off, ended: notify.ShareOK, silence: r.Ladder.Weight.IsZero()},
		{event: notify.SourceLost, begins: in.SourceFailed && !in.Unasked && !over, ends: !in.Unasked && !in.SourceFailed || over,
			ended: notify.SourceBack, silence: in.Unasked || in.SourceFailed},
		{event: notify.TargetLost, begins: !in.Observed.Known, ends: in.Observed.Known, ended: notify.TargetBack, silence: rolledBack},
	} {
		switch {
		case s.begins:
			r.rise(e, s.event)
		case s.ends && r.fall(s.event) && s.ended != "" && !s.silence:
			r.tell(e, s.ended)
		}
	}
}

func isOverdue(d *ladder.Decision) bool {
	return d.Overdue && (d.Move == release.Hold || d.Move == release.AwaitApproval)
}

func (r *Release) rise(e *journal.Entry, event notify.Event) {
	if !slices.Contains(r.Standing, event) {
		r.Standing = append(r.Standing, event)
		r.tell(e, event)
	}
}

func (r *Release) fall(event notify.Event) bool {
	i := slices.Index(r.Standing, event)
	if i < 0 {
		return false
	}
	r.Standing = slices.Delete(r.Standing, i, i+1)
	return true
}

// told takes what came of a message into the release.
func (r *Release) told(t *journal.Told) {
	for i := range r.Outbox {
		l := &r.Outbox[i]
		if l.Message.Key != t.Key {
			continue
		}
		put(&l.Tries, t.Channel, t.Tries)
		switch {
		case t.OK || t.GivenUp:
			put(&l.Done, t.Channel, true)
			delete(l.Next, t.Channel)
		case !t.NotBefore.IsZero():
			put(&l.Next, t.Channel, t.NotBefore)
		}
		if t.GivenUp {
			r.Counts.Undelivered++
		}
	}
}

func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// hooked takes what came of a hook into the record.
func (r *Release) hooked(e *journal.Entry) {
	h := *e.Hooked
	if r.Record == nil || r.Record.Key != h.Key {
		return
	}
	i := slices.IndexFunc(r.Record.Hooks, func(x journal.Hooked) bool { return x.Hook == h.Hook })
	if i < 0 {
		r.Record.Hooks = append(r.Record.Hooks, h)
	} else {
		r.Record.Hooks[i] = h
	}
	r.Written = false
	if h.GivenUp {
		r.tell(e, notify.HookFailed)
	}
}

// configured takes a configuration into the release.
func (r *Release) configured(c *journal.Configured) {
	r.Config, r.Stable = c.ID, c.Stable
	if r.Candidate == "" {
		r.Candidate = c.Candidate
	}
}

// intent tells one intent to write from every other of the release: how many
// decisions the release has had that were not repetitions.
func (r *Release) intent() string {
	n := r.Counts.Repeated
	for move, count := range r.Counts.Decisions {
		if move != release.Hold.String() && move != release.AwaitApproval.String() {
			n += count
		}
	}
	return strconv.FormatInt(n, 10)
}
