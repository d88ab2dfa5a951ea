package config

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/pattern"
)

// masked stands for a secret in messages.
const masked = "***"

// leastSecret is the length from which on a secret's text is looked for in
// other places than its own.
const leastSecret = 4

// secretForm finds secrets by what they look like.
type secretForm struct {
	words []string         // in lower case; a line without any of them has no such secret
	re    *pattern.Pattern // the first group is the secret
}

func form(re string, words ...string) secretForm {
	return secretForm{words, pattern.New(re)}
}

// secretForms are the forms that the usual issuers give their keys, and the
// places that keys have in addresses and headers.
var secretForms = []secretForm{
	form(`\b((?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,})`, "sk-", "pk-", "rk-", "sk_", "pk_", "rk_"),
	form(`\b(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,})`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
	form(`\b(xox[abeoprs]-[A-Za-z0-9-]{8,}|hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,})`, "xox", "hf_", "npm_", "whsec_"),
	form(`\b(A[KS]IA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{16,}|hv[bs]\.[A-Za-z0-9_-]{16,})`, "akia", "asia", "aiza", "ya29.", "hvs.", "hvb."),
	form(`\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)`, "eyj"),
	form(`PRIVATE KEY-----([^-]+)`, "private key-----"),
	form(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})`, "bearer", "basic"),
	// user:password@ or a token alone before the @ of an address
	form(`\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@:"']*:([^\s/@"']+)@`, "://"),
	form(`\b[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/@:"']{16,})@`, "://"),
	// in the query of an address, or in a list of settings
	form(`(?i)(?:[?&]|\b)(?:access_token|api_?key|auth|password|pwd|secret|sig|signature|token|account_?key|shared_?access_?key)=([^\s&;"'#,}\]]+)`,
		"token=", "key=", "auth=", "password=", "pwd=", "secret=", "sig=", "signature="),
	form(`(?i)[?&]key=([^\s&;"'#,}\]]+)`, "key="),
	// in the path of the address of a chat's webhook
	form(`(?i)hooks\.slack\.com/(?:services|workflows|triggers)/([^\s"',}\]]+)`, "hooks.slack.com"),
	form(`(?i)/open-apis/bot/v2/hook/([^\s"',}\]]+)`, "/hook/"),
	form(`(?i)/api/webhooks/[0-9]+/([^\s"',}\]]+)`, "/api/webhooks/"),
}

const secretNames = `(?:[a-z0-9_-]*(?:api[_-]?key|private[_-]?key|access[_-]?key|password|passwd|passphrase|secret|token|credentials)|(?:proxy-)?authorization|(?:set-)?cookie)`

var (
	secretWords = []string{"key", "passw", "passphrase", "secret", "token", "credentials", "authorization", "cookie"}
	secretName  = pattern.New(`(?i)^` + secretNames + `$`)
	// secretKey finds a key that is named for a secret, or for the variable that
	// holds one (group 2), in block and flow style and in JSON; its value begins
	// where the match ends.
	secretKey = pattern.New(`(?i)(?:^|[\s{,\["'?])(?:"(?:` + secretNames + `(_env)?)"\s*|'(?:` + secretNames + `(_env)?)'\s*|(?:` + secretNames + `(_env)?)\s*):(?:\s+|["']|$)`)
	// blockHeader is what a block of text begins with.
	blockHeader = pattern.New(`^[|>][0-9+-]*(?:\s+#.*)?$`)
)

// secretSpan is a secret's place in a line, in bytes.
type secretSpan struct{ from, to int }

func byPlace(a, b secretSpan) int { return a.from - b.from }

// secretSpans returns the secrets of a line that shows by itself that it has
// some: by their form, or by the name of their key.
func secretSpans(line string) []secretSpan {
	lower := strings.ToLower(line)
	has := func(word string) bool { return strings.Contains(lower, word) }
	var out []secretSpan
	for _, f := range secretForms {
		if !slices.ContainsFunc(f.words, has) {
			continue
		}
		for _, m := range f.re.Regexp().FindAllStringSubmatchIndex(line, -1) {
			out = append(out, secretSpan{m[2], m[3]})
		}
	}
	if !slices.ContainsFunc(secretWords, has) {
		return out
	}
	for _, m := range secretKey.Regexp().FindAllStringSubmatchIndex(line, -1) {
		s := valueSpan(line, m[1])
		text := line[s.from:s.to]
		named := m[2] >= 0 || m[4] >= 0 || m[6] >= 0
		if placeholder(text) || named && envName.re.MatchString(text) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// valueSpan returns where the value of the key whose match ends at at stands,
// without its quotes: up to the end of the line, in a flow collection up to
// the end of the item. A collection has no span, nor has a block of text.
func valueSpan(line string, at int) secretSpan {
	if c := line[at-1]; c == '"' || c == '\'' { // JSON without a blank behind the colon
		at--
	}
	none := secretSpan{at, at}
	if at >= len(line) {
		return none
	}
	switch line[at] {
	case '"', '\'':
		text := line[at:][:quotedLen(line[at:])]
		return secretSpan{at + 1, at + 1 + len(strings.TrimSuffix(text[1:], text[:1]))}
	case '[', '{', '#':
		return none
	}
	value := line[at:]
	if i := strings.Index(value, " #"); i >= 0 {
		value = value[:i]
	}
	before := line[:at]
	if strings.Count(before, "{")+strings.Count(before, "[") > strings.Count(before, "}")+strings.Count(before, "]") {
		if i := strings.IndexAny(value, ",}]"); i >= 0 {
			value = value[:i]
		}
	}
	value = strings.TrimRight(value, " \t\r")
	if blockHeader.MatchString(value) {
		return none
	}
	return secretSpan{at, at + len(value)}
}

// placeholder reports whether a value under a secret's name is plainly none.
func placeholder(s string) bool {
	s = strings.TrimSpace(s)
	switch s {
	case "", "...", "null", "~", "true", "false":
		return true
	}
	return strings.Trim(s, "*") == "" || variable.MatchString(s)
}

// variable is a value that is taken from elsewhere, alone or behind the scheme
// of an Authorization header.
var variable = pattern.New(`^(?:[A-Za-z][A-Za-z0-9_-]*\s+)?\$[{(]`)

// secrets are the secrets of a file.
type secrets struct {
	spans map[int][]secretSpan // by line, from 0: what is surely a secret
	hide  map[int][]secretSpan // what may be one, and is not shown either
	texts []string             // longest first
	once  sync.Once
	mask  *strings.Replacer // of the texts, made when needed
}

// findSecrets looks through the lines of a file; docs is what could be parsed
// of it.
func findSecrets(lines []string, docs []*yaml.Node, whole bool) *secrets {
	s := &secrets{spans: map[int][]secretSpan{}, hide: map[int][]secretSpan{}}
	for i, line := range lines {
		if spans := secretSpans(line); spans != nil {
			s.spans[i] = spans
		}
	}
	for _, doc := range docs {
		s.underNames(doc, lines)
	}
	if !whole {
		s.aroundNames(lines)
	}
	for i, spans := range s.spans {
		for _, span := range spans {
			s.texts = append(s.texts, lines[i][span.from:span.to])
		}
	}
	s.texts = slices.DeleteFunc(s.texts, func(t string) bool { return len(t) < leastSecret })
	slices.SortFunc(s.texts, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	s.texts = slices.Compact(s.texts)
	for _, spans := range s.spans {
		slices.SortFunc(spans, byPlace)
	}
	return s
}

// misspelt are names of secrets as they are mistyped; the finding about the
// name shows the line.
var misspelt = []string{"api_key", "apikey", "password", "secret", "token", "credentials", "authorization", "private_key", "access_key"}

// notSecret ends the names of keys that stand under a secret's name and say
// where it is found.
var notSecret = pattern.New(`(?i)(?:^|_)(?:env|file|path|name|ref)$`)

// underNames finds the secrets whose line alone does not show them: below
// their key, in collections, under a mistyped name.
func (s *secrets) underNames(n *yaml.Node, lines []string) {
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			s.underNames(c, lines)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case secretName.MatchString(k.Value):
			s.below(v, lines, s.spans)
		case v.Kind == yaml.ScalarNode && v.Tag == "!!str" && !known(k.Value) && diag.Nearest(strings.ToLower(k.Value), misspelt) != "":
			s.below(v, lines, s.hide)
		default:
			s.underNames(v, lines)
		}
	}
}

// below takes every scalar of a node for a secret.
func (s *secrets) below(n *yaml.Node, lines []string, into map[int][]secretSpan) {
	if n.Kind != yaml.ScalarNode {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && (i%2 == 0 || notSecret.MatchString(n.Content[i-1].Value)) {
				continue
			}
			s.below(c, lines, into)
		}
		return
	}
	if placeholder(n.Value) {
		return
	}
	s.texts = append(s.texts, n.Value)
	line, col := n.Line-1, 0
	for part := range strings.FieldsSeq(n.Value) {
		if len(part) >= leastSecret {
			s.texts = append(s.texts, part)
			line, col = s.locate(part, line, col, lines, into)
		}
	}
}

// locate takes the first occurrence of a part of a secret at or behind a place
// and returns the place behind it. A part that is written otherwise, with
// escapes, is not found.
func (s *secrets) locate(part string, line, col int, lines []string, into map[int][]secretSpan) (int, int) {
	for i, from := line, col; i < len(lines); i, from = i+1, 0 {
		at := strings.Index(lines[i][from:], part)
		if at < 0 {
			continue
		}
		span := secretSpan{from + at, from + at + len(part)}
		within := func(o secretSpan) bool { return o.from <= span.from && span.to <= o.to }
		if !slices.ContainsFunc(s.spans[i], within) {
			into[i] = append(into[i], span)
		}
		return i, span.to
	}
	return line, col
}

// aroundNames hides, in a file that cannot be parsed, everything that may
// belong to a key that is named for a secret: a collection to the end of its
// line, and the lines below that are indented further.
func (s *secrets) aroundNames(lines []string) {
	for i, line := range lines {
		m := secretKey.Regexp().FindAllStringIndex(line, -1)
		if m == nil {
			continue
		}
		at := m[len(m)-1][1]
		if strings.HasPrefix(line[at:], "[") || strings.HasPrefix(line[at:], "{") {
			s.hide[i] = append(s.hide[i], secretSpan{at, len(line)})
		}
		for j := i + 1; j < len(lines); j++ {
			text := strings.TrimLeft(lines[j], " \t")
			from := len(lines[j]) - len(text)
			if text != "" && from <= indent(line) {
				break
			}
			s.hide[j] = append(s.hide[j], secretSpan{from, len(lines[j])})
		}
	}
}

// maskText puts asterisks in the place of every secret of the file in a text.
func (s *secrets) maskText(text string) string {
	s.once.Do(func() { // scenes are linted at once, and share it
		pairs := make([]string, 0, 2*len(s.texts))
		for _, secret := range s.texts {
			pairs = append(pairs, secret, masked)
		}
		s.mask = strings.NewReplacer(pairs...)
	})
	return s.mask.Replace(text)
}

// Mask returns src with every secret replaced by as many asterisks, so that
// lines and columns stay where they are: for showing source lines. Secrets are
// found by their form, by the name of their key and in addresses. What is
// larger than a configuration may be is cut.
func Mask(src []byte) []byte {
	src = src[:min(len(src), MaxSource)]
	lines := strings.Split(string(src), "\n")
	docs, err := Documents(src)
	s := findSecrets(lines, docs, err == nil)
	for i, line := range lines {
		lines[i] = maskSpans(line, "*", s.spans[i], s.hide[i])
	}
	return []byte(strings.Join(lines, "\n"))
}

// maskSpans replaces every rune in any of the spans by a mark.
func maskSpans(line, mark string, groups ...[]secretSpan) string {
	spans := slices.Concat(groups...)
	slices.SortFunc(spans, byPlace)
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.to <= at {
			continue
		}
		from := max(s.from, at)
		b.WriteString(line[at:from])
		b.WriteString(strings.Repeat(mark, utf8.RuneCountInString(line[from:s.to])))
		at = s.to
	}
	b.WriteString(line[at:])
	return b.String()
}
