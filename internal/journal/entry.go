package journal

import (
	"encoding/json"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Kind is what a line tells.
type Kind string

// The kinds of lines.
const (
	Config  Kind = "config"  // the configuration that the decisions behind it were made under
	Decide  Kind = "decide"  // evidence and decision; where it asks for a write, the intent
	Command Kind = "command" // a person's word
	Write   Kind = "write"   // what came of a write
	Record  Kind = "record"  // the rollback record, as far as it is known
	Tell    Kind = "tell"    // what came of a message
	Hook    Kind = "hook"    // what came of a hook
	Moved   Kind = "target"  // a person's word that the target of the configuration is the one that holds the weight now
	Adopt   Kind = "adopt"   // the state that another machine left in the target was taken over
	Note    Kind = "note"    // something for the reader
)

// Entry is a line. The field that its kind names is set and no other.
type Entry struct {
	N     int64     `json:"n"` // from 1
	T     time.Time `json:"t"` // when it was written
	Kind  Kind      `json:"kind"`
	By    string    `json:"by,omitempty"`    // who: user@host, or the CI's actor
	Token uint64    `json:"token,omitempty"` // fencing token of the lock it was written under
	Run   string    `json:"run,omitempty"`   // the CI's run that wrote it, for messages

	Configured *Configured     `json:"config,omitempty"`
	Decided    *Decided        `json:"decide,omitempty"`
	Command    *Commanded      `json:"command,omitempty"`
	Wrote      *Wrote          `json:"write,omitempty"`
	Record     *Rollback       `json:"record,omitempty"`
	Told       *Told           `json:"tell,omitempty"`
	Hooked     *Hooked         `json:"hook,omitempty"`
	Adopted    json.RawMessage `json:"adopt,omitempty"`
	Note       string          `json:"note,omitempty"`
	Target     string          `json:"target,omitempty"`

	Prev string `json:"prev"` // sum of the line before; "" in the first
}

// Configured is the whole configuration, without its secrets, and both
// versions by digest, so that a rollback knows exactly what it returns to.
type Configured struct {
	ID        string                     `json:"id"`     // digest of Text and of both versions, keys included
	Digest    string                     `json:"digest"` // of the plan
	Candidate string                     `json:"candidate"`
	Stable    string                     `json:"stable"`             // digest of versions.stable
	Versions  map[string]json.RawMessage `json:"versions,omitempty"` // by digest, without keys
	Text      string                     `json:"text"`
	Program   string                     `json:"program"` // version of canaryctl
}

// Decided is a call of ladder.Decide: everything that went in, and what came
// out. The same in gives the same out; `history verify` does it again.
type Decided struct {
	Now    time.Time `json:"now"`
	Config string    `json:"config"` // id of the Configured line in force

	Observed     Observed  `json:"observed"`
	SourceFailed bool      `json:"source_failed,omitempty"`
	SourceError  string    `json:"source_error,omitempty"`
	Unasked      bool      `json:"source_unasked,omitempty"` // nobody read the source: a person rolled back
	More         bool      `json:"more,omitempty"`           // the next line is shown the rest of the windows
	TargetError  string    `json:"target_error,omitempty"`
	MovedBy      string    `json:"moved_by,omitempty"` // who moved the weight, where the target can tell
	Canary       []Window  `json:"canary,omitempty"`
	Stable       []Window  `json:"stable,omitempty"`
	Until        time.Time `json:"until,omitzero"`  // up to where the source's windows were final
	Newest       time.Time `json:"newest,omitzero"` // end of the newest window with requests

	Outcome Outcome `json:"outcome"`
	State   string  `json:"state"` // digest of the ladder's state afterwards
}

// Observed is a reading of the target's weight.
type Observed struct {
	Weight release.Weight `json:"weight"`
	At     time.Time      `json:"at,omitzero"`
	Known  bool           `json:"known"`
}

// Commanded is a person's word and where it left the release.
type Commanded struct {
	ladder.Command
	Config  string  `json:"config"`
	Outcome Outcome `json:"outcome"`
	State   string  `json:"state"`
}

// Exchanged names what stands as stable in the target, beside its weight,
// before an exchange of its two versions and after it.
type Exchanged struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Wrote is what came of a write: only the read-back counts. One with the move
// hold moved no traffic: it put the release's state into the target, or
// exchanged the versions there.
type Wrote struct {
	Move      release.Move   `json:"move"`
	To        release.Weight `json:"to"`
	Key       string         `json:"key"`
	Target    string         `json:"target,omitempty"` // where, as people name it
	ReadBack  bool           `json:"read_back"`        // To was read back, at At
	At        time.Time      `json:"at,omitzero"`
	Held      Observed       `json:"held"` // the last reading
	Tries     int            `json:"tries"`
	Error     string         `json:"error,omitempty"`
	Kept      bool           `json:"kept,omitempty"`      // the target was read to keep the state that went with it
	Conflict  bool           `json:"conflict,omitempty"`  // somebody else moved
	Abandoned bool           `json:"abandoned,omitempty"` // surely not done, and not to be tried again
	Exchange  bool           `json:"exchange,omitempty"`  // it exchanged the two versions
	GivenUp   bool           `json:"given_up,omitempty"`  // the exchange is not tried again: a person puts the versions right
	// Begun is the exchange that is asked for from here on: nothing was written
	// yet. nil in all other lines.
	Begun *Exchanged `json:"begun,omitempty"`
}

// Told is what came of a message on one channel.
type Told struct {
	Key     string `json:"key"`
	Channel string `json:"channel"`
	OK      bool   `json:"ok"`
	Tries   int    `json:"tries"`
	GivenUp bool   `json:"given_up,omitempty"`
	Error   string `json:"error,omitempty"`
	// NotBefore is when it may be tried again.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// Hooked is what came of one try of a hook.
type Hooked struct {
	Key     string `json:"key"` // of the rollback
	Hook    string `json:"hook"`
	OK      bool   `json:"ok"`
	Try     int    `json:"try"`
	GivenUp bool   `json:"given_up,omitempty"`
	Error   string `json:"error,omitempty"`
	// NotBefore is when it may be tried again.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// Rollback is the rollback record (DESIGN section 6). It is written when the
// weight is read back as 0, and once more when exposure and hooks are final.
type Rollback struct {
	Key              string           `json:"key"`
	Final            bool             `json:"final"`
	T                time.Time        `json:"t"` // of the window that tripped, or of the command
	Service          string           `json:"service"`
	Release          string           `json:"release"`
	Stable           string           `json:"returns_to"` // digest of the version that serves now
	Config           string           `json:"config"`     // digest of the plan
	By               string           `json:"by"`         // breaker, gate or person
	Who              string           `json:"who,omitempty"`
	Why              string           `json:"why,omitempty"` // the person's words
	*release.Finding                  // what it rests on; nil for a person's rollback
	Reason           string           `json:"reason"`
	From             time.Time        `json:"first_window,omitzero"`
	To               time.Time        `json:"last_window,omitzero"`
	Share            release.Weight   `json:"share"` // at that moment
	Step             int              `json:"step"`  // from 1
	Attempt          int              `json:"attempt"`
	Escalated        bool             `json:"escalated"`
	Locked           bool             `json:"locked"`
	Exposure         release.Exposure `json:"exposure"`
	AskedAt          time.Time        `json:"asked_at"`
	ReadBack         time.Time        `json:"read_back_at,omitzero"`
	Hooks            []Hooked         `json:"hooks,omitempty"` // the last try of each
}

// Outcome is a decision and where it leaves the release: for people, for the
// status, and for the comparison with what is derived again.
type Outcome struct {
	T        time.Time       `json:"t"`
	Move     release.Move    `json:"decision"`
	Why      ladder.Why      `json:"why"`
	Write    bool            `json:"write,omitempty"`
	Again    bool            `json:"again,omitempty"`
	Weight   release.Weight  `json:"weight"` // to be written, or in force
	Stage    ladder.Stage    `json:"stage"`
	Step     int             `json:"step"` // from 1
	Steps    int             `json:"steps"`
	Attempt  int             `json:"attempt"`
	Phase    release.Phase   `json:"breaker"`
	Locked   bool            `json:"locked,omitempty"`
	Paused   bool            `json:"paused,omitempty"`
	Verdict  release.Verdict `json:"verdict"`
	Verdicts []Verdict       `json:"verdicts,omitempty"`
	HeldS    int64           `json:"held_s"`
	HoldS    int64           `json:"min_hold_s"`
	Overdue  bool            `json:"overdue,omitempty"`
	Off      bool            `json:"share_mismatch,omitempty"`
	Share    ladder.Share    `json:"share"`
	Reason   string          `json:"reason"`
	LeftS    *int64          `json:"remaining_s"` // nil: nobody can say
	Event    *Event          `json:"event,omitempty"`
}

// Verdict is a signal's verdict.
type Verdict struct {
	release.Finding
	Verdict release.Verdict `json:"verdict"`
	Needed  int64           `json:"needed"`
	Counts  bool            `json:"counts"` // false: it only observes
	Latched bool            `json:"latched,omitempty"`
}

// Event is a transition of the breaker.
type Event struct {
	T         time.Time       `json:"t"`
	From      release.Phase   `json:"from"`
	To        release.Phase   `json:"to"`
	Escalated bool            `json:"escalated,omitempty"`
	Locked    bool            `json:"locked,omitempty"`
	Finding   release.Finding `json:"finding"`
	First     time.Time       `json:"first,omitzero"`
	Last      time.Time       `json:"last,omitzero"`
}

// OutcomeOf writes down a decision and the state it left.
func OutcomeOf(d *ladder.Decision, st *ladder.State) Outcome {
	o := Outcome{
		T: d.T, Move: d.Move, Why: d.Why, Write: d.Write, Again: d.Again, Weight: d.Weight,
		Stage: st.Stage, Step: d.Step + 1, Steps: d.Steps, Attempt: d.Attempt, Phase: d.Phase, Locked: st.Locked(), Paused: st.Paused,
		Verdict: d.Verdict, HeldS: int64(d.Held / time.Second), HoldS: int64(d.MinHold / time.Second),
		Overdue: d.Overdue && (d.Move == release.Hold || d.Move == release.AwaitApproval), Off: d.Off, Share: d.Share, Reason: d.Reason(),
	}
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.Looked {
			o.Verdicts = append(o.Verdicts, Verdict{Finding: v.Finding, Verdict: v.Verdict, Needed: v.MinOf, Counts: v.Needed, Latched: v.Latched})
		}
	}
	if left, known := d.Remaining(); known {
		o.LeftS = new(int64(left / time.Second))
	}
	if d.Happened {
		e := d.Event
		o.Event = &Event{T: e.T, From: e.From, To: e.To, Escalated: e.Escalated, Locked: e.Locked, Finding: e.Finding, First: e.First, Last: e.Last}
	}
	return o
}

// Evidence returns what Decide was shown.
func (d *Decided) Evidence() ladder.Evidence {
	return ladder.Evidence{
		Windows: windowsOf(d.Canary, release.Canary), Stable: windowsOf(d.Stable, release.Stable),
		Observed:     ladder.Observed{Weight: d.Observed.Weight, At: d.Observed.At, Known: d.Observed.Known},
		SourceFailed: d.SourceFailed, Unasked: d.Unasked, More: d.More,
	}
}
