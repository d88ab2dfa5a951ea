package trace

import (
	"strings"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// heliconeShape is a request of Helicone as its exports and its API write it
// (Helicone/helicone, HeliconeRequest).
var heliconeShape = &shape{
	name: "helicone", time: "request_created_at", one: "request", many: "requests",
	is: func(k *keys) bool {
		return !k.own() && k.has("request_created_at") && k.any("delay_ms", "response_created_at", "response_status", "request_properties")
	},
	read:   readHelicone,
	strict: true,
}

func readHelicone(b *bag, r *row) (bool, error) {
	status := b.text("response_status")
	if string(status) == heliconePending {
		return false, nil // its answer has not come
	}
	start, err := b.moment(NoUnit, "request_created_at")
	if err != nil {
		return false, err
	}
	r.start(start)
	r.scaled(FieldLatency, b.text("delay_ms"), 0)
	if !r.cells[FieldLatency].present() {
		end, err := b.moment(NoUnit, "response_created_at")
		if err != nil {
			return false, err
		}
		r.elapsed(FieldLatency, start, end)
	}
	r.scaled(FieldTTFT, b.text("time_to_first_token"), 0)
	r.whole(FieldOutputTokens, b.text("completion_tokens"))
	r.money(b.text("costUSD", "cost"))
	r.give(FieldModel, b.text("response_model", "model_override", "request_model", "model"))
	r.give(FieldUserID, b.text("request_user_id", "helicone_user", "user_id"))
	if string(status) == heliconeCanceled {
		status = hungUpText
	}
	r.give(FieldStatus, status)
	if o, _ := statusOutcome(status); r.cells[FieldTTFT].present() && o != statusUnknown {
		r.flagged(FieldStreamAborted, o != statusOK)
	}
	eachProperty(b.get("request_properties"), func(name string, v []byte) {
		switch name {
		case "version":
			r.give(FieldVersion, v)
		case "session-id":
			r.give(FieldConversationID, v)
		}
	})
	scores := b.get("scores")
	if scores.kind == composite && scores.text[0] == '{' {
		jsonscan.EachMember(scores.text, func(key, v []byte) {
			s := score{name: key}
			if v[0] == '{' { // {"value":1,"valueType":"int"}
				v, _ = member(v, "value")
			}
			if len(v) > 0 {
				if s.value = jsonCell(v).text; v[0] != '"' {
					s.label = s.value // true and false
				}
				s.judge(b, r)
			}
		})
	}
	return true, nil
}

// The numbers that Helicone writes in place of an HTTP status.
const (
	heliconePending  = "-2"
	heliconeCanceled = "-3"
)

// eachProperty calls f for the properties of a request, their names in lower
// case and without the prefix of the header that set them.
func eachProperty(c cell, f func(name string, v []byte)) {
	if c.kind != composite || c.text[0] != '{' {
		return
	}
	jsonscan.EachMember(c.text, func(key, v []byte) {
		name := strings.ToLower(string(key))
		name = strings.TrimPrefix(strings.TrimPrefix(name, "helicone-property-"), "helicone-")
		if c := jsonCell(v); c.kind == scalar {
			f(name, c.text)
		}
	})
}
