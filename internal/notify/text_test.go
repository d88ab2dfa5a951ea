package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// lines prints a text as it stands before any dialect.
func lines(t text) string {
	out := []string{t.headline}
	for _, r := range t.rows {
		out = append(out, r.label+": "+r.value)
	}
	return strings.Join(out, "\n")
}

func TestReadableSaysWhatAPersonNeeds(t *testing.T) {
	m := rollback()
	m.Reason = "48 of 240 requests handed to a human in 5 minutes (20 %), limit 6 %"
	want := `order-service: rolled back, step 3 of 5, weight 0 %
Reason: 48 of 240 requests handed to a human in 5 minutes (20 %), limit 6 %
Signal: transfers 20 %, limit 6 %, 240 samples
Exposure: 2,600 requests, 840 users
Release: 3f2a9c81d0e4, attempt 2
Next: canaryctl resume --clear-lock --reason "cache purged <& checked>"
Run: https://ci.example/run_42?x=1&y=2`
	if got := lines(readable(m)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadableLeavesOutWhatThereIsNot(t *testing.T) {
	if got, want := lines(readable(Message{Event: Test, Service: "s"})), "s: test message"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFiguresInTheSignalsUnit(t *testing.T) {
	cases := []struct{ record, want string }{
		{`{"signal":"violations","value":4,"limit":3,"samples":52}`, "violations 4, limit 3, 52 samples"},
		{`{"signal":"cost","value":2.31,"limit":2,"samples":1}`, "cost 2.31 x stable, limit 2 x stable, 1 sample"},
		{`{"signal":"p99","value":1240,"limit":900,"samples":26}`, "p99 1240 ms, limit 900 ms, 26 samples"},
		{`{"signal":"p99","value":0.04,"limit":0.03,"samples":26,"form":"count"}`, "p99 4 %, limit 3 %, 26 samples"},
		{`{"signal":"solve_rate","value":0.8,"limit":0.8,"samples":1234567}`, "solve_rate 80 %, limit 80 %, 1,234,567 samples"},
		{`{"signal":"solve_rate","value":5.1,"limit":4.9,"samples":200,"form":"cusum"}`, "solve_rate 5.1, limit 4.9, 200 samples"},
		{`{"signal":"violations"}`, "violations"},
		{`{"value":4}`, ""}, {`{}`, ""}, {`null`, ""}, {`[1]`, ""}, {`{"signal":`, ""}, {``, ""},
	}
	for _, c := range cases {
		got := ""
		if rows := figures(json.RawMessage(c.record)); len(rows) > 0 {
			got = rows[0].value
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.record, got, c.want)
		}
	}
	// Users unknown are not 0 users.
	if rows := figures(json.RawMessage(`{"exposure":{"requests":1,"users":null}}`)); len(rows) != 1 || rows[0].value != "1 request" {
		t.Errorf("got %v", rows)
	}
}

func TestCutKeepsRunesWhole(t *testing.T) {
	for limit := 3; limit < 14; limit++ {
		got := cut("转人工率过高", limit)
		if !utf8.ValidString(got) || len(got) > limit || !strings.HasSuffix(got, "…") {
			t.Errorf("at %d: %q", limit, got)
		}
	}
	if got := cut("转人", 6); got != "转人" {
		t.Errorf("what fits was cut: %q", got)
	}
	if got, want := cut("转人工率", 10), "转人…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlainTakesOutWhatIsObeyed(t *testing.T) {
	if got, want := oneLine("a\x1b[31mb\r\n c\x00 \u202Ed\xff"), "a [31mb c d\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEscapes(t *testing.T) {
	cases := []struct{ name, got, want string }{
		{"slack entities", slackEscape("<!channel> & <@U1>"), "&lt;!channel&gt; &amp; &lt;@U1&gt;"},
		{"slack bold is broken", slackEscape("*bold*"), "*\u200bbold*\u200b"},
		{"a name with an underscore can be copied", slackEscape("solve_rate"), "solve_rate"},
		{"slack italics are broken", slackEscape("a _b_ c"), "a _\u200bb_\u200b c"},
		{"feishu entities", feishuEscape.Replace("<at id=all></at> **b** [x](y)"), "&#60;at id=all&#62;&#60;/at&#62; &#42;&#42;b&#42;&#42; &#91;x&#93;&#40;y&#41;"},
		{"dingtalk backslashes", dingtalkEscape(`[x](y) *b* a\b`), `\[x\](y) \*b\* a\\b`},
		{"wecom mention is broken", wecomEscape("<@all>"), "<\u200b@all>\u200b"},
		{"code with a backtick", spans("echo `date`\nls"), "`` echo `date` ``\n`ls`"},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestOnlyPlainAddressesBecomeLinks(t *testing.T) {
	cases := map[string]string{
		"https://ci.example/run/1?a=b":    "https://ci.example/run/1?a=b",
		"https://ci.example/run_(1)":      "https://ci.example/run_%281%29",
		"javascript:alert(1)":             "",
		"https://ci.example/a|b>":         "https://ci.example/a%7Cb%3E",
		"https://ci.example/?q=a|<b>":     "",
		"https://ci.example/" + wide(500): "",
		"":                                "",
	}
	for in, want := range cases {
		got, ok := asLink(in)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func wide(n int) string { return strings.Repeat("a", n) }

// TestMessagesFitWhateverTheySay gives every dialect the longest and worst
// texts: the body is valid and within the channel's limit, and the headline
// and the keyword survive.
func TestMessagesFitWhateverTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := func(label string) string {
			unit := rapid.SampledFrom([]string{"a", "*", "转", "`", "<&>", "_x_ ", "\"", "\\", "\x01", "😀", "\xff", "[](", "\n"}).Draw(t, label)
			return strings.Repeat(unit, rapid.IntRange(0, 20000).Draw(t, label+" length")/len(unit))
		}
		m := rollback()
		m.Service, m.Reason, m.Next, m.Release = long("service"), long("reason"), long("next"), long("release")
		m.RunURL = "https://ci.example/" + long("url")
		m.Rollback = nil

		checkSize := func(name string, size, limit int) {
			if size > limit {
				t.Fatalf("%s: %d bytes, limit %d", name, size, limit)
			}
		}
		body := func(d dialect) []byte {
			out, err := d.request(m, at)
			if err != nil || !json.Valid(out.body) || !utf8.Valid(out.body) {
				t.Fatalf("%T: %v: %.200q", d, err, out.body)
			}
			return out.body
		}
		var robot robotBody
		if err := json.Unmarshal(body(wecom{}), &robot); err != nil {
			t.Fatal(err)
		}
		checkSize("wecom", len(robot.Markdown.Content), 4096)
		dd := body(dingtalk{keyword: "发布*"})
		checkSize("dingtalk", len(dd), 20000)
		checkSize("feishu", len(body(feishu{secret: "s", keyword: "发布*"})), 20000)
		if err := json.Unmarshal(dd, &robot); err != nil || !strings.Contains(robot.Markdown.Text, "发布*") || !strings.Contains(robot.Markdown.Title, "发布*") {
			t.Fatalf("the keyword is lost: %.200s", dd)
		}
		var sb slackBody
		if err := json.Unmarshal(body(slack{}), &sb); err != nil {
			t.Fatal(err)
		}
		for _, block := range sb.Blocks {
			checkSize("slack", len(block.Text.Text), 3000)
		}
	})
}

func TestCommandsAreShortenedLast(t *testing.T) {
	m := rollback()
	m.Reason = strings.Repeat("why ", 5000)
	out, err := wecom{}.request(m, at)
	if err != nil {
		t.Fatal(err)
	}
	var robot robotBody
	if err := json.Unmarshal(out.body, &robot); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(robot.Markdown.Content, "`"+m.Next+"`") || !strings.Contains(robot.Markdown.Content, "…") {
		t.Errorf("got %s", robot.Markdown.Content)
	}
}

func TestEveryEventHasWordsAndAKnownSide(t *testing.T) {
	for _, e := range []Event{
		Started, Advanced, Completed, RolledBack, Locked, Incomplete, Probing, Recovered, Approval, Overdue,
		Drift, Mismatch, SourceLost, SourceBack, TargetLost, Paused, Resumed, HookFailed, Test,
	} {
		if words[e] == "" {
			t.Errorf("%s has no words", e)
		}
		// What somebody should look at now has an alert.
		found := false
		for _, al := range alerts {
			found = found || al.event == e
		}
		if e.Bad() && !found {
			t.Errorf("%s is bad and has no alert", e)
		}
	}
}

func TestEveryAlertHasItsOwnNameAndEndsByAnotherEvent(t *testing.T) {
	seen := map[string]bool{}
	for _, al := range alerts {
		if seen[al.name] {
			t.Errorf("%s is there twice", al.name)
		}
		seen[al.name] = true
		for _, e := range al.ends {
			if e == al.event {
				t.Errorf("%s is begun and ended by %s", al.name, e)
			}
			if words[e] == "" {
				t.Errorf("%s is ended by %q, which is no event", al.name, e)
			}
		}
	}
	if alertLife < 24*time.Hour {
		t.Error("alerts end by themselves within a day")
	}
}
