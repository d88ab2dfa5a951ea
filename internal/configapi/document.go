package configapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/release"
)

// inspect checks a document and returns the canary's weight, NaN where it has
// none. Errors are *problem.
func inspect(body []byte) (canary float64, err error) {
	if err := wellFormed(body); err != nil {
		return 0, invalidJSON.because(err.Error())
	}
	if err := unambiguous(body); err != nil {
		return 0, invalidDocument.because(err.Error())
	}
	if canary, err = weights(body); err != nil {
		return 0, invalidDocument.because(err.Error())
	}
	return canary, nil
}

// wellFormed checks that it is one JSON object in UTF-8 and nothing else.
func wellFormed(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("the body is not UTF-8")
	}
	if !json.Valid(body) {
		var any json.RawMessage
		err := json.Unmarshal(body, &any)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Errorf("at byte %d: %w", syntax.Offset, syntax)
		}
		return errors.New("the body is not JSON")
	}
	if bytes.TrimSpace(body)[0] != '{' {
		return errors.New("the document is not a JSON object")
	}
	return nil
}

// level is an object or array on the way to where the walk is.
type level struct {
	keys map[string]bool // nil: an array
	key  string          // of the value that comes next; "" while a key comes next
	in   bool            // key is set
}

// unambiguous refuses duplicate keys, of which readers take one or the other,
// and nesting that readers may not follow. The body is well-formed.
func unambiguous(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var path []level
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if len(path) == MaxDepth {
				return fmt.Errorf("%s is nested deeper than %d levels", where(path), MaxDepth)
			}
			next := level{}
			if token == json.Delim('{') {
				next.keys = map[string]bool{}
			}
			path = append(path, next)
			continue
		case json.Delim('}'), json.Delim(']'):
			path = path[:len(path)-1]
		default:
			if key, ok := path[len(path)-1].takeKey(token); ok {
				top := &path[len(path)-1]
				if top.keys[key] {
					return fmt.Errorf("%s: the key is there twice", where(path))
				}
				top.keys[key] = true
				continue
			}
		}
		if len(path) > 0 {
			path[len(path)-1].in = false
		}
	}
}

// takeKey makes a token the key of the value to come, if a key is due.
func (l *level) takeKey(token json.Token) (string, bool) {
	if l.keys == nil || l.in {
		return "", false
	}
	l.key, l.in = token.(string), true
	return l.key, true
}

// where names the place of the walk: versions.canary.weight.
func where(path []level) string {
	text := ""
	for _, l := range path {
		if l.in {
			if text != "" {
				text += "."
			}
			text += short(l.key)
		}
	}
	return text
}

// short is a key or value as it may stand in a message.
func short(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// weights checks versions and state, and returns the canary's weight.
func weights(body []byte) (float64, error) {
	doc, err := object(bytes.TrimSpace(body), "the document")
	if err != nil {
		return 0, err
	}
	if state, ok := doc["state"]; ok && state[0] != '"' {
		return 0, errors.New("state is not a text")
	}
	if doc["versions"] == nil {
		return 0, errors.New(`there is no "versions": {"stable": {...}, "canary": {...}}`)
	}
	versions, err := object(doc["versions"], "versions")
	if err != nil {
		return 0, err
	}
	sum, known, canary := new(big.Rat), 0, math.NaN()
	for _, arm := range []string{"stable", "canary"} {
		w, err := weightOf(versions[arm], "versions."+arm)
		if err != nil {
			return 0, err
		}
		if w == nil {
			continue
		}
		known++
		sum.Add(sum, w.Rat())
		if arm == "canary" {
			canary = w.Float64()
		}
	}
	if known == 2 && sum.Cmp(big.NewRat(1, 1)) != 0 {
		return 0, fmt.Errorf("versions.stable.weight and versions.canary.weight add up to %s, not to 1", decimal(sum))
	}
	return canary, nil
}

// decimal prints a sum of two decimals as one.
func decimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return r.FloatString(places)
}

// weightOf reads an arm's weight, nil where it has none.
func weightOf(arm json.RawMessage, path string) (*release.Ratio, error) {
	if arm == nil {
		return nil, nil
	}
	fields, err := object(arm, path)
	if err != nil {
		return nil, err
	}
	raw := fields["weight"]
	if raw == nil {
		return nil, nil
	}
	path += ".weight"
	text := string(raw)
	if text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil, fmt.Errorf("%s is %s, not a number", path, short(text))
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || f < 0 || f > 1 {
		return nil, fmt.Errorf("%s is %s, not between 0 and 1", path, short(text))
	}
	if len(text) > 40 {
		return nil, fmt.Errorf("%s is %s: it has too many digits to be held exactly", path, short(text))
	}
	w, err := release.ParseRatio(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %s: it has too many digits to be held exactly", path, text)
	}
	if w.Compare(1, 1) < 0 {
		return nil, fmt.Errorf("%s is %s, not between 0 and 1", path, text)
	}
	return &w, nil
}

// object splits a JSON object into its fields. Keys are taken as they are: the
// standard library's structs would take Weight for weight.
func object(raw json.RawMessage, path string) (map[string]json.RawMessage, error) {
	if raw[0] != '{' {
		return nil, fmt.Errorf("%s is not an object", path)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return fields, nil
}
