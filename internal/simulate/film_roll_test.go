package simulate

import (
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/ladder"
)

// States that are larger than all of them may be are kept of fewer frames, each
// twice as far from the next, and never of other frames than are looked for.
func TestLargeStatesAreKeptOfFewerFrames(t *testing.T) {
	const frames = 400 * checkEvery
	r := newRoll()
	s := scene{course: course{st: ladder.State{Candidate: strings.Repeat("c", 1<<20)}}}
	for ; r.n < frames; r.n++ {
		if !r.due() {
			continue
		}
		s.st.Attempt = r.n
		if err := r.keep(&s); err != nil {
			t.Fatal(err)
		}
	}
	f := r.film
	if f.every != 16*checkEvery || len(f.checks) != 400/16 || r.size > mostChecked {
		t.Fatalf("%d checkpoints, %d frames apart, %d bytes", len(f.checks), f.every, r.size)
	}
	for i := range f.checks {
		var at scene
		if err := at.load(&f.checks[i]); err != nil || at.st.Attempt != i*f.every {
			t.Errorf("checkpoint %d is of frame %d (%v), want %d", i, at.st.Attempt, err, i*f.every)
		}
	}
}
