package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Scenes is what the scenes of a service come to together. Each has a report of
// its own.
type Scenes struct {
	Name  string
	Parts []ScenePart
	Unmet int // expectations, over all
}

// ScenePart is a scene and its replay; Outcome is nil where there is more than
// one, as over runs and between two configurations.
type ScenePart struct {
	Scene   string
	Outcome *simulate.Outcome
}

// ScenesJSON is the JSON form: each scene's own document, and all together.
type ScenesJSON struct {
	Schema   int         `json:"schema"`
	Scenario string      `json:"scenario"`
	Scenes   []any       `json:"scenes"`
	Overall  OverallJSON `json:"overall"`
}

// OverallJSON is what all scenes come to. What only one replay has is left out
// over several.
type OverallJSON struct {
	Scenes   int               `json:"scenes"`
	Unmet    int               `json:"expectations_not_met"`
	Trips    *int              `json:"trips,omitempty"`
	Exposure *release.Exposure `json:"exposure,omitempty"` // users: null, one may be in several scenes
	Worst    *WorstJSON        `json:"worst,omitempty"`
}

// WorstJSON is the scene that ends worst: locked before OPEN before HALF_OPEN
// before CLOSED, and of equals the one with more trips, then the first.
type WorstJSON struct {
	Scene  string  `json:"scene"`
	State  string  `json:"state"`
	Pct    float64 `json:"pct"`
	Locked bool    `json:"locked"`
}

// JSON returns the document over those of the scenes.
func (s *Scenes) JSON(docs []any) ScenesJSON {
	all := OverallJSON{Scenes: len(s.Parts), Unmet: s.Unmet}
	if worst := s.worst(); worst != nil {
		trips, exposure := s.sums()
		o := worst.Outcome
		all.Trips, all.Exposure = &trips, &release.Exposure{Requests: exposure}
		all.Worst = &WorstJSON{Scene: worst.Scene, State: o.State.Breaker.Phase.String(), Pct: pct(o.State.Weight), Locked: o.State.Locked()}
	}
	return ScenesJSON{Schema: schemaVersion, Scenario: s.Name, Scenes: docs, Overall: all}
}

// worst is the scene that ends worst, nil where there are no single replays.
func (s *Scenes) worst() *ScenePart {
	var worst *ScenePart
	rank := func(o *simulate.Outcome) (int, int) {
		end := map[release.Phase]int{release.Open: 2, release.HalfOpen: 1}[o.State.Breaker.Phase]
		if o.State.Locked() {
			end = 3
		}
		return end, len(o.Rollbacks)
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Outcome == nil {
			return nil
		}
		if worst == nil {
			worst = p
			continue
		}
		end, trips := rank(p.Outcome)
		if worstEnd, worstTrips := rank(worst.Outcome); end > worstEnd || end == worstEnd && trips > worstTrips {
			worst = p
		}
	}
	return worst
}

func (s *Scenes) sums() (trips int, exposure int64) {
	for i := range s.Parts {
		trips += len(s.Parts[i].Outcome.Rollbacks)
		exposure += s.Parts[i].Outcome.Exposure.Requests
	}
	return trips, exposure
}

// sceneColumn is how wide the names of the scenes are at least.
const sceneColumn = 10

// Text writes a line over all, and where each scene ended.
func (s *Scenes) Text(w io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", style.paint(bold, plain(s.Name)), counted(len(s.Parts), "scene"))
	if s.worst() != nil {
		trips, exposure := s.sums()
		width := sceneColumn
		for i := range s.Parts {
			width = max(width, len(s.Parts[i].Scene))
		}
		fmt.Fprintf(&b, ", %s, exposure %s requests", counted(trips, "trip"), thousands(exposure))
		for i := range s.Parts {
			o := s.Parts[i].Outcome
			locked := ""
			if o.State.Locked() {
				locked = ", locked"
			}
			fmt.Fprintf(&b, "\n  %-*s ends %s at %s%s", width, plain(s.Parts[i].Scene), o.State.Breaker.Phase, o.State.Weight, locked)
		}
	}
	if s.Unmet > 0 {
		fmt.Fprintf(&b, "\n  %s", style.paint(red, counted(s.Unmet, "expectation")+" not met"))
	}
	b.WriteString("\n")
	return style.write(w, b.String())
}

// inScene names a replay of one scene.
func inScene(name, scene string) string {
	if scene == "" {
		return name
	}
	return name + "/" + scene
}
