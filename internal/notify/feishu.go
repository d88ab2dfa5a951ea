package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// feishuLimit is the longest body, in bytes; the robot takes 20 KB.
const feishuLimit = 18 << 10

// feishu speaks to a custom bot of Feishu or Lark. Success is 2xx with code 0
// in the body: a wrong signature is answered 200.
type feishu struct{ secret, keyword string }

type feishuBody struct {
	Timestamp string     `json:"timestamp,omitempty"`
	Sign      string     `json:"sign,omitempty"`
	Type      string     `json:"msg_type"`
	Card      feishuCard `json:"card"`
}

type feishuCard struct {
	Header   feishuHeader    `json:"header"`
	Elements []feishuElement `json:"elements"`
}

type feishuHeader struct {
	Title    feishuText `json:"title"`
	Template string     `json:"template"` // colour
}

type feishuElement struct {
	Tag  string     `json:"tag"`
	Text feishuText `json:"text"`
}

type feishuText struct {
	Tag     string `json:"tag"`
	Content string `json:"content"`
}

func (f feishu) request(m Message, now time.Time) (outgoing, error) {
	t := prefixed(readable(m), f.keyword)
	t = fit(t, feishuLimit, func(t text) int { return encodedLen(f.body(t, m.Event, now)) })
	body, err := encode(f.body(t, m.Event, now))
	return outgoing{body: body}, err
}

func (f feishu) body(t text, e Event, now time.Time) feishuBody {
	out := feishuBody{Type: "interactive", Card: feishuCard{
		Header:   feishuHeader{Title: feishuText{"plain_text", t.headline}, Template: feishuColour(e)},
		Elements: []feishuElement{},
	}}
	if f.secret != "" {
		out.Timestamp = strconv.FormatInt(now.Unix(), 10)
		out.Sign = feishuSign(f.secret, out.Timestamp)
	}
	div := func(tag, content string) {
		out.Card.Elements = append(out.Card.Elements, feishuElement{"div", feishuText{tag, content}})
	}
	for _, r := range t.rows {
		switch {
		case r.code:
			div("lark_md", "**"+r.label+"**")
			div("plain_text", r.value) // not interpreted: it can be copied
		case r.link:
			div("lark_md", "**"+r.label+"** ["+feishuEscape.Replace(r.value)+"]("+r.value+")")
		default:
			div("lark_md", "**"+r.label+"** "+feishuEscape.Replace(r.value))
		}
	}
	return out
}

// feishuEscape writes the characters that the card's markdown gives a meaning
// as the entities that its documentation names.
var feishuEscape = strings.NewReplacer(
	"&", "&#38;", "<", "&#60;", ">", "&#62;", "*", "&#42;", "_", "&#95;", "~", "&#126;", "`", "&#96;",
	"[", "&#91;", "]", "&#93;", "(", "&#40;", ")", "&#41;", "#", "&#35;", "\\", "&#92;", "|", "&#124;", "!", "&#33;",
)

func feishuColour(e Event) string {
	switch {
	case e.Bad():
		return "red"
	case e == Approval || e == Paused || e == Probing:
		return "orange"
	case e == Completed || e == Recovered || e == SourceBack:
		return "green"
	}
	return "blue"
}

// feishuSign is base64(HMAC-SHA256(key: timestamp "\n" secret, message: "")),
// the timestamp in seconds: the text that others sign is the key here, and the
// message is empty.
func feishuSign(secret, stamp string) string {
	return base64.StdEncoding.EncodeToString(hmac.New(sha256.New, []byte(stamp+"\n"+secret)).Sum(nil))
}

// feishuBusy are codes that a later try may mend: too many messages, and an
// error of theirs.
var feishuBusy = []int64{11232, 2200}

func (feishu) judge(a answer) error {
	var said struct {
		Code *int64 `json:"code"`
		Msg  string `json:"msg"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Code == nil {
		return a.unclear("code")
	}
	if *said.Code == 0 {
		return a.accepted()
	}
	busy := slices.Contains(feishuBusy, *said.Code) || strings.Contains(said.Msg, "too many request")
	return a.coded(fmt.Sprintf("code %d: %s", *said.Code, a.excerpt(said.Msg)), busy)
}

// coded is the error of an answer that has a code of its own.
func (a answer) coded(said string, busy bool) error {
	if a.accepted() != nil && !busy {
		return a.refused(said)
	}
	return a.mendable(fmt.Errorf("answered %s", said), busy)
}

// unclear is the error of an answer that lacks the field that tells success.
func (a answer) unclear(field string) error {
	if err := a.accepted(); err != nil {
		return err
	}
	return fmt.Errorf("answered %d without %s in the body (%s): the address may not be a robot's", a.status, field, orNothing(a.excerpt(string(a.body))))
}
