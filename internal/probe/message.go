package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// message is what a server wrote about a failure.
type message struct {
	fields map[string]any // the answer, if it is a JSON object
	found  bool           // it carries an error
	text   string         // the error's own words; the whole body where it has no form
	code   int            // status of HTTP that it names in its body; 0: none
	says   string         // text and the error's other words, in lower case, for looking through; of a page nothing, which may talk of anything

	html        bool // it is a web page
	login       bool // and one on which people sign in
	oauth       bool // by OAuth
	unencrypted bool // or says that the server encrypts and was not asked to
}

// readMessage finds the error in an answer. The forms are those of OpenAI and
// those who follow it, FastAPI, OAuth, and gateways with code and message at
// the top.
func readMessage(body []byte) message {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	m := message{}
	if event, ok := bytes.CutPrefix(body, []byte("data:")); ok { // an event stream may carry an error too
		body = event
		if i := bytes.IndexByte(body, '\n'); i >= 0 {
			body = body[:i]
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 { // Google's errors stand in a list
		body = list[0]
	}
	if json.Unmarshal(body, &m.fields) != nil {
		m.fields = nil
		m.page(body)
		return m
	}
	for _, key := range []string{"error", "base_resp"} {
		switch e := m.fields[key].(type) {
		case map[string]any:
			if key == "base_resp" && fmt.Sprint(e["status_code"]) == "0" {
				continue
			}
			m.take(e)
		case string:
			m.found = m.found || e != ""
			m.add(e)
		}
	}
	if _, answered := m.fields["choices"]; !m.found && !answered {
		m.take(m.fields)
		m.found = m.found && failure(m.fields)
	} else if description, ok := m.fields["error_description"].(string); ok {
		m.add(description)
	}
	return m
}

// failure reports whether an object without choices says that something went
// wrong, rather than hello.
func failure(fields map[string]any) bool {
	for _, key := range []string{"code", "status_code", "error_code", "detail", "errors", "error_msg"} {
		if v := fields[key]; v != nil && v != float64(0) && v != "0" && v != float64(200) {
			return true
		}
	}
	return fields["object"] == "error" || fields["type"] == "error" || fields["success"] == false
}

// take reads an object that describes an error.
func (m *message) take(e map[string]any) {
	for _, key := range []string{"message", "msg", "error_msg", "status_msg", "detail", "errors", "error_description"} {
		switch v := e[key].(type) {
		case nil:
		case string:
			m.found = m.found || v != ""
			m.add(v)
		case []any, map[string]any:
			if b, err := json.Marshal(v); err == nil {
				m.found = true
				m.add(string(b))
			}
		}
	}
	for _, key := range []string{"type", "code", "status", "param", "status_code"} {
		switch v := e[key].(type) {
		case string:
			m.says += " " + strings.ToLower(v)
			if n, err := strconv.Atoi(v); err == nil {
				m.status(n)
			}
		case float64:
			m.status(int(v))
		}
	}
}

func (m *message) status(n int) {
	if n >= 400 && n < 600 {
		m.code = n
	}
}

func (m *message) add(text string) {
	if m.text != "" && text != "" {
		m.text += ": "
	}
	m.text += text
	m.says += " " + strings.ToLower(text)
}

// page reads an answer that is no JSON object.
func (m *message) page(body []byte) {
	lower := bytes.ToLower(body)
	m.html = bytes.HasPrefix(lower, []byte("<")) || bytes.Contains(lower[:min(len(lower), 1024)], []byte("<html"))
	if !m.html {
		m.add(string(body))
		return
	}
	m.text = plain(string(body))
	has := func(word string) bool { return bytes.Contains(lower, []byte(word)) }
	m.oauth = has("oauth")
	m.unencrypted = has("plain http request was sent to https port")
	m.login = slices.ContainsFunc([]string{`type="password"`, "type='password'", "sign in", "log in", "signin", "/login", "single sign"}, has)
}

// plain is the text of a page: its title and what stands outside of tags.
func plain(page string) string {
	var b strings.Builder
	for page != "" {
		text, rest, ok := strings.Cut(page, "<")
		b.WriteString(text)
		b.WriteByte(' ')
		if !ok {
			break
		}
		for _, element := range []string{"script", "style"} {
			if len(rest) > len(element) && strings.EqualFold(rest[:len(element)], element) {
				if i := strings.Index(strings.ToLower(rest), "</"+element); i >= 0 {
					rest = rest[i:]
				}
			}
		}
		_, page, _ = strings.Cut(rest, ">")
	}
	return b.String()
}

// saysAny reports whether the message has any of the words, given in lower
// case.
func (m *message) saysAny(words ...string) bool {
	for _, w := range words {
		if strings.Contains(m.says, w) {
			return true
		}
	}
	return false
}
