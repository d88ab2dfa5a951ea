package cli

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/ci"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
)

// exitOf is the exit code of what a call came to.
var exitOf = map[driver.Status]ExitCode{
	driver.Done: ExitOK, driver.Holding: ExitHeld, driver.Awaiting: ExitApproval, driver.RolledBack: ExitRolledBack,
	driver.Incomplete: ExitIncomplete, driver.Drifted: ExitDrift, driver.Conflict: ExitConflict, driver.SourceLost: ExitSource,
	driver.Failed: ExitFailed,
}

// stood prints where a release stands, tells the CI, and ends the command with
// the exit code of what came of it.
func (l *live) stood(res *driver.Result, code ExitCode) error {
	s := l.standing(res, code)
	if err := l.print(s); err != nil && !isBrokenPipe(err) { // the exit code is for those who read no output
		return err
	}
	l.tellCI(s, res, code)
	for _, n := range res.Notes {
		l.app.say("%s", n)
	}
	if code == ExitOK {
		return nil
	}
	return silent(code)
}

// tellCI writes the outcome where the CI has a place for it.
func (l *live) tellCI(s *report.Standing, res *driver.Result, code ExitCode) {
	if l.ci == nil {
		return
	}
	tell := func() {
		if err := l.ci.Write(l.app.Stderr, ciOutcome(s, res)); err != nil {
			l.app.warn("%v", err)
		}
	}
	if l.later == nil {
		tell()
		return
	}
	l.later(code, tell)
}

func (l *live) print(s *report.Standing) error {
	format, err := l.app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if format == "json" {
		return encodeIndented(l.app.Stdout, s)
	}
	return s.Text(l.app.Stdout, l.app.style())
}

// standing puts together what is known of a release.
func (l *live) standing(res *driver.Result, code ExitCode) *report.Standing {
	o, r := &res.Outcome, res.Release
	s := &report.Standing{
		Schema: 1, Command: l.command, Service: l.cfg.ServiceName(), Scene: l.cfg.Scene, Release: r.ID(), Decision: o.Move.String(), Why: o.Why.String(),
		Step: o.Step, Steps: o.Steps, Pct: o.Weight.Share(), Attempt: o.Attempt, Breaker: o.Phase.String(), Stage: o.Stage.String(),
		Locked: o.Locked, Paused: o.Paused, Verdicts: []report.VerdictJSON{}, Reason: o.Reason,
		Left: o.LeftS, Held: o.HeldS, Hold: o.HoldS, Overdue: o.Overdue, Next: r.Next(o), Exit: int(code), DryRun: res.DryRun,
		Exposure: release.Exposure{Requests: r.Exposure.Requests}, Notes: res.Notes,
	}
	l.inForce(s, res)
	for i := range o.Verdicts {
		s.Verdicts = append(s.Verdicts, verdictJSON(&o.Verdicts[i]))
	}
	if len(s.Verdicts) > 0 {
		s.Verdict = new(o.Verdict.String())
	}
	if o.Why == ladder.WhyDrift {
		s.Reason = l.driftReason(r)
	}
	if r.Record != nil {
		s.Rollback = r.Record
	}
	if r.Record != nil && r.Record.By == "person" && o.Move == release.RollBackMove && o.Why == ladder.WhyManual {
		s.Reason = r.Record.Reason // who it was, and why
	}
	if res.Err != nil {
		s.Error = inLine(res.Err)
	}
	l.seen(s, res)
	return s
}

// inForce puts what is so in the place of what was asked for: the weight as last
// read back, the step that it is of, and for a rollback that was not read back
// the command that goes on with it.
func (l *live) inForce(s *report.Standing, res *driver.Result) {
	st := &res.Release.Ladder
	if !res.DryRun {
		s.Pct = st.Weight.Share()
	}
	if res.Wrote != nil && !res.Wrote.ReadBack {
		s.Step = st.Step + 1
	}
	switch pending := st.Pending.Move; {
	case pending == release.RollBackMove, pending == release.Lock:
		s.Next = res.Release.Command("canaryctl rollback")
	case res.Status == driver.Incomplete:
		s.Next = res.Release.Command("canaryctl rollback, to have it finished and written down")
	case res.Status == driver.Drifted && res.Release.Held.Weight.IsZero():
		s.Next = res.Release.Command("nobody is on the canary: canaryctl rollback keeps it so and writes it down")
	}
}

// inLine says joined errors in one line, each once.
func inLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// driftReason says what the target holds, and who put it there if it can tell.
func (l *live) driftReason(r *driver.Release) string {
	text := "somebody else has moved the weight: the target holds " + r.Held.Weight.String() + ", last read back was " + r.Ladder.Weight.String()
	if r.Ladder.Stage == ladder.NotStarted {
		text = "the target holds " + r.Held.Weight.String() + " and no release has put it there: one starts from at most " +
			l.driver.Plan().Steps[0].Weight.String() + ", the first step"
	}
	if r.MovedBy != "" {
		text += "; last changed by " + r.MovedBy
	}
	return text
}

func verdictJSON(v *journal.Verdict) report.VerdictJSON {
	j := report.VerdictJSON{
		Signal: v.Signal.String(), Verdict: v.Verdict.String(), Limit: v.Limit, Samples: v.Of, Needed: v.Needed,
		WouldFail: !v.Counts && v.Verdict == release.Fail,
		RuleJSON:  report.RuleJSON{Form: v.Form.String(), Sigmas: v.Sigmas, ControlSolved: v.ControlSolved, ControlJudged: v.ControlJudged},
	}
	if v.Of > 0 {
		j.Value = &v.Value
	}
	return j
}

// seen fills in what target and source told, and what came of a write.
func (l *live) seen(s *report.Standing, res *driver.Result) {
	r := res.Release
	s.Target = &report.Reading{Name: l.target.String(), By: r.MovedBy}
	if res.TargetErr != nil && !errors.Is(res.TargetErr, driver.ErrUnread) {
		s.Target.Error = strings.TrimPrefix(res.TargetErr.Error(), s.Target.Name+": ")
	} else if r.Held.Known {
		s.Target.Pct, s.Target.At = new(r.Held.Weight.Share()), stampOf(r.Held.At)
	}
	if x := res.Outcome.Share; x.Of() > 0 {
		s.Share = &report.ShareSeen{Pct: float64(x.Canary) / float64(x.Of()), Of: x.Of(), Users: x.Users, Mismatch: res.Outcome.Off}
	}
	if l.source != nil {
		s.Source = &report.SourceSeen{Name: l.source.String(), Newest: stampOf(r.Newest)}
		if !r.Newest.IsZero() {
			s.Source.AgeS = new(int64(time.Since(r.Newest) / time.Second))
		}
		if res.SourceErr != nil {
			s.Source.Error = strings.TrimPrefix(res.SourceErr.Error(), s.Source.Name+": ")
		}
	}
	if w := res.Wrote; w != nil {
		s.Wrote = &report.Written{Pct: w.To.Share(), ReadBack: w.ReadBack, At: stampOf(w.At), Tries: w.Tries, Error: w.Error}
	}
}

func stampOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ciOutcome is a standing as a CI has places for it.
func ciOutcome(s *report.Standing, res *driver.Result) ci.Outcome {
	o := ci.Outcome{
		Time: res.Release.LastAt, Service: s.Service, Release: s.Release, Decision: s.Decision, Reason: s.Reason, Next: s.Next,
		Step: s.Step, Steps: s.Steps, Attempt: s.Attempt, Pct: s.Pct, Breaker: s.Breaker, RemainingS: s.Left, ExitCode: s.Exit,
	}
	if s.Error != "" {
		o.Reason += "; " + s.Error
	}
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		o.Verdicts = append(o.Verdicts, ci.Verdict{Signal: v.Signal, Verdict: v.Verdict, Value: v.Value, Limit: &v.Limit, Samples: &v.Samples, Needed: &v.Needed})
	}
	if rec := res.Release.Record; rec != nil && (res.Status == driver.RolledBack || res.Status == driver.Incomplete) {
		x := &ci.Rollback{Time: rec.T, Signal: rec.By, Pct: rec.Share.Share(), Requests: &rec.Exposure.Requests, Locked: rec.Locked}
		if rec.Finding != nil {
			x.Signal, x.Value, x.Limit = rec.Signal.String(), &rec.Value, &rec.Limit
		}
		o.Rollback = x
	}
	return o
}
