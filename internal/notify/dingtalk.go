package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dingtalkLimit is the longest body, in bytes; the robot takes 20000.
const dingtalkLimit = 18000

// dingtalk speaks to a custom robot of DingTalk. Success is 2xx with errcode 0
// in the body.
type dingtalk struct{ secret, keyword string }

// robotBody is a markdown message; DingTalk has a title and text, WeCom
// content.
type robotBody struct {
	Type     string        `json:"msgtype"`
	Markdown robotMarkdown `json:"markdown"`
}

type robotMarkdown struct {
	Title   string `json:"title,omitempty"`
	Text    string `json:"text,omitempty"`
	Content string `json:"content,omitempty"`
}

func (d dingtalk) request(m Message, now time.Time) (outgoing, error) {
	t := fit(readable(m), dingtalkLimit, func(t text) int { return encodedLen(d.body(t)) })
	body, err := encode(d.body(t))
	out := outgoing{body: body}
	if d.secret != "" {
		stamp := strconv.FormatInt(now.UnixMilli(), 10)
		out.query = url.Values{"timestamp": {stamp}, "sign": {dingtalkSign(d.secret, stamp)}}
	}
	return out, err
}

func (d dingtalk) body(t text) robotBody {
	heading := dingtalkEscape(t.headline)
	if full := prefixed(t, d.keyword); full.headline != t.headline || !strings.Contains(heading, d.keyword) {
		// The keyword goes in as it is: escaped, the robot would not find it.
		t, heading = full, d.keyword+": "+heading
	}
	lines := []string{"### " + heading}
	for _, r := range t.rows {
		switch {
		case r.code:
			lines = append(lines, "**"+r.label+"**", strings.ReplaceAll(spans(r.value), "\n", "\n\n"))
		case r.link:
			lines = append(lines, "**"+r.label+"** ["+dingtalkEscape(r.value)+"]("+r.value+")")
		default:
			lines = append(lines, "**"+r.label+"** "+dingtalkEscape(r.value))
		}
	}
	// One line break is none in its markdown.
	return robotBody{Type: "markdown", Markdown: robotMarkdown{Title: t.headline, Text: strings.Join(lines, "\n\n")}}
}

func dingtalkEscape(s string) string { return slashed(s, "\\`*_[]<>#~|!") }

// dingtalkSign is base64(HMAC-SHA256(key: secret, message: timestamp "\n"
// secret)), the timestamp in milliseconds; both go into the query.
func dingtalkSign(secret, stamp string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "\n" + secret))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// dingtalkBusy are codes that a later try may mend: their system is busy, and
// more than 20 messages a minute.
var dingtalkBusy = []int64{-1, 130101, 410100}

func (dingtalk) judge(a answer) error { return a.errcode(dingtalkBusy) }

// errcode is the rule that errcode 0 in the body is success.
func (a answer) errcode(busy []int64) error {
	var said struct {
		Code *int64 `json:"errcode"`
		Msg  string `json:"errmsg"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Code == nil {
		return a.unclear("errcode")
	}
	if *said.Code == 0 {
		return a.accepted()
	}
	return a.coded(fmt.Sprintf("errcode %d: %s", *said.Code, a.excerpt(said.Msg)), slices.Contains(busy, *said.Code))
}
