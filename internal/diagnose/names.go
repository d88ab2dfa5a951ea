package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// field is something that is read from a line.
type field uint8

const (
	fieldTS field = iota
	fieldTrace
	fieldUpstream
	fieldAttempt
	fieldStatus
	fieldRetryAfter
	fieldBreakerState
	fieldBreaker
	fieldInFlight
	fieldStream
	fieldElapsed
	fieldCode
	fieldTokens
	numFields
)

// fieldSet is a set of fields.
type fieldSet uint16

func (s fieldSet) has(f field) bool { return s&(1<<f) != 0 }

// fieldInfo has a field's name, other names it goes by where it is absent, and
// the unit of its numbers.
type fieldInfo struct {
	name    string
	aliases []string
	unit    time.Duration // 0: it has none
}

var fields = [numFields]fieldInfo{
	fieldTS:           {name: "ts", aliases: []string{"timestamp", "@timestamp", "time"}},
	fieldTrace:        {name: "trace_id", aliases: []string{"request_id"}},
	fieldUpstream:     {name: "upstream_request_id"},
	fieldAttempt:      {name: "attempt"},
	fieldStatus:       {name: "status"},
	fieldRetryAfter:   {name: "retry_after_ms", unit: time.Millisecond},
	fieldBreakerState: {name: "breaker_state"},
	fieldBreaker:      {name: "breaker"},
	fieldInFlight:     {name: "inflight"},
	fieldStream:       {name: "stream"},
	fieldElapsed:      {name: "elapsed_ms", aliases: []string{"latency_ms"}, unit: time.Millisecond},
	fieldCode:         {name: "error_code"},
	fieldTokens:       {name: "prompt_tokens", aliases: []string{"input_tokens"}},
}

func fieldNames() []string {
	names := make([]string, numFields)
	for f := range numFields {
		names[f] = fields[f].name
	}
	return names
}

// Names says where the fields are found in a line. The zero value reads them by
// their own names.
type Names struct {
	paths [numFields][]string // nil: by its own name or an alias
	units [numFields]time.Duration
	keys  map[string][]place // of a line, with what is read from them; nil: defaultKeys
	deep  []field            // fields that may lie inside other objects
}

// place is a field that a key holds, unless a key of a lower rank is there.
type place struct {
	field field
	rank  int
}

var defaultKeys = (&Names{}).flat()

// flat lists the keys of a line itself that fields are read from.
func (n *Names) flat() map[string][]place {
	keys := map[string][]place{}
	for f := range numFields {
		if path := n.paths[f]; path != nil {
			key := strings.Join(path, ".")
			keys[key] = append(keys[key], place{f, 0})
			continue
		}
		for rank, key := range append([]string{fields[f].name}, fields[f].aliases...) {
			keys[key] = append(keys[key], place{f, rank})
		}
	}
	return keys
}

// NameError says that a --map cannot be understood.
type NameError struct {
	Text, Msg, Advice string
}

// Error implements error.
func (e *NameError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Msg) }

// Hint is one sentence without a full stop, or "".
func (e *NameError) Hint() string { return e.Advice }

// units of times.
var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// ParseNames reads mappings FIELD=PATH[:UNIT], several in one text separated by
// commas. A path leads into nested objects with dots; a key with the dots in
// it goes first. A unit is s, ms, us or ns, for the fields that are times. The
// error is a [*NameError].
func ParseNames(texts []string) (Names, error) {
	var n Names
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			if err := n.parse(strings.TrimSpace(part)); err != nil {
				return Names{}, err
			}
		}
	}
	n.keys = n.flat()
	for f := range numFields {
		if len(n.paths[f]) > 1 {
			n.deep = append(n.deep, f)
		}
	}
	return n, nil
}

func (n *Names) parse(part string) error {
	name, path, ok := strings.Cut(part, "=")
	if !ok || name == "" || path == "" {
		return &NameError{Text: part, Msg: "want FIELD=KEY or FIELD=KEY:UNIT"}
	}
	i := slices.Index(fieldNames(), name)
	if i < 0 {
		e := &NameError{Text: part, Msg: fmt.Sprintf("there is no field %q", name), Advice: "an attempt has " + strings.Join(fieldNames(), ", ")}
		if near := diag.Nearest(name, fieldNames()); near != "" {
			e.Advice = fmt.Sprintf("did you mean %s?", near)
		}
		return e
	}
	f := field(i)
	if n.paths[f] != nil {
		return &NameError{Text: part, Msg: name + " is mapped twice"}
	}
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		unit, ok := units[path[i+1:]]
		if !ok || fields[f].unit == 0 && f != fieldTS {
			return &NameError{Text: part, Msg: fmt.Sprintf("%q is no unit of %s", path[i+1:], name), Advice: "the times have one: s, ms, us, ns"}
		}
		n.units[f], path = unit, path[:i]
	}
	n.paths[f] = strings.Split(path, ".")
	return nil
}
