package target

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

// maxDocument bounds a document that holds weights, in bytes.
const maxDocument = 8 << 20

// What a target has where the configuration leaves it out.
const (
	defaultCanary = "versions.canary.weight"
	defaultStable = "versions.stable.weight"
	noStable      = "-" // the selector that says that stable's weight stands nowhere
)

var defaultUnit = config.Unit{Whole: 1, Places: 6}

var byteOrderMark = []byte("\xef\xbb\xbf")

var errNoWeight = errors.New("there is no weight")

// document is where in a JSON or YAML document the weights stand.
type document struct {
	scale
	which  splice.Document // of several in one file; the zero value is the only one
	canary splice.Selector
	stable splice.Selector // empty: it stands nowhere
}

// newDocument reads the selectors of a configuration. key is the target's key
// there, for errors.
func newDocument(key, canary, stable string, unit config.Unit) (d document, err error) {
	d.scale = scaleOf(cmp.Or(unit, defaultUnit))
	if d.canary, err = splice.ParseSelector(cmp.Or(canary, defaultCanary)); err != nil {
		return d, fmt.Errorf("%s.canary: %w", key, err)
	}
	if stable == noStable {
		return d, nil
	}
	if stable == "" && canary != "" {
		return d, fmt.Errorf("%s.stable: missing: say where stable's weight stands, or \"-\" if it stands nowhere", key)
	}
	if d.stable, err = splice.ParseSelector(cmp.Or(stable, defaultStable)); err != nil {
		return d, fmt.Errorf("%s.stable: %w", key, err)
	}
	return d, nil
}

// read returns the canary's share. An error says what is wrong with the
// document; the caller makes it a [*ShapeError].
func (d document) read(src []byte, ring int64) (release.Weight, error) {
	canary, err := splice.Get(src, d.which, d.canary)
	if err != nil {
		return release.Weight{}, err
	}
	stable := ""
	if !d.stable.IsZero() {
		if stable, err = splice.Get(src, d.which, d.stable); err != nil {
			return release.Weight{}, err
		}
		if stable == "" {
			return release.Weight{}, fmt.Errorf("%s: %w", d.stable, errNoWeight)
		}
	}
	w, err := d.parse(canary, stable, ring)
	if err != nil {
		return release.Weight{}, fmt.Errorf("%s: %w", d.canary, err)
	}
	return w, nil
}

// write returns the document with another share and every other byte as it
// was. An error is a [*FineError] or says what is wrong with the document.
func (d document) write(src []byte, w release.Weight) ([]byte, error) {
	canary, stable, err := d.render(w)
	if err != nil {
		return nil, err
	}
	edits := []splice.Edit{{At: d.canary, Value: canary}}
	if !d.stable.IsZero() {
		edits = append(edits, splice.Edit{At: d.stable, Value: stable})
	}
	return splice.SetAll(src, d.which, edits)
}

// example is a document to begin with, for people: JSON where the selectors
// have only keys, else words.
func (d document) example() string {
	root := map[string]any{}
	_, stable, _ := d.render(release.Weight{})
	for _, e := range []struct {
		at    splice.Selector
		value string
	}{{d.canary, "0"}, {d.stable, stable}} {
		keys, ok := e.at.Keys()
		if !ok {
			return fmt.Sprintf("the document with %s 0 and %s %s", d.canary, d.stable, stable)
		}
		nest(root, keys, json.Number(e.value))
	}
	text, err := json.Marshal(root)
	if err != nil {
		return fmt.Sprintf("a document with %s 0", d.canary) // keys and numbers always marshal
	}
	return string(text)
}

// nest puts a value into objects within objects. No keys: nothing.
func nest(m map[string]any, keys []string, value any) {
	for i, k := range keys {
		if i == len(keys)-1 {
			m[k] = value
			return
		}
		inner, ok := m[k].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[k] = inner
		}
		m = inner
	}
}

// checkJSON returns why an answer is no JSON document, or nil.
func checkJSON(src []byte) error {
	trimmed := bytes.TrimSpace(src)
	switch {
	case len(trimmed) == 0:
		return errors.New("an empty document")
	case trimmed[0] == '<':
		return errors.New("an HTML or XML page instead of JSON: a login page, or a proxy's")
	case !json.Valid(bytes.TrimPrefix(src, byteOrderMark)):
		return errors.New("not valid JSON")
	}
	return nil
}

// oneLine makes a text of others fit for a message: no control characters, no
// line ends, at most n bytes.
func oneLine(text string, n int) string {
	clean := []rune{}
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			if len(clean) > 0 && clean[len(clean)-1] != ' ' {
				clean = append(clean, ' ')
			}
		case unicode.IsPrint(r):
			clean = append(clean, r)
		}
	}
	return shorten(string(bytes.TrimSpace([]byte(string(clean)))), n)
}
