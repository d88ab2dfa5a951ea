package configapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// etagOf is a document's strong entity tag: the SHA-256 of its bytes. A
// document that was changed and changed back has its old tag again, which is
// right for a precondition on what it says.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// tagList is the value of If-Match or If-None-Match (RFC 9110, section 13.1).
// The zero value is a header that is not there.
type tagList struct {
	any  bool     // *
	tags []string // as sent, W/ included
}

func (l *tagList) given() bool { return l.any || len(l.tags) > 0 }

// matchesStrong reports whether a current tag is in the list by the strong
// comparison: a weak tag matches nothing.
func (l *tagList) matchesStrong(etag string) bool { return l.any || slices.Contains(l.tags, etag) }

// matchesWeak reports whether it is by the weak comparison.
func (l *tagList) matchesWeak(etag string) bool {
	return l.any || slices.ContainsFunc(l.tags, func(tag string) bool { return strings.TrimPrefix(tag, "W/") == etag })
}

// readTags reads a header; several lines of it are one list.
func readTags(h http.Header, name string) (tagList, error) {
	lines := h.Values(name)
	if len(lines) == 0 {
		return tagList{}, nil
	}
	rest := strings.Trim(strings.Join(lines, ","), " \t")
	if rest == "*" {
		return tagList{any: true}, nil
	}
	var l tagList
	for rest != "" {
		tag, more, err := cutTag(rest)
		if err != nil {
			return tagList{}, invalidHeader.because(name + ": " + err.Error())
		}
		l.tags = append(l.tags, tag)
		rest = strings.TrimLeft(more, " \t")
		if next, ok := strings.CutPrefix(rest, ","); ok {
			rest = strings.TrimLeft(next, " \t,") // a list may have empty elements
		} else if rest != "" {
			return tagList{}, invalidHeader.because(name + ": entity tags are separated by commas")
		}
	}
	if len(l.tags) == 0 {
		return tagList{}, invalidHeader.because(name + ` is empty: send the ETag of the answer that was read, quotes included`)
	}
	return l, nil
}

var errNotTag = errors.New(`an entity tag stands in double quotes: "0a1b..."`)

// cutTag takes the entity tag off the front of a list.
func cutTag(list string) (tag, rest string, err error) {
	opaque, weak := strings.CutPrefix(list, "W/")
	if !strings.HasPrefix(opaque, `"`) {
		return "", "", errNotTag
	}
	end := strings.IndexByte(opaque[1:], '"')
	if end < 0 {
		return "", "", errNotTag
	}
	for _, c := range []byte(opaque[1 : 1+end]) {
		if c <= ' ' || c == 0x7f {
			return "", "", errNotTag
		}
	}
	end += 2
	if weak {
		end += len("W/")
	}
	return list[:end], list[end:], nil
}

// preconditions are what a request makes its effect depend on.
type preconditions struct {
	match, noneMatch tagList
}

func readPreconditions(h http.Header) (p preconditions, err error) {
	if p.match, err = readTags(h, "If-Match"); err != nil {
		return p, err
	}
	p.noneMatch, err = readTags(h, "If-None-Match")
	return p, err
}

// forPut checks that a replacement names what it replaces and a creation that
// there is nothing. have is nil where there is no document.
func (p *preconditions) forPut(name string, have *document) error {
	switch {
	case !p.match.given() && have != nil && !p.noneMatch.any:
		return preconditionNone.because(fmt.Sprintf("%s is there: read it and send its ETag as If-Match", name))
	case !p.match.given() && have == nil && !p.noneMatch.given():
		return preconditionNone.because(fmt.Sprintf("%s is not there yet: send If-None-Match: * to create it", name))
	case p.match.given() && have == nil:
		return preconditionFail.because(fmt.Sprintf("%s is not there; If-None-Match: * creates it", name))
	case p.match.given() && !p.match.matchesStrong(have.etag):
		return failed(have, fmt.Sprintf("%s has another ETag than If-Match says: read it again", name))
	case p.noneMatch.given() && have != nil && p.noneMatch.matchesWeak(have.etag):
		return failed(have, fmt.Sprintf("%s is there already: send its ETag as If-Match to replace it", name))
	}
	return nil
}

func failed(have *document, detail string) *problem {
	p := preconditionFail.because(detail)
	p.ETag = have.etag
	return p
}
