package trace

import (
	"slices"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// ranking says where a 99th percentile stands.
type ranking uint8

const (
	never99 ranking = iota // no value at all
	open99                 // the values are held
	sealed                 // it is final, the values are gone
	lost99                 // a value came too late, or there was no room: nobody knows
)

// ranks are the values of one figure of a tally and, once they have been let
// go, their 99th percentile by nearest rank.
type ranks struct {
	values []float64
	p99    float64
	state  ranking
}

// hold keeps a value. It returns false for one that came after the others were
// let go, with which the percentile is lost.
func (q *ranks) hold(v float64) bool {
	if q.state == sealed || q.state == lost99 {
		q.state = lost99
		return false
	}
	q.state = open99
	q.values = append(q.values, v)
	return true
}

// seal ranks the values and lets them go.
func (q *ranks) seal() {
	if q.state == open99 {
		slices.Sort(q.values)
		q.p99, q.state = stats.NearestRank(q.values, percent99), sealed
	}
	q.values = nil
}

// percent99 is the quantile that a p99 is.
var percent99 = release.NewRatio(99, 100)
