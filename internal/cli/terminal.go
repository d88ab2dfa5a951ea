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

// progressBar shows how far a piece of work is, on a terminal's stderr, for
// work that takes over a second.
type progressBar struct {
	w     io.Writer // nil: nothing is shown
	name  string
	unit  string
	width int

	mu    sync.Mutex
	start time.Time
	last  time.Time
	drawn bool
}

func (app *App) progress(name, unit string) *progressBar {
	b := &progressBar{name: name, unit: unit, start: time.Now()}
	if width, terminal := terminalWidth(app.Stderr); terminal && !app.global.Quiet && app.Getenv("TERM") != "dumb" {
		b.w, b.width = app.Stderr, width
	}
	return b
}

// set draws done of total; it may be called from several goroutines.
func (b *progressBar) set(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.w == nil || now.Sub(b.start) < time.Second || now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last, b.drawn = now, true
	text := fmt.Sprintf("%s: %d of %d %s", b.name, done, total, b.unit)
	if done > 0 {
		left := time.Duration(float64(now.Sub(b.start)) / float64(done) * float64(total-done))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	if len(text) >= b.width {
		text = text[:max(b.width-1, 0)]
	}
	fmt.Fprintf(b.w, "\r\x1b[K%s", text)
}

// done takes the bar away.
func (b *progressBar) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
