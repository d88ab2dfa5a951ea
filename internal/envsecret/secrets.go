package envsecret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/pattern"
)

// masked stands for a secret.
const masked = "***"

// Secrets are texts that nobody may be shown, the longest first: one may be
// part of another.
type Secrets []string

// leastSecret is how long a value must be to count as a secret: shorter ones,
// such as "dev", would tear holes into every message.
const leastSecret = 4

// notSecret are values that no secret has and many a variable.
var notSecret = []string{"true", "false", "null", "none"}

// Add takes a secret, with the forms in which a server repeats it.
func (s *Secrets) Add(value string) {
	if len(value) < leastSecret || slices.Contains(notSecret, strings.ToLower(value)) {
		return
	}
	for _, form := range []string{value, quoted(value, true), quoted(value, false), url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value)} {
		if !slices.Contains(*s, form) {
			*s = append(*s, form)
		}
	}
	slices.SortStableFunc(*s, func(a, b string) int { return len(b) - len(a) })
}

// quoted is a text as it stands in JSON, between the quotes.
func quoted(text string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(text) // a string always encodes
	out := strings.TrimSuffix(b.String(), "\n")
	return out[1 : len(out)-1]
}

// Hide replaces the secrets in a text.
func (s Secrets) Hide(text string) string {
	pairs := make([]string, 0, 2*len(s))
	for _, secret := range s {
		pairs = append(pairs, secret, masked)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// cleanError is an error whose text has no secrets. It keeps of its cause only
// whether time or the caller ended it: the cause's own text may not be shown.
type cleanError struct {
	text string
	is   error // context.Canceled, context.DeadlineExceeded or nil
}

// Error implements error.
func (e *cleanError) Error() string { return e.text }

// Unwrap returns what ended it.
func (e *cleanError) Unwrap() error { return e.is }

// Clean takes the address that a [*url.Error] carries, and every secret, out of
// an error. Of the cause it keeps only whether time or the caller ended it.
func (s Secrets) Clean(err error) error {
	out := &cleanError{}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			out.is = end
		}
	}
	for {
		u, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = u.Err
	}
	out.text = s.Hide(err.Error())
	if strings.Contains(out.text, "invalid proxy address") { // and then the address, with its password
		out.text = "the proxy variable of the environment is not a URL"
	}
	return out
}

// ours are variables that canaryctl itself gives to programs: they are named
// like secrets and are none.
var ours = []string{"CANARYCTL_KEY", "CANARYCTL_TOKEN"}

// stars are what config.Mask leaves of a long secret.
var stars = pattern.New(`\*{4,}`)

// HidePrinted takes out of a program's output what the environment that it ran
// in (as of [os.Environ]) holds in variables named like a secret, and what looks
// like a secret: keys of the usual issuers, headers with a login, passwords in
// addresses, values under a secret's name.
func HidePrinted(said string, environ []string) string {
	var s Secrets
	for _, v := range environ {
		if name, value, _ := strings.Cut(v, "="); secretName.MatchString(name) && !slices.Contains(ours, name) {
			s.Add(strings.TrimSpace(value))
		}
	}
	return stars.ReplaceAllString(string(config.Mask([]byte(s.Hide(said)))), masked)
}
