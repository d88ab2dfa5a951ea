package ladder

import "github.com/canaryctl/canaryctl/internal/release"

// Abandon forgets a step forward that was asked for and surely not made, so
// that it is judged anew before it is asked for again: so is a share within the
// step that the target does not take. A rollback and a probe are never forgotten.
func Abandon(st *State) {
	if st.Pending.Move == release.Start || st.Pending.Move == release.Advance {
		st.Pending = Pending{}
	}
	if st.Pending.Move == release.Adjust {
		st.forget()
	}
}

// raising reports whether a higher weight within the step has been asked for.
func (st *State) raising() bool {
	return st.Pending.Move == release.Adjust && st.Pending.Weight.Above(st.Weight)
}
