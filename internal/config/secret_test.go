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
		{"anchor", `{api_key: &k "hunter2", x: 1}`, `{api_key: ************, x: 1}`},
		{"commas in block style", "password: a,b}c#d # c", "password: ******* # c"},
		{"what looks like an alias", "a: [\npassword: *hunter2", "a: [\npassword: ********"},
		{"hyphens in the name", `{X-Api-Key: abc123}`, `{X-Api-Key: ******}`},
		{"JSON without blanks", `{"api_key":"abc123","x":"y"}`, `{"api_key":"******","x":"y"}`},
		{"in a list", `{api_key: [abc123, def456]}`, `{api_key: [******, ******]}`},
		{"below a list", "tokens_x: 1\ntoken:\n  - abc123\n  - abc123\n", "tokens_x: 1\ntoken:\n  - ******\n  - ******\n"},
		{"in a mapping", "credentials: {user: anna, pass: abc123}", "credentials: {user: ****, pass: ******}"},
		{"name of the variable below", "token: {env: CFG_TOKEN, file: /run/t}", "token: {env: CFG_TOKEN, file: /run/t}"},
		{"the key where its variable's name belongs", "api_key_env: hunter-2", "api_key_env: ********"},
		{"mistyped name", "{api_ky: hunter2, apikeys: 5000}", "{api_ky: *******, apikeys: 5000}"},
		{"truth value", "password: true", "password: true"},
		{"the same word twice", "api_key: |\n  hunter2 hunter2\n  hunter2\n", "api_key: |\n  ******* *******\n  *******\n"},
		{"over several lines", "api_key: \"one two\n  three four\"\nx: three", "api_key: \"*******\n  ***** ****\"\nx: three"},
		{"list in a broken file", "a: [\npassword: [abc123, x]", "a: [\npassword: ***********"},
		{"block in a broken file", "a: [\npassword: |\n  abc 123\n\n  def\nx: y", "a: [\npassword: |\n  *******\n\n  ***\nx: y"},
		{"open quote in a broken file", "a: [\npassword: \"ab c\n    d e\nx: y", "a: [\npassword: \"****\n    ***\nx: y"},
		{"payment key", "# sk_live_abcdefgh1234", "# ********************"},
		{"package registry's token", "x: npm_abcdefgh12345678", "x: ********************"},
		{"token alone in an address", "u: https://abcdefgh12345678@host/x", "u: https://****************@host/x"},
		{"user alone in an address", "u: https://anna@host/x", "u: https://anna@host/x"},
		{"storage account", "x: 'AccountName=a;AccountKey=abc123==;E=f'", "x: 'AccountName=a;AccountKey=********;E=f'"},
		{"chat's webhook", "x: https://discord.com/api/webhooks/123/abc-DEF", "x: https://discord.com/api/webhooks/123/*******"},
		{"private key", "x: -----BEGIN PRIVATE KEY-----MIIE", "x: -----BEGIN PRIVATE KEY-----****"},
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
		minimal + "approval_timeout_min: '" + secret + secret + secret + "'\n", // longer than a message shows
		minimal + "versions: {canary: {api_key: &k " + secret + ", weight: x}}\n",
		minimal + "versions: {canary: {api_key_env: '" + secret + "'}}\n",
		minimal + "versions: {canary: {api_key: [" + secret + "]}}\n",
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
	f.Add("token: \"\xff\xff")
	f.Add("a: [\npassword: {x\n  y\n z")
	f.Fuzz(func(t *testing.T, src string) {
		got := string(Mask([]byte(src)))
		if utf8.RuneCountInString(got) != utf8.RuneCountInString(src) || strings.Count(got, "\n") != strings.Count(src, "\n") {
			t.Fatalf("places moved: %q became %q", src, got)
		}
	})
}
