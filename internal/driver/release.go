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
)

// Release is where a release stands: what the lines of the journal come to. It
// is saved after each change, and formed anew from the journal by [Verify].
type Release struct {
	Schema  int          `json:"schema"` // 1
	Service string       `json:"service"`
	Head    journal.Head `json:"journal"` // the last line in it
	// Published counts the writes to the target, which carry this state where
	// the target keeps it: of two states the one with more is the newer.
	Published int64  `json:"published"`
	Writer    string `json:"writer,omitempty"`  // Journal of the directory that published it
	Journal   string `json:"chain,omitempty"`   // sum of the journal's first line: tells this directory from others
	Offered   string `json:"offered,omitempty"` // what the target was last given to keep, and did not show

	Config    string       `json:"config"` // id of the configuration in force
	Candidate string       `json:"release"`
	Stable    string       `json:"stable"` // digest of versions.stable
	Ladder    ladder.State `json:"ladder"`

	Last   journal.Outcome `json:"last"` // the newest decision or command
	LastAt time.Time       `json:"last_at,omitzero"`
	Until  time.Time       `json:"until,omitzero"`  // windows before it have been shown to the ladder
	Newest time.Time       `json:"newest,omitzero"` // end of the newest window with requests

	Held        journal.Observed `json:"held"` // the target's weight as last read
	SourceError string           `json:"source_error,omitempty"`
	TargetError string           `json:"target_error,omitempty"`
	MovedBy     string           `json:"moved_by,omitempty"`

	Exchange *Exchange         `json:"exchange,omitempty"` // of the versions in the target, the newest
	Exposure Exposure          `json:"exposure"`
	Record   *journal.Rollback `json:"record,omitempty"`  // the newest rollback
	Written  bool              `json:"written,omitempty"` // Record is in the journal as far as it is known

	Standing []notify.Event `json:"standing,omitempty"` // what has been told and still is so
	Outbox   []Letter       `json:"outbox,omitempty"`
	Counts   Counts         `json:"counts"`
}

// Exposure is what the canary has served in the present attempt.
type Exposure struct {
	From     time.Time `json:"from,omitzero"` // read-back of the attempt's first weight
	To       time.Time `json:"to,omitzero"`   // read-back of 0; zero while it serves
	Requests int64     `json:"requests"`
}

// Letter is a message that has not been delivered everywhere.
type Letter struct {
	Message notify.Message  `json:"message"`
	Done    map[string]bool `json:"done,omitempty"` // by channel: delivered, or given up
	Tries   map[string]int  `json:"tries,omitempty"`
}

// Counts are what metrics tell.
type Counts struct {
	Decisions   map[string]int64 `json:"decisions,omitempty"` // by move
	Trips       map[string]int64 `json:"trips,omitempty"`     // by signal
	Rollbacks   int64            `json:"rollbacks"`
	SourceErr   int64            `json:"source_errors"`
	TargetErr   int64            `json:"target_errors"`
	Undelivered int64            `json:"undelivered"`
}

func newRelease(service string) *Release { return &Release{Schema: 1, Service: service} }

// ID is the release's id as people see it.
func (r *Release) ID() string { return short(r.Candidate) }

// short is the beginning of a digest, enough to tell releases apart.
func short(digest string) string {
	if digest == "" {
		return "unnamed"
	}
	return digest[:min(len(digest), 12)]
}

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
	r.Ladder, r.Last, r.LastAt, r.Config = *st, in.Outcome, in.Now, in.Config
	r.named()
	r.SourceError, r.TargetError, r.MovedBy = in.SourceError, in.TargetError, in.MovedBy
	if in.Observed.Known {
		r.Held = in.Observed
	}
	if in.Newest.After(r.Newest) {
		r.Newest = in.Newest
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
	r.stand(e, d)
	if quiet(d) && in.Until.After(r.Until) {
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
	if r.Exchange != nil && r.Exchange.Done {
		r.Exchange = nil
	}
}

// quiet reports whether a decision ends a tick: nothing more to fold or do.
func quiet(d *ladder.Decision) bool {
	return !d.Write && !d.Happened && d.Move != release.Complete
}

func isRollback(m release.Move) bool { return m == release.RollBackMove || m == release.Lock }

func (r *Release) count(in *journal.Decided, d *ladder.Decision) {
	add := func(m *map[string]int64, key string) {
		if *m == nil {
			*m = map[string]int64{}
		}
		(*m)[key]++
	}
	if !d.Again {
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

func (r *Release) rolledBack(e *journal.Entry, was before, at time.Time) {
	r.Exposure.To = at
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
}

func (r *Release) newRecord(e *journal.Entry, share release.Weight) *journal.Rollback {
	return &journal.Rollback{
		Key: r.ID() + "/" + strconv.Itoa(r.Ladder.Attempt) + "/rollback/" + strconv.FormatInt(e.N, 10), AskedAt: e.T,
		Service: r.Service, Release: r.Candidate, Stable: r.Stable, Config: r.Ladder.Digest, Share: share,
		Exposure: release.Exposure{Requests: r.Exposure.Requests},
	}
}

// commanded takes a person's word into the release.
func (r *Release) commanded(e *journal.Entry, d *ladder.Decision, was before, st *ladder.State) {
	c := e.Command
	r.Ladder, r.Last, r.LastAt, r.Config = *st, c.Outcome, c.At, c.Config
	r.named()
	r.exchanging(c)
	switch c.Verb {
	case ladder.DoRollBack:
		rec := r.newRecord(e, was.weight)
		rec.T, rec.Reason, rec.By, rec.Who, rec.Why = c.At, "rolled back by "+c.By, "person", c.By, c.Reason
		if c.Reason != "" {
			rec.Reason += ": " + c.Reason
		}
		rec.Step, rec.Attempt, rec.Locked = d.Step+1, d.Attempt, true
		if c.Exchange != nil {
			rec.Stable = r.Exchange.Replaced
		}
		r.Record, r.Written = rec, false
	case ladder.DoPause:
		r.tell(e, notify.Paused)
	case ladder.DoResume:
		r.tell(e, notify.Resumed)
	case ladder.DoRestart:
		r.Exposure = Exposure{}
	}
	r.Standing = slices.DeleteFunc(r.Standing, func(x notify.Event) bool { return x == notify.Approval })
}

// wrote takes what came of a write into the release.
func (r *Release) wrote(e *journal.Entry) {
	w := e.Wrote
	r.Published, r.Writer = r.Published+1, r.Journal
	if w.Exchange && w.ReadBack && r.Exchange != nil {
		r.Exchange.Done = true
	}
	if w.Held.Known {
		r.Held = w.Held
	}
	if w.Abandoned {
		ladder.Abandon(&r.Ladder)
	}
	if isRollback(w.Move) && !w.ReadBack {
		r.rise(e, notify.Incomplete)
	}
	if w.ReadBack && w.Move != release.Hold {
		r.fall(notify.Incomplete)
	}
}

// stand tells of what holds for a while when it begins, and of the source when
// it comes back.
func (r *Release) stand(e *journal.Entry, d *ladder.Decision) {
	for _, s := range []struct {
		event notify.Event
		is    bool
	}{
		{notify.Approval, d.Why == ladder.WhyApproval},
		{notify.Overdue, d.Overdue && (d.Move == release.Hold || d.Move == release.AwaitApproval)},
		{notify.Drift, d.Why == ladder.WhyDrift},
		{notify.Mismatch, d.Off && d.Why != ladder.WhyDrift},
		{notify.SourceLost, e.Decided.SourceFailed && r.Ladder.Stage == ladder.Climbing},
		{notify.TargetLost, !e.Decided.Observed.Known},
	} {
		switch {
		case s.event == notify.SourceLost && e.Decided.Unasked:
		case s.is:
			r.rise(e, s.event)
		case r.fall(s.event) && s.event == notify.SourceLost:
			r.tell(e, notify.SourceBack)
		}
	}
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
		if l.Done == nil {
			l.Done, l.Tries = map[string]bool{}, map[string]int{}
		}
		l.Tries[t.Channel] = t.Tries
		if t.OK || t.GivenUp {
			l.Done[t.Channel] = true
		}
		if t.GivenUp {
			r.Counts.Undelivered++
		}
	}
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
	var n int64
	for move, count := range r.Counts.Decisions {
		if move != release.Hold.String() && move != release.AwaitApproval.String() {
			n += count
		}
	}
	return strconv.FormatInt(n, 10)
}
