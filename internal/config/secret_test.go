package config

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMask(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"issuer's form", "x: sk-abcdefgh12345678 # c", "x: ******************* # c"},
		{"key by name", "api_key: hunter2", "api_key: *******"},
		{"quoted", `api_key: "hun ter2"`, `api_key: "********"`},
		{"single quotes", `password: 'hunter2'`, `password: '*******'`},
		{"in flow", `{ token: abc123, other: 1 }`, `{ token: ******, other: 1 }`},
		{"JSON", `{"client_secret": "abc123"}`, `{"client_secret": "******"}`},
		{"name of a variable", "api_key_env: LLM_API_KEY", "api_key_env: LLM_API_KEY"},
		{"number of tokens", "max_tokens: 500", "max_tokens: 500"},
		{"placeholder", `api_key: "..."`, `api_key: "..."`},
		{"variable", "token: ${TOKEN}", "token: ${TOKEN}"},
		{"password in an address", "url: https://me:hunter2@host/x", "url: https://me:*******@host/x"},
		{"token in a query", "url: https://oapi.host/robot/send?access_token=abc123&x=1", "url: https://oapi.host/robot/send?access_token=******&x=1"},
		{"chat webhook", "url: https://hooks.slack.com/services/T0/B0/xyz", "url: https://hooks.slack.com/services/*********"},
		{"bearer", `h: {Authorization: "Bearer abcdefgh1"}`, `h: {Authorization: "****************"}`},
		{"wide runes", "api_key: ключ日本", "api_key: ******"},
		{"block of text", "api_key: |\n  hunter2\n  more\nx: 1", "api_key: |\n  *******\n  ****\nx: 1"},
		{"on the next line", "api_key:\n  hunter2", "api_key:\n  *******"},
		{"broken file", "a: [\napi_key: hunter2", "a: [\napi_key: *******"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(Mask([]byte(tt.src))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestNoFindingShowsASecret: whatever is wrong about a secret, it is not
// printed.
func TestNoFindingShowsASecret(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	for _, src := range []string{
		minimal + "versions: {canary: {api_key: " + secret + "}}\n",
		minimal + "versions: {canary: {api_key_env: X, weight: " + secret + "}}\n",
		minimal + "versions: {canary: {" + secret + ": 1}}\n",
		minimal + "api_key: " + secret + "\n",
		"canary: {target_service: s, steps: [{pct: " + secret + "}]}\n",
		minimal + "token: [" + secret + "\n",
		minimal + "versions:\n  canary:\n    api_key: |\n      " + secret + "\n    weight: two\n",
		minimal + "notify: [{slack: {url: 'https://u:" + secret + "@h'}, webhook: {}}]\n",
	} {
		list := Check("canary.yaml", []byte(src))
		if len(list) == 0 || !strings.Contains(found(list), ruleInlineKey) {
			t.Errorf("%s: found %s", src, found(list))
		}
		if text := lintText([]byte(src)); strings.Contains(text, secret) || strings.Contains(text, "0123456789") {
			t.Errorf("shown:\n%s", text)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("api_key: |\n  a b\n")
	f.Add("x: sk-abcdefgh12345678")
	f.Fuzz(func(t *testing.T, src string) {
		if !utf8.ValidString(src) {
			return
		}
		got := string(Mask([]byte(src)))
		if utf8.RuneCountInString(got) != utf8.RuneCountInString(src) || strings.Count(got, "\n") != strings.Count(src, "\n") {
			t.Fatalf("places moved: %q became %q", src, got)
		}
	})
}
