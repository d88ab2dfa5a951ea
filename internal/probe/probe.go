// Package probe asks a version for one minimal chat completion and says in
// words what came of it: whether address, key and model serve an answer, and
// if not, which of the usual failures of such a channel it is and what to do.
//
//	r := probe.Ask(ctx, probe.Version{
//		Arm: "canary", BaseURL: "https://llm.example/v1", ModelID: "m-2", KeyEnv: "LLM_API_KEY",
//	}, probe.Options{})
//	fmt.Println(r.Kind, r.Explain, r.Fix) // unauthorized, the server does not accept the key in LLM_API_KEY ..., replace it ...
//
// It sends nothing where it can tell beforehand that it would be in vain, and
// it follows no redirect, since that would carry the key elsewhere. No result
// contains a key, not even if the server sends it back.
package probe

import (
	"context"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
)

// Version is what is asked.
type Version struct {
	Arm     string // stable, canary
	BaseURL string // /chat/completions is put behind its path
	ModelID string
	KeyEnv  string        // variable that holds the key
	Key     config.Secret // the key, where KeyEnv names none or an empty one
	// Params are the version's own. max_tokens and max_completion_tokens are
	// looked at, and name the field in which the probe's own limit is sent; the
	// rest is not sent, since it need not be meant for the server.
	Params map[string]any
}

// Options say how.
type Options struct {
	Getenv  func(string) string // for the key and the proxy variables; nil: os.Getenv
	Timeout time.Duration       // of the whole; 0: 30 s
}

// Kind names what came of a probe.
type Kind string

// The kinds of results. With those of the first group nothing was sent.
const (
	NoURL     Kind = "url_missing"
	BadURL    Kind = "url_invalid"
	NoModelID Kind = "model_missing"
	NoKey     Kind = "key_unset"
	BadKey    Kind = "key_malformed"

	OK             Kind = "ok"
	KeyPlaceholder Kind = "key_placeholder" // not accepted, and plainly none
	Unauthorized   Kind = "unauthorized"
	OAuth          Kind = "oauth"
	Forbidden      Kind = "forbidden"
	Refused        Kind = "refused"
	ProxyRefused   Kind = "proxy_refused"
	Proxy          Kind = "proxy" // any other failure of a proxy
	DNS            Kind = "dns"
	TLS            Kind = "tls"
	Timeout        Kind = "timeout"
	Unreachable    Kind = "unreachable"
	Interrupted    Kind = "interrupted" // the caller gave up
	Redirect       Kind = "redirect"
	NotFound       Kind = "not_found"
	NoModel        Kind = "no_model"
	MaxTokens      Kind = "max_tokens"
	BadRequest     Kind = "bad_request"
	RateLimited    Kind = "rate_limited"
	Quota          Kind = "quota"
	ServerError    Kind = "server_error"
	ErrorAnswer    Kind = "error_answer" // an error under status 200
	NoChoices      Kind = "no_choices"
	NotJSON        Kind = "not_json"
	Streamed       Kind = "streamed"
)

// Result is what came of it.
type Result struct {
	Arm       string   `json:"arm"`
	OK        bool     `json:"ok"`
	Kind      Kind     `json:"kind"`
	Status    int      `json:"status,omitzero"`    // of HTTP; 0: there was no answer
	LatencyMS *float64 `json:"latency_ms"`         // to the end of the answer; nil: there was none
	Model     string   `json:"model,omitempty"`    // as the answer names it
	Said      string   `json:"said,omitempty"`     // what the server wrote, cut, with keys masked
	Explain   string   `json:"explain"`            // one sentence
	Fix       string   `json:"fix,omitempty"`      // what to do
	URL       string   `json:"url,omitempty"`      // that was asked, without user, query and fragment
	Proxy     string   `json:"proxy,omitempty"`    // on the way, without its user
	ProxyEnv  string   `json:"proxy_env,omitzero"` // variable that names the proxy
}

// Ask sends one chat completion to a version, or two where the server refuses
// the first for the name of its token limit alone.
func Ask(ctx context.Context, v Version, o Options) Result {
	r := ask(ctx, v, o)
	r.Arm, r.OK = v.Arm, r.Kind == OK
	return r
}

func ask(ctx context.Context, v Version, o Options) Result {
	q, failed := prepare(v, o)
	if failed != nil {
		return *failed
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	a, failed := q.send(ctx)
	if failed == nil && q.limit == oldLimit && a.wantsNewLimit() {
		q.limit = newLimit
		a, failed = q.send(ctx)
	}
	if failed != nil {
		return *failed
	}
	return q.judge(a)
}
