package shadow

import (
	"cmp"
	"slices"
)

// Pair is stable's and a canary's answer to the same request.
type Pair struct {
	Stable, Canary                       Answer
	StableFingerprint, CanaryFingerprint string

	// Unaligned says that the two differ in what the release does not change,
	// so that a difference of the answers says nothing about the canary.
	Unaligned bool
}

// Align fills in the fingerprints of a pair, and whether the two versions
// differ in anything but changes, which is [Policy].Changes.
func (p *Pair) Align(stable, canary Version, changes Part) {
	p.StableFingerprint, p.CanaryFingerprint = stable.Fingerprint(), canary.Fingerprint()
	p.Unaligned = stable.Differs(canary)&^changes != 0
}

// maxFingerprints bounds the windows that are kept: a part of the fingerprint
// may be chosen by the client.
const maxFingerprints = 1000

// Windows holds the last pairs of each canary against each stable. It is not
// safe for use by several goroutines.
type Windows struct {
	policy    Policy
	by        map[versions]*window
	rolled    map[versions]Standing // that asked for a roll-back when their window was given up
	added     int64
	unaligned int64
	dropped   int64
}

// versions is what a window is kept for: answers of different versions never
// meet in one.
type versions struct{ canary, stable string }

// window is the last pairs, a ring.
type window struct {
	ring []tally
	next int   // where the next pair goes
	seen int64 // pairs so far
	last int64 // when the last one came, in pairs added
}

// NewWindows returns windows without pairs. The policy's Window and Least must
// be positive and Least not above Window.
func NewWindows(p Policy) *Windows {
	return &Windows{policy: p, by: map[versions]*window{}, rolled: map[versions]Standing{}}
}

// Add takes the next pair. One that is not aligned is counted and not kept.
func (w *Windows) Add(p Pair) {
	w.added++
	if p.Unaligned {
		w.unaligned++
		return
	}
	key := versions{p.CanaryFingerprint, p.StableFingerprint}
	of := w.by[key]
	if of == nil {
		w.makeRoom()
		of = &window{}
		w.by[key] = of
	}
	of.seen++
	of.last = w.added
	t := w.policy.tally(&p)
	if len(of.ring) < w.policy.Window {
		of.ring = append(of.ring, t)
		return
	}
	of.ring[of.next] = t
	of.next = (of.next + 1) % len(of.ring)
}

// makeRoom drops the window that has waited longest for a pair if there are
// too many.
func (w *Windows) makeRoom() {
	if len(w.by) < maxFingerprints {
		return
	}
	var oldest versions
	at := w.added
	for key, of := range w.by {
		if of.last < at {
			oldest, at = key, of.last
		}
	}
	last := w.standing(oldest)
	delete(w.by, oldest)
	w.dropped++
	switch _, before := w.rolled[oldest]; {
	case last.Action == RollBack && (before || len(w.rolled) < maxFingerprints):
		w.rolled[oldest] = last
	case last.Action != RollBack:
		delete(w.rolled, oldest)
	}
}

// standing judges a window. One that began anew after it was given up says what
// it said then until it has enough pairs again.
func (w *Windows) standing(key versions) Standing {
	of := w.by[key]
	s := w.policy.standing(of.ring)
	s.Fingerprint, s.Against, s.Seen = key.canary, key.stable, of.seen
	if before, ok := w.rolled[key]; ok && w.policy.needed(s.Pairs) > 0 {
		before.Seen += s.Seen
		return before
	}
	return s
}

// Standings judges every window, sorted by fingerprint. Those that asked for a
// roll-back when they were given up are among them.
func (w *Windows) Standings() []Standing {
	out := make([]Standing, 0, len(w.by)+len(w.rolled))
	for key := range w.by {
		out = append(out, w.standing(key))
	}
	for key, s := range w.rolled {
		if w.by[key] == nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Against, b.Against))
	})
	return out
}

// Unaligned returns how many pairs were not compared because the two versions
// differ in what the release does not change.
func (w *Windows) Unaligned() int64 { return w.unaligned }

// Dropped returns how many windows were given up because there were more than
// a thousand; those that waited longest for a pair go first. What they said is
// lost, but for a roll-back.
func (w *Windows) Dropped() int64 { return w.dropped }
