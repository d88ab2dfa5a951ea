package notify

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is a message in its readable form, before any dialect: a headline and
// what stands under it.
type text struct {
	headline string
	rows     []row
}

// row is a labelled line.
type row struct {
	label, value string
	code         bool // to be shown verbatim: somebody copies it into a terminal
	link         bool // an address, see asLink
}

// Lengths in bytes that no field goes past, whatever a channel could take.
const (
	headlineLimit = 240
	valueLimit    = 1500
)

// readable puts a message into words.
func readable(m Message) text {
	t := text{headline: cut(oneLine(headline(m)), headlineLimit)}
	t.add("Reason", m.Reason)
	for _, r := range figures(m.Rollback) {
		t.add(r.label, r.value)
	}
	if m.Release != "" {
		t.add("Release", fmt.Sprintf("%s, attempt %d", m.Release, m.Attempt))
	}
	if next := strings.TrimSpace(m.Next); next != "" {
		t.rows = append(t.rows, row{label: "Next", value: cut(plainLines(next), valueLimit), code: true})
	}
	if link, ok := asLink(m.RunURL); ok {
		t.rows = append(t.rows, row{label: "Run", value: link, link: true})
	} else {
		t.add("Run", m.RunURL)
	}
	return t
}

// linkLimit is the longest address that becomes a link, in bytes: a link
// cannot be shortened.
const linkLimit = 400

// asLink returns an address in a form that no dialect reads as anything else;
// false if it has none.
func asLink(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", false
	}
	link := strings.NewReplacer("(", "%28", ")", "%29").Replace(u.String())
	return link, len(link) <= linkLimit && !strings.ContainsAny(link, "<>|[]`\" \\")
}

// add appends a line unless it is empty.
func (t *text) add(label, value string) {
	if value = cut(oneLine(value), valueLimit); value != "" {
		t.rows = append(t.rows, row{label: label, value: value})
	}
}

// headline is service, event, step and share: what a phone's lock screen shows.
func headline(m Message) string {
	event, ok := words[m.Event]
	if !ok {
		event = string(m.Event)
	}
	s := event
	if m.Service != "" {
		s = m.Service + ": " + event
	}
	if m.Event == Test {
		return s
	}
	if m.Step > 0 {
		s += fmt.Sprintf(", step %d of %d", m.Step, m.Steps)
	}
	return s + ", weight " + number(100*m.Pct) + " %"
}

// record is what is shown of a rollback record. Every field may be missing.
type record struct {
	Signal   string   `json:"signal"`
	Value    *float64 `json:"value"`
	Limit    *float64 `json:"limit"`
	Samples  *int64   `json:"samples"`
	Form     string   `json:"form"`
	Exposure *struct {
		Requests *int64 `json:"requests"`
		Users    *int64 `json:"users"`
	} `json:"exposure"`
}

// figures unfolds a rollback record. What it lacks is left out; what is no
// record at all gives nothing, as a message must get through without it.
func figures(raw json.RawMessage) []row {
	var r record
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return nil
	}
	var rows []row
	if r.Signal != "" {
		rows = append(rows, row{label: "Signal", value: r.signal()})
	}
	if r.Exposure != nil && r.Exposure.Requests != nil {
		s := counted(*r.Exposure.Requests, "request")
		if r.Exposure.Users != nil {
			s += ", " + counted(*r.Exposure.Users, "user")
		}
		rows = append(rows, row{label: "Exposure", value: s})
	}
	return rows
}

// signal says name, value, limit and samples.
func (r *record) signal() string {
	s := r.Signal
	if r.Value != nil {
		s += " " + r.figure(*r.Value)
	}
	if r.Limit != nil {
		s += ", limit " + r.figure(*r.Limit)
	}
	if r.Samples != nil {
		s += ", " + counted(*r.Samples, "sample")
	}
	return s
}

// figure prints a value in its signal's unit. A sum of the solve rate (cusum)
// is no rate.
func (r *record) figure(v float64) string {
	switch r.Signal {
	case "transfers", "solve_rate", "probes":
		if r.Form != "cusum" {
			return number(v*100) + " %"
		}
	case "ttft_slow", "stream_aborts", "server_errors", "errors", "kv_cache":
		return number(v*100) + " %"
	case "ttft_p99", "itl":
		return number(v) + " ms"
	case "p99":
		if r.Form == "count" {
			return number(v*100) + " %"
		}
		return number(v) + " ms"
	case "cost":
		return number(v) + " x stable"
	}
	return number(v)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// counted prints a count with its noun: "2,600 requests".
func counted(n int64, noun string) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if n != 1 {
		noun += "s"
	}
	return s + " " + noun
}

// more marks what was cut.
const more = "…"

// cut shortens a text to a number of bytes, at the border of a rune, and marks
// that it did.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := max(0, limit-len(more))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

// oneLine puts a text on one line and takes out what a terminal or a chat
// would obey instead of show.
func oneLine(s string) string { return strings.Join(strings.Fields(plain(s)), " ") }

// plainLines does the same and keeps line breaks and spaces.
func plainLines(s string) string { return plain(strings.ReplaceAll(s, "\r\n", "\n")) }

// plain replaces control characters other than line breaks by spaces, takes
// out those that turn the direction of text around, and repairs bad UTF-8.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// least is the length down to which a value is shortened to make a message
// fit.
const least = 24

// fit shortens the longest value, again and again, until size is within
// limit. Commands go last: half a command is worse than half a reason.
func fit(t text, limit int, size func(text) int) text {
	t.rows = append([]row(nil), t.rows...)
	for size(t) > limit {
		i := longest(t.rows)
		if i < 0 {
			t.rows = nil
			return t
		}
		t.rows[i].value = cut(t.rows[i].value, max(least, len(t.rows[i].value)*3/4))
	}
	return t
}

// longest returns the row to shorten next, or -1.
func longest(rows []row) int {
	best := -1
	for _, code := range []bool{false, true} {
		for i, r := range rows {
			if r.code == code && !r.link && len(r.value) > least && (best < 0 || len(r.value) > len(rows[best].value)) {
				best = i
			}
		}
		if best >= 0 {
			return best
		}
	}
	return best
}

// prefixed puts a robot's keyword before the headline, unless it is there.
func prefixed(t text, keyword string) text {
	if keyword != "" && !strings.Contains(t.headline, keyword) {
		t.headline = keyword + ": " + t.headline
	}
	return t
}
