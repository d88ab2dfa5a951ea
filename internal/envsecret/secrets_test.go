package envsecret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestASecretIsHiddenInEveryFormThatAServerRepeatsItIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9/+<>&"' %\\=-]{8,30}`).Draw(t, "secret")
		var s Secrets
		s.Add(secret)
		inJSON, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		said := "(" + strings.Join([]string{secret, string(inJSON), url.QueryEscape(secret), url.PathEscape(secret)}, ")(") + ")"
		if got := s.Hide(said); got != `(***)("***")(***)(***)` {
			t.Errorf("%q is left of %q", got, said)
		}
	})
}

func TestShortAndPlainValuesTearNoHoles(t *testing.T) {
	var s Secrets
	for _, v := range []string{"", "dev", "true", "None", "FALSE"} {
		s.Add(v)
	}
	const text = "the dev server says true, None or FALSE"
	if got := s.Hide(text); got != text {
		t.Errorf("got %q", got)
	}
}

func TestAPartOfASecretDoesNotKeepTheRestFromBeingFound(t *testing.T) {
	var s Secrets
	s.Add("tok-1234")
	s.Add("tok-1234-5678")
	if got := s.Hide("a tok-1234-5678 b tok-1234 c"); got != "a *** b *** c" {
		t.Errorf("got %q", got)
	}
}

func TestAnErrorIsCleanedOfAddressesAndSecretsAndKeepsWhoEndedIt(t *testing.T) {
	s := Secrets{}
	s.Add("tok-1234")
	inner := &url.Error{Op: "Get", URL: "https://h.example/hidden-path", Err: fmt.Errorf("said tok-1234: %w", context.DeadlineExceeded)}
	got := s.Clean(fmt.Errorf("twice: %w", &url.Error{Op: "Post", URL: "https://h.example/hidden-path", Err: inner}))
	if got.Error() != "said ***: context deadline exceeded" || !errors.Is(got, context.DeadlineExceeded) || errors.Is(got, context.Canceled) {
		t.Errorf("got %q", got)
	}
	if _, ok := errors.AsType[*url.Error](got); ok {
		t.Error("the address can still be had")
	}
	proxy := fmt.Errorf(`invalid proxy address "http://user:pr0xy pass@proxy:31 28": parse`)
	if got := s.Clean(proxy); strings.Contains(got.Error(), "pr0xy") {
		t.Errorf("got %q", got)
	}
}

func TestWhatAProgramPrintsIsShownWithoutSecrets(t *testing.T) {
	environ := []string{"PURGE_TOKEN=tok-1234567890", "SLACK_WEBHOOK=https://hooks.example/T0/abc", "USE_AUTH=true", "HOME=/home/ops", "CANARYCTL_KEY=3f1c/1/roll_back"}
	for _, c := range []struct{ said, want string }{
		{"+ curl -H Bearer:tok-1234567890", "+ curl -H Bearer:***"},
		{"> Authorization: Token abcdef", "> Authorization: ***"},
		{"sent Bearer abcdefgh12345", "sent Bearer ***"},
		{"posting to https://hooks.example/T0/abc", "posting to ***"},
		{"fatal: https://bot:hunter22@git.example/x not found", "fatal: https://bot:***@git.example/x not found"},
		{"key sk-proj-abcdefghijkl is revoked", "key *** is revoked"},
		{"it is true of /home/ops, 3f1c/1/roll_back", "it is true of /home/ops, 3f1c/1/roll_back"},
		{"cache 42 purged: 3 of 4", "cache 42 purged: 3 of 4"},
		{"", ""},
	} {
		if got := HidePrinted(c.said, environ); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.said, got, c.want)
		}
	}
}

func FuzzWhatAProgramPrintsNeverShowsAVariable(f *testing.F) {
	f.Add("a %s b", "tok-1234567890")
	f.Add("token: [%s\n  x: &a *a", "tok-\"quoted\"-1")
	f.Fuzz(func(t *testing.T, said, secret string) {
		if len(secret) < leastSecret || strings.Contains(masked, secret) || strings.ContainsAny(secret, "*\x00") {
			t.Skip()
		}
		var s Secrets
		s.Add(secret)
		if len(s) == 0 {
			t.Skip()
		}
		got := HidePrinted(strings.ReplaceAll(said, "%s", secret), []string{"TOKEN=" + secret})
		if strings.TrimSpace(secret) == secret && strings.Contains(got, secret) {
			t.Errorf("%q shows %q", got, secret)
		}
	})
}
