package ladder

import "github.com/canaryctl/canaryctl/internal/release"

// Abandon forgets a step forward that was asked for and surely not made, so
// that it is judged anew before it is asked for again. A rollback and a probe
// are never forgotten.
func Abandon(st *State) {
	if st.Pending.Move == release.Start || st.Pending.Move == release.Advance {
		st.Pending = Pending{}
	}
}
