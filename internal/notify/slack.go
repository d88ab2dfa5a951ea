package notify

import (
	"errors"
	"strings"
	"time"
)

// slackLimit is the longest text of a section, in characters; bytes are
// counted, which are never fewer.
const slackLimit = 3000

// slack speaks to an incoming webhook. Success is 200 with the body "ok".
type slack struct{}

type slackBody struct {
	Text   string       `json:"text"` // what a notification shows
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (slack) request(m Message, _ time.Time) (outgoing, error) {
	t := fit(readable(m), slackLimit, func(t text) int { return len(slackRows(t)) })
	out := slackBody{Text: slackEscape(t.headline), Blocks: []slackBlock{slackSection("*" + slackEscape(t.headline) + "*")}}
	if len(t.rows) > 0 {
		out.Blocks = append(out.Blocks, slackSection(slackRows(t)))
	}
	body, err := encode(out)
	return outgoing{body: body}, err
}

func slackSection(s string) slackBlock {
	return slackBlock{Type: "section", Text: slackText{Type: "mrkdwn", Text: s}}
}

func slackRows(t text) string {
	var lines []string
	for _, r := range t.rows {
		switch {
		case r.code:
			fenced := strings.ReplaceAll(slackEntities.Replace(r.value), "```", "`"+zeroWidth+"`"+zeroWidth+"`")
			lines = append(lines, "*"+r.label+"*\n```"+fenced+"```")
		case r.link:
			lines = append(lines, "*"+r.label+"* <"+slackEntities.Replace(r.value)+">")
		default:
			lines = append(lines, "*"+r.label+"* "+slackEscape(r.value))
		}
	}
	return strings.Join(lines, "\n")
}

// slackEntities are the three characters that Slack's text has entities for;
// they begin mentions and links.
var slackEntities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func slackEscape(s string) string { return broken(slackEntities.Replace(s), "*_~`") }

func (slack) judge(a answer) error {
	if err := a.accepted(); err != nil {
		return err
	}
	if strings.TrimSpace(string(a.body)) != "ok" {
		return errors.New("answered " + orNothing(a.excerpt(string(a.body))) + " instead of ok")
	}
	return nil
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
