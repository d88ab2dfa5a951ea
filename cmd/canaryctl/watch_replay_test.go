//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
)

// stoppedReplay opens a replay in a terminal and stops it at its first window:
// at this speed it does not get any further by itself meanwhile.
func stoppedReplay(t *testing.T, p *pane, flags ...string) {
	t.Helper()
	p.enter("canaryctl watch --speed 0.1x --replay " + strings.Join(flags, " ") + tellExit)
	p.shows(" 0.1x\n")
	p.keys("Space")
	p.shows(" 0/", " stopped\n")
}

// TestTravellingThroughAReplayInATerminal presses the keys of a replay in a real
// terminal, and holds each screen against the recorded one.
func TestTravellingThroughAReplayInATerminal(t *testing.T) {
	all := strings.Fields("Home Right l Right Enter Down Up Enter ] ] [ Left h j Tab BTab k c c c Up Up Down ? x + - End Right ] [ g G Left p x")
	some := strings.Fields("Right Enter Down Enter ] c c c k ? x ] End")
	for _, tt := range []struct {
		cols, rows int
		keys       []string
	}{{80, 24, all}, {120, 40, some}, {40, 12, some}} {
		for _, replay := range []string{"incident-0217", "scenario-a"} {
			t.Run(fmt.Sprintf("%s/%dx%d", replay, tt.cols, tt.rows), func(t *testing.T) {
				t.Parallel()
				p := openPane(t, tt.cols, tt.rows, t.TempDir())
				stoppedReplay(t, p, replay)
				f := p.record(fmt.Sprintf("%s-%dx%d.txt", replay, tt.cols, tt.rows), p.screen)
				f.frame("Space")
				f.press(tt.keys...)
				p.keys("q")
				p.shows("exit 0\n")
				f.frame("q")
				p.exits(0)
			})
		}
	}
}

// TestAReplayInColours holds the styles of each cell against the recorded ones.
func TestAReplayInColours(t *testing.T) {
	t.Parallel()
	p := openPane(t, 80, 24, t.TempDir())
	stoppedReplay(t, p, "incident-0217")
	f := p.record("incident-0217-80x24-colours.txt", p.styled)
	f.frame("Space")
	f.press("Right", "Enter", "]")
	if frame := f.got[1]; !strings.Contains(frame, "fg=2;") {
		t.Error("not one of all colours is on the screen")
	}
	p.keys("q")
	p.exits(0)
}

// TestAReplayPlaysByItself goes on without keys, stops at the end and says so,
// and plays once more from there.
func TestAReplayPlaysByItself(t *testing.T) {
	t.Parallel()
	p := openPane(t, 80, 24, t.TempDir())
	p.enter("canaryctl watch --speed 100000x --replay incident-0217" + tellExit)
	p.shows(" 60/60 stopped\n", "the end of the replay: home plays it again, q quits")
	p.keys("-", "-", "-", "-", "-", "-", "-", "-", "-", "-") // a window takes 0.6 s now
	p.keys("Home")
	p.wait("plays", func(screen string) bool {
		return strings.Contains(screen, "97.65625x\n") && !strings.Contains(screen, " 0/60 ")
	})
	p.keys("C-c")
	p.exits(130)
}

// TestTwoHundredKeysInARowAreAllTaken: nothing is lost by a view that draws less
// often than keys come.
func TestTwoHundredKeysInARowAreAllTaken(t *testing.T) {
	t.Parallel()
	p := openPane(t, 120, 40, t.TempDir())
	stoppedReplay(t, p, "slow-decay")
	p.run("send-keys", "-N", "200", "Right")
	p.shows(" 200/")
	p.run("send-keys", "-N", "150", "Left")
	p.shows(" 50/")
	p.text(strings.Repeat("l", 100)) // in one piece
	p.shows(" 150/")
	p.keys("q")
	p.exits(0)
}
