package calibrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
)

// chooseArm returns the arm that the baseline is of: stable where it is named,
// else the only one there is. Several versions are refused, because their
// mixture is the normal behaviour of none of them.
func chooseArm(windows []release.Window, refusal *Refusal) release.Arm {
	requests := make(map[release.Arm]int64)
	for i := range windows {
		requests[windows[i].Arm] += windows[i].Total
	}
	arms := slices.Sorted(maps.Keys(requests))
	switch {
	case slices.Contains(arms, release.Stable):
		return release.Stable
	case len(arms) == 1 && arms[0] == release.Canary:
		refusal.add("only-canary", "only the canary's requests are here", "a baseline is what stable does; give its records or windows")
	case len(arms) == 1:
		return arms[0]
	case len(arms) > 1:
		refusal.add("several-versions", "several versions are mixed: "+listArms(arms, requests), fmt.Sprintf("say which is the baseline: --arm stable=%s", most(arms, requests)))
	}
	return ""
}

// listArms names the first few versions with their requests.
func listArms(arms []release.Arm, requests map[release.Arm]int64) string {
	const shown = 5
	var parts []string
	for _, arm := range arms[:min(shown, len(arms))] {
		parts = append(parts, fmt.Sprintf("%s (%d requests)", arm, requests[arm]))
	}
	if rest := len(arms) - shown; rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, ", ")
}

func most(arms []release.Arm, requests map[release.Arm]int64) release.Arm {
	return slices.MaxFunc(arms, func(a, b release.Arm) int { return int(min(max(requests[a]-requests[b], -1), 1)) })
}

// split returns the arm's windows, oldest first, and how many requests of
// others are left out of the baseline.
func split(windows []release.Window, arm release.Arm) (own []release.Window, leftOut int64) {
	for i := range windows {
		if w := &windows[i]; w.Arm == arm {
			own = append(own, *w)
		} else {
			leftOut += w.Total
		}
	}
	slices.SortStableFunc(own, func(a, b release.Window) int { return a.T.Compare(b.T) })
	return own, leftOut
}
