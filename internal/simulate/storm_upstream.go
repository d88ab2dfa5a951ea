package simulate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

// stormUpstream is the upstream's state in a run.
type stormUpstream struct {
	StormUpstream
	faults    []StormFault
	busy      int
	allowance float64
	asOf      time.Duration
}

func newStormUpstream(s *Storm) stormUpstream {
	return stormUpstream{StormUpstream: s.Upstream, faults: s.Faults, allowance: s.Upstream.Burst}
}

// take reports whether the upstream works on a call that comes at a time.
func (u *stormUpstream) take(at time.Duration) bool {
	u.refill(at)
	refused := u.Places > 0 && u.busy >= u.Places || u.PerSec > 0 && u.allowance < 1
	for _, f := range u.faults {
		from := time.Duration(f.From) * time.Second
		refused = refused || f.Refuse && at >= from && at < from+time.Duration(f.Seconds)*time.Second
	}
	if refused {
		u.allowance = max(u.allowance-u.RefusalCost, 0)
		return false
	}
	u.allowance = max(u.allowance-1, 0)
	u.busy++
	return true
}

func (u *stormUpstream) refill(at time.Duration) {
	u.allowance = min(u.allowance+float64(u.PerSec*(at-u.asOf).Seconds()), u.Burst)
	u.asOf = at
}

// refusal is the upstream's 429.
func (u *stormUpstream) refusal() throttle.Outcome {
	return throttle.Outcome{Status: 429, Code: "rate_limit_exceeded", RetryAfter: u.RetryAfter, RetryAfterKnown: u.RetryAfter > 0}
}
