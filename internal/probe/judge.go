package probe

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// judge says what an answer over HTTP means.
func (q *question) judge(a *answer) Result {
	kind, words := q.kindOf(a)
	var explain, fix string
	if words != nil {
		explain, fix = words(q, a)
	}
	r := q.result(kind, explain, fix)
	r.Status = a.status
	ms := float64(a.latency.Microseconds()) / 1000
	r.LatencyMS = &ms
	if kind == OK {
		model, _ := a.message.fields["model"].(string)
		r.Model = q.mask.text(model, maxShown)
	} else {
		r.Said = q.mask.text(a.message.text, maxSaid)
	}
	return *r
}

// sentences words a kind of result: why, and what to do.
type sentences func(q *question, a *answer) (explain, fix string)

// kindOf looks at the status and, where servers differ in it, at the words.
func (q *question) kindOf(a *answer) (Kind, sentences) {
	switch {
	case a.status/100 == 3:
		return Redirect, redirected
	case a.status/100 == 2:
		return q.kindOfAnswer(a)
	case a.enough():
		return OK, answeredShort
	}
	return q.kindOfFailure(a, a.status)
}

// kindOfAnswer looks at an answer whose status claims success.
func (q *question) kindOfAnswer(a *answer) (Kind, sentences) {
	m := &a.message
	choices, _ := m.fields["choices"].([]any)
	switch {
	case m.found && len(choices) == 0 && !foreignAnswer(m.fields):
		if kind, words := q.kindOfFailure(a, m.code); kind != BadRequest && kind != ServerError {
			return kind, words
		}
		return ErrorAnswer, errorAnswer
	case strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") || m.fields != nil && m.fields["object"] == "chat.completion.chunk":
		return Streamed, streamed
	case m.fields == nil:
		if m.oauth {
			return OAuth, oauth
		}
		return NotJSON, notJSON
	}
	if len(choices) == 0 {
		return NoChoices, noChoices
	}
	first, _ := choices[0].(map[string]any)
	if _, ok := first["message"].(map[string]any); !ok {
		return NoChoices, noMessage
	}
	return OK, answered
}

// rules decide between the kinds of failures, from the most to the least
// particular. The status is that of HTTP, or the one in an answer's body.
var rules = []struct {
	when  func(q *question, m *message, status int) bool
	kind  Kind
	words sentences
}{
	{func(_ *question, m *message, _ int) bool {
		return m.unencrypted || m.saysAny("http request to an https server")
	}, TLS, wantsTLS},
	{func(_ *question, _ *message, s int) bool { return s == http.StatusProxyAuthRequired }, Proxy, proxied},
	{func(_ *question, m *message, s int) bool {
		return (s < 404 && s != 400) && (m.oauth || m.saysAny("oauth", "login cookie", "identity token"))
	}, OAuth, oauth},
	{func(_ *question, m *message, s int) bool {
		return s == http.StatusPaymentRequired || s != http.StatusUnauthorized && s < 500 &&
			m.saysAny("insufficient_quota", "exceeded your current quota", "insufficient balance", "insufficient_balance", "insufficient credit", "out of credit", "credit balance", "billing", "arrearage", "余额", "欠费")
	}, Quota, quota},
	{func(_ *question, m *message, s int) bool {
		return s != http.StatusUnauthorized && s != http.StatusTooManyRequests && m.namesModel(s)
	}, NoModel, noModel},
	{func(_ *question, m *message, s int) bool {
		return s != http.StatusTooManyRequests && s < 500 && m.saysAny(oldLimit, newLimit, "max_output_tokens", "max_new_tokens")
	}, MaxTokens, maxTokens},
	{func(q *question, m *message, s int) bool { return placeholder(q.key) && m.rejectsKey(s) }, KeyPlaceholder, keyPlaceholder},
	{func(_ *question, m *message, s int) bool { return m.rejectsKey(s) }, Unauthorized, unauthorized},
	{func(_ *question, _ *message, s int) bool { return s == http.StatusForbidden }, Forbidden, forbidden},
	{func(_ *question, _ *message, s int) bool {
		return s == http.StatusNotFound || s == http.StatusMethodNotAllowed || s == http.StatusGone
	}, NotFound, notFound},
	{func(_ *question, m *message, s int) bool {
		return s == http.StatusTooManyRequests || s == 0 && m.saysAny("rate limit", "rate_limit", "too many requests")
	}, RateLimited, rateLimited},
	{func(_ *question, _ *message, s int) bool { return s >= 500 || s == http.StatusRequestTimeout }, ServerError, serverError},
	{func(*question, *message, int) bool { return true }, BadRequest, badRequest},
}

func (q *question) kindOfFailure(a *answer, status int) (Kind, sentences) {
	challenge := strings.ToLower(a.header.Get("WWW-Authenticate"))
	if status == http.StatusUnauthorized && (strings.Contains(challenge, "authorization_uri") || strings.Contains(challenge, "resource_metadata") || strings.Contains(challenge, "oauth")) {
		return OAuth, oauth
	}
	for _, r := range rules {
		if r.when(q, &a.message, status) {
			return r.kind, r.words
		}
	}
	return BadRequest, badRequest
}

// rejectsKey reports whether a failure is about the key: some servers say so
// under 400, 403 or 200.
func (m *message) rejectsKey(status int) bool {
	return status == http.StatusUnauthorized || status < 500 && status != http.StatusNotFound && status != http.StatusTooManyRequests &&
		m.saysAny("invalid api key", "invalid_api_key", "incorrect api key", "api key not valid", "api_key_invalid", "invalid apikey", "authentication_error", "invalid token", "invalid_token", "authentication fails", "unauthorized")
}

// namesModel reports whether a failure is about the model. A path that is not
// found says nothing of models.
func (m *message) namesModel(status int) bool {
	if m.saysAny("model_not_found", "deploymentnotfound", "invalidendpointormodel", "model_not_supported", "无可用渠道") {
		return true
	}
	return status < 500 && m.saysAny("model", "deployment") &&
		m.saysAny("not exist", "not found", "unknown model", "invalid model", "no such model", "not a valid model", "model is not supported", "access to model", "not supported model", "does not have access", "unsupported model")
}

// wantsNewLimit reports whether the name of the token limit is all that a
// server objects to.
func (a *answer) wantsNewLimit() bool {
	return a.status/100 == 4 && a.message.saysAny(newLimit) && a.message.saysAny("unsupported", "not supported", "instead")
}

// enough reports whether a refusal shows that everything works: a model that
// thinks first found the probe's limit too small for an answer.
func (a *answer) enough() bool {
	return a.status == http.StatusBadRequest && a.message.saysAny("could not finish the message because max_tokens")
}

// foreignAnswer reports whether an object is the answer of another API.
func foreignAnswer(fields map[string]any) bool { return otherAPI(fields) != "" }

// otherAPI names the API that an answer without choices is one of; "" if it is
// none of those known.
func otherAPI(fields map[string]any) string {
	has := func(key string) bool { return fields[key] != nil }
	switch {
	case fields["type"] == "message" && has("content"):
		return "Anthropic's Messages API"
	case fields["object"] == "response" && has("output"):
		return "the Responses API"
	case has("candidates"):
		return "Gemini's own API"
	case has("done") && (has("message") || has("response")):
		return "Ollama's own API"
	case fields["object"] == "list" && has("data"):
		return "a list of models"
	}
	return ""
}

// retryAfter words what a server says on when to come back; "" for nothing
// that can be understood.
func retryAfter(h http.Header) string {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(value, 10, 32); err == nil {
		return fmt.Sprintf(", and asks to wait %s", time.Duration(n)*time.Second)
	}
	if t, err := http.ParseTime(value); err == nil {
		return ", and asks to wait until " + t.UTC().Format(time.RFC3339)
	}
	return ""
}

// target is where an answer redirects to; nil if it does not say.
func (q *question) target(a *answer) *url.URL {
	location := a.header.Get("Location")
	if location == "" {
		return nil
	}
	u, err := q.url.Parse(location)
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}
