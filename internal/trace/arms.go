package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

// maxArms bounds the number of versions told apart: more of them are a column
// that holds no versions.
const maxArms = 64

// armNames finds the arm of a row. Arms are small numbers in hot loops.
type armNames struct {
	mapped map[string]release.Arm
	merge  bool // every row is of one arm
	most   int
	index  map[string]int
	arms   []release.Arm
	others []string // versions that were left out, for messages

	met      map[string]bool // values of mapped that a row had
	nameless int64           // rows of the arm all, because they name nothing
}

// leftOut is the index of a row that belongs to no arm asked for.
const leftOut = -1

// newArmNames finds arms for records, which are merged as they are counted.
func newArmNames(opt *Options) *armNames {
	return &armNames{mapped: opt.Arms, merge: opt.MergeArms, most: maxArms, index: make(map[string]int), met: make(map[string]bool)}
}

// newWindowArms finds arms for windows, which are merged at the end: until
// then two versions' windows of the same minute are not one window twice.
func newWindowArms(opt *Options) *armNames {
	a := newArmNames(opt)
	if a.merge {
		a.merge, a.most = false, 1<<16
	}
	return a
}

// of returns the arm of a row, and counts it where it names none.
func (a *armNames) of(r *row) (int, error) {
	if a.indifferent() {
		return a.intern(string(release.All))
	}
	var l label
	for i, f := range labelFields {
		text, err := r.text(f)
		if err != nil {
			return 0, err
		}
		l.names[i] = text
		if f != FieldModel && len(text) > 0 && (isArm(text) || a.maps(text)) {
			break // what follows does not matter, be it no name
		}
	}
	arm, nameless, err := a.find(&l)
	if nameless && err == nil {
		a.nameless++
	}
	return arm, err
}

// indifferent reports whether all rows are of one arm, whatever they say.
func (a *armNames) indifferent() bool { return a.merge && len(a.mapped) == 0 }

func (a *armNames) maps(name []byte) bool {
	_, ok := a.mapped[string(name)]
	return ok
}

// find returns the arm of rows with these names: what --arm says of their arm,
// version or model, in this order, else their arm or version as it stands, else
// all, and then they are nameless. Where --arm names versions, rows of others
// are left out.
func (a *armNames) find(l *label) (arm int, nameless bool, err error) {
	var name []byte
	for i, f := range labelFields {
		text := l.names[i]
		if len(text) == 0 {
			continue
		}
		if arm, ok := a.mapped[string(text)]; ok {
			a.met[string(text)] = true
			arm, err := a.intern(string(arm))
			return arm, false, err
		}
		if f == FieldModel {
			break
		}
		if isArm(text) {
			arm, err := a.known(text)
			return arm, false, err
		}
		if name == nil {
			name = text
		}
	}
	switch {
	case len(a.mapped) > 0:
		a.leave(name)
		return leftOut, false, nil
	case name == nil:
		arm, err = a.intern(string(release.All))
		return arm, true, err
	}
	arm, err = a.known(name)
	return arm, false, err
}

// notes says what --arm did not find, which names are nearly an arm's, and that
// rows name no arm beside rows that do.
func (a *armNames) notes(f *feed) {
	for _, value := range slices.Sorted(maps.Keys(a.mapped)) {
		if !a.met[value] {
			f.note("no row is of %s, which --arm says is %s", printable(value), a.mapped[value])
		}
	}
	if f.opt.MergeArms {
		return
	}
	for _, arm := range a.arms {
		near := diag.Nearest(strings.ToLower(string(arm)), []string{string(release.Stable), string(release.Canary)})
		if near != "" && near != string(arm) && len(arm) > 3 {
			f.note("%s is an arm of its own and not %s; if it is meant to be, say --arm %s=%s", printable(string(arm)), near, near, printable(string(arm)))
		}
	}
	if len(a.arms) > 1 {
		f.noteCount(a.nameless, "1 row names no arm, beside rows that do: it is of the arm all", "%d rows name no arm, beside rows that do: they are of the arm all")
	}
}

func isArm(name []byte) bool {
	return string(name) == string(release.Stable) || string(name) == string(release.Canary)
}

// known is intern without making a string of a name that was met before.
func (a *armNames) known(name []byte) (int, error) {
	if i, ok := a.index[string(name)]; ok {
		return i, nil
	}
	return a.intern(string(name))
}

func (a *armNames) intern(name string) (int, error) {
	if a.merge {
		name = string(release.All)
	}
	if i, ok := a.index[name]; ok {
		return i, nil
	}
	if len(a.arms) == a.most {
		return 0, &InputError{
			Msg:    fmt.Sprintf("more than %d different versions, %s among them", a.most, printable(name)),
			Advice: "say which are which with --arm stable=VERSION --arm canary=VERSION, or --arm all",
		}
	}
	a.index[name] = len(a.arms)
	a.arms = append(a.arms, release.Arm(name))
	return len(a.arms) - 1, nil
}

// leave remembers the name of a version that is left out.
func (a *armNames) leave(name []byte) {
	if len(a.others) < maxArms && !slices.Contains(a.others, string(name)) {
		a.others = append(a.others, string(name))
	}
}
