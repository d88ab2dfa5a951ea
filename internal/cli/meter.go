package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// byteMeter shows how much of the input was read, how fast and for how long yet.
type byteMeter struct {
	line  *statusLine
	read  atomic.Int64 // bytes
	whole int64        // of all files; 0 where it is not known
	pace  pace
}

// meter returns the meter of files that are about to be read. The size of a pipe,
// of standard input and of what is no file is not known.
func (app *App) meter(files []string) *byteMeter {
	m := &byteMeter{line: app.statusLine()}
	m.pace.note(m.line.start, 0)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || !info.Mode().IsRegular() {
			m.whole = 0
			break
		}
		m.whole += info.Size()
	}
	return m
}

// add counts n more bytes. It may be called by several goroutines at once.
func (m *byteMeter) add(n int64) {
	m.read.Add(n)
	m.line.draw(func(now time.Time, columns int) string {
		read := m.read.Load()
		m.pace.note(now, read)
		return meterText(read, m.whole, m.pace.rate(), columns)
	})
}

// paceSpan is the time that a pace is taken over: the beginning of a file says
// little about its end.
const paceSpan = 2 * time.Second

// pace is how fast something goes of late.
type pace struct {
	at   [32]time.Time // a ring: paceSpan at ten notes a second, with some to spare
	done [32]int64
	n    int // how often something was noted
}

// note says how much was done at a time, later than the time before.
func (p *pace) note(at time.Time, done int64) {
	i := p.n % len(p.at)
	p.at[i], p.done[i] = at, done
	p.n++
}

// rate is how much is done in a second, 0 before it can be known.
func (p *pace) rate() float64 {
	if p.n < 2 {
		return 0
	}
	last, first := (p.n-1)%len(p.at), p.n-2
	for first > 0 && p.n-first < len(p.at) && p.at[last].Sub(p.at[(first-1)%len(p.at)]) <= paceSpan {
		first--
	}
	return float64(p.done[last]-p.done[first%len(p.at)]) / p.at[last].Sub(p.at[first%len(p.at)]).Seconds()
}

// longestBar and shortestBar are how many signs a bar has.
const longestBar, shortestBar = 10, 4

// meterText writes the line of a meter into so many columns. What does not fit
// drops out: first how much was read, then the bar, then the rate.
func meterText(read, whole int64, perSecond float64, columns int) string {
	rate := byteText(perSecond) + "/s"
	if whole == 0 {
		return fitting(columns, []string{byteText(float64(read)), rate}, []string{byteText(float64(read))})
	}
	share := min(float64(read)/float64(whole), 1) // a file may have grown
	percent := fmt.Sprintf("%3d %%", int(share*100))
	amount := byteText(float64(read)) + " of " + byteText(float64(whole))
	rest := "" // at this rate it never ends
	if perSecond > 0 {
		rest = leftText(time.Duration(float64(max(whole-read, 0)) / perSecond * float64(time.Second)))
	}
	bar := func(signs int) string {
		done := int(share * float64(signs))
		return strings.Repeat("#", done) + strings.Repeat("-", signs-done)
	}
	ways := [][]string{{percent, bar(longestBar), amount, rate, rest}}
	for signs := longestBar; signs >= shortestBar; signs-- {
		ways = append(ways, []string{percent, bar(signs), rate, rest})
	}
	return fitting(columns, append(ways, []string{percent, rate, rest}, []string{percent, rest}, []string{percent})...)
}

// fitting joins the parts of the first line that has room in so many columns, ""
// where none has. Parts are ASCII; an empty one is none.
func fitting(columns int, lines ...[]string) string {
	for _, parts := range lines {
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		if line := " " + strings.Join(parts, "  "); len(line) <= columns {
			return line
		}
	}
	return ""
}

// byteText writes bytes with three digits and a decimal unit.
func byteText(bytes float64) string {
	units := [...]string{"kB", "MB", "GB", "TB"}
	if bytes < 999.5 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	of := -1
	for bytes >= 999.5 && of+1 < len(units) {
		bytes /= 1000
		of++
	}
	digits := 0
	if bytes < 9.995 {
		digits = 2
	} else if bytes < 99.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, bytes, units[of])
}

// leftText says how long something takes yet.
func leftText(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 9.95:
		return fmt.Sprintf("%.1f s left", s)
	case s < 59.5:
		return fmt.Sprintf("%.0f s left", s)
	case s < 3600:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s left", d/time.Minute, d%time.Minute/time.Second)
	case s < 100*3600:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min left", d/time.Hour, d%time.Hour/time.Minute)
	}
	return "days left"
}
