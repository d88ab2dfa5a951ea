package ladder

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// ShareCheck says how the share of traffic that the canary is seen to serve is
// held against the weight that was read back: a sample-ratio check (Fabijan et
// al., Diagnosing Sample Ratio Mismatch in Online Controlled Experiments, KDD
// 2019). A gateway that ignores the weight is found in the first minutes. The
// zero value checks nothing: recorded feeds have a share of their own.
type ShareCheck struct {
	On bool
	// DesignEffect is how many times the variance of the canary's count is that
	// of independent requests: users send several, and are hashed as a whole.
	DesignEffect float64
	// Tolerance is how far off the share may be whatever the count, relative to
	// the smaller of the two arms: 0.5 lets 1 % be 0.5 % to 1.5 %.
	Tolerance float64
	// Included and Excluded say that some users are always, or never, on the
	// canary: nobody knows their traffic, so a share above, or below, the weight
	// is no mismatch.
	Included, Excluded bool
}

const (
	// shareSigmas makes a false alarm at one look a matter of one in a million,
	// and never more than four, however small the counts; a step has thousands of
	// looks, one after the other.
	shareSigmas = 5
	// shareMost bounds how many independent requests a step is taken for: however
	// long it lasts, its users are the same ones, and each is on one side. That
	// many users give a share of 1 % that is 0.13 % to 2.3 % by chance. What was
	// served before the newest shareSpan and before so many requests is forgotten:
	// a gateway that no longer follows is found late in a step as well.
	shareMost = 2000
	shareSpan = time.Hour
	// shareSlot is the span that is kept apart in the newest shareSlots of time;
	// before that as much as makes this part of shareMost.
	shareSlot  = 10 * time.Minute
	shareSlots = 8
	sharePart  = 6
	// shareMended is how long a gateway has to follow the weight until what it did
	// before is forgotten, with shareSure sigmas that it was another then.
	shareMended = 30 * time.Minute
	shareSure   = 3
	// shareLeast is the count of requests on the wrong side that is looked at
	// where no request belongs there: a few stragglers are none.
	shareLeast = 20
	// shareEdge is the tolerance where the weight is 0 or all.
	shareEdge = 0.02
	// shareGrace is how many windows after a read-back are left out: a gateway
	// takes a moment to follow.
	shareGrace = 2
)

// Share is what both arms were seen to serve under the present weight.
type Share struct {
	Canary int64 `json:"canary"` // requests, or users a window where both arms know them
	Stable int64 `json:"stable"`
	Users  bool  `json:"users,omitempty"`
}

// Of returns how much both arms served.
func (s Share) Of() int64 { return s.Canary + s.Stable }

// recentShare is what both arms served lately, in slots of time, oldest first.
type recentShare struct {
	Users bool        `json:"users,omitempty"` // users are counted
	Slots []shareTime `json:"slots,omitempty"`
}

// shareTime is what both arms served from an instant on.
type shareTime struct {
	From   int64 `json:"from"` // start of its first window, unix nanoseconds
	Canary int64 `json:"canary"`
	Stable int64 `json:"stable"`
}

// String says the share seen in words.
func (r recentShare) String() string { return r.sum().String() }

func (r *recentShare) sum() Share { return r.from(0) }

// from sums the slots from the i-th on.
func (r *recentShare) from(i int) Share {
	s := Share{Users: r.Users}
	for _, x := range r.Slots[i:] {
		s.Canary += x.Canary
		s.Stable += x.Stable
	}
	return s
}

// add counts a window of the canary together with stable's of the same time;
// without that there is no share to tell.
func (r *recentShare) add(c *ShareCheck, w *release.Window, stable []release.Window) {
	i := firstAt(stable, w.T)
	if i == len(stable) || !stable[i].T.Equal(w.T) || stable[i].Span != w.Span {
		return
	}
	o := &stable[i]
	users := w.Has(release.HasUsers) && o.Has(release.HasUsers)
	if total := r.sum(); users != r.Users {
		if total.Of() > 0 {
			return // what is counted does not change within a step
		}
		r.Users = users
	}
	enough := shareMost * max(c.DesignEffect, 1)
	x := r.slot(w.T.UnixNano(), enough/sharePart)
	if users {
		x.Canary += w.Users
		x.Stable += o.Users
	} else {
		x.Canary += w.Total
		x.Stable += o.Total
	}
	for len(r.Slots) > 1 && w.End().UnixNano()-r.Slots[1].From >= int64(shareSpan) {
		if rest := r.from(1); float64(rest.Of()) < enough {
			break
		}
		r.forget(1)
	}
}

// slot returns the slot of an instant, the newest. A new one has the older ones
// put together, to so many requests each.
func (r *recentShare) slot(at int64, most float64) *shareTime {
	n := len(r.Slots)
	if n > 0 && at-r.Slots[n-1].From < int64(shareSlot) {
		return &r.Slots[n-1]
	}
	r.Slots = append(r.Slots, shareTime{From: at})
	for i := 0; i+1 < len(r.Slots)-shareSlots; {
		x, y := &r.Slots[i], r.Slots[i+1]
		if float64(x.Canary+x.Stable+y.Canary+y.Stable) > most {
			i++
			continue
		}
		x.Canary, x.Stable = x.Canary+y.Canary, x.Stable+y.Stable
		r.Slots = slices.Delete(r.Slots, i+1, i+2)
	}
	return &r.Slots[len(r.Slots)-1]
}

// forget drops the oldest slots.
func (r *recentShare) forget(n int) { r.Slots = r.Slots[:copy(r.Slots, r.Slots[n:])] }

// share takes a window of traffic that ran wholly under the weight in force. A
// mismatch that is over since shareMended is forgotten at once: it would outlive
// its cause by hours.
func (st *State) share(c *ShareCheck, w *release.Window, stable []release.Window) {
	since := st.At
	if st.Adapt.Set.After(since) {
		since = st.Adapt.Set
	}
	if w.T.Before(since.Add(shareGrace * w.Span)) {
		return
	}
	st.Share.add(c, w, stable)
	for i := len(st.Share.Slots) - 1; i > 0 && st.mismatch(c); i-- {
		if w.End().UnixNano()-st.Share.Slots[i].From >= int64(shareMended) && st.mended(c, i) {
			st.Share.forget(i)
			return
		}
	}
}

// mended reports whether the share from the i-th slot on is the weight's, and
// surely not the one from before.
func (st *State) mended(c *ShareCheck, i int) bool {
	all, now := st.Share.sum(), st.Share.from(i)
	before := Share{Canary: all.Canary - now.Canary, Stable: all.Stable - now.Stable}
	if before.Of() == 0 || now.Of() == 0 || c.off(now, st.Weight.Share(), shareSure) {
		return false
	}
	return c.deviance(now, before.seen()) > shareSure*shareSure
}

// mismatch reports whether the share seen is not the weight's.
func (st *State) mismatch(c *ShareCheck) bool {
	return c.On && !st.At.IsZero() && c.off(st.Share.sum(), st.Weight.Share(), shareSigmas)
}

// seen is the canary's part.
func (s Share) seen() float64 { return float64(s.Canary) / float64(s.Of()) }

// off reports whether a share is not the weight's, with so many sigmas.
func (c *ShareCheck) off(s Share, weight, sigmas float64) bool {
	n := float64(s.Of())
	if n == 0 {
		return false
	}
	off := s.seen() - weight
	if off > 0 && c.Included || off < 0 && c.Excluded {
		return false
	}
	if weight == 0 || weight == 1 {
		return math.Abs(off) > shareEdge && math.Abs(off)*n >= shareLeast
	}
	return c.deviance(s, weight) > sigmas*sigmas && math.Abs(off) > c.Tolerance*min(weight, 1-weight)
}

// deviance is the square of the sigmas by which a share is off from q.
func (c *ShareCheck) deviance(s Share, q float64) float64 {
	return 2 * min(float64(s.Of())/max(c.DesignEffect, 1), shareMost) * divergence(s.seen(), q)
}

// divergence is that of Kullback and Leibler between two shares: infinite where
// q is 0 or 1 and p is not. A share of n that is p or further off comes with a probability of at
// most exp(-n*divergence), for every n (Hoeffding, Probability Inequalities for
// Sums of Bounded Random Variables, 1963, theorem 1): so 2*n*divergence is the
// square of a normal's sigmas for large n, and stays on the safe side of them
// where a few users are all that there is.
func divergence(p, q float64) float64 {
	d := 0.0
	if p > 0 {
		d += float64(p * math.Log(p/q))
	}
	if p < 1 {
		d += float64((1 - p) * math.Log((1-p)/(1-q)))
	}
	return d
}

// String says the share seen in words.
func (s Share) String() string {
	what := "requests"
	if s.Users {
		what = "users a window"
	}
	share := strconv.FormatFloat(100*float64(s.Canary)/float64(max(s.Of(), 1)), 'g', 3, 64)
	return fmt.Sprintf("%s %% of %d %s", share, s.Of(), what)
}
