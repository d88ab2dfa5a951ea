package tui

import (
	"math"
	"slices"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// playing is where a replay stands.
type playing struct {
	on    bool
	speed float64 // seconds of the replay in a second
	frame int
	part  float64   // of a frame that has passed
	last  time.Time // of the newest tick; zero: none since it was started
	turn  int
}

// The slowest and the fastest that a replay is played.
const (
	Slowest = 0.1
	Fastest = 100_000.0
)

const (
	// shortest is between two ticks: more frames a second nobody sees. longest
	// keeps the clock of a slow replay moving.
	shortest, longest = 50 * time.Millisecond, time.Second
)

// tick waits for the next frame, or for many of them.
func (p *playing) tick(span time.Duration) tea.Cmd {
	if !p.on {
		return nil
	}
	wait, turn := time.Duration(float64(span)/p.speed), p.turn
	return tea.Tick(min(max(wait, shortest), longest), func(at time.Time) tea.Msg { return playMsg{at, turn} })
}

// frames is how many frames have passed by a time.
func (p *playing) frames(at time.Time, span time.Duration) int {
	if p.last.IsZero() {
		p.last = at.Add(-min(max(time.Duration(float64(span)/p.speed), shortest), longest))
	}
	p.part += at.Sub(p.last).Seconds() * p.speed / span.Seconds()
	p.last = at
	n := math.Floor(p.part + 1e-9)
	p.part = max(p.part-n, 0)
	return int(min(n, math.MaxInt32))
}

// start plays on from where it stands, or stops.
func (p *playing) start(on bool) { p.on, p.part, p.last, p.turn = on, 0, time.Time{}, p.turn+1 }

// show goes to a frame.
func (m model) show(frame int) model {
	last := m.o.Film.Len() - 1
	m.play.frame = min(max(frame, 0), last)
	m.snapshot, m.seen = m.o.Film.At(m.play.frame), true
	m.event, m.pointed, m.unfolded = 0, false, false
	return m.settle()
}

// advance shows the frame that it is time for; at the last one it stops.
func (m model) advance(msg playMsg) (tea.Model, tea.Cmd) {
	if !m.play.on || msg.turn != m.play.turn {
		return m, nil
	}
	span := m.o.Film.Span()
	if n := m.play.frames(msg.at, span); n > 0 {
		if m.unfolded { // what is being read stays
			return m, m.play.tick(span)
		}
		m = m.show(m.play.frame + n)
	}
	if m.play.frame == m.o.Film.Len()-1 {
		m.play.start(false)
		m.note, m.tone = "the end of the replay: home plays it again, q quits", watch.Plain
		return m, nil
	}
	return m, m.play.tick(span)
}

// steers reports whether a key moves the replay.
func (m *model) steers(msg tea.KeyMsg) bool {
	k := &m.keys
	return key.Matches(msg, k.Play, k.Forward, k.Back, k.NextMark, k.LastMark, k.Home, k.End, k.Faster, k.Slower)
}

// steer moves the replay. A step by hand stops it; a jump to its beginning plays
// it again.
func (m model) steer(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	k, last := &m.keys, m.o.Film.Len()-1
	switch {
	case key.Matches(msg, k.Play):
		if !m.play.on && m.play.frame == last {
			m = m.show(0)
		}
		m.play.start(!m.play.on)
		return m, m.play.tick(m.o.Film.Span())
	case key.Matches(msg, k.Faster, k.Slower):
		return m.pace(key.Matches(msg, k.Faster))
	case key.Matches(msg, k.Home):
		on := m.play.on || m.play.frame == last
		m = m.show(0)
		m.play.start(on)
		return m, m.play.tick(m.o.Film.Span())
	}
	m.play.start(false)
	return m.show(m.goal(msg)), nil
}

// goal is the frame that a key goes to.
func (m *model) goal(msg tea.KeyMsg) int {
	k, at, marks := &m.keys, m.play.frame, m.o.Film.Marks()
	i, found := slices.BinarySearch(marks, at)
	switch {
	case key.Matches(msg, k.Forward):
		return at + 1
	case key.Matches(msg, k.Back):
		return at - 1
	case key.Matches(msg, k.NextMark):
		if found {
			i++
		}
		if i < len(marks) {
			return marks[i]
		}
		return at
	case key.Matches(msg, k.LastMark):
		if i > 0 {
			return marks[i-1]
		}
		return at
	}
	return m.o.Film.Len() - 1
}

// pace makes the replay faster or slower.
func (m model) pace(faster bool) (tea.Model, tea.Cmd) {
	if faster {
		m.play.speed = min(m.play.speed*2, Fastest)
	} else {
		m.play.speed = max(m.play.speed/2, Slowest)
	}
	on := m.play.on
	m.play.start(on)
	return m, m.play.tick(m.o.Film.Span())
}
