package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRecordHoldsTheWholeVersionButItsSecrets(t *testing.T) {
	c := parseOK(t, minimal+`versions:
  stable: {base_url: "https://anna:hunter2@h/v1", model_id: m, weight: 0.9}
  canary:
    base_url: "https://h/v1?api_key=hunter2"
    model_id: order-7b
    prompt_version: "042"
    tools_version: t1
    gateway: https://tokentokentokentoken@gw
    temperature: 0.20
    params: {top_p: 0.90, seed: 0x10, stop: [a, "b"], stream: true, none: null, api_key: hunter2, auth_token: {value: hunter2, env: TOKEN}, password: [7], note: sk-0123456789abcdef}
    api_key_env: KEY
    api_key: hunter2
    weight: 0.1
`)
	for arm, want := range map[*Version]string{
		c.Versions.Stable: `{"base_url":"https://***@h/v1","model_id":"m"}`,
		c.Versions.Canary: `{"base_url":"https://h/v1?api_key=*******","model_id":"order-7b","prompt_version":"042","tools_version":"t1","gateway":"https://***@gw","temperature":0.2,` +
			`"params":{"api_key":"***","auth_token":{"env":"TOKEN","value":"***"},"none":null,"note":"*******************","password":["***"],"seed":"0x10","stop":["a","b"],"stream":true,"top_p":0.90},"api_key_env":"KEY"}`,
		nil: `null`,
	} {
		got, err := json.Marshal(arm.Record())
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if v := c.Versions.Canary; v.Digest() != c.Plan().Candidate || v.Digest() == c.Versions.Stable.Digest() || v.Params["api_key"] != "hunter2" {
		t.Error("digest or parameters of the version changed")
	}
}

func TestMaskedTextHasThePlanAndNoSecret(t *testing.T) {
	tests := []struct {
		name, src string
		want      string // part of the text
	}{
		{"plain", minimal + "versions: {canary: {api_key: hunter2}}\n", "{api_key: xxxxxxx}"},
		{"double quotes", minimal + "versions: {canary: {api_key: \"hun\\\"ter2\"}}\n", `"xxxxxxxxx"`},
		{"number", minimal + "versions: {canary: {api_key: 1234567}}\n", "{api_key: xxxxxxx}"},
		{"block", minimal + "versions:\n  canary:\n    api_key: |\n      hunter2\n      hunter2\n", "xxxxxxx\n"},
		{"anchor", minimal + "versions: {canary: {api_key: &k \"hunter2\"}}\n", "xxxxxxxxxxxx"},
		{"comment", "# sk-hunter2hunter2\n" + minimal, "# xxxxxxxxxxxxxxxxx\n"},
		{"address", minimal + "target: {config_api: {url: 'https://u:hunter2@h/x'}}\n", "https://u:xxxxxxx@h/x"},
		{"header", minimal + "target: {config_api: {url_env: U, headers: {Authorization: Bearer hunter2hunter2}}}\n", "Authorization: xxxx"},
		{"carriage returns", strings.ReplaceAll(minimal+"versions: {canary: {api_key: hunter2}}\n", "\n", "\r\n"), "api_key: xxxxxxx"},
		{"users stand as they are", with("exclude: {user_ids: [sk_customer0001, b]}"), "sk_customer0001"},
		{"names that become equal leave the plan alone", with("requests_per_min: 5") + "versions: {canary: {params: {sk-hunter2hunter2: 1, sk-hunter2hunter3: 2}}}\n", "requests_per_min: 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := parseOK(t, tt.src)
			out := string(cfg.Masked())
			if strings.Contains(out, "hunter") || !strings.Contains(out, tt.want) {
				t.Errorf("got %s", out)
			}
			if again := parseOK(t, out); again.Plan().Digest != cfg.Plan().Digest {
				t.Errorf("another plan: %s", out)
			}
		})
	}
}

func FuzzMasked(f *testing.F) {
	f.Add(string(published(f)))
	f.Add(with("exclude: {user_ids: [sk_customer0001, \"a\\tb\"]} # token: x\nmax_pct: {pct: 1, because: \"token=abcdefgh\"}"))
	f.Add(minimal + "versions: {canary: {api_key: \"a\\\"b\", params: {token: [a, {b: c}]}}}\n")
	f.Add("{canary: {target_service: 'pk-abcdefghijkl', steps: [{pct: 1, min_hold_min: 0}]}, state: {dir: \"https://a:b\\x41c@d\"}}")
	f.Fuzz(func(t *testing.T, src string) {
		cfg, _ := Parse("f", []byte(src))
		if cfg == nil {
			return
		}
		again, list := Parse("f", cfg.Masked())
		if again == nil || again.Plan().Digest != cfg.Plan().Digest {
			t.Fatalf("%q became %q: %v", src, cfg.Masked(), list)
		}
	})
}

// TestMaskedKeepsNoAddressThatLetsSomebodyIn: a webhook's path is its key.
func TestMaskedKeepsNoAddressThatLetsSomebodyIn(t *testing.T) {
	c := parseOK(t, minimal+`notify:
  - webhook: { url: "https://chat.example/hooks/T0K3N-of-the-room" }
hooks:
  on_rollback:
    - http: { url: https://cache.example/purge/S3CR3T }
versions:
  stable: { base_url: "https://models.internal/v1?sig=AAAA" }
  canary: { base_url: "https://models.internal/v1?sig=BBBB", model_id: m }
`)
	got := string(c.Masked())
	for _, secret := range []string{"T0K3N", "S3CR3T", "AAAA", "BBBB"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s stands in\n%s", secret, got)
		}
	}
	for _, plain := range []string{"https://chat.example/", "https://cache.example/", "https://models.internal/v1?"} {
		if !strings.Contains(got, plain) {
			t.Errorf("%s is gone from\n%s", plain, got)
		}
	}
	if again, list := Parse("again", []byte(got)); again == nil || again.Plan().Digest != c.Plan().Digest {
		t.Errorf("it does not parse to the same plan: %v", list)
	}
}
