package proxy

import (
	"cmp"
	"slices"
	"sync"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

// judge turns pairs into what is done with the copies. What it decides is kept
// for as long as the proxy runs: a canary that was rolled back gets no more
// copies, and so nothing that could speak for it; another version, which has
// another fingerprint, starts anew.
type judge struct {
	sample release.Ratio
	policy shadow.Policy
	say    func(format string, args ...any)

	mu      sync.Mutex
	windows *shadow.Windows
	acts    map[versions]shadow.Action
	stand   []shadow.Standing
	pairs   int64
}

// versions are the fingerprints of the two answers of a pair.
type versions struct{ stable, canary string }

func newJudge(o *Options) *judge {
	return &judge{sample: o.Sample, policy: o.Policy, say: o.Say, windows: shadow.NewWindows(o.Policy), acts: map[versions]shadow.Action{}}
}

// parts are what samples are measured in: a request's number is below share x
// parts, or it is not copied.
const parts = 1 << 32

// within reports whether a request's number lies within a share. Numbers within
// a share lie within every larger one.
func within(number uint32, share release.Ratio) bool {
	return !share.IsZero() && share.Compare(int64(number), parts) < 0
}

// wants reports whether a request may be copied at all, whatever its versions.
func (j *judge) wants(number uint32) bool { return within(number, j.sample) }

// allows reports whether the pairs so far leave a request among the copied.
func (j *judge) allows(number uint32, of versions) bool {
	j.mu.Lock()
	act, judged := j.acts[of]
	j.mu.Unlock()
	switch {
	case judged && act == shadow.RollBack:
		return false
	case judged && act == shadow.Throttle:
		return j.wants(number) && within(number, j.policy.ThrottleTo)
	}
	return j.wants(number)
}

// add takes a pair and decides anew.
func (j *judge) add(p shadow.Pair) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pairs++
	j.windows.Add(p)
	j.stand = j.windows.Standings()
	for i := range j.stand {
		s := &j.stand[i]
		of := versions{s.Against, s.Fingerprint}
		was, known := j.acts[of]
		j.acts[of] = s.Action
		if known && was != s.Action || !known && s.Action != shadow.Observe {
			j.say("copies to %s: %s: %s%s", s.Fingerprint, s.Action, s.Reason, j.meaning(s.Action))
		}
	}
	j.forget()
}

// maxActs bounds the actions that are kept: parts of a fingerprint are chosen by
// clients.
const maxActs = 10_000

// forget drops actions once there are too many: those of versions whose pairs
// have been given up, and of roll-backs among them as many as it takes.
func (j *judge) forget() {
	if len(j.acts) <= maxActs {
		return
	}
	standing := make(map[versions]bool, len(j.stand))
	for i := range j.stand {
		standing[versions{j.stand[i].Against, j.stand[i].Fingerprint}] = true
	}
	for _, rolledBack := range []bool{false, true} {
		for of, act := range j.acts {
			if len(j.acts) > maxActs/2 && !standing[of] && (act == shadow.RollBack) == rolledBack {
				delete(j.acts, of)
			}
		}
	}
}

// meaning is what an action does here.
func (j *judge) meaning(a shadow.Action) string {
	switch a {
	case shadow.RollBack:
		return "; no more are sent to it while this proxy runs"
	case shadow.Throttle:
		return "; at most " + j.policy.ThrottleTo.String() + " of the requests are copied"
	}
	return ""
}

// maxStandings bounds the standings that are shown.
const maxStandings = 20

// severity orders actions, the worst first.
var severity = map[shadow.Action]int{shadow.RollBack: 0, shadow.Throttle: 1, shadow.Observe: 2, shadow.PromoteReady: 3}

// standings returns what the pairs say: the worst of it, those with most pairs
// first among the equally bad, and how many there are in all.
func (j *judge) standings() (worst []shadow.Standing, of int, pairs, unaligned int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	worst = slices.Clone(j.stand)
	slices.SortStableFunc(worst, func(a, b shadow.Standing) int {
		return cmp.Or(cmp.Compare(severity[a.Action], severity[b.Action]), cmp.Compare(b.Seen, a.Seen))
	})
	return worst[:min(len(worst), maxStandings)], len(worst), j.pairs, j.windows.Unaligned()
}
