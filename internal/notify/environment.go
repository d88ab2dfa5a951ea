package notify

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// environment reads the variables that a configuration names, and remembers
// what must not be shown.
type environment struct {
	getenv  func(string) string
	secrets []string
}

func newEnvironment(getenv func(string) string) *environment {
	if getenv == nil {
		getenv = os.Getenv
	}
	return &environment{getenv: getenv}
}

// now returns the clock.
func (o Options) now() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

// secret returns what a variable holds; key is the configuration's key that
// names it. No variable is no secret, an empty one is an error: a message
// that goes out unsigned because a variable is missing would be refused later,
// or worse, not refused.
func (e *environment) secret(key, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	v := strings.TrimSpace(e.getenv(name)) // a file's last newline is no part of it
	if v == "" {
		return "", fmt.Errorf("%s: the environment variable %s is empty: set it, or take the key away", key, name)
	}
	e.hide(v)
	return v, nil
}

// address returns the URL that is configured, or held by a variable.
func (e *environment) address(inline, name string) (*url.URL, error) {
	key, text := "url", inline
	if text == "" {
		if name == "" {
			return nil, errors.New("it needs url or url_env")
		}
		key = "url_env"
		if text = strings.TrimSpace(e.getenv(name)); text == "" {
			return nil, fmt.Errorf("url_env: the environment variable %s is empty: set it to the address to send to", name)
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// The parser's own message carries the address.
		return nil, fmt.Errorf("%s: not an address of the form https://host/path", key)
	}
	u.Fragment = ""
	e.hideURL(u)
	return u, nil
}

// reference is a variable in a header's value.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts variables into a header's value: ${NAME}.
func (e *environment) expand(key, value string) (string, error) {
	var err error
	out := reference.ReplaceAllStringFunc(value, func(ref string) string {
		v, failed := e.secret(key, reference.FindStringSubmatch(ref)[1])
		err = errors.Join(err, failed)
		return v
	})
	return out, err
}

// leastSecret is the length from which on a part of an address counts as
// secret: "send" and "v2" do not.
const leastSecret = 8

// hide remembers a secret, in the forms in which it may come back. One of a
// few letters is not looked for: it would take half the message with it.
func (e *environment) hide(v string) {
	if len(v) >= 4 {
		e.secrets = append(e.secrets, v, url.QueryEscape(v), url.PathEscape(v))
	}
}

// hideURL remembers an address and the parts of it that may be secret: what
// chats hand out as webhooks is a password in the form of an address.
func (e *environment) hideURL(u *url.URL) {
	e.secrets = append(e.secrets, u.String())
	if uri := u.RequestURI(); len(uri) >= leastSecret {
		e.secrets = append(e.secrets, uri)
	}
	if p, ok := u.User.Password(); ok {
		e.hide(p)
	}
	for _, part := range strings.Split(u.Path, "/") {
		if len(part) >= leastSecret {
			e.hide(part)
		}
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= leastSecret {
				e.hide(v)
			}
		}
	}
}

// mask returns a function that takes the secrets out of a text.
func (e *environment) mask() func(string) string {
	return masker(e.secrets)
}
