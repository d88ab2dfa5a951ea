package ladder

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
)

// clockSlack is how far in the future what has been seen may lie: the clocks of
// two machines at one release differ by so much at most, and a breaker that
// waits for its clock waits no longer.
const clockSlack = 10 * time.Minute

// unseen is how many windows before now are taken again where the breaker keeps
// none of them.
const unseen = 3

// setBack keeps a clock that was ahead, or was set back, from blinding the
// breaker: what lies in the future by the clock of now is forgotten or ends
// now. The present step's At stays where it is, for which clock was right nobody
// can tell: no step is taken forward before the clock has come that far again.
func (st *State) setBack(p *Plan, now time.Time) {
	breaker.SetBack(&st.Breaker, now)
	if end := now.Add(p.limits(0).Cooldown); st.CoolFor.After(end) {
		st.CoolFor = end
	}
	if st.Paused && st.PausedAt.After(now) {
		st.PausedAt = now
	}
	if a := st.Approval; a != nil && a.At.After(now) {
		word := *a
		word.At = now
		st.Approval = &word
	}
	if st.Stable.Seen.After(now) {
		st.Stable.Seen = now
	}
	if st.Adapt.At.After(now) {
		st.Adapt.At = now
	}
	latest := now.Add(clockSlack)
	if st.Adapt.Set.After(latest) {
		st.Adapt.Set = now
	}
	if st.Serving.After(latest) {
		st.Serving = now
	}
	if st.Seen.After(latest) {
		st.unsee(now)
	}
}

// unsee forgets the windows that begin after now. Gate and hold cannot give a
// window back, so they begin anew. The weight is where it was: so is what is
// known of the share that it was taken to.
func (st *State) unsee(now time.Time) {
	word, share := st.Approval, st.Adapt
	st.enterStep(st.Step, st.At)
	st.Approval = word
	st.Adapt = adaption{Base: share.Base, Parts: share.Parts, At: share.At, Fell: share.Fell, Set: share.Set}
	st.Seen = now.Add(-unseen * st.Span)
	if newest, ok := breaker.Unsee(&st.Breaker, now); ok && newest.After(st.Seen) {
		st.Seen = newest
	}
}
