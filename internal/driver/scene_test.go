package driver

import (
	"path/filepath"
	"testing"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
)

// TestSceneOfARelease: by its directory, since a service's own name may have a
// slash in it.
func TestSceneOfARelease(t *testing.T) {
	for _, tc := range []struct {
		name, service, want string
		dir                 *state.Dir
	}{
		{"a service", "monolith", "", state.At(".canaryctl", "monolith")},
		{"a scene", "monolith/answers", "answers", state.At(filepath.Join(".canaryctl", "monolith", "scenes"), "answers")},
		{"a service with a slash", "team/answers", "", state.At(".canaryctl", "team/answers")},
		{"a service with a slash in a directory of that name", "team/answers", "", state.At("scenes", "team/answers")},
		{"a service in a directory of that name", "answers", "", state.At("scenes", "answers")},
		{"no directory", "monolith/answers", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sceneOf(tc.service, tc.dir); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestScenesOfOneCandidateHaveKeysOfTheirOwn, and the commands that are told are
// for the scene.
func TestScenesOfOneCandidateHaveKeysOfTheirOwn(t *testing.T) {
	const candidate = "3f1c2ab90d11aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	whole, answers := &Release{Candidate: candidate}, &Release{Candidate: candidate, Scene: "answers"}
	summaries := &Release{Candidate: candidate, Scene: "summaries"}
	if whole.name() != whole.ID() || answers.name() == summaries.name() || answers.name() == whole.name() {
		t.Errorf("%q %q %q", whole.name(), answers.name(), summaries.name())
	}
	waiting := &journal.Outcome{Move: release.AwaitApproval, Stage: ladder.Climbing, Step: 2, Steps: 3}
	if got, want := answers.Next(waiting), "canaryctl approve --scene answers --release 3f1c2ab90d11 --step 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := whole.Next(waiting), "canaryctl approve --release 3f1c2ab90d11 --step 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := answers.Command("put it back, or canaryctl rollback"), "put it back, or canaryctl rollback --scene answers"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
