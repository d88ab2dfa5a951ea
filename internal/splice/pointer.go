package splice

import (
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Keys returns the keys of a selector that has nothing but keys, as [Put]
// takes them; false when there is a position or a condition in it.
func (s Selector) Keys() ([]string, bool) {
	var keys []string
	for _, st := range s.steps {
		if st.kind != byKey {
			return nil, false
		}
		keys = append(keys, st.key)
	}
	return keys, true
}

// Locate returns where the scalar at a selector stands, as keys of mappings
// and positions in lists from 0, and its text as it is written, with its
// quotes. Errors are those of [Get], except that null is there.
func Locate(src []byte, doc Document, at Selector) (path []string, raw string, err error) {
	f, err := readFile(src)
	if err != nil {
		return nil, "", &Error{Path: []string{at.String()}, Reason: ErrSyntax, Detail: err.Error()}
	}
	last, err := f.scalar(doc, at)
	if err != nil {
		return nil, "", err
	}
	n, err := f.document(doc, at)
	for i := 0; i < len(at.steps) && err == nil; i++ {
		var next *yaml.Node
		next, _, err = at.steps[i].follow(n)
		part := at.steps[i].key
		if at.steps[i].kind != byKey {
			part = strconv.Itoa(slices.Index(n.Content, next))
		}
		path, n = append(path, part), next
	}
	from, to, reason := f.extentOf(last)
	if err == nil {
		err = reason
	}
	if err != nil {
		return nil, "", &Error{Path: []string{at.String()}, Reason: err}
	}
	return path, string(f.src[from:to]), nil
}
