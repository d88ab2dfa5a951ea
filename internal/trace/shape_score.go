package trace

import "bytes"

// score is what somebody judged of an answer.
type score struct {
	name, label, value []byte
}

// scoreFields are the names of scores that mean a field, in lower case without
// what separates their parts.
var scoreFields = map[string]Field{
	"solved": FieldSolved, "resolved": FieldSolved, "correctness": FieldSolved, "correct": FieldSolved,
	"transfer": FieldTransfer, "handoff": FieldTransfer, "escalated": FieldTransfer,
	"violation": FieldViolation, "policyviolation": FieldViolation,
}

// scoreYes and scoreNo are the labels that are understood.
var (
	scoreYes = []string{"pass", "passed", "true", "yes", "solved", "resolved", "correct"}
	scoreNo  = []string{"fail", "failed", "false", "no", "unsolved", "unresolved", "incorrect"}
)

// judge puts a score into the bag under scores.NAME, for --map, and into the
// field that its name means, if it means one.
func (s *score) judge(b *bag, r *row) {
	v, known := s.verdict()
	if len(s.name) == 0 || !known {
		return
	}
	c := cell{kind: scalar, text: falseText}
	if v {
		c.text = trueText
	}
	b.put(append([]byte("scores."), s.name...), c)
	if f, ok := scoreField(s.name); ok {
		r.cells[f] = c
	}
}

// verdict is true or false: by the label where it is one that is known, else by
// a value from 0 to 1, of which a half and more is true. A value beyond that is
// of a scale that nobody told, and says nothing.
func (s *score) verdict() (v, known bool) {
	switch {
	case foldedIn(s.label, scoreYes):
		return true, true
	case foldedIn(s.label, scoreNo):
		return false, true
	}
	n, fig := parseNumber(s.value)
	if len(s.value) == 0 || fig != finite || n.negative() {
		return false, false
	}
	f, ok := n.float(s.value, 0)
	return f >= 0.5, ok && f <= 1
}

// scoreField finds the field that the name of a score means.
func scoreField(name []byte) (Field, bool) {
	folded := bytes.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == ' ' || r == '.':
			return -1
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
	f, ok := scoreFields[string(folded)]
	return f, ok
}
