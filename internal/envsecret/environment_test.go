package envsecret

import (
	"strings"
	"testing"
)

func from(vars map[string]string) *Environment {
	return New(func(name string) string { return vars[name] })
}

var vars = map[string]string{
	"TOKEN": " tok-abcdef\n", "LINES": "tok-one\ntok-two", "BELL": "tok\a-abcdef", "BLANK": " \n",
	"HOOK": "https://bot:pass-word@chat.example/services/T0SECRETPART?sig=abcdefgh#top", "LONE": "https://gh-lone-token@git.example/x", "NONE": "hooks.example/secret-part",
}

func TestValuesAreTakenOrRefusedByTheNameOfTheirVariable(t *testing.T) {
	for _, c := range []struct{ name, variable, want, says string }{
		{"blanks around it are dropped", "TOKEN", "tok-abcdef", ""},
		{"unset", "NOPE", "", "the environment variable NOPE is not set"},
		{"blank", "BLANK", "", "BLANK is not set or empty"},
		{"two lines", "LINES", "", "LINES has a line end or another control character"},
		{"a bell", "BELL", "", "BELL has a line end or another control character"},
	} {
		got, err := from(vars).Value("token_env", c.variable)
		if got != c.want || (err == nil) != (c.says == "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "token_env: ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "tok-one")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestExpandFillsInNamesAndRefusesWhatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "Key ${TOKEN}": "Key tok-abcdef", "${TOKEN}${TOKEN}": "tok-abcdeftok-abcdef", "$TOKEN": "$TOKEN", "a $ b": "a $ b",
	} {
		if got, err := from(vars).Expand("headers.X", text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"${}": "names no environment variable", "${1X}": "names no environment variable", "${TOKEN": "names no environment variable",
		"${A B}": "names no environment variable", "${NOPE}": "NOPE is not set", "${LINES}": "control character",
	} {
		if _, err := from(vars).Expand("headers.X", text); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "tok-one") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnAddressFromAVariableIsHiddenBehindItsHost(t *testing.T) {
	e := from(vars)
	u, err := e.Address("url", "", "HOOK")
	if err != nil {
		t.Fatal(err)
	}
	said := e.Secrets().Hide(u.String() + " " + u.RequestURI() + " T0SECRETPART pass-word abcdefgh Ym90OnBhc3Mtd29yZA==")
	for _, secret := range []string{"T0SECRETPART", "pass-word", "abcdefgh", "Ym90", "/services"} {
		if strings.Contains(said, secret) {
			t.Errorf("%s stands in %q", secret, said)
		}
	}
	if got := Named(u, ""); got != "https://chat.example" {
		t.Errorf("it is named %s", got)
	}
	if u.Fragment != "" {
		t.Error("a fragment is left")
	}
}

func TestAnAddressOfTheConfigurationShowsAllButItsSecrets(t *testing.T) {
	e := from(vars)
	const written = "https://api.example/configs/orders?token=${TOKEN}&page=twelve-or-so"
	u, err := e.Address("url", written, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Secrets().Hide(u.String()); got != "https://api.example/configs/orders?token=***&page=twelve-or-so" {
		t.Errorf("got %s", got)
	}
	if got := Named(u, written); got != "https://api.example" {
		t.Errorf("an address that a variable takes part in is named %s", got)
	}
	if got := Named(u, "https://api.example/configs/orders"); got != "https://api.example/configs/orders" {
		t.Errorf("it is named %s", got)
	}
	if _, err := e.Address("url", "", "LONE"); err != nil || e.Secrets().Hide("gh-lone-token") != masked {
		t.Errorf("a token alone before the @ is shown; %v", err)
	}
}

func TestWhatIsNoAddressIsRefusedWithoutRepeatingIt(t *testing.T) {
	for text, variable := range map[string]string{"": "NONE", "ftp://h.example/secret-part": "", "https://h.example/%zz-secret-part": "", "https:///secret-part": ""} {
		_, err := from(vars).Address("url", text, variable)
		if err == nil || !strings.Contains(err.Error(), "not an address") || strings.Contains(err.Error(), "secret-part") {
			t.Errorf("%q %q: %v", text, variable, err)
		}
	}
}

func TestHeadersAreOneLineUnderANameOfTheProtocol(t *testing.T) {
	e := from(vars)
	h, err := e.Headers("headers", map[string]string{"x-key": "${TOKEN}", "Accept": "application/json"})
	if err != nil || h.Get("X-Key") != "tok-abcdef" {
		t.Fatal(h, err)
	}
	if got := e.Secrets().Hide("tok-abcdef wants application/json"); got != "*** wants application/json" {
		t.Errorf("got %q", got)
	}
	for name, value := range map[string]string{"X A": "1", "": "1", "X-A": "1\nX-B: 2", "X-\nA": "1"} {
		if _, err := e.Headers("headers", map[string]string{name: value}); err == nil {
			t.Errorf("%q: %q is accepted", name, value)
		}
	}
	for scheme, want := range map[string]string{"": "Bearer tok-abcdef", "-": "tok-abcdef", "Token": "Token tok-abcdef"} {
		if got, err := e.Authorization("token_env", "TOKEN", scheme); got != want || err != nil {
			t.Errorf("%q: %q, %v", scheme, got, err)
		}
	}
}
