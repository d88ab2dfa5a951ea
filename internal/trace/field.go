package trace

import "slices"

// Field is something that canaryctl reads from a row.
type Field uint8

// The fields of records and windows (DESIGN section 5). Solved is true or
// false in a record and a count in a window.
const (
	FieldTS Field = iota // start of a request
	FieldT               // start of a window
	FieldArm
	FieldVersion
	FieldModel
	FieldUserID
	FieldConversationID
	FieldLatency
	FieldCostUSD
	FieldSolved
	FieldViolation
	FieldTransfer
	FieldSpan
	FieldTotal
	FieldJudged
	FieldViolations
	FieldTransfers
	FieldCost
	FieldCostMean
	FieldP99
	FieldSlow
	FieldScene
	FieldStatus
	FieldTTFT
	FieldITL
	FieldOutputTokens
	FieldStreamAborted
	FieldTTFTOf
	FieldTTFTP99
	FieldTTFTSlow
	FieldITLOf
	FieldStreams
	FieldAborted
	FieldStatusOf
	FieldErrors
	FieldServerErrors
	FieldKVCache
	numRead // the fields above are read; those below are known by name only

	FieldSegment Field = iota - 1
	FieldPromptVersion
	FieldInputTokens
	FieldAttempt
	FieldRetryAfter
	FieldToolCalls
	numFields
)

// valueKind is what a field's cells hold, and so which units they may have.
type valueKind uint8

const (
	textValue valueKind = iota
	instantValue
	durationValue
	countValue
	flagValue
	latencyValue
	moneyValue
	ratioValue
)

// units is the kind of unit that --map may give to a value.
func (v valueKind) units() unitKind {
	switch v {
	case instantValue, durationValue, latencyValue:
		return timeUnits
	case moneyValue:
		return moneyUnits
	}
	return noUnits
}

var fieldTable = [numFields]struct {
	name  string
	value valueKind
	of    Kind // Records, Windows, or Unknown for both
}{
	FieldTS:             {"ts", instantValue, Records},
	FieldT:              {"t", instantValue, Windows},
	FieldArm:            {"arm", textValue, Unknown},
	FieldVersion:        {"version", textValue, Unknown},
	FieldModel:          {"model", textValue, Unknown},
	FieldUserID:         {"user_id", textValue, Records},
	FieldConversationID: {"conversation_id", textValue, Records},
	FieldLatency:        {"latency_ms", latencyValue, Records},
	FieldCostUSD:        {"cost_usd", moneyValue, Records},
	FieldSolved:         {"solved", flagValue, Unknown},
	FieldViolation:      {"violation", flagValue, Records},
	FieldTransfer:       {"transfer", flagValue, Records},
	FieldSpan:           {"span", durationValue, Windows},
	FieldTotal:          {"total", countValue, Windows},
	FieldJudged:         {"judged", countValue, Windows},
	FieldViolations:     {"violations", countValue, Windows},
	FieldTransfers:      {"transfers", countValue, Windows},
	FieldCost:           {"cost", ratioValue, Windows},
	FieldCostMean:       {"cost_mean", moneyValue, Windows},
	FieldP99:            {"p99_ms", latencyValue, Windows},
	FieldSlow:           {"slow", countValue, Windows},
	FieldScene:          {"scene", textValue, Unknown},
	FieldSegment:        {"segment", textValue, Records},
	FieldPromptVersion:  {"prompt_version", textValue, Records},
	FieldStatus:         {"status", textValue, Records},
	FieldTTFT:           {"ttft_ms", latencyValue, Records},
	FieldITL:            {"itl_ms", latencyValue, Unknown},
	FieldInputTokens:    {"input_tokens", countValue, Records},
	FieldOutputTokens:   {"output_tokens", countValue, Records},
	FieldStreamAborted:  {"stream_aborted", flagValue, Records},
	FieldTTFTOf:         {"ttft_of", countValue, Windows},
	FieldTTFTP99:        {"ttft_p99_ms", latencyValue, Windows},
	FieldTTFTSlow:       {"ttft_slow", countValue, Windows},
	FieldITLOf:          {"itl_of", countValue, Windows},
	FieldStreams:        {"streams", countValue, Windows},
	FieldAborted:        {"aborted", countValue, Windows},
	FieldStatusOf:       {"status_of", countValue, Windows},
	FieldErrors:         {"errors", countValue, Windows},
	FieldServerErrors:   {"server_errors", countValue, Windows},
	FieldKVCache:        {"kv_cache", ratioValue, Windows},
	FieldAttempt:        {"attempt", countValue, Records},
	FieldRetryAfter:     {"retry_after_ms", latencyValue, Records},
	FieldToolCalls:      {"tool_calls", textValue, Records},
}

// String returns the field's name in files and in --map.
func (f Field) String() string { return fieldTable[f].name }

func (f Field) value() valueKind { return fieldTable[f].value }

func fieldNamed(name string) (Field, bool) {
	for f := range numFields {
		if fieldTable[f].name == name {
			return f, true
		}
	}
	return 0, false
}

// fieldNames lists the names of all fields, for messages.
func fieldNames() []string {
	names := make([]string, 0, numFields)
	for f := range numFields {
		names = append(names, f.String())
	}
	return names
}

// fieldsOf lists the names of the fields that rows of a kind have, all for
// [Unknown].
func fieldsOf(k Kind) []string {
	names := make([]string, 0, numFields)
	for f := range numFields {
		if of := fieldTable[f].of; k == Unknown || of == Unknown || of == k {
			names = append(names, f.String())
		}
	}
	return names
}

// timeNames are the names under which a time is looked for, lower case, when
// no row has ts or t and none is mapped; the first one present wins.
var timeNames = []string{
	"ts", "t", "timestamp", "@timestamp", "time", "datetime", "date_time", "start_time", "starttime", "created_at",
	"unix_ts", "event_time", "request_time", "window_start",
}

// ofRequest reports whether one of names is a field that requests have and
// windows have not, besides the time.
func ofRequest(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		f, ok := fieldNamed(n)
		return ok && fieldTable[f].of == Records && f != FieldTS
	})
}

// knowsRecordField reports whether one of names is a field of records besides the time.
func knowsRecordField(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		f, ok := fieldNamed(n)
		return ok && fieldTable[f].of != Windows && f != FieldTS
	})
}
