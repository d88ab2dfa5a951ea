package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	_ "github.com/canaryctl/canaryctl/internal/tui/unasked" // before bubbletea is initialised
)

// Run shows the view until the person leaves it or ctx ends, and leaves the last
// frame on the terminal. What a person has confirmed is finished all the same;
// [Options.Actions] is not used any more when Run returns. An error is the
// terminal's, or a panic of the view's, after which the terminal is as it was.
func Run(ctx context.Context, o Options) (Ending, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	final, err := program(ctx, &o).Run()
	return o.ended(ctx, final, err)
}

// program is the view on its terminal.
func program(ctx context.Context, o *Options) *tea.Program {
	return tea.NewProgram(newModel(ctx, o, o.theme()), tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithAltScreen(), tea.WithoutSignalHandler())
}

// ended leaves the last frame of a program, and then what comes of the actions
// that are still under way.
func (o *Options) ended(ctx context.Context, final tea.Model, err error) (Ending, error) {
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic) {
		err = nil // by ctx, which its owner knows of
	}
	m, ok := final.(model)
	if !ok {
		return Cancelled, err
	}
	m.gone, m.asking = true, nil
	if len(m.doing) > 0 {
		m.note = "" // it follows
	}
	if frame := strings.TrimRight(m.View(), "\n"); frame != "" {
		fmt.Fprintln(o.Out, frame) //nolint:errcheck // the terminal is gone: there is nobody to tell
	}
	for _, e := range m.doing {
		fmt.Fprintln(o.Out, doing[e.action]+" ...") //nolint:errcheck // as above
		m = m.carriedOut(e.do())
		sign := m.theme.Glyphs.signOf(m.tone)
		fmt.Fprintln(o.Out, m.theme.styleOf(m.tone).Render(sign+" "+safe(m.note))) //nolint:errcheck // as above
	}
	return m.ending, err
}

// theme is how this terminal is drawn on.
func (o *Options) theme() *Theme {
	r := lipgloss.NewRenderer(o.Out, termenv.WithProfile(o.Colors))
	r.SetColorProfile(o.Colors)
	r.SetHasDarkBackground(o.Dark)
	g := Unicode
	if o.ASCII {
		g = ASCII
	}
	return NewTheme(r, o.Dark, g)
}
