package notify

import (
	"strings"
	"time"
)

// wecomLimit is the longest content, in bytes of UTF-8; a longer one is
// refused with errcode 40058.
const wecomLimit = 4096

// wecom speaks to a group robot of WeCom. Success is 2xx with errcode 0 in the
// body.
type wecom struct{}

func (wecom) request(m Message, _ time.Time) (outgoing, error) {
	t := fit(readable(m), wecomLimit, func(t text) int { return len(wecomContent(t)) })
	body, err := encode(robotBody{Type: "markdown", Markdown: robotMarkdown{Content: wecomContent(t)}})
	return outgoing{body: body}, err
}

func wecomContent(t text) string {
	lines := []string{"**" + wecomEscape(t.headline) + "**"}
	for _, r := range t.rows {
		switch {
		case r.code:
			lines = append(lines, r.label+":", spans(r.value))
		case r.link:
			lines = append(lines, r.label+": ["+wecomEscape(r.value)+"]("+r.value+")")
		default:
			lines = append(lines, r.label+": "+wecomEscape(r.value))
		}
	}
	return strings.Join(lines, "\n")
}

// wecomEscape breaks what its markdown would read: bold, code, links, fonts
// and mentions (<@userid>). It has no escapes.
func wecomEscape(s string) string { return broken(s, "*`[]<>#_") }

// wecomBusy are codes that a later try may mend: their system is busy, more
// than 20 messages a minute, and too many at once.
var wecomBusy = []int64{-1, 45009, 45033}

func (wecom) judge(a answer) error { return a.errcode(wecomBusy) }
