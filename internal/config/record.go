package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

// VersionRecord is a version's whole configuration as the journal keeps it, so
// that a rollback knows what it returns to: without weight and api_key, and
// with secrets in addresses and params masked. What was left out is absent.
type VersionRecord struct {
	BaseURL       string         `json:"base_url,omitempty"`
	ModelID       string         `json:"model_id,omitempty"`
	PromptVersion string         `json:"prompt_version,omitempty"`
	ToolsVersion  string         `json:"tools_version,omitempty"`
	Gateway       string         `json:"gateway,omitempty"`
	Temperature   json.Number    `json:"temperature,omitempty"`
	Params        map[string]any `json:"params,omitempty"`
	APIKeyEnv     string         `json:"api_key_env,omitempty"`
}

// Record returns the version for the journal; nil for a version that was left
// out.
func (v *Version) Record() *VersionRecord {
	if v == nil {
		return nil
	}
	r := &VersionRecord{
		BaseURL: maskText(v.BaseURL), ModelID: maskText(v.ModelID), PromptVersion: maskText(v.PromptVersion),
		ToolsVersion: maskText(v.ToolsVersion), Gateway: maskText(v.Gateway), APIKeyEnv: v.APIKeyEnv,
	}
	if !v.Temperature.IsZero() {
		r.Temperature = json.Number(decimal(v.Temperature.Rat()))
	}
	if v.Params != nil {
		r.Params = maskValue(v.Params).(map[string]any)
	}
	return r
}

// Digest names the version: 64 hexadecimal digits over everything but weight
// and api_key, the canary's being the release's id. A version that was left
// out has the digest "".
func (v *Version) Digest() string { return v.digest() }

var userInfo = pattern.New(`\b([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/?#@]+@`)

// maskText hides the secrets of a text, and whoever an address logs in as.
func maskText(s string) string {
	return userInfo.ReplaceAllString(maskSpans(s, "*", secretSpans(s)), "${1}"+masked+"@")
}

// maskValue hides the secrets of a free value.
func maskValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			if secretName.MatchString(k) {
				out[maskText(k)] = hideValue(item)
			} else {
				out[maskText(k)] = maskValue(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = maskValue(item)
		}
		return out
	case string:
		return maskText(v)
	}
	return v
}

// hideValue hides a value that stands under a secret's name.
func hideValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			if notSecret.MatchString(k) {
				out[k] = maskValue(item)
			} else {
				out[k] = hideValue(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = hideValue(item)
		}
		return out
	case string:
		if placeholder(v) {
			return v
		}
	case nil, bool:
		return v
	}
	return masked
}

// Masked returns the text that the configuration was parsed from, for the
// journal, with every secret overwritten by as many x: it parses again, to the
// same [ladder.Plan.Digest]. Names that the plan rests on (the service, users,
// segments) stand as they are. Where overwriting would not leave the plan as it
// is, what the plan rests on is returned alone.
func (c *Config) Masked() []byte {
	if c.doc.merged { // a scene's: as a file of its own
		again, _ := Parse(c.Name, c.doc.alone())
		if again == nil {
			return c.doc.planOnly()
		}
		return again.Masked()
	}
	out := c.doc.overwritten()
	if again, _ := Parse(c.Name, out); again != nil && again.digest() == c.digest() {
		return out
	}
	return c.doc.planOnly()
}

// overwritten is the source with its secrets overwritten. Asterisks would be
// read as aliases.
func (d *document) overwritten() []byte {
	lines := slices.Clone(d.lines)
	kept, tails := d.planTexts(), d.addressTails()
	for i, line := range lines {
		spans := slices.Concat(d.secret.spans[i], d.secret.hide[i], tails[i])
		spans = slices.DeleteFunc(spans, func(s secretSpan) bool {
			return slices.ContainsFunc(kept[i], func(k secretSpan) bool { return k.from < s.to && s.from < k.to })
		})
		lines[i] = maskSpans(line, "x", spans)
	}
	return []byte(strings.Join(lines, "\n"))
}

// addressTails returns what of addresses may let somebody in: of channels and
// hooks all behind the host, of the others the query. By line from 0.
func (d *document) addressTails() map[int][]secretSpan {
	out := map[int][]secretSpan{}
	for path, v := range d.values {
		text, line := v.node.Value, v.node.Line-1
		if v.node.Kind != yaml.ScalarNode || !strings.HasSuffix(path, "url") || line < 0 || line >= len(d.lines) {
			continue
		}
		from := strings.IndexByte(text, '?') + 1
		if scheme := strings.Index(text, "://"); scheme > 0 && (strings.HasPrefix(path, "notify") || strings.HasPrefix(path, "hooks")) {
			if host := strings.IndexAny(text[scheme+3:], "/?#"); host >= 0 {
				from = scheme + 3 + host + 1
			}
		}
		if at := strings.Index(d.lines[line], text); from > 0 && at >= 0 {
			out[line] = append(out[line], secretSpan{at + from, at + len(text)})
		}
	}
	return out
}

// planTexts returns where the texts stand that are part of the plan's digest,
// by line from 0.
func (d *document) planTexts() map[int][]secretSpan {
	out := map[int][]secretSpan{}
	for path, v := range d.values {
		switch index.ReplaceAllString(path, "[]") {
		case "canary.target_service", "canary.traffic_dimension", "canary.exclude.segments[]", "canary.exclude.user_ids[]", "canary.include.user_ids[]":
			line := d.lines[v.node.Line-1]
			out[v.node.Line-1] = append(out[v.node.Line-1], secretSpan{byteAt(line, v.node.Column), byteAt(line, d.endCol(v.node))})
		}
	}
	return out
}

// byteAt returns where a column, counted in runes from 1, begins in a line.
func byteAt(line string, col int) int {
	at := 0
	for range col - 1 {
		if at >= len(line) {
			break
		}
		_, n := utf8.DecodeRuneInString(line[at:])
		at += n
	}
	return at
}

// planOnly writes canary, and what may stand beside it, anew and without
// comments.
func (d *document) planOnly() []byte {
	plan := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(d.tree.Content); i += 2 {
		if s := root().children[d.tree.Content[i].Value]; s != nil && strings.HasPrefix(s.path, "canary") {
			plan.Content = append(plan.Content, bare(d.tree.Content[i]), bare(d.tree.Content[i+1]))
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	if err := enc.Encode(plan); err != nil {
		panic("config: plan of a Config that Parse did not make: " + err.Error())
	}
	return out.Bytes()
}

// bare copies a node without comments and anchors.
func bare(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style &^ yaml.TaggedStyle}
	for _, item := range n.Content {
		c.Content = append(c.Content, bare(item))
	}
	return c
}
