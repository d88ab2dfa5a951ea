package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

// Versions are what a document had at one moment: its weights, and what stands
// beside them as the two versions.
type Versions struct {
	Reading
	// Stable and Canary name the two versions: digests over everything in their
	// mappings but the weight. They are not those of the configuration, which
	// may say more of a version than the document does.
	Stable, Canary string
}

// swapHint says what a document must be like.
const swapHint = "on_complete: swap exchanges what stands beside the two weights, versions.stable and versions.canary by default; where it cannot, write on_complete: keep and change the versions by hand"

// versionKeys are the mappings around the two weights, and the weights' keys in
// them.
type versionKeys struct {
	stable, canary             []string
	stableWeight, canaryWeight string
}

func (d document) versionKeys() (v versionKeys, err error) {
	if d.stable.IsZero() {
		return v, errors.New("stable's weight stands nowhere, and so does no version of it")
	}
	stable, plain := d.stable.Keys()
	canary, plainToo := d.canary.Keys()
	if !plain || !plainToo {
		return v, fmt.Errorf("%s and %s must lead by keys alone to two mappings, one for each version", d.stable, d.canary)
	}
	n, m := len(stable)-1, len(canary)-1
	v = versionKeys{stable: stable[:n], canary: canary[:m], stableWeight: stable[n], canaryWeight: canary[m]}
	if hasPrefix(v.stable, v.canary) || hasPrefix(v.canary, v.stable) {
		return v, fmt.Errorf("%s and %s do not stand in two mappings, one for each version", d.stable, d.canary)
	}
	return v, nil
}

func hasPrefix(path, prefix []string) bool {
	return len(prefix) <= len(path) && strings.Join(path[:len(prefix)], "\x00") == strings.Join(prefix, "\x00")
}

// versions names what stands as stable and as canary.
func (d document) versions(src []byte) (stable, canary string, err error) {
	keys, err := d.versionKeys()
	if err != nil {
		return "", "", err
	}
	if isJSON(src) {
		return keys.digestsJSON(src)
	}
	return keys.digestsYAML(src)
}

// exchange returns the document with its two versions exchanged and all traffic
// on stable, which is what canary was. Every key of the two mappings but the
// weight exchanges its value; all other bytes stay. The result is read again
// before it is returned.
func (d document) exchange(src []byte, ring int64) ([]byte, error) {
	keys, err := d.versionKeys()
	if err != nil {
		return nil, err
	}
	stable, canary, err := d.versions(src)
	if err != nil {
		return nil, err
	}
	if stable == canary {
		return nil, fmt.Errorf("%s and %s differ in nothing but the weight: there is nothing to exchange, and the traffic would go back to what was stable before", strings.Join(keys.stable, "."), strings.Join(keys.canary, "."))
	}
	by := keys.exchangeYAML
	if isJSON(src) {
		by = keys.exchangeJSON
	}
	swapped, err := by(src)
	if err == nil {
		swapped, err = d.write(swapped, release.Weight{Ring: max(ring, 1)})
	}
	if err != nil {
		return nil, err
	}
	s, c, err := d.versions(swapped)
	if err == nil && (s != canary || c != stable) {
		err = errors.New("the two versions cannot be exchanged without changing more")
	}
	return swapped, err
}

// Versions returns the weight and the two versions of one moment. A
// [*RefusedError] says that, and why, they cannot be exchanged; they are
// returned with it where they have names.
func (f *file) Versions(context.Context) (Versions, error) {
	path, err := f.resolve()
	if err != nil {
		return Versions{}, err
	}
	w, src, err := f.load(path)
	if err != nil {
		return Versions{}, err
	}
	return f.doc.seen(f.name, src, Reading{Weight: w}, f.ring)
}

// seen names the versions of a document, and says if they cannot be exchanged.
func (d document) seen(name string, src []byte, r Reading, ring int64) (Versions, error) {
	v := Versions{Reading: r}
	var err error
	if v.Stable, v.Canary, err = d.versions(src); err == nil {
		_, err = d.exchange(src, ring)
	}
	if err != nil {
		return v, &RefusedError{Target: name, Err: err, Hint: swapHint}
	}
	return v, nil
}

// Swap exchanges the two versions in one write: stable gets all traffic, and is
// what canary was, which stands as canary at weight 0. It is made only while
// the document has the weight and the two versions of was; else it is a
// [*ConflictError]. So asking again for one that was made does not undo it.
func (f *file) Swap(ctx context.Context, was Versions, c Change) error {
	path, err := f.resolve()
	if err != nil {
		return refusedShape(err)
	}
	return f.rewrite(ctx, path, c, func() ([]byte, error) {
		now, src, err := f.load(path)
		if err != nil {
			return nil, refusedShape(err)
		}
		if !now.Same(was.Weight) {
			return nil, &ConflictError{Target: f.name, Held: &now}
		}
		return f.doc.swapped(f.name, src, was, f.ring)
	})
}

// swapped is exchange for a document whose versions are still what they were.
func (d document) swapped(name string, src []byte, was Versions, ring int64) ([]byte, error) {
	stable, canary, err := d.versions(src)
	if err == nil && (stable != was.Stable || canary != was.Canary) {
		return nil, &ConflictError{Target: name, Err: errors.New("its versions are others than were read")}
	}
	var out []byte
	if err == nil {
		out, err = d.exchange(src, ring)
	}
	if err != nil {
		return nil, &RefusedError{Target: name, Err: err, Hint: swapHint}
	}
	return out, nil
}

// Versions is that of the file target.
func (t *configAPI) Versions(ctx context.Context) (Versions, error) {
	if t.mode == "template" {
		return Versions{}, t.noTemplate()
	}
	h, err := t.fetch(ctx)
	if err != nil {
		return Versions{}, err
	}
	r, err := t.reading(h)
	if err != nil {
		return Versions{}, err
	}
	return t.doc.seen(t.String(), h.src, r, t.ring)
}

func (t *configAPI) noTemplate() error {
	return &RefusedError{Target: t.String(), Err: errors.New("a body template holds no versions that could be exchanged"), Hint: swapHint}
}

// Swap is that of the file target. The server compares as well where its ETag
// allows that.
func (t *configAPI) Swap(ctx context.Context, was Versions, c Change) error {
	if t.mode == "template" {
		return t.noTemplate()
	}
	c.Overwrite = false
	return t.send(ctx, was.Reading, c, func(src []byte, c Change) ([]byte, error) {
		after, err := t.doc.swapped(t.String(), src, was, t.ring)
		if err != nil {
			return nil, err
		}
		return t.composeSwap(src, after, c.State)
	})
}

// composeSwap is the body that makes one document the other.
func (t *configAPI) composeSwap(src, after, state []byte) (body []byte, err error) {
	keys, err := t.doc.versionKeys()
	if err == nil {
		switch t.mode {
		case "merge_patch":
			body, err = t.swapMergePatch(src, after, state, keys)
		case "json_patch":
			body, err = t.swapJSONPatch(src, after, state, keys)
		default:
			body, err = t.putState(after, state)
		}
	}
	if err != nil {
		return nil, &RefusedError{Target: t.String(), Err: errors.New(t.web.secrets.Hide(err.Error())), Hint: swapHint}
	}
	return body, nil
}

// swapJSONPatch tests both versions whole, with their weights, and replaces
// them.
func (t *configAPI) swapJSONPatch(src, after, state []byte, keys versionKeys) ([]byte, error) {
	var tests, acts []operation
	for _, path := range [][]string{keys.stable, keys.canary} {
		old, _, err := rawAt(src, path)
		if err != nil {
			return nil, err
		}
		is, _, err := rawAt(after, path)
		if err != nil {
			return nil, err
		}
		tests = append(tests, operation{"test", pointer(path), old})
		acts = append(acts, operation{"replace", pointer(path), is})
	}
	add, err := t.stateOperation(src, state)
	if err != nil {
		return nil, err
	}
	return plainJSON(append(append(tests, acts...), add...))
}

// swapMergePatch holds what differs in the two versions.
func (t *configAPI) swapMergePatch(src, after, state []byte, keys versionKeys) ([]byte, error) {
	after, err := t.putState(after, state)
	if err != nil {
		return nil, err
	}
	before, err := decoded(src)
	if err != nil {
		return nil, err
	}
	is, err := decoded(after)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	for _, path := range [][]string{keys.stable, keys.canary} {
		_, a := upToList(before, path)
		_, b := upToList(is, path)
		change, err := mergeDiff(a, b)
		if err != nil {
			return nil, err
		}
		nest(patch, path, change)
	}
	if path, err := t.statePath(after, state); err != nil {
		return nil, err
	} else if path != nil {
		at, value := upToList(is, path)
		nest(patch, at, value)
	}
	return plainJSON(patch)
}

// mergeDiff is the merge patch (RFC 7396) that makes a value another. null in a
// patch takes a key away, so that it cannot write one.
func mergeDiff(a, b any) (any, error) {
	from, isObject := a.(map[string]any)
	to, isObjectToo := b.(map[string]any)
	if !isObject || !isObjectToo {
		if holdsNull(b) {
			return nil, errors.New("a merge patch cannot write null: use mode put or json_patch")
		}
		return b, nil
	}
	patch := map[string]any{}
	for k := range from {
		if _, kept := to[k]; !kept {
			patch[k] = nil
		}
	}
	for k, v := range to {
		old, had := from[k]
		if had && sameJSON(old, v) {
			continue
		}
		change, err := mergeDiff(old, v)
		if err != nil {
			return nil, err
		}
		patch[k] = change
	}
	return patch, nil
}

// holdsNull reports whether a value is null or an object with one in it. In a
// list it is a value like others.
func holdsNull(v any) bool {
	if v == nil {
		return true
	}
	object, ok := v.(map[string]any)
	for _, item := range object {
		if ok && holdsNull(item) {
			return true
		}
	}
	return false
}

func sameJSON(a, b any) bool {
	x, errA := plainJSON(a)
	y, errB := plainJSON(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

// selectorOf is the selector of a path of keys.
func selectorOf(keys []string) (splice.Selector, error) {
	var parts []string
	for _, k := range keys {
		parts = append(parts, `"`+jsonText(k)+`"`)
	}
	return splice.ParseSelector(strings.Join(parts, "."))
}
