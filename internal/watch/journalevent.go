package watch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// EventOf says a line of the journal as an event of the view; false: it tells
// nothing new, as a hold.
func EventOf(e *journal.Entry) (Event, bool) {
	text := e.Text(false)
	if text == "" {
		return Event{}, false
	}
	ev := Event{At: e.T, Line: e.N, Tone: toneOf(e), Kind: string(e.Kind), Text: oneLine(text)}
	for _, line := range detailOf(e) {
		ev.Detail = append(ev.Detail, oneLine(line))
	}
	return ev, true
}

// oneLine puts a text on one line: words of people and of servers may have
// several.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

func toneOf(e *journal.Entry) Tone {
	switch e.Kind {
	case journal.Decide:
		return toneOfOutcome(&e.Decided.Outcome)
	case journal.Command:
		if e.Command.Verb == ladder.DoRollBack {
			return Bad
		}
		return Warning
	case journal.Write:
		return toneOfWrite(e.Wrote)
	case journal.Record:
		return Bad
	case journal.Tell:
		return toneOfDelivery(e.Told.OK, e.Told.GivenUp)
	case journal.Hook:
		return toneOfDelivery(e.Hooked.OK, e.Hooked.GivenUp)
	}
	return Plain
}

func toneOfOutcome(o *journal.Outcome) Tone {
	switch o.Move {
	case release.Start, release.Advance, release.Complete:
		return Good
	case release.RollBackMove, release.Lock:
		return Bad
	case release.Probe, release.AwaitApproval:
		return Warning
	}
	switch {
	case o.Why == ladder.WhyRecovered:
		return Good
	case o.Why == ladder.WhyGateFailed, o.Event != nil && o.Event.To == release.Open:
		return Bad
	case o.Why == ladder.WhyDrift, o.Event != nil && o.Event.To == release.HalfOpen:
		return Warning
	}
	return Plain
}

func toneOfWrite(w *journal.Wrote) Tone {
	switch {
	case w.Begun != nil || w.ReadBack:
		return Plain
	case w.Conflict && !w.GivenUp:
		return Warning
	}
	return Bad
}

func toneOfDelivery(ok, givenUp bool) Tone {
	switch {
	case ok:
		return Good
	case givenUp:
		return Bad
	}
	return Warning
}

// detailOf is what unfolds of a line.
func detailOf(e *journal.Entry) []string {
	switch e.Kind {
	case journal.Decide:
		if x := e.Decided.Outcome.Event; x != nil {
			return transition(x)
		}
	case journal.Command:
		if e.Command.Reason != "" {
			return []string{"reason: " + e.Command.Reason}
		}
	case journal.Write:
		return writeDetail(e.Wrote)
	case journal.Record:
		return RecordDetail(e.Record)
	}
	return nil
}

func writeDetail(w *journal.Wrote) []string {
	var f facts
	f.add("target", w.Target)
	if w.Tries > 0 {
		f.add("tries", strconv.Itoa(w.Tries))
	}
	f.add("error", w.Error)
	if !w.ReadBack && w.Held.Known {
		f.add("it holds", w.Held.Weight.String()+", read at "+stamp(w.Held.At))
	}
	if w.Conflict {
		f.add("conflict", "somebody else moved it")
	}
	return f
}

// transition tells of a change of the breaker.
func transition(x *journal.Event) []string {
	var f facts
	f.add("breaker", fmt.Sprintf("%s -> %s at %s", x.From, x.To, stamp(x.T)))
	f.finding(&x.Finding)
	f.windows(x.First, x.Last)
	f.standing(x.Escalated, x.Locked)
	return f
}

// RecordDetail is a rollback record, a fact a line, in plain words. What it does
// not hold, as what came of writes in a replay, has no line.
func RecordDetail(r *journal.Rollback) []string {
	var f facts
	tripped := "tripped at"
	if r.By == "person" {
		tripped = "commanded at"
	}
	f.add(tripped, stamp(r.T))
	f.add("by", map[string]string{"breaker": "the breaker", "gate": "a gate", "person": "a person"}[r.By])
	f.add("who", r.Who)
	f.add("why", r.Why)
	f.add("reason", r.Reason)
	if r.Finding != nil {
		f.finding(r.Finding)
	}
	f.windows(r.From, r.To)
	f.add("share at that moment", r.Share.String())
	f.add("step", fmt.Sprintf("%d, attempt %d", r.Step, r.Attempt))
	f.add("requests exposed", exposed(r))
	f.add("asked for", stamp(r.AskedAt))
	f.add("read back as 0", readBack(r))
	f.standing(r.Escalated, r.Locked)
	if r.Stable != "" {
		f.add("returns to", "stable "+journal.Brief(r.Stable))
	}
	for i := range r.Hooks {
		f.add("hook "+r.Hooks[i].Hook, ranHook(&r.Hooks[i]))
	}
	f.add("service", r.Service)
	f.add("release", r.Release)
	f.add("configuration", r.Config)
	f.add("key", r.Key)
	return f
}

func exposed(r *journal.Rollback) string {
	text := strconv.FormatInt(r.Exposure.Requests, 10)
	if r.Exposure.Users != nil {
		text += fmt.Sprintf(", of %d users", *r.Exposure.Users)
	}
	if !r.Final {
		text += " so far"
	}
	return text
}

// readBack says when the weight was read back as 0, and how long that took.
func readBack(r *journal.Rollback) string {
	switch {
	case r.AskedAt.IsZero():
		return stamp(r.ReadBack)
	case r.ReadBack.IsZero():
		return "not yet"
	}
	return stamp(r.ReadBack) + ", after " + r.ReadBack.Sub(r.AskedAt).Round(time.Millisecond).String()
}

func ranHook(h *journal.Hooked) string {
	switch {
	case h.OK && h.Try > 1:
		return fmt.Sprintf("ran, at try %d", h.Try)
	case h.OK:
		return "ran"
	case h.GivenUp:
		return fmt.Sprintf("given up after %d tries: %s", h.Try, h.Error)
	case h.Try == 0:
		return "not tried: " + h.Error
	}
	return fmt.Sprintf("try %d failed: %s", h.Try, h.Error)
}

// facts are lines of a label and what it is.
type facts []string

func (f *facts) add(label, text string) {
	if text != "" {
		*f = append(*f, label+": "+text)
	}
}

// finding tells of a signal and its limit. The journal does not keep the span
// that it was counted over: the windows beside it say that.
func (f *facts) finding(x *release.Finding) {
	f.add("signal", strings.TrimSuffix(x.Signal.String()+", "+x.Form.String(), ", "))
	if x.Signal == release.Cooldown {
		return
	}
	limit := figure(x, x.Limit)
	if x.Signal == release.SolveRate && x.Limit < 0 {
		limit = "none that so few requests can reach"
	}
	f.add("value against limit", figure(x, x.Value)+" against "+limit)
	counted := strconv.FormatInt(x.Of, 10)
	if x.Count > 0 || x.Signal == release.SolveRate || x.Signal == release.Probes {
		counted = strconv.FormatInt(x.Count, 10) + " of " + counted
	}
	f.add(cmp.Or(countedAs[x.Signal], "requests"), counted)
	if x.ControlJudged > 0 {
		f.add("stable in the same windows", fmt.Sprintf("%d of %d solved", x.ControlSolved, x.ControlJudged))
	}
	if x.Sigmas != 0 {
		f.add("limit set by noise", strconv.FormatFloat(x.Sigmas, 'f', 2, 64)+" sigma")
	}
}

// countedAs is what the counts of a finding are of, where that is not requests.
var countedAs = map[release.Signal]string{
	release.SolveRate: "solved", release.Probes: "probes good", release.Transfers: "handed to a human", release.Violations: "violations in requests",
	release.TTFTP99: "streams", release.TTFTSlow: "slow streams", release.ITL: "streams", release.StreamAborts: "streams that broke off",
	release.ServerErrors: "requests answered 5xx", release.Errors: "requests that failed", release.KVCache: "windows",
}

// figure is a value or limit of a finding with its unit.
func figure(x *release.Finding, v float64) string {
	n := strconv.FormatFloat(v, 'g', 6, 64)
	switch {
	case x.Signal == release.Cost:
		return n + " times stable's"
	case x.Signal == release.P99 && x.Form != release.ByCount, x.Signal == release.TTFTP99, x.Signal == release.ITL:
		return n + " ms"
	case x.Signal == release.Violations, x.Form == release.CumulativeSum:
		return n
	}
	return strconv.FormatFloat(v*100, 'g', 4, 64) + " %"
}

// windows tells which windows a finding rests on, by their starts.
func (f *facts) windows(first, last time.Time) {
	switch {
	case first.IsZero():
	case first.Equal(last):
		f.add("window", "the one of "+stamp(first))
	default:
		f.add("windows", "from that of "+stamp(first)+" to that of "+stamp(last))
	}
}

func (f *facts) standing(escalated, locked bool) {
	if escalated {
		f.add("escalated", "the probes failed: a person is called")
	}
	if locked {
		f.add("locked", "until a person clears it")
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
