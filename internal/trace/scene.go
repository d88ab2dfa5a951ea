package trace

import (
	"maps"
	"slices"
)

// maxScenes bounds the number of scenes that are told apart: more of them are
// a column that holds something else.
const maxScenes = 64

// sceneNames takes the rows of the scene asked for, and counts those met.
type sceneNames struct {
	want string
	data *Data
	met  map[string]*int64
}

// takes reports whether a row is of the scene asked for, or none was, and
// counts it.
func (s *sceneNames) takes(r *row) bool {
	name := r.cells[FieldScene]
	if name.kind != scalar {
		return s.takesNameless()
	}
	return s.takesNamed(name.text, s.counter(name.text))
}

func (s *sceneNames) takesNameless() bool {
	if s.want == "" {
		return true
	}
	s.data.Sceneless++
	return false
}

// takesNamed counts a row of a scene in its counter, if it has one.
func (s *sceneNames) takesNamed(name []byte, counter *int64) bool {
	if counter != nil {
		*counter++
	}
	if s.want != "" && string(name) != s.want {
		s.data.OtherScenes++
		return false
	}
	return true
}

// counter is where rows of a scene are counted, nil for one too many.
func (s *sceneNames) counter(name []byte) *int64 {
	n := s.met[string(name)]
	if n == nil {
		if len(s.met) == maxScenes {
			return nil
		}
		if s.met == nil {
			s.met = make(map[string]*int64)
		}
		n = new(int64)
		s.met[string(name)] = n
	}
	return n
}

// counts is how many rows each scene had, nil where no row named one.
func (s *sceneNames) counts() map[string]int64 {
	if s.met == nil {
		return nil
	}
	out := make(map[string]int64, len(s.met))
	for name, n := range s.met {
		out[name] = *n
	}
	return out
}

// tell says which scenes were met and what was left out.
func (s *sceneNames) tell(f *feed) {
	d := s.data
	d.Scenes = s.counts()
	if s.want == "" {
		return
	}
	if d.Scenes[s.want] == 0 {
		f.note("no row is of the scene %s; the scenes are: %s", printable(s.want), list(slices.Sorted(maps.Keys(d.Scenes))))
	}
	f.noteCount(d.OtherScenes, "1 row of another scene was left out", "%d rows of other scenes were left out")
	f.noteCount(d.Sceneless, "1 row names no scene and was left out", "%d rows name no scene and were left out")
}
