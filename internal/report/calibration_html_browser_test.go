package report_test

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

//go:embed testdata/look.js
var lookScript string

// seen is what testdata/look.js reports.
type seen struct {
	Faint    []string // texts whose contrast is below 4.5
	Texts    int
	Smallest float64 // font size, in pixels as drawn
	Overflow float64 // of the page, sideways
	Charts   []struct {
		ID      string
		Box     box
		Marks   int
		Outside []string
		Named   bool
	}
	Line, Page string
	Height     float64
}

func pageFile(t *testing.T, r *calibrate.Report) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, render(t, r), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestThePageInABrowser looks at the page as it is drawn, in one browser: its
// start takes the time of several pages.
func TestThePageInABrowser(t *testing.T) {
	b := openTab(t)
	full, long, empty := pageFile(t, week(7, 10*time.Minute)), pageFile(t, week(365, 10*time.Minute)), pageFile(t, &calibrate.Report{})
	grounds := map[string]string{}
	for _, view := range []struct {
		name, path, scheme string
		width, charts      int
	}{
		{"week", full, "light", 360, 4}, {"week", full, "light", 700, 4}, {"week", full, "light", 1280, 4},
		{"week", full, "dark", 360, 4}, {"week", full, "dark", 1280, 4},
		{"year", long, "light", 1280, 4}, {"year", long, "dark", 360, 4},
		{"nothing known", empty, "light", 360, 0},
	} {
		b.run(t, fmt.Sprintf("%s %s %d", view.name, view.scheme, view.width), func(t *testing.T) {
			b.show(view.path, view.width, view.scheme)
			var s seen
			b.evaluate(lookScript, &s)
			grounds[s.Page] = view.scheme
			keepPicture(t, b, box{0, 0, float64(view.width), s.Height})
			checkPage(t, &s, b.complaints(view.path))
			checkCharts(t, b, &s, view.charts)
		})
	}
	if len(grounds) != 2 {
		t.Errorf("want a background for light and one for dark, got %v", grounds)
	}
	b.run(t, "printed", func(t *testing.T) { checkPrinted(t, b, full) })
	b.run(t, "a spoilt page", func(t *testing.T) { checkFaultsAreSeen(t, b) })
}

// run is t.Run with the browser's failures in the subtest.
func (b *tab) run(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		defer func(outer *testing.T) { b.t = outer }(b.t)
		b.t = t
		test(t)
	})
}

// keepPicture leaves a picture where go test -artifacts keeps files.
func keepPicture(t *testing.T, b *tab, page box) {
	t.Helper()
	if keep := flag.Lookup("test.artifacts"); keep == nil || keep.Value.String() != "true" {
		return
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "page.png"), b.picture(page), 0o600); err != nil {
		t.Error(err)
	}
}

func checkPage(t *testing.T, s *seen, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
	if s.Overflow > 0 {
		t.Errorf("the page is %g pixels wider than the window", s.Overflow)
	}
	if s.Texts < 40 || len(s.Faint) > 0 {
		t.Errorf("of %d texts these have a contrast below 4.5: %s", s.Texts, strings.Join(s.Faint, "; "))
	}
	if s.Smallest < 10 {
		t.Errorf("letters of %.1f pixels", s.Smallest)
	}
}

func checkCharts(t *testing.T, b *tab, s *seen, want int) {
	t.Helper()
	if len(s.Charts) != want {
		t.Fatalf("%d charts are seen, want %d", len(s.Charts), want)
	}
	if want == 0 {
		return
	}
	for _, c := range s.Charts {
		if c.Box.W < 250 || c.Box.H < 150 || c.Marks < 5 || !c.Named {
			t.Errorf("chart %s: %.0f by %.0f pixels, %d marks, named: %t", c.ID, c.Box.W, c.Box.H, c.Marks, c.Named)
		}
		if len(c.Outside) > 0 {
			t.Errorf("chart %s: outside of its plot: %s", c.ID, strings.Join(c.Outside, ", "))
		}
	}
	control := s.Charts[0].Box
	share, line := inked(t, b.picture(control), s.Line)
	if share < 0.05 || line < 200 {
		t.Errorf("control chart: %.3f of the pixels are not background, %d have the colour of the line", share, line)
	}
}

// inked is the share of pixels that differ from the commonest one, and how
// many are near a colour, as css writes it; thin lines are blended with what
// lies under them.
func inked(t *testing.T, shot []byte, css string) (share float64, line int) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	var want [3]int
	if _, err := fmt.Sscanf(css, "rgb(%d, %d, %d)", &want[0], &want[1], &want[2]); err != nil {
		t.Fatalf("colour of the line %q: %v", css, err)
	}
	counts := map[color.Color]int{}
	all, most := 0, 0
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			c := img.At(x, y)
			counts[c]++
			all, most = all+1, max(most, counts[c])
			if r, g, b, _ := c.RGBA(); near(want, int(r>>8), int(g>>8), int(b>>8)) {
				line++
			}
		}
	}
	return float64(all-most) / float64(all), line
}

func near(want [3]int, r, g, b int) bool {
	const room = 48
	return max(want[0]-r, r-want[0]) < room && max(want[1]-g, g-want[1]) < room && max(want[2]-b, b-want[2]) < room
}

// checkPrinted looks at the page as paper shows it: what was folded is there,
// and nothing is cut off.
func checkPrinted(t *testing.T, b *tab, path string) {
	t.Helper()
	b.show(path, 720, "dark")
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	var printed struct {
		Page             string
		Overflow, Hidden int
	}
	b.evaluate(`(() => {
		document.querySelectorAll('details').forEach(d => d.open = false);
		const hidden = [...document.querySelectorAll('table')].filter(t => !t.checkVisibility({contentVisibilityAuto: true}) || t.getBoundingClientRect().height < 40);
		return {page: getComputedStyle(document.body).backgroundColor, overflow: document.documentElement.scrollWidth - innerWidth, hidden: hidden.length};
	})()`, &printed)
	keepPicture(t, b, box{0, 0, 720, 9000})
	if printed.Page != "rgb(255, 255, 255)" || printed.Overflow > 0 || printed.Hidden > 0 {
		t.Errorf("page %s, %d pixels too wide, %d tables hidden", printed.Page, printed.Overflow, printed.Hidden)
	}
}

// checkFaultsAreSeen holds a spoilt page before the same eyes.
func checkFaultsAreSeen(t *testing.T, b *tab) {
	t.Helper()
	page := string(render(t, week(7, 10*time.Minute)))
	spoilt := strings.NewReplacer(
		`</main>`, `<p style="color: red">styled</p><img src="https://example.org/x.png" alt=""/></main>`,
		`default-src 'none'; style-src '`, `default-src *; style-src 'unsafe-inline' 'x`,
		`--soft: #545e68`, `--soft: #b0b0b0`,
		`.scroll { overflow-x: auto; }`, ``,
		`<circle class="point" cx="`, `<circle class="point" cx="9`,
	).Replace(page)
	path := filepath.Join(t.TempDir(), "spoilt.html")
	if err := os.WriteFile(path, []byte(spoilt), 0o600); err != nil {
		t.Fatal(err)
	}
	b.show(path, 360, "light")
	var s seen
	b.evaluate(lookScript, &s)
	outside := 0
	for _, c := range s.Charts {
		outside += len(c.Outside)
	}
	if len(b.complaints(path)) == 0 || len(s.Faint) == 0 || s.Overflow <= 0 || outside == 0 {
		t.Errorf("not seen: requests %q, %d faint texts, %g pixels of overflow, %d marks outside", b.complaints(path), len(s.Faint), s.Overflow, outside)
	}
}
