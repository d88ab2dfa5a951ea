package breaker_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
)

// TestAStateThatIsResetIsANewOne: whatever it has seen, of figures that others
// do not have too, it trips and is written like one that has seen nothing.
func TestAStateThatIsResetIsANewOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var used breaker.State
		before := drawNewLimits(t)
		for _, w := range drawNewFeed(t) {
			breaker.Tick(&before, &used, w.T)
			breaker.Step(&before, &used, &w)
		}
		used.Reset()
		l, fresh := drawNewLimits(t), new(breaker.State)
		for i, w := range drawNewFeed(t) {
			got, want := tick(&l, &used, w.T, &w), tick(&l, fresh, w.T, &w)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("window %d (-new +reset):\n%s", i, diff)
			}
			if a, b := written(t, &used), written(t, fresh); !bytes.Equal(a, b) {
				t.Fatalf("after window %d\n%s\nwant\n%s", i, a, b)
			}
		}
	})
}

func written(t *rapid.T, st *breaker.State) []byte {
	b, err := st.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
