package trace

import (
	"bytes"
	"slices"
)

// litellmShape is LiteLLM's StandardLoggingPayload, one call an object, as its
// callbacks and its S3 and GCS loggers write it (BerriAI/litellm,
// litellm/types/utils.py), and a row of its table of spend logs.
var litellmShape = &shape{
	name: "litellm", time: "startTime", one: "call", many: "calls",
	is: func(k *keys) bool {
		return !k.own() && k.has("call_type", "startTime") && k.any("response_cost", "custom_llm_provider", "model_group", "status_fields", "litellm_call_id", "hidden_params")
	},
	read:   readLiteLLM,
	strict: true,
}

// notGeneration are endings of call types that generate no text.
var notGeneration = [][]byte{[]byte("embedding"), []byte("rerank"), []byte("moderation"), []byte("transcription"), []byte("speech"),
	[]byte("image_generation"), []byte("image_edit"), []byte("image_variation")}

func readLiteLLM(b *bag, r *row) (bool, error) {
	kind := b.text("call_type")
	if slices.ContainsFunc(notGeneration, func(e []byte) bool { return bytes.HasSuffix(kind, e) }) {
		return false, nil
	}
	start, err := b.moment(NoUnit, "startTime")
	if err != nil {
		return false, err
	}
	end, err := b.moment(NoUnit, "endTime")
	if err != nil {
		return false, err
	}
	first, err := b.moment(NoUnit, "completionStartTime")
	if err != nil {
		return false, err
	}
	r.start(start)
	r.elapsed(FieldLatency, start, end)
	streamed := bytes.EqualFold(b.text("stream"), trueText)
	// Where nothing was streamed LiteLLM writes the end for the first token.
	if streamed && first.known && end.known && first.ns < end.ns {
		r.elapsed(FieldTTFT, start, first)
	}
	r.whole(FieldOutputTokens, b.text("completion_tokens"))
	r.give(FieldModel, b.text("model"))
	r.give(FieldVersion, b.text("model_id", "model_group"))
	if user := b.text("end_user"); user != nil {
		r.give(FieldUserID, user)
	} else {
		r.give(FieldUserID, b.inner("metadata", "user_api_key_user_id"))
	}
	if !r.cells[FieldUserID].present() {
		r.give(FieldUserID, b.text("user"))
	}
	r.armOf(b.get("request_tags"))
	litellmCost(b, r)
	litellmStatus(b, r, streamed)
	return true, nil
}

// litellmCost fills in the cost, unless it is the 0 that LiteLLM writes for a
// model whose price it does not know: tokens that no cache gave cost something.
func litellmCost(b *bag, r *row) {
	text := b.text("response_cost", "spend")
	n, fig := parseNumber(text)
	if len(text) == 0 || fig != finite {
		return
	}
	tokens, _ := parseNumber(b.text("total_tokens"))
	if n.mant == 0 && tokens.mant != 0 && !bytes.EqualFold(b.text("cache_hit"), trueText) {
		return
	}
	r.money(text)
}

// litellmStatus fills in the status. A guardrail that intervened kept an answer
// back, so nothing leaked and it is no violation.
func litellmStatus(b *bag, r *row, streamed bool) {
	switch string(b.text("status")) {
	case "success":
		r.cells[FieldStatus] = cell{kind: scalar, text: okText}
		if streamed {
			r.flagged(FieldStreamAborted, false)
		}
	case "failure":
		class := b.inner("error_information", "error_code")
		if class == nil {
			class = b.inner("error_information", "error_class")
		}
		r.failure(class)
		if r.cells[FieldTTFT].present() {
			r.flagged(FieldStreamAborted, true)
		}
	}
}

// inner is a scalar's text in an object of the row, nil where it is missing.
func (b *bag) inner(path ...string) []byte {
	c := b.path(path)
	if c.kind != scalar || isMissing(c.text) {
		return nil
	}
	return c.text
}

// armOf fills in the arm where one of the tags is the name of one.
func (r *row) armOf(tags cell) {
	if tags.kind != composite {
		return
	}
	eachElement(tags.text, func(v []byte) {
		if tag := textOf(v); isArm(tag) {
			r.give(FieldArm, tag)
		}
	})
}
