package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// clock is the time that the view is of: the replay's, or now.
func (m *model) clock() time.Time {
	if m.snapshot.Replay != "" {
		return m.snapshot.At
	}
	return m.now
}

// head answers the questions: is it safe, why, what next, what can I do. Where
// there is little room the answers go before everything else: rows of the table
// are left out for them, and the ladder.
func (p *page) head() {
	m, k := p.m, p.situation
	roomy := m.height >= 20
	p.put(m.title())
	for _, line := range m.stateLines(k) {
		p.put(line)
	}
	p.alarms(roomy)
	if m.unfolded && !roomy {
		return // the answers have been read; what is unfolded needs their place
	}
	leave := 2 // rows of the table
	if k.Tone == watch.Bad {
		leave = 0
	}
	if roomy {
		leave = len(m.snapshot.Signals) + 3
	}
	film := 0
	if m.o.Film != nil {
		film = 1
	}
	p.answers(p.left - leave - film - 1)
	p.put(m.weightLine(k))
	if p.left-film > leave && (roomy || p.left-film > len(m.snapshot.Signals)) {
		s := &m.snapshot
		held, hold := s.Hold()
		p.put(ladderBar(m.theme, s.Rungs, s.Step, s.Weight.IsZero(), held, hold, m.width))
	}
	if film > 0 {
		p.put(m.timeline())
	}
}

// alarms are what makes the rest less than the whole truth.
func (p *page) alarms(roomy bool) {
	m, g := p.m, &p.m.theme.Glyphs
	alarms := p.situation.Alarms
	if m.failed != nil {
		alarms = append([]string{"CANNOT LOOK: " + m.failed.Error()}, alarms...)
	}
	most, lines := 1, 1
	if roomy {
		most, lines = 3, 2
	} else if p.situation.Tone == watch.Bad {
		lines = 2
	}
	for _, alarm := range alarms[:min(len(alarms), most)] {
		for _, line := range wrap(safe(alarm), m.width-4, lines, g) {
			p.put(m.theme.Banner.Render(" " + g.Unknown + " " + line + " "))
		}
	}
}

// answers are why, what next and what to do, in up to so many lines. The last
// of them is what a person needs first; it is cut last.
func (p *page) answers(room int) {
	k := p.situation
	texts := [3]struct{ title, text string }{{"why", k.Why}, {"next", k.Next}, {"do", k.Do}}
	if k.Tone == watch.Good && p.m.height < 20 { // all is well: the figures are worth more than the second half of a sentence
		for i := range texts {
			texts[i].text, _, _ = strings.Cut(texts[i].text, "; ")
		}
	}
	var lines [3]int
	total := 0
	for i, t := range texts {
		lines[i] = len(wrap(safe(t.text), p.m.width-titleColumn, 3, &p.m.theme.Glyphs))
		total += lines[i]
	}
	for _, i := range [...]int{0, 0, 1, 1, 2, 2} {
		if total > max(room, 3) && lines[i] > 1 {
			lines[i]--
			total--
		}
	}
	for i, t := range texts {
		p.titled(t.title, t.text, lines[i])
	}
}

// title names the release and the time.
func (m *model) title() string {
	s, th := &m.snapshot, m.theme
	at := m.clock().UTC().Format("15:04:05") + " UTC"
	if m.width < 60 {
		at = m.clock().UTC().Format("15:04") + "Z"
	}
	facts := []string{safe(s.Service)}
	if s.Replay != "" {
		facts[0] = "REPLAY " + safe(s.Replay)
		at = s.At.UTC().Format("2006-01-02 15:04") + " UTC"
		if m.width < 60 {
			at = s.At.UTC().Format("15:04") + "Z"
		}
	}
	if s.Candidate != "" {
		facts = append(facts, s.Release)
	}
	facts = append(facts, fmt.Sprintf("attempt %d", max(s.Outcome.Attempt, 1)), fmt.Sprintf("step %d of %d", s.Step, len(s.Rungs)))
	room := m.width - ansi.StringWidth(at) - 1
	text := th.Strong.Render(cut(joinFacts(facts, room, th), room, &th.Glyphs))
	return text + strings.Repeat(" ", max(m.width-ansi.StringWidth(text)-ansi.StringWidth(at), 1)) + th.Faint.Render(at)
}

// joinFacts puts facts in a line; where they do not fit, the second goes, and
// then the first is cut.
func joinFacts(facts []string, width int, th *Theme) string {
	sep := " " + th.Glyphs.Dot + " "
	line := strings.Join(facts, sep)
	if ansi.StringWidth(line) > width && len(facts) > 2 {
		rest := strings.Join(facts[2:], sep)
		if ansi.StringWidth(facts[0]+sep+rest) > width {
			rest = strings.NewReplacer("attempt ", "att ", " of ", "/").Replace(rest)
		}
		return cut(facts[0], max(width-ansi.StringWidth(sep+rest), 1), &th.Glyphs) + sep + rest
	}
	return line
}

// stateLines are the first answer: in a line, or in two where it does not fit.
func (m *model) stateLines(k *watch.Situation) []string {
	th := m.theme
	word := th.Glyphs.signOf(k.Tone) + " " + k.Word
	style := th.styleOf(k.Tone).Bold(true)
	if ansi.StringWidth(word+"  "+k.What) <= m.width {
		return []string{style.Render(word) + "  " + safe(k.What)}
	}
	return []string{style.Render(cut(word, m.width, &th.Glyphs)), cut("  "+safe(k.What), m.width, &th.Glyphs)}
}

// weightLine is the weight as set, as read, and as it is seen to be served, with
// the breaker and the gate's verdict. What does not fit is said shorter, or goes.
func (m *model) weightLine(k *watch.Situation) string {
	g := &m.theme.Glyphs
	sep := " " + g.Dot + " "
	facts := m.weightFacts(k)
	said := make([]string, len(facts))
	order := make([]int, len(facts))
	for i, f := range facts {
		said[i], order[i] = f.short, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return facts[a].rank - facts[b].rank })
	join := func() string {
		return strings.Join(slices.DeleteFunc(slices.Clone(said), func(s string) bool { return s == "" }), sep)
	}
	for _, i := range order {
		if said[i] = facts[i].long; ansi.StringWidth(join()) > m.width {
			said[i] = facts[i].short
		}
	}
	return cut(join(), m.width, g)
}

// fact is said in two lengths; the shorter may be nothing. The lowest ranks are
// said at length first.
type fact struct {
	long, short string
	rank        int
}

func (m *model) weightFacts(k *watch.Situation) []fact {
	s, o := &m.snapshot, &m.snapshot.Outcome
	set := fact{long: "set " + s.Weight.String(), rank: 1}
	if r := s.Record; s.Weight.IsZero() && r != nil && !r.ReadBack.IsZero() {
		set.long += ", read back " + r.ReadBack.UTC().Format("15:04:05")
	}
	set.short = "set " + s.Weight.String()
	if s.Pending.Move != release.Hold {
		set.long = "set " + s.Weight.String() + ", " + s.Pending.Weight.String() + " asked for"
		set.short = set.long
	}
	facts := []fact{set}
	if t := &s.Target; t.Err == "" && !t.At.IsZero() && !t.Weight.Same(s.Weight) {
		facts = append(facts, fact{"TARGET HOLDS " + t.Weight.String(), "HOLDS " + t.Weight.String(), 0})
	}
	if !k.Old {
		facts = append(facts, m.shareFact())
	}
	facts = append(facts, m.breakerFact(k))
	if len(o.Verdicts) > 0 {
		facts = append(facts, fact{"verdict " + o.Verdict.String(), "", 3})
	}
	if s.Served > 0 && s.Step > 0 {
		facts = append(facts, fact{count(s.Served) + " served in this attempt", "", 5})
	}
	return facts
}

// shareFact is what the canary is seen to serve.
func (m *model) shareFact() fact {
	x := m.snapshot.Share()
	if x.Of() == 0 {
		if m.snapshot.Weight.IsZero() {
			return fact{}
		}
		return fact{"share not seen yet", "", 4}
	}
	what := "requests"
	if x.Users {
		what = "users"
	}
	share := fmt.Sprintf("seen %.3g %%", 100*float64(x.Canary)/float64(x.Of()))
	short := fmt.Sprintf("seen %.2g %% (%s)", 100*float64(x.Canary)/float64(x.Of()), brief(x.Of()))
	return fact{share + " of " + count(x.Of()) + " " + what, short, 4}
}

// breakerFact is the breaker's state, and what that means now. Where it cannot
// trip it guards nothing, whatever its state.
func (m *model) breakerFact(k *watch.Situation) fact {
	p := m.snapshot.Outcome.Phase
	means := ""
	switch {
	case k.Would && p != release.Closed:
		means = " (at the next look)"
	case p == release.Open && m.snapshot.InForce() && m.snapshot.Record.By == "person":
		means = " (by hand)"
	case p == release.Open:
		means = " (tripped)"
	case k.Guarded && p == release.HalfOpen:
		means = " (on trial)"
	case k.Guarded:
		means = " (armed)"
	case !m.snapshot.Weight.IsZero() && m.snapshot.Stage == ladder.Climbing:
		means = " (not guarding)"
	}
	short := p.String() + strings.NewReplacer(" (", ", ", ")", "").Replace(means)
	return fact{"breaker " + p.String() + means, short, 2}
}

// timeline is where a replay stands, with a mark where something happened.
func (m *model) timeline() string {
	th, film := m.theme, m.o.Film
	g := &th.Glyphs
	state := "stopped"
	if m.play.on {
		state = fmt.Sprintf("%gx", m.play.speed)
	}
	tail := fmt.Sprintf(" %d/%d %s", m.play.frame, film.Len()-1, state)
	width := m.width - ansi.StringWidth(tail)
	cells := []rune(strings.Repeat(g.Rule, max(width, 1)))
	place := func(frame int) int { return frame * (len(cells) - 1) / max(film.Len()-1, 1) }
	for _, mark := range film.Marks() {
		cells[place(mark)] = []rune(g.Unknown)[0]
	}
	at := place(m.play.frame)
	return th.Faint.Render(string(cells[:at])) + th.Strong.Render(g.Current) + th.Faint.Render(string(cells[at+1:])) + tail
}
