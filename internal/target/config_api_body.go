package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

// compose returns the body of a write, from the document that was just read.
func (t *configAPI) compose(src []byte, c Change) ([]byte, error) {
	var body []byte
	var err error
	switch t.mode {
	case "template":
		body, err = t.fill(c)
	case "merge_patch":
		body, err = t.mergePatch(src, c)
	case "json_patch":
		body, err = t.jsonPatch(src, c)
	default:
		if body, err = t.doc.write(src, c.To); err == nil {
			body, err = t.putState(body, c.State)
		}
	}
	if err != nil {
		return nil, t.shape(err, "the document is not written when it cannot be changed safely")
	}
	return body, nil
}

// putState puts a text where the state is kept.
func (t *configAPI) putState(src, state []byte) ([]byte, error) {
	if state == nil || t.stateAt.IsZero() {
		return src, nil
	}
	out, err := splice.SetAll(src, splice.Document{}, []splice.Edit{{At: t.stateAt, Value: string(state)}})
	if keys, plain := t.stateAt.Keys(); errors.Is(err, splice.ErrNotFound) && plain {
		return splice.Put(src, keys, string(state))
	}
	return out, err
}

// change is one value of the document, before and after.
type change struct {
	path     []string // keys, and positions in lists
	old, new json.RawMessage
}

// changes are the values that a weight sets. What was a text stays one.
func (t *configAPI) changes(src []byte, w release.Weight) ([]change, error) {
	canary, stable, err := t.doc.render(w)
	if err != nil {
		return nil, err
	}
	var out []change
	for _, e := range []splice.Edit{{At: t.doc.canary, Value: canary}, {At: t.doc.stable, Value: stable}} {
		if e.At.IsZero() {
			continue
		}
		path, raw, err := splice.Locate(src, splice.Document{}, e.At)
		if err != nil {
			return nil, err
		}
		value := e.Value
		if strings.HasPrefix(raw, `"`) {
			value = strconv.Quote(value) // digits and a point: the same in JSON
		}
		out = append(out, change{path, json.RawMessage(raw), json.RawMessage(value)})
	}
	return out, nil
}

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// jsonPatch tests the old weights and replaces them, and adds the state. The
// positions of items that are selected by name come from the document that was
// just read; if they have moved since, the tests fail.
func (t *configAPI) jsonPatch(src []byte, c Change) ([]byte, error) {
	changes, err := t.changes(src, c.To)
	if err != nil {
		return nil, err
	}
	var tests, acts []operation
	for _, c := range changes {
		tests = append(tests, operation{"test", pointer(c.path), c.old})
		acts = append(acts, operation{"replace", pointer(c.path), c.new})
	}
	add, err := t.stateOperation(src, c.State)
	if err != nil {
		return nil, err
	}
	return plainJSON(append(append(tests, acts...), add...))
}

// stateOperation puts the state of a write into a document; none where there is
// none.
func (t *configAPI) stateOperation(src, state []byte) ([]operation, error) {
	path, err := t.statePath(src, state)
	if err != nil || path == nil {
		return nil, err
	}
	root, err := decoded(src)
	if err != nil {
		return nil, err
	}
	add, err := addition(root, path, string(state))
	return []operation{add}, err
}

// statePath is where the state of a write goes in a document; nil where none
// does.
func (t *configAPI) statePath(src, state []byte) ([]string, error) {
	if state == nil || t.stateAt.IsZero() {
		return nil, nil
	}
	path, _, err := splice.Locate(src, splice.Document{}, t.stateAt)
	if keys, plain := t.stateAt.Keys(); errors.Is(err, splice.ErrNotFound) && plain {
		return keys, nil
	}
	return path, err
}

// addition puts a value at a path, in the objects that are missing on the way:
// RFC 6902 makes none, and replaces what is there.
func addition(root any, path []string, value any) (operation, error) {
	at := 1
	for ; at < len(path); at++ {
		object, ok := root.(map[string]any)
		if !ok {
			at = len(path) // a list: the path is known to be there
			break
		}
		if root, ok = object[path[at-1]]; !ok {
			break
		}
	}
	if rest := path[at:]; len(rest) > 0 {
		inner := map[string]any{}
		nest(inner, rest, value)
		value = inner
	}
	raw, err := plainJSON(value)
	return operation{"add", pointer(path[:at]), raw}, err
}

// decoded is a JSON document with its numbers as they are written.
func decoded(src []byte) (root any, err error) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(src, byteOrderMark)))
	dec.UseNumber()
	err = dec.Decode(&root)
	return root, err
}

// pointer is a path as a JSON Pointer (RFC 6901).
func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, part := range path {
		b.WriteString("/" + escape.Replace(part))
	}
	return b.String()
}

// mergePatch holds the weights and the objects around them (RFC 7396). A merge
// patch cannot reach into a list, so that a list with a weight in it is sent
// whole, as it was read.
func (t *configAPI) mergePatch(src []byte, c Change) ([]byte, error) {
	changes, err := t.changes(src, c.To)
	if err != nil {
		return nil, err
	}
	after, err := t.doc.write(src, c.To)
	if err == nil {
		after, err = t.putState(after, c.State)
	}
	if err != nil {
		return nil, err
	}
	var paths [][]string
	for _, c := range changes {
		paths = append(paths, c.path)
	}
	if path, err := t.statePath(after, c.State); err != nil {
		return nil, err
	} else if path != nil {
		paths = append(paths, path)
	}
	root, err := decoded(after)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	for _, path := range paths {
		at, value := upToList(root, path)
		if len(at) == 0 {
			return nil, errors.New("the document is a list, which a merge patch cannot change: use mode json_patch or put")
		}
		nest(patch, at, value)
	}
	return plainJSON(patch)
}

// upToList follows a path through objects up to the first list or its end, and
// returns how far that is and what stands there.
func upToList(root any, path []string) (at []string, value any) {
	value = root
	for i, part := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return path[:i], value
		}
		value = object[part]
	}
	return path, value
}

// fill puts the figures of a change into the body template. Texts are escaped
// for what the body is: JSON, a form, or nothing known.
func (t *configAPI) fill(c Change) ([]byte, error) {
	canary, stable, err := t.doc.render(c.To)
	if err != nil {
		return nil, err
	}
	escape := func(s string) string { return s }
	switch {
	case strings.Contains(t.mediaType, "json"):
		escape = jsonText
	case strings.HasPrefix(t.mediaType, "application/x-www-form-urlencoded"):
		escape = url.QueryEscape
	}
	body := strings.NewReplacer(
		"{canary}", canary,
		"{stable}", stable,
		"{release}", escape(c.Release),
		"{attempt}", strconv.Itoa(c.Attempt),
		"{step}", strconv.Itoa(c.Step),
		"{key}", escape(c.Key),
	).Replace(t.body)
	if strings.Contains(t.mediaType, "json") && !json.Valid([]byte(body)) {
		return nil, errors.New("with its figures filled in it is not JSON")
	}
	return []byte(body), nil
}

// jsonText is a text as it stands within the quotes of JSON.
func jsonText(s string) string {
	quoted, err := plainJSON(s)
	if err != nil {
		return "" // a string always marshals
	}
	return string(quoted[1 : len(quoted)-1])
}

// plainJSON marshals without the escapes that are only for HTML: what was a &
// stays one.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
