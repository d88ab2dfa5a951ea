package probe

import (
	"fmt"
	"strings"
)

func answered(q *question, a *answer) (string, string) {
	s := "a chat completion came back"
	if q.limit == newLimit {
		s += "; this server wants " + newLimit + " in place of " + oldLimit
	}
	if placeholder(q.key) && q.key != "" {
		s += "; the key is a placeholder, which this server does not look at"
	}
	return s, ""
}

func answeredShort(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("address, key and model are right: the model only found the probe's %d tokens too few for an answer", tokens), ""
}

func redirected(q *question, a *answer) (string, string) {
	to := q.target(a)
	if to == nil {
		return fmt.Sprintf("%s redirects without saying where to", q.at()), "look at base_url"
	}
	shown := q.mask.text(bare(to), maxShown)
	s := fmt.Sprintf("%s redirects to %s, which was not followed: the key would go along", q.at(), shown)
	switch lower := strings.ToLower(to.Path); {
	case strings.Contains(lower, "login") || strings.Contains(lower, "oauth") || strings.Contains(lower, "signin") || strings.Contains(lower, "/sso"):
		return s, "that is a page on which people sign in: base_url leads to a web site or a gateway that wants a login, not a key; take the address of its API"
	case to.Hostname() == q.url.Hostname():
		return s, "write base_url so that it needs no redirect: https in place of http, the path as the server has it"
	}
	return s, "if that host is the right one, write it into base_url"
}

func wantsTLS(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("%s encrypts, and base_url says http", q.at()), "write https:// in base_url"
}

func proxied(q *question, a *answer) (string, string) {
	if q.proxy == nil {
		return "a proxy on the way wants a user and a password", "ask those who run the network which proxy is meant and name it in HTTPS_PROXY"
	}
	r := q.proxyStatus(a.status)
	return r.Explain, r.Fix
}

func oauth(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("%s wants an OAuth token or a login, not a key%s", q.at(), q.sent()),
		"look whether base_url, key and model_id belong together and are all set: with one of the three missing or of another provider, this is what is asked for; base_url must be the API's that takes keys"
}

// sent says whether a key went along.
func (q *question) sent() string {
	if q.key == "" {
		return ", and none was sent"
	}
	return ""
}

func quota(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("the account behind the key%s has nothing left to spend", q.keyIn()), "top the account up or raise its limit; trying again does not help"
}

// keyIn says where the key came from; "" without one.
func (q *question) keyIn() string {
	if q.key == "" {
		return ""
	}
	return " in " + q.keyName
}

func noModel(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("the server knows no model %s, or the key%s may not use it", q.name(), q.keyIn()),
		fmt.Sprintf("write versions.%s.model_id as the server's list of models has it (GET /models under base_url), or have the model opened to the key", q.arm)
}

// name is the model, as the configuration names it.
func (q *question) name() string { return fmt.Sprintf("%q", q.mask.text(q.model, maxShown)) }

func maxTokens(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("the server does not accept %s: %d, which was sent", q.limit, tokens),
		fmt.Sprintf("name the limit that this model takes in versions.%s.params, %s or %s", q.arm, oldLimit, newLimit)
}

func keyPlaceholder(q *question, _ *answer) (string, string) {
	return fmt.Sprintf("%s holds a placeholder, not a key, and the server does not accept it", q.keyName), placeholderFix(q.keyName)
}

func unauthorized(q *question, a *answer) (string, string) {
	m := &a.message
	switch {
	case q.key == "":
		return "the server wants a key, and none was sent", fmt.Sprintf("set versions.%s.api_key_env to the name of the variable that holds the key", q.arm)
	case m.saysAny("expired"):
		return fmt.Sprintf("the server says that the key in %s has expired", q.keyName), "issue a new key and replace it"
	case m.saysAny("revoked", "deactivated", "disabled", "deleted"):
		return fmt.Sprintf("the server says that the key in %s was revoked or disabled", q.keyName), "issue a new key and replace it"
	case m.saysAny("didn't provide an api key", "did not provide an api key", "no api key", "no api-key", "missing api key", "api key is missing", "no auth credentials", "missing authorization", "no cookie auth"):
		return fmt.Sprintf("the server says that it got no key, and the one in %s was sent", q.keyName),
			"a gateway on the way takes the Authorization header off, or this server reads the key from another header: take its address for OpenAI-compatible clients"
	}
	return fmt.Sprintf("the server does not accept the key in %s: mistyped, revoked, or of another provider, project or server", q.keyName),
		fmt.Sprintf("compare the key with its issuer's list and base_url with the issuer's address, and export %s anew: a shell or job that was started before keeps the old one", q.keyName)
}

func forbidden(q *question, a *answer) (string, string) {
	if a.message.html || a.message.fields == nil {
		return fmt.Sprintf("something before the model server forbids the request%s", q.via()), "a firewall, a list of allowed addresses or a country rule: have this machine's address allowed"
	}
	return fmt.Sprintf("the server knows the key%s and forbids what was asked: the model, this project, or this address or country", q.keyIn()),
		"have the model and this machine's address allowed for the key"
}

func notFound(q *question, a *answer) (string, string) {
	s := fmt.Sprintf("nothing takes chat completions at %s", q.shown)
	if !strings.Contains(q.url.Path, "/v") {
		return s, "base_url probably lacks its version: most end with /v1"
	}
	if strings.Contains(q.url.Path, "/v1/v1/") {
		return s, "base_url has /v1 twice"
	}
	return s, "write base_url as the server's documentation has it for OpenAI-compatible clients; mostly it ends with /v1"
}

func rateLimited(q *question, a *answer) (string, string) {
	return fmt.Sprintf("address and key are right, and the server has had too many requests for now%s", retryAfter(a.header)),
		"try again later; if it stays so, the limit of the account or the gateway is too low for a release"
}

func serverError(q *question, a *answer) (string, string) {
	if a.status == 502 || a.status == 503 || a.status == 504 {
		return fmt.Sprintf("something before the model answered %d: the model behind it is not up, overloaded or too slow%s%s", a.status, retryAfter(a.header), q.via()),
			"look at the model server behind the gateway"
	}
	return fmt.Sprintf("the server failed with status %d%s%s", a.status, retryAfter(a.header), q.via()), "look into the server's log; try again"
}

func badRequest(q *question, a *answer) (string, string) {
	return fmt.Sprintf("the server refuses the request with status %d: it expects another body than a chat completion's", a.status),
		"look whether base_url is that of an OpenAI-compatible API, and at what the server says"
}

func errorAnswer(q *question, a *answer) (string, string) {
	return fmt.Sprintf("the answer says %d and carries an error in place of choices", a.status), "look at what the server says: model_id, base_url and the account, in this order"
}

func streamed(*question, *answer) (string, string) {
	return "the answer is an event stream although none was asked for", "switch streaming by default off in the gateway: clients that do not stream cannot read it"
}

func notJSON(q *question, a *answer) (string, string) {
	m := &a.message
	switch {
	case a.long:
		return fmt.Sprintf("the answer is longer than %d bytes and no chat completion", maxBody), "look at base_url"
	case m.login:
		return "the answer is a web page on which people sign in", "base_url leads to a web site or behind a login: take the address of the API, mostly with /v1 at its end"
	case m.html:
		return "the answer is a web page, not JSON", "base_url leads to a web site: take the address of the API, mostly with /v1 at its end"
	case len(a.body) == 0:
		return "the answer is empty", "look at base_url, and at what stands before the server"
	}
	return "the answer is not JSON", "look at base_url, and at what stands before the server"
}

func noChoices(q *question, a *answer) (string, string) {
	if api := otherAPI(a.message.fields); api != "" {
		return fmt.Sprintf("the answer has no choices: it is one of %s", api), "take the server's address for OpenAI-compatible clients as base_url"
	}
	return fmt.Sprintf("the answer has no choices: usually a model that is not there (%s), a body that a gateway has changed, or a token limit that is not above 0", q.name()),
		"look at model_id first, then at max_tokens in the gateway's defaults, then at what the gateway does to bodies"
}

func noMessage(*question, *answer) (string, string) {
	return "the answer's choices have no message: it is a plain completion, not a chat's", "take a chat model, and the server's address for chat completions"
}
