package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// masked stands for a secret in messages.
const masked = "***"

// secretForms find secrets in a line of text; the first group is the secret.
var secretForms = []*regexp.Regexp{
	// keys by the shapes that the usual issuers give them
	regexp.MustCompile(`\b((?:sk|pk|rk)-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{8,}|AKIA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)`),
	regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})`),
	// user:password@ in an address
	regexp.MustCompile(`\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@:"']*:([^\s/@"']+)@`),
	// tokens in the query or, for chat webhooks, in the path of an address
	regexp.MustCompile(`(?i)[?&](?:access_token|api_?key|auth|key|password|secret|sig|signature|token)=([^\s&"'#,}\]]+)`),
	regexp.MustCompile(`(?i)hooks\.slack\.com/(?:services|workflows|triggers)/([^\s"',}\]]+)`),
	regexp.MustCompile(`(?i)/open-apis/bot/v2/hook/([^\s"',}\]]+)`),
}

// secretKey finds a key that is named for a secret, in block or flow style and
// in JSON; the first group is the value.
var secretKey = regexp.MustCompile(`(?i)(?:^|[\s{,"'])["']?(?:[a-z0-9_-]*(?:api_?key|password|passwd|secret|token|private_?key|credentials)|authorization)["']?\s*:\s+(?:"((?:[^"\\]|\\.)*)"?|'([^']*)'?|([^\s"'{\[#,}&*|>][^,}#]*))`)

// secretSpan is a secret's place in a line, in bytes.
type secretSpan struct{ from, to int }

// secretSpans returns the secrets of a line; apart holds secrets that stand on
// other lines than their key.
func secretSpans(line string, apart []string) []secretSpan {
	var out []secretSpan
	for _, text := range apart {
		if i := strings.Index(line, text); i >= 0 {
			out = append(out, secretSpan{i, i + len(text)})
		}
	}
	for _, re := range secretForms {
		for _, m := range re.FindAllStringSubmatchIndex(line, -1) {
			out = append(out, secretSpan{m[2], m[3]})
		}
	}
	for _, m := range secretKey.FindAllStringSubmatchIndex(line, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 && m[g] < m[g+1] && !placeholder(line[m[g]:m[g+1]]) {
				end := m[g] + len(strings.TrimRight(line[m[g]:m[g+1]], " \t"))
				out = append(out, secretSpan{m[g], end})
			}
		}
	}
	slices.SortFunc(out, func(a, b secretSpan) int { return a.from - b.from })
	return out
}

// placeholder reports whether a value under a secret's name is plainly none.
func placeholder(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || s == "..." || s == "null" || s == "~" || strings.Trim(s, "*") == "" || strings.HasPrefix(s, "${") || strings.HasPrefix(s, "$(")
}

var secretName = regexp.MustCompile(`(?i)^(?:[a-z0-9_-]*(?:api_?key|password|passwd|secret|token|private_?key|credentials)|authorization)$`)

// secretsApart returns the lines of secrets that do not stand on the line of
// their key: blocks of text and values on a line of their own.
func secretsApart(src []byte) []string {
	var out []string
	docs, _ := decode(src) // what cannot be parsed is searched by line only
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		for i, c := range n.Content {
			visit(c)
			if n.Kind != yaml.MappingNode || i%2 == 0 || c.Kind != yaml.ScalarNode || !secretName.MatchString(n.Content[i-1].Value) {
				continue
			}
			if c.Line == n.Content[i-1].Line && !strings.Contains(c.Value, "\n") && c.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
				continue
			}
			for text := range strings.FieldsSeq(c.Value) {
				if len(text) >= 4 && !placeholder(text) {
					out = append(out, text)
				}
			}
		}
	}
	for _, doc := range docs {
		visit(doc)
	}
	return out
}

// secrets returns the texts of all secrets in lines, longest first.
func secrets(lines, apart []string) []string {
	out := slices.Clone(apart)
	for _, line := range lines {
		for _, s := range secretSpans(line, nil) {
			if text := line[s.from:s.to]; len(text) >= 4 {
				out = append(out, text)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(out)
}

// Mask returns src with every secret replaced by as many asterisks, so that
// lines and columns stay where they are: for showing source lines. Secrets are
// found by their shape, by the name of their key and in addresses.
func Mask(src []byte) []byte {
	lines := strings.Split(string(src), "\n")
	apart := secretsApart(src)
	for i, line := range lines {
		spans := secretSpans(line, apart)
		if len(spans) == 0 {
			continue
		}
		var b strings.Builder
		at := 0
		for _, s := range spans {
			if s.to <= at {
				continue
			}
			from := max(s.from, at)
			b.WriteString(line[at:from])
			b.WriteString(strings.Repeat("*", utf8.RuneCountInString(line[from:s.to])))
			at = s.to
		}
		b.WriteString(line[at:])
		lines[i] = b.String()
	}
	return []byte(strings.Join(lines, "\n"))
}
