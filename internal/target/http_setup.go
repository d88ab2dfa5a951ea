package target

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secrets are texts that no error may show.
type secrets []string

// shortestSecret is how long a value must be to count as a secret: shorter
// ones, such as "dev", would tear holes into every message.
const shortestSecret = 5

// add takes a secret, with the forms in which a server repeats it.
func (s *secrets) add(value string) {
	if len(value) < shortestSecret {
		return
	}
	quoted, _ := json.Marshal(value) // a string always marshals
	for _, form := range []string{value, strings.Trim(string(quoted), `"`), url.QueryEscape(value), url.PathEscape(value)} {
		if !slices.Contains(*s, form) {
			*s = append(*s, form)
		}
	}
	// The longest first: one may be part of another.
	slices.SortStableFunc(*s, func(a, b string) int { return len(b) - len(a) })
}

// hide replaces the secrets in a text.
func (s secrets) hide(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return text
}

// variable is ${NAME} in a URL or a header.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// environment resolves variables and remembers their values as secrets.
type environment struct {
	getenv  func(string) string
	secrets secrets
}

// value returns a variable's value, without blanks around it: a line end comes
// along with many a secret. key is the configuration's, for the error.
func (e *environment) value(key, name string) (string, error) {
	v := strings.TrimSpace(e.getenv(name))
	if v == "" {
		return "", fmt.Errorf("%s: the environment variable %s is not set", key, name)
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%s: the environment variable %s has a line end or another control character in it", key, name)
	}
	e.secrets.add(v)
	return v, nil
}

// expand replaces each ${NAME} in a text.
func (e *environment) expand(key, text string) (string, error) {
	var failed error
	out := variable.ReplaceAllStringFunc(text, func(ref string) string {
		v, err := e.value(key, variable.FindStringSubmatch(ref)[1])
		if err != nil && failed == nil {
			failed = err
		}
		return v
	})
	return out, failed
}

// secretName is what parameters of a URL are called whose values are secrets.
var secretName = regexp.MustCompile(`(?i)key|token|secret|sig|pass|auth`)

// address resolves a URL from the configuration or a variable and checks it.
func (e *environment) address(key, text, variable string) (*url.URL, error) {
	var err error
	if variable != "" {
		key += "_env"
		text, err = e.value(key, variable)
	} else {
		text, err = e.expand(key, text)
	}
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: not a URL that begins with http:// or https://", key) // without the text: it may be a secret
	}
	if password, ok := u.User.Password(); ok {
		e.secrets.add(password)
		e.secrets.add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password)))
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if variable != "" || secretName.MatchString(name) {
				e.secrets.add(v)
			}
		}
	}
	if variable != "" {
		e.secrets.add(u.Path)
	}
	return u, nil
}

// publicHeaders have values that are no secrets.
var publicHeaders = []string{"Accept", "Content-Type", "User-Agent", "Prefer"}

// headers resolves the headers of a configuration.
func (e *environment) headers(key string, from map[string]string) (http.Header, error) {
	h := http.Header{}
	names := make([]string, 0, len(from))
	for name := range from {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v, err := e.expand(key+".headers."+name, from[name])
		if err != nil {
			return nil, err
		}
		canonical := http.CanonicalHeaderKey(name)
		if !slices.Contains(publicHeaders, canonical) {
			e.secrets.add(v)
		}
		h.Set(canonical, v)
	}
	return h, nil
}

// authorization returns the Authorization header for the token in a variable:
// "Bearer TOKEN", or another scheme, or with "-" the token alone.
func (e *environment) authorization(key, variable, scheme string) (string, error) {
	token, err := e.value(key+".token_env", variable)
	switch {
	case err != nil:
		return "", err
	case scheme == "-":
		return token, nil
	case scheme == "":
		scheme = "Bearer"
	}
	return scheme + " " + token, nil
}

// named is how a URL appears to people: without user, password and query, and
// without its path where a variable took part in it.
func named(u *url.URL, written string) string {
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if written == "" || variable.MatchString(written) {
		plain.Path = ""
	}
	return plain.String()
}
