package journal

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Text says an entry in words, usually a line of them, or is "" where it tells
// nothing new; all says holds and every state of a rollback record as well.
// Words from elsewhere, as a person's reason, are in it as they came.
func (e *Entry) Text(all bool) string {
	switch e.Kind {
	case Config:
		return fmt.Sprintf("configuration %s, stable %s, canary %s", e.Configured.ID, Brief(e.Configured.Stable), Brief(e.Configured.Candidate))
	case Decide:
		return e.Decided.text(all)
	case Command:
		text := fmt.Sprintf("%s by %s", e.Command.Verb, e.Command.By)
		if e.Command.Reason != "" {
			text += ": " + e.Command.Reason
		}
		return text
	case Write:
		return e.Wrote.text()
	case Record:
		if e.Record.Final || len(e.Record.Hooks) == 0 || all {
			return e.Record.text() // between the first and the final one hooks come in, which have lines of their own
		}
	case Tell:
		return delivery("told "+e.Told.Channel, e.Told.OK, e.Told.GivenUp, e.Told.Tries, e.Told.Error) + " (" + e.Told.Key + ")"
	case Hook:
		return delivery("hook "+e.Hooked.Hook, e.Hooked.OK, e.Hooked.GivenUp, e.Hooked.Try, e.Hooked.Error)
	case Adopt:
		return "took over the state that the target keeps"
	case Moved:
		return "the target is " + e.Target + " now"
	case Note:
		return e.Note
	}
	return ""
}

func (d *Decided) text(all bool) string {
	o := &d.Outcome
	if (o.Move == release.Hold || o.Move == release.AwaitApproval) && o.Event == nil && !all {
		return ""
	}
	text := fmt.Sprintf("%s to %s, step %d of %d, attempt %d: %s", o.Move, o.Weight, o.Step, o.Steps, o.Attempt, o.Reason)
	if o.Move == release.Hold || o.Move == release.AwaitApproval {
		text = fmt.Sprintf("%s at %s, step %d of %d, attempt %d: %s", o.Move, o.Weight, o.Step, o.Steps, o.Attempt, o.Reason)
	}
	if o.Event != nil {
		text += fmt.Sprintf(" [%s -> %s]", o.Event.From, o.Event.To)
	}
	return text
}

func (w *Wrote) text() string {
	what := w.To.String()
	switch {
	case w.Begun != nil:
		return "the exchange of the two versions is asked for"
	case w.Exchange:
		what = "the exchange of the two versions"
	case w.Move == release.Hold:
		what = "the release's state in the target"
	}
	if w.ReadBack {
		text := fmt.Sprintf("%s read back at %s", what, stamp(w.At))
		if w.Tries > 1 {
			text += fmt.Sprintf(" after %d tries", w.Tries)
		}
		return text
	}
	text := fmt.Sprintf("%s NOT read back after %d tries: %s", what, w.Tries, w.Error)
	if w.GivenUp {
		text += "; given up"
	}
	return text
}

func (r *Rollback) text() string {
	by := map[string]string{"breaker": "the breaker", "gate": "a gate", "person": "a person"}
	text := fmt.Sprintf("rollback by %s at %s of traffic, step %d, attempt %d: %s; weight 0 read back %s, exposure %d requests",
		by[r.By], r.Share, r.Step, r.Attempt, r.Reason, stamp(r.ReadBack), r.Exposure.Requests)
	if !r.Final {
		text += " so far"
	}
	return text
}

func delivery(what string, ok, givenUp bool, tries int, err string) string {
	switch {
	case ok:
		return what
	case givenUp:
		return fmt.Sprintf("%s: given up after %d tries: %s", what, tries, err)
	case tries == 0:
		return what + ": not tried: " + err
	}
	return fmt.Sprintf("%s: try %d failed: %s", what, tries, err)
}

// Brief is the beginning of a digest, enough for people to tell it from others.
func Brief(digest string) string {
	if digest == "" {
		return "unnamed"
	}
	return digest[:min(len(digest), 12)]
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
