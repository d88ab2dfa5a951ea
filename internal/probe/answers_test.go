package probe_test

import (
	"testing"

	"github.com/canaryctl/canaryctl/internal/probe"
)

// TestAnswersAreExplained holds answers as servers and gateways give them
// against what is said of them.
func TestAnswersAreExplained(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		header string
		body   string
		kind   probe.Kind
		words  string
	}{
		{"revoked or wrong key", 401, "", `{"error":{"message":"Incorrect API key provided: sk-proj-********************pYd5. You can find your API key at https://platform.example/keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, probe.Unauthorized, "does not accept the key in LLM_API_KEY"},
		{"expired", 401, "", `{"error":{"message":"Authentication Error - Expired Key. Key Expiry time 2026-01-01"}}`, probe.Unauthorized, "expired"},
		{"disabled", 401, "", `{"error":{"message":"The API key has been disabled"}}`, probe.Unauthorized, "revoked or disabled"},
		{"key did not arrive", 401, "", `{"error":{"message":"You didn't provide an API key. You need to provide your API key in an Authorization header"}}`, probe.Unauthorized, "takes the Authorization header off"},
		{"gateway, plain text", 401, "", "unauthorized", probe.Unauthorized, "does not accept"},
		{"key not valid under 400", 400, "", `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, probe.Unauthorized, "does not accept"},
		{"key refused under 200", 200, "", `{"base_resp":{"status_code":1004,"status_msg":"login fail: invalid api key"}}`, probe.Unauthorized, "does not accept"},
		{"OAuth wanted, words", 401, "", `{"error":{"code":401,"message":"Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.","status":"UNAUTHENTICATED"}}`, probe.OAuth, "OAuth token or a login"},
		{"OAuth wanted, header", 401, `WWW-Authenticate: Bearer authorization_uri="https://login.example/t", error="invalid_token"`, "", probe.OAuth, "one of the three missing"},
		{"OAuth page", 200, "Content-Type: text/html", `<html><a href="/oauth/authorize">Sign in</a></html>`, probe.OAuth, "OAuth"},
		{"region", 403, "", `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}`, probe.Forbidden, "country"},
		{"firewall", 403, "Content-Type: text/html", `<html><head><title>Attention Required</title></head><body>Sorry, you have been blocked. Billing, model not found</body></html>`, probe.Forbidden, "before the model server"},
		{"project without the model", 403, "", `{"error":{"message":"Project p does not have access to model m-2","code":"model_not_found"}}`, probe.NoModel, `no model "m-2"`},
		{"path not found", 404, "", `{"detail":"Not Found"}`, probe.NotFound, "nothing takes chat completions at"},
		{"page not found", 404, "Content-Type: text/html", `<html><title>404</title><p>This model of car was not found</p></html>`, probe.NotFound, "/v1/chat/completions"},
		{"method not allowed", 405, "", "", probe.NotFound, "OpenAI-compatible"},
		{"model not found", 404, "", "{\"error\":{\"message\":\"The model `m-2` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"code\":\"model_not_found\"}}", probe.NoModel, "versions.canary.model_id"},
		{"model not found, vLLM", 404, "", "{\"object\":\"error\",\"message\":\"The model `m-2` does not exist.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}", probe.NoModel, "GET /models"},
		{"model not found, Ollama", 404, "", `{"error":"model 'm-2' not found"}`, probe.NoModel, "no model"},
		{"model not found under 400", 400, "", `{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}`, probe.NoModel, "no model"},
		{"model not found under 200", 200, "", `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, probe.NoModel, "no model"},
		{"token limit", 400, "", `{"error":{"message":"max_tokens must be at least 1, got 0.","type":"BadRequestError"}}`, probe.MaxTokens, "versions.canary.params"},
		{"body refused", 422, "", `{"detail":[{"type":"missing","loc":["body","inputs"],"msg":"Field required"}]}`, probe.BadRequest, "422"},
		{"thinks too long for the limit", 400, "", `{"error":{"message":"Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens."}}`, probe.OK, "too few for an answer"},
		{"rate limit", 429, "Retry-After: 20", `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, probe.RateLimited, "asks to wait 20s"},
		{"rate limit with a date", 429, "Retry-After: Mon, 30 Nov 2026 04:00:00 GMT", `{}`, probe.RateLimited, "until 2026-11-30T04:00:00Z"},
		{"rate limit under 200", 200, "", `{"error":{"message":"Too many requests","code":429}}`, probe.RateLimited, "too many requests"},
		{"quota", 429, "", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, probe.Quota, "nothing left to spend"},
		{"no balance", 402, "", `{"error":{"message":"Insufficient Balance"}}`, probe.Quota, "does not help"},
		{"server error", 500, "", `{"error":{"message":"CUDA out of memory"}}`, probe.ServerError, "CUDA out of memory"},
		{"gateway", 502, "Content-Type: text/html", `<html><head><title>502 Bad Gateway</title><style>p{}</style></head><body><center>nginx</center></body></html>`, probe.ServerError, "502 Bad Gateway"},
		{"overloaded", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, probe.ServerError, "529"},
		{"http spoken to TLS", 400, "", "Client sent an HTTP request to an HTTPS server.\n", probe.TLS, "https://"},
		{"http spoken to TLS, nginx", 400, "Content-Type: text/html", "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>", probe.TLS, "https://"},
		{"no choices", 200, "", `{"id":"x","object":"chat.completion","model":"m-2"}`, probe.NoChoices, "token limit"},
		{"empty choices", 200, "", `{"choices":[]}`, probe.NoChoices, "model_id first"},
		{"choices null with an error", 200, "", `{"choices":null,"error":{"message":"upstream gave up"}}`, probe.ErrorAnswer, "upstream gave up"},
		{"an error under 200", 200, "", `{"error":{"message":"internal"}}`, probe.ErrorAnswer, "carries an error"},
		{"code and message under 200", 200, "", `{"code":1234,"msg":"no such app"}`, probe.ErrorAnswer, "no such app"},
		{"greeting", 200, "", `{"message":"Welcome to the API","version":"1.0"}`, probe.NoChoices, "no choices"},
		{"messages API", 200, "", `{"type":"message","role":"assistant","content":[{"type":"text","text":"pong"}]}`, probe.NoChoices, "Messages API"},
		{"responses API", 200, "", `{"object":"response","output":[]}`, probe.NoChoices, "Responses API"},
		{"Ollama's own", 200, "", `{"model":"m","message":{"role":"assistant","content":"pong"},"done":true}`, probe.NoChoices, "Ollama's own"},
		{"Gemini's own", 200, "", `{"candidates":[]}`, probe.NoChoices, "Gemini"},
		{"plain completion", 200, "", `{"choices":[{"text":"pong"}]}`, probe.NoChoices, "no message"},
		{"login page", 200, "Content-Type: text/html", `<!doctype html><title>Welcome</title><form><input type="password"></form>`, probe.NotJSON, "sign in"},
		{"web page", 200, "Content-Type: text/html", "<html><title>It works</title></html>", probe.NotJSON, "It works"},
		{"empty", 200, "", "", probe.NotJSON, "empty"},
		{"cut off", 200, "", `{"choices":[{"mess`, probe.NotJSON, "not JSON"},
		{"a list", 200, "", `[1,2]`, probe.NotJSON, "not JSON"},
		{"event stream", 200, "Content-Type: text/event-stream", "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: [DONE]\n\n", probe.Streamed, "event stream"},
		{"error in an event stream", 200, "Content-Type: text/event-stream", "data: {\"error\":{\"message\":\"The model does not exist\",\"code\":\"model_not_found\"}}\n\n", probe.NoModel, "no model"},
		{"chunk without a stream", 200, "", `{"object":"chat.completion.chunk","choices":[{"delta":{"content":"p"}}]}`, probe.Streamed, "event stream"},
		{"null content", 200, "", `{"model":"m","choices":[{"message":{"role":"assistant","content":null},"finish_reason":"length"}]}`, probe.OK, "came back"},
		{"byte order mark", 200, "", "\xef\xbb\xbf" + completion, probe.OK, "came back"},
		{"null error beside choices", 200, "", `{"error":null,"choices":[{"message":{"content":"x"}}]}`, probe.OK, "came back"},
		{"wants a proxy's password", 407, "", "", probe.Proxy, "password"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ask(t, version(server(t, tc.status, tc.header, tc.body)))
			want(t, r, tc.kind, tc.words)
			if r.Status != tc.status || r.LatencyMS == nil {
				t.Errorf("status %d, latency %v", r.Status, r.LatencyMS)
			}
		})
	}
}

func TestAServerThatWantsAKeyIsSaid(t *testing.T) {
	v := version(server(t, 401, "", `{"error":{"message":"no key"}}`))
	v.KeyEnv = ""
	want(t, ask(t, v), probe.Unauthorized, "none was sent", "versions.canary.api_key_env")
}

func TestAnAddressWithoutItsVersionIsSaid(t *testing.T) {
	base := server(t, 404, "", "404 page not found")
	want(t, ask(t, version(base[:len(base)-len("/v1")])), probe.NotFound, "lacks its version")
	want(t, ask(t, version(base+"/v1")), probe.NotFound, "/v1 twice")
}
