package shadow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxDepth bounds how deep an answer may be nested.
	maxDepth = 200
	// maxDigits and maxExponent bound a number that is compared by value.
	maxDigits   = 400
	maxExponent = 400
)

// Why a text is no value that can be judged. None quotes the text.
var (
	errNotJSON   = errors.New("not JSON")
	errTwice     = errors.New("not JSON: a key stands twice in an object")
	errDeep      = fmt.Errorf("nested deeper than %d", maxDepth)
	errNumber    = errors.New("a number with too many digits")
	errMore      = errors.New("not JSON: something follows the value")
	errEmpty     = errors.New("no answer")
	errNoContent = errors.New("no answer: the completion has neither content nor a single tool call")
	errFailed    = errors.New("no answer: the call failed")
)

// Decode reads one JSON value into map[string]any, []any, string, bool, nil and
// [json.Number], which keeps every digit. What readers of JSON read differently
// is refused: a key that stands twice, a number beyond any use. Its errors name
// no part of the text.
func Decode(text []byte) (any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errEmpty
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := decode(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errMore
	}
	return v, nil
}

func decode(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, errNotJSON
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, errDeep
		}
		if t == '{' {
			return decodeObject(dec, depth)
		}
		return decodeList(dec, depth)
	case json.Number:
		return t, usable(string(t))
	}
	return token, nil
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	out := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, errNotJSON
		}
		if _, twice := out[key]; twice {
			return nil, errTwice
		}
		if out[key], err = decode(dec, depth+1); err != nil {
			return nil, err
		}
	}
	return out, closed(dec)
}

func decodeList(dec *json.Decoder, depth int) (any, error) {
	out := []any{}
	for dec.More() {
		v, err := decode(dec, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, closed(dec)
}

// closed reads the end of an object or list.
func closed(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return errNotJSON
	}
	return nil
}

// usable refuses numbers that no exact arithmetic should be asked about.
func usable(number string) error {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(number), "e")
	if len(mantissa) > maxDigits {
		return errNumber
	}
	if e, err := strconv.Atoi(exponent); scientific && (err != nil || e < -maxExponent || e > maxExponent) {
		return errNumber
	}
	return nil
}

// rational returns the exact value of a number that [usable] let pass.
func rational(n json.Number) (*big.Rat, bool) { return new(big.Rat).SetString(string(n)) }

// reading is what was logged of an answer: its structured value, and every text
// beside it that reaches a user as well.
type reading struct {
	value  any
	beside []spoken
}

// spoken is a text and where in the completion it stands.
type spoken struct{ at, text string }

// Extract finds the structured answer in what was logged of one: the value
// itself, a string that holds it, or a chat completion, streamed or not, whose
// message holds it as its content or as the arguments of its only tool call. The
// error says why there is none and names no part of the text.
func Extract(raw json.RawMessage) (any, error) {
	r, err := read(raw)
	return r.value, err
}

func read(raw json.RawMessage) (reading, error) {
	v, err := Decode(raw)
	if err != nil {
		return reading{}, err
	}
	if s, ok := v.(string); ok {
		if isStream(s) {
			return readStream([]byte(s)).structured()
		}
		if v, err = Decode([]byte(s)); err != nil {
			return reading{}, err
		}
	}
	if v == nil {
		return reading{}, errEmpty
	}
	if m, ok := v.(map[string]any); ok && isCompletion(m) {
		return content(m)
	}
	return reading{value: v}, nil
}

// isCompletion knows a chat completion, and the error that stands in for one.
func isCompletion(m map[string]any) bool {
	if m["object"] == "chat.completion" {
		return true
	}
	_, choices := m["choices"]
	_, failed := m["error"].(map[string]any)
	return firstMessage(m) != nil || failed && !choices && len(m) == 1
}

func firstMessage(m map[string]any) map[string]any {
	if choices, ok := m["choices"].([]any); ok && len(choices) > 0 {
		if first, ok := choices[0].(map[string]any); ok {
			message, _ := first["message"].(map[string]any)
			return message
		}
	}
	return nil
}

// content returns the value that a completion's message holds, and what the
// completion says beside it.
func content(m map[string]any) (reading, error) {
	first := firstMessage(m)
	if first == nil {
		return reading{}, errFailed
	}
	calls, _ := first["tool_calls"].([]any)
	at, text := "", ""
	if len(calls) == 1 {
		call, _ := calls[0].(map[string]any)
		function, _ := call["function"].(map[string]any)
		if arguments, ok := function["arguments"].(string); ok {
			at, text = "choices[0].message.tool_calls[0].function.arguments", arguments
		}
	}
	if said, ok := first["content"].(string); ok && len(calls) == 0 {
		at, text = "choices[0].message.content", said
	}
	if at == "" {
		return reading{}, errNoContent
	}
	v, err := Decode([]byte(text))
	r := reading{value: v}
	eachText(m["choices"], "choices", func(where, text string) {
		if where != at {
			r.beside = append(r.beside, spoken{where, text})
		}
	})
	return r, err
}

// silent names members of a completion that no user reads: ids are drawn at
// random, and what tokens cost repeats the text.
func silent(key string) bool { return key == "id" || key == "logprobs" || key == "index" }

// eachText calls see with every text and number of a completion's choices, in
// the order of the keys.
func eachText(v any, at string, see func(at, text string)) {
	switch v := v.(type) {
	case string:
		see(at, v)
	case json.Number:
		see(at, string(v))
	case []any:
		for i, item := range v {
			eachText(item, at+"["+strconv.Itoa(i)+"]", see)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !silent(key) {
				eachText(v[key], at+"."+key, see)
			}
		}
	}
}
