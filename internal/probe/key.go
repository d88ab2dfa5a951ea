package probe

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

// maxKey is the length that no key has.
const maxKey = 16 << 10

// secret returns the key and what people call the place that it came from.
func (v *Version) secret(getenv func(string) string) (key, name string) {
	if v.KeyEnv != "" {
		if key := getenv(v.KeyEnv); key != "" || v.Key == "" {
			return key, v.KeyEnv
		}
	}
	return string(v.Key), fmt.Sprintf("versions.%s.api_key", v.Arm)
}

// checkKey refuses keys that no server can accept. A version without any key
// is asked without one: servers on one's own machine often want none.
func (q *question) checkKey(v Version) *Result {
	if v.KeyEnv == "" && v.Key == "" {
		return nil
	}
	if strings.TrimSpace(q.key) == "" {
		return q.result(NoKey, fmt.Sprintf("%s is not set or empty, so nothing was sent", q.keyName),
			fmt.Sprintf("export %s with the key in the shell or the CI job that runs canaryctl; clients without base_url, model or key often ask for an OAuth login instead", q.keyName))
	}
	fault, fix := keyFault(q.key, v.KeyEnv)
	if fault == "" {
		return nil
	}
	if placeholder(q.key) {
		return q.result(KeyPlaceholder, fmt.Sprintf("%s holds a placeholder, not a key, so nothing was sent", q.keyName), placeholderFix(q.keyName))
	}
	return q.result(BadKey, fmt.Sprintf("the key in %s %s, so nothing was sent", q.keyName, fault), fix)
}

func placeholderFix(name string) string {
	return fmt.Sprintf("set %s to a real key: an example file's text is still there, or a variable in it was not expanded", name)
}

// keyFault says what is wrong with the form of a key, in words that follow
// "the key in X", and what to do; "" for nothing. The words do not quote it.
func keyFault(key, variable string) (fault, fix string) {
	inner := strings.TrimSpace(key)
	switch first, _, _ := strings.Cut(inner, " "); {
	case len(key) > maxKey:
		return fmt.Sprintf("has more than %d bytes", maxKey), "set it to the key alone, not to a file"
	case strings.HasSuffix(key, "\n") || strings.HasSuffix(key, "\r"):
		return "ends with a line break", "set it without: printf %s instead of echo, $(cat FILE) instead of a mounted file's whole text"
	case inner != key:
		return "begins or ends with a blank", "set it to the key alone"
	case strings.ContainsAny(key[:1], "\"'`") || strings.ContainsAny(key[len(key)-1:], "\"'`"):
		return "stands in quotes", "take the quotes off: env files of Docker and of CI systems keep them as part of the value"
	case strings.EqualFold(first, "Bearer") && first != inner:
		return "begins with the word Bearer", "set it to the key alone: the word is added to every request"
	case variable != "" && strings.HasPrefix(key, variable+"="):
		return "begins with the variable's own name", "set it to what stands behind the ="
	}
	for i, r := range []rune(key) {
		switch {
		case r > unicode.MaxASCII:
			return fmt.Sprintf("has a character that is not ASCII, the %d.", i+1), "type it anew: it was copied together with an invisible blank, a typographic quote or dash, or three dots for what was not shown"
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return fmt.Sprintf("has a blank or a line break inside, as the %d. character", i+1), "set it to the key alone, in one piece"
		}
	}
	return "", ""
}

// placeholderWords are what stands in example files in place of a key, in
// lower case.
var placeholderWords = []string{
	"...", "changeme", "change-me", "change_me", "placeholder", "todo", "tbd", "none", "null", "nil", "undefined", "empty", "dummy", "test", "fake",
	"secret", "password", "example", "key", "token", "apikey", "api-key", "api_key", "no-key", "not-needed", "ollama", "na", "n/a",
}

var (
	// vendorPrefix is what issuers put before their keys.
	vendorPrefix = pattern.New(`^(?:sk|pk|rk|gsk|xai|hf|key)[-_](?:(?:proj|ant|or|live|test|svcacct|v1|api03)[-_])*`)
	// notYet finds wrappings that ask to be replaced, and variables that were not expanded.
	notYet = pattern.New(`^<.*>$|^\[.*\]$|^\$|^\{\{|^%[a-z0-9_]+%$|your.*(?:key|token|secret|api)|(?:key|token|secret).*here|replace.?(?:me|with|this)|insert.?(?:your|key|api)|paste.?(?:your|key|api)|change.?me|place.?holder|x{4,}`)
	// filler is one sign again and again, or digits in their order.
	filler = pattern.New(`^(?:x+|\*+|\.+|…+|#+|0+|_+|-+|(?:1234567890?)+|123+4?5?6?)$`)
)

// placeholder reports whether a text is plainly no key, but what stands in its
// place in an example. Servers that want no key accept one all the same.
func placeholder(key string) bool {
	if key == "" {
		return false
	}
	s := strings.ToLower(strings.Trim(key, " \t\r\n\"'`"))
	rest := vendorPrefix.ReplaceAllString(s, "")
	return rest == "" || slices.Contains(placeholderWords, rest) || notYet.MatchString(s) || filler.MatchString(rest)
}
