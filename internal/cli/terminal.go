package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/canaryctl/canaryctl/internal/report"
)

// textReport is what can be written for a person.
type textReport interface {
	Text(w io.Writer, style report.Style) error
}

// terminalWidth returns the columns of the terminal behind w, and false where
// there is none.
func terminalWidth(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80, true
	}
	return width, true
}

// style returns how text on stdout is drawn: with colour on a terminal, unless
// --no-color, NO_COLOR or TERM=dumb say otherwise.
func (app *App) style() report.Style {
	width, terminal := terminalWidth(app.Stdout)
	if !terminal {
		return report.Style{}
	}
	return report.Style{Width: width, Color: !app.global.NoColor && app.Getenv("NO_COLOR") == "" && app.Getenv("TERM") != "dumb"}
}

// statusLine is one line on a terminal's stderr that is drawn over and over,
// for work that takes over a second. It may be used from several goroutines.
type statusLine struct {
	w     io.Writer // nil: nothing is shown
	width func() int

	mu          sync.Mutex
	start, last time.Time
	drawn, over bool
}

func (app *App) statusLine() *statusLine {
	l := &statusLine{start: time.Now()}
	if _, terminal := terminalWidth(app.Stderr); terminal && !app.global.Quiet && app.Getenv("TERM") != "dumb" {
		l.w = app.Stderr
		l.width = func() int {
			width, _ := terminalWidth(app.Stderr) // as it is now: it may have been resized
			return width
		}
	}
	return l
}

// show draws what text says after so much time, ten times a second at most.
func (l *statusLine) show(text func(spent time.Duration) string) {
	l.draw(func(now time.Time, _ int) string { return text(now.Sub(l.start)) })
}

// draw draws what text says of the present and of so many columns, ten times a
// second at most and not in the first second. text is not called twice at once.
func (l *statusLine) draw(text func(now time.Time, columns int) string) {
	if l.w == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.over || now.Sub(l.start) < time.Second || now.Sub(l.last) < 100*time.Millisecond {
		return
	}
	l.last, l.drawn = now, true
	columns := max(l.width()-1, 0) // a full line would wrap
	line := text(now, columns)
	fmt.Fprintf(l.w, "\r\x1b[K%s", line[:min(len(line), columns)])
}

// done takes the line away for good.
func (l *statusLine) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.drawn {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.drawn = false
	}
}

// left is the time that the rest of some work takes at the rate so far.
func left(spent time.Duration, done, whole int64) time.Duration {
	return time.Duration(float64(spent) / float64(done) * float64(whole-done)).Round(time.Second)
}
