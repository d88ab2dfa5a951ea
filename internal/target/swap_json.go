package target

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func isJSON(src []byte) bool { return json.Valid(bytes.TrimPrefix(src, byteOrderMark)) }

// span is src[from:to].
type span struct{ from, to int }

// members are the values of an object by key, in the order in which they stand.
type members struct {
	keys []string
	at   map[string]span
}

// rawAt returns the text of the object at a path of keys, and where it stands.
func rawAt(src []byte, path []string) (raw json.RawMessage, at span, err error) {
	base := len(src) - len(bytes.TrimPrefix(src, byteOrderMark))
	at = span{base, len(src)}
	for i, key := range path {
		m, err := membersOf(src, at)
		if err != nil {
			return nil, at, fmt.Errorf("%s: %w", strings.Join(path[:i], "."), err)
		}
		next, ok := m.at[key]
		if !ok {
			return nil, at, fmt.Errorf("%s is not there", strings.Join(path[:i+1], "."))
		}
		at = next
	}
	return json.RawMessage(src[at.from:at.to]), at, nil
}

var errNotObject = errors.New("no object stands there")

// membersOf reads the members of the object that stands in a part of a valid
// JSON text.
func membersOf(src []byte, in span) (m members, err error) {
	dec := json.NewDecoder(bytes.NewReader(src[in.from:in.to]))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return m, errNotObject
	}
	m.at = map[string]span{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return m, err
		}
		key, ok := token.(string)
		if !ok {
			return m, errNotObject
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return m, err
		}
		if _, twice := m.at[key]; twice {
			return m, fmt.Errorf("the key %q stands twice", key)
		}
		to := in.from + int(dec.InputOffset())
		m.keys, m.at[key] = append(m.keys, key), span{to - len(raw), to}
	}
	return m, nil
}

// digestsJSON names the two versions.
func (k versionKeys) digestsJSON(src []byte) (stable, canary string, err error) {
	if stable, err = digestJSON(src, k.stable, k.stableWeight); err == nil {
		canary, err = digestJSON(src, k.canary, k.canaryWeight)
	}
	return stable, canary, err
}

func digestJSON(src []byte, path []string, weight string) (string, error) {
	_, at, err := rawAt(src, path)
	if err != nil {
		return "", err
	}
	m, err := membersOf(src, at)
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}
	values := map[string]any{}
	for key, at := range m.at {
		if key == weight {
			continue
		}
		if values[key], err = decoded(src[at.from:at.to]); err != nil {
			return "", err
		}
	}
	text, err := plainJSON(values) // keys sorted, numbers as they are written
	return digestOf(text), err
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// exchangeJSON exchanges the values where both versions have the same keys, and
// the objects whole where they do not; only the weights then stand where the
// other's did.
func (k versionKeys) exchangeJSON(src []byte) ([]byte, error) {
	_, stable, err := rawAt(src, k.stable)
	if err != nil {
		return nil, err
	}
	_, canary, err := rawAt(src, k.canary)
	if err != nil {
		return nil, err
	}
	a, err := membersOf(src, stable)
	if err != nil {
		return nil, err
	}
	b, err := membersOf(src, canary)
	if err != nil {
		return nil, err
	}
	pairs := []pair{{stable, canary}}
	if k.sameKeys(a, b) {
		pairs = pairs[:0]
		for _, key := range a.keys {
			if key != k.stableWeight {
				pairs = append(pairs, pair{a.at[key], b.at[key]})
			}
		}
	} else if k.stableWeight != k.canaryWeight {
		return nil, fmt.Errorf("the weights are called %s and %s, and the two versions have different keys", k.stableWeight, k.canaryWeight)
	}
	return exchangeTexts(src, pairs), nil
}

func (k versionKeys) sameKeys(a, b members) bool {
	x := slices.DeleteFunc(slices.Sorted(slices.Values(a.keys)), func(key string) bool { return key == k.stableWeight })
	y := slices.DeleteFunc(slices.Sorted(slices.Values(b.keys)), func(key string) bool { return key == k.canaryWeight })
	return slices.Equal(x, y)
}

// pair are two places that exchange their texts.
type pair struct{ a, b span }

// exchangeTexts exchanges texts at places that do not overlap.
func exchangeTexts(src []byte, pairs []pair) []byte {
	type cut struct{ at, with span }
	var cuts []cut
	for _, p := range pairs {
		cuts = append(cuts, cut{p.a, p.b}, cut{p.b, p.a})
	}
	slices.SortFunc(cuts, func(x, y cut) int { return x.at.from - y.at.from })
	var out []byte
	end := 0
	for _, c := range cuts {
		out = append(append(out, src[end:c.at.from]...), src[c.with.from:c.with.to]...)
		end = c.at.to
	}
	return append(out, src[end:]...)
}
