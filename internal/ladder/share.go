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
	// many users give a share of 1 % that is 0.13 % to 2.3 % by chance.
	shareMost = 2000
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

// add counts a window of the canary together with stable's of the same time;
// without that there is no share to tell.
func (s *Share) add(w *release.Window, stable []release.Window) {
	i, found := slices.BinarySearchFunc(stable, w.T, func(s release.Window, t time.Time) int { return s.T.Compare(t) })
	if !found || stable[i].Span != w.Span {
		return
	}
	o := &stable[i]
	users := w.Has(release.HasUsers) && o.Has(release.HasUsers)
	if users != s.Users {
		if s.Of() > 0 {
			return // what is counted does not change within a step
		}
		s.Users = users
	}
	if users {
		s.Canary += w.Users
		s.Stable += o.Users
		return
	}
	s.Canary += w.Total
	s.Stable += o.Total
}

// share takes a window of traffic that ran wholly under the weight in force.
func (st *State) share(w *release.Window, stable []release.Window) {
	if !w.T.Before(st.At.Add(shareGrace * w.Span)) {
		st.Share.add(w, stable)
	}
}

// mismatch reports whether the share seen is not the weight's.
func (st *State) mismatch(c *ShareCheck) bool {
	n := float64(st.Share.Of())
	if !c.On || n == 0 || st.At.IsZero() {
		return false
	}
	weight := st.Weight.Share()
	seen := float64(st.Share.Canary) / n
	off := seen - weight
	if off > 0 && c.Included || off < 0 && c.Excluded {
		return false
	}
	if weight == 0 || weight == 1 {
		return math.Abs(off) > shareEdge && math.Abs(off)*n >= shareLeast
	}
	deviance := 2 * min(n/max(c.DesignEffect, 1), shareMost) * divergence(seen, weight)
	return deviance > shareSigmas*shareSigmas && math.Abs(off) > c.Tolerance*min(weight, 1-weight)
}

// divergence is that of Kullback and Leibler between two shares, q neither 0
// nor 1. A share of n that is p or further off comes with a probability of at
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
