package release

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
)

// Weight is the canary's share of traffic in whole slots of a ring, never a
// loose float: {5, 100} is 5 %. The zero value is weight 0.
type Weight struct {
	Slots int64 `json:"slots"`
	Ring  int64 `json:"ring"`
}

// ErrOffRing says that a share is not a whole number of slots.
var ErrOffRing = errors.New("share is not a whole number of slots")

// WeightOf returns pct as slots of a ring, or [ErrOffRing].
func WeightOf(pct Ratio, ring int64) (Weight, error) {
	slots := new(big.Rat).Mul(pct.Rat(), new(big.Rat).SetInt64(ring))
	if !slots.IsInt() || !slots.Num().IsInt64() {
		return Weight{}, fmt.Errorf("%s of %d slots: %w", pct, ring, ErrOffRing)
	}
	return Weight{Slots: slots.Num().Int64(), Ring: ring}, nil
}

// IsZero reports whether nobody is on the canary.
func (w Weight) IsZero() bool { return w.Slots == 0 }

// Same reports whether two weights are the same share, on whatever rings.
func (w Weight) Same(o Weight) bool { return w.compare(o) == 0 }

// Above reports whether w is a larger share than o.
func (w Weight) Above(o Weight) bool { return w.compare(o) > 0 }

func (w Weight) compare(o Weight) int {
	return Ratio{Num: o.Slots, Den: max(o.Ring, 1)}.Compare(w.Slots, max(w.Ring, 1))
}

// Share returns the weight as a fraction between 0 and 1, for display and for
// the simulator's traffic; decisions compare slots.
func (w Weight) Share() float64 {
	if w.Ring == 0 {
		return 0
	}
	return float64(w.Slots) / float64(w.Ring)
}

// String returns the share in percent: "5 %".
func (w Weight) String() string {
	return strconv.FormatFloat(w.Share()*100, 'g', 6, 64) + " %"
}
