package config

import "github.com/canaryctl/canaryctl/internal/ladder"

// LivePlan is [Config.Plan] for a real release: the share of traffic that the
// canary is seen to serve is held against the weight as well. Recorded and
// synthetic feeds have a share of their own, so the simulator goes without.
func (c *Config) LivePlan() *ladder.Plan {
	p := c.Plan()
	p.Share = ladder.ShareCheck{
		On: !c.Share.Off, DesignEffect: c.Share.DesignEffect.Float64(), Tolerance: c.Share.Tolerance.Float64(),
		Included: len(c.Include) > 0, Excluded: len(c.Exclude.Segments) > 0 || len(c.Exclude.UserIDs) > 0,
	}
	return p
}
