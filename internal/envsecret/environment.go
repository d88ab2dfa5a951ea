// Package envsecret takes addresses, tokens and headers from the environment,
// and keeps what it took out of everything that people read.
//
//	env := envsecret.New(os.Getenv)
//	u, err := env.Address("url", cfg.URL, cfg.URLEnv) // an error names the variable, never what it holds
//	...
//	return env.Secrets().Clean(err)
package envsecret

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

// Environment resolves the variables that a configuration names, and remembers
// what they hold as secrets.
type Environment struct {
	getenv  func(string) string
	secrets Secrets
}

// New returns an environment that looks variables up with getenv; nil is the
// process's own.
func New(getenv func(string) string) *Environment {
	if getenv == nil {
		getenv = os.Getenv
	}
	return &Environment{getenv: getenv}
}

// Secrets returns what was remembered so far.
func (e *Environment) Secrets() Secrets { return slices.Clone(e.secrets) }

// Value returns what a variable holds, without blanks around it: a line end
// comes along with many a secret. Key is the configuration's, for the error. An
// empty variable is an error: what goes out without its token is refused later,
// or worse, is not.
func (e *Environment) Value(key, name string) (string, error) {
	v := strings.TrimSpace(e.getenv(name))
	if v == "" {
		return "", fmt.Errorf("%s: the environment variable %s is not set or empty", key, name)
	}
	if strings.ContainsFunc(v, unicode.IsControl) {
		return "", fmt.Errorf("%s: the environment variable %s has a line end or another control character in it", key, name)
	}
	e.secrets.Add(v)
	return v, nil
}

var (
	// reference is ${NAME} in an address or a header, or what was meant as one.
	reference = pattern.New(`\$\{([^}]*)\}?`)
	name      = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Expand replaces each ${NAME} in a text. What begins like one and names no
// variable is an error.
func (e *Environment) Expand(key, text string) (string, error) {
	var failed error
	out := reference.Regexp().ReplaceAllStringFunc(text, func(ref string) string {
		n := strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}")
		v, err := "", fmt.Errorf("%s: a ${ that names no environment variable: write ${NAME}", key)
		if name.MatchString(n) && strings.HasSuffix(ref, "}") {
			v, err = e.Value(key, n)
		}
		if err != nil && failed == nil {
			failed = err
		}
		return v
	})
	return out, failed
}

// secretName is what parameters of an address, and variables of the environment,
// are called whose values are secrets.
var secretName = pattern.New(`(?i)key|token|secret|sig|pass|pwd|auth|cred|cookie|webhook`)

// Address resolves an address of HTTP from the configuration, with each ${NAME}
// in it, or from a variable, and checks it. Of one from a variable everything
// behind the host is secret, of every one a password and what the query holds
// under a secret's name.
func (e *Environment) Address(key, text, variable string) (*url.URL, error) {
	var err error
	if variable != "" {
		key += "_env"
		text, err = e.Value(key, variable)
	} else {
		text, err = e.Expand(key, text)
	}
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: not an address of the form https://host/path", key) // without the text: it may be a secret
	}
	u.Fragment, u.RawFragment = "", "" // it is never sent
	e.login(u.User)
	for param, values := range u.Query() {
		for _, v := range values {
			if secretName.MatchString(param) {
				e.secrets.Add(v)
			}
		}
	}
	if variable != "" {
		e.Conceal(u)
	}
	return u, nil
}

// login remembers what stands before the @ of an address.
func (e *Environment) login(user *url.Userinfo) {
	password, ok := user.Password()
	if !ok {
		e.secrets.Add(user.Username()) // a token alone
		return
	}
	e.secrets.Add(password)
	e.secrets.Add(base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password)))
}

// leastPart is the length from which on a part of an address counts as secret:
// "send" and "v2" do not.
const leastPart = 8

// Conceal remembers everything behind an address's host as secret: what chats
// hand out as webhooks is a password in the form of an address.
func (e *Environment) Conceal(u *url.URL) {
	e.secrets.Add(u.String())
	e.secrets.Add(u.Path)
	e.secrets.Add(u.RequestURI())
	for _, part := range strings.Split(u.Path, "/") {
		if len(part) >= leastPart {
			e.secrets.Add(part)
		}
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= leastPart {
				e.secrets.Add(v)
			}
		}
	}
}

// publicHeaders have values that are no secrets.
var publicHeaders = []string{"Accept", "Content-Type", "User-Agent", "Prefer"}

// headerName is a token of RFC 9110, 5.6.2.
var headerName = pattern.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// IsToken reports whether a text can be the name of a header, or a method.
func IsToken(text string) bool { return headerName.MatchString(text) }

// Headers resolves the headers of a configuration; key is the one that they
// stand under.
func (e *Environment) Headers(key string, from map[string]string) (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		v, err := e.Expand(key+"."+name, from[name])
		if err != nil {
			return nil, err
		}
		if !IsToken(name) || strings.ContainsFunc(v, unicode.IsControl) {
			return nil, fmt.Errorf("%s: %q is no header's name, or its value is not one line", key, name)
		}
		canonical := http.CanonicalHeaderKey(name)
		if !slices.Contains(publicHeaders, canonical) {
			e.secrets.Add(v)
		}
		h.Set(canonical, v)
	}
	return h, nil
}

// Authorization returns the value of that header for the token in a variable:
// "Bearer TOKEN", or another scheme, or with "-" the token alone.
func (e *Environment) Authorization(key, variable, scheme string) (string, error) {
	token, err := e.Value(key, variable)
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

// Named is how an address appears to people: without user, password and query,
// and without its path where a variable took part in it; written is how it
// stands in the configuration, "" where a variable holds all of it.
func Named(u *url.URL, written string) string {
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if written == "" || reference.MatchString(written) {
		plain.Path = ""
	}
	return plain.String()
}
