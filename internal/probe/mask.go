package probe

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

const (
	masked = "***"
	// leastKey is the length from which on a key's text is looked for; with a
	// shorter one nothing of what the server says is shown.
	leastKey = 4
	// leastQuerySecret is the length from which on a value in the query of an
	// address is taken for a secret.
	leastQuerySecret = 16

	maxSaid  = 300 // runes of a server's message
	maxShown = 200 // runes of any other text from outside
	// maxRead is how many bytes of a text are looked through for secrets: far
	// more than are shown, so that a secret that is cut there does not show.
	maxRead = 8 << 10
)

// mask keeps secrets out of texts that came from outside.
type mask struct {
	secrets []string // in lower case
	pairs   []string // what is replaced wherever it stands, with its replacement
	mute    bool     // a secret is too short to be found
}

func newMask(key string) *mask {
	m := &mask{}
	if key = strings.TrimSpace(key); key != "" {
		m.also(key)
	}
	return m
}

// also adds a secret, with the forms in which servers send it back.
func (m *mask) also(secret string) {
	if len(secret) < leastKey {
		m.mute = m.mute || !placeholder(secret)
		return
	}
	sum := sha256.Sum256([]byte(secret))
	for _, form := range []string{
		secret, strings.ToLower(secret), strings.ToUpper(secret), url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)),
		hex.EncodeToString(sum[:]), // gateways quote the digest under which they keep a key
	} {
		m.pairs = append(m.pairs, form, masked)
	}
	m.secrets = append(m.secrets, strings.ToLower(secret))
}

var (
	// word is a run of what keys are made of, with the stars and dots that
	// servers put into a key they quote.
	word = pattern.New(`[A-Za-z0-9_+/=~%*.…:-]{4,}`)
	// elided is what stands for the middle of a key, or for its beginning.
	elided = pattern.New(`\*{2,}|\.{3,}|…+|x{4,}`)
	// foreign finds keys that are not ours, such as those of a gateway.
	foreign = pattern.New(`\b(?:sk|pk|rk|gsk|xai|hf|ghp|glpat)[-_][A-Za-z0-9_*.-]{6,}|\bAIza[A-Za-z0-9_-]{16,}|\beyJ[A-Za-z0-9_.-]{16,}|(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}`)
)

// text returns a text from outside in one line without control characters,
// without secrets, and cut to a number of runes.
func (m *mask) text(s string, runes int) string {
	if m.mute {
		return ""
	}
	s = oneLine(s[:min(len(s), maxRead)]) // before masking: what is taken out may stand inside a key
	s = strings.NewReplacer(m.pairs...).Replace(s)
	s = word.Regexp().ReplaceAllStringFunc(s, func(w string) string {
		if m.partOf(strings.ToLower(w)) {
			return masked
		}
		return w
	})
	s = foreign.ReplaceAllString(s, masked)
	if utf8.RuneCountInString(s) > runes {
		s = string([]rune(s)[:runes]) + "..."
	}
	return s
}

// partOf reports whether a word in lower case shows a part of a secret: a
// stretch of it, or its ends around stars or dots.
func (m *mask) partOf(w string) bool {
	for _, secret := range m.secrets {
		n := min(8, max(leastKey, len(secret)/2))
		for i := 0; i+n <= len(secret); i++ {
			if strings.Contains(w, secret[i:i+n]) {
				return true
			}
		}
		gap := elided.Regexp().FindStringIndex(w)
		if gap == nil {
			continue
		}
		head, tail := strings.Trim(w[:gap[0]], ":="), strings.Trim(w[gap[1]:], ":=.")
		if len(head) >= 2 && strings.HasPrefix(secret, head) || len(tail) >= 2 && strings.HasSuffix(secret, tail) {
			return true
		}
	}
	return false
}

// oneLine drops what does not print, and leaves one blank where several stood.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r): // such as marks that turn the direction of writing
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
