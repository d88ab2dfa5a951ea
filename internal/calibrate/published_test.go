package calibrate

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// windowsOf returns 10-minute windows with so many solved of so many judged.
func windowsOf(solved, judged []int64) []release.Window {
	return feed(monday, 10*time.Minute, len(solved), func(i int, w *release.Window) {
		n := judged[i%len(judged)]
		w.Total, w.Judged, w.Solved = n, n, solved[i]
	})
}

// figures of a dispersion that a publication or an independent computation
// gives; NaN where it gives none.
type published struct{ q, phi, icc, tauDL, tauRobust, sigmaZ, sdZ, r1 float64 }

func (p *published) check(t *testing.T, d Dispersion) {
	t.Helper()
	for _, f := range []struct {
		name string
		got  *float64
		want float64
		tol  float64
	}{
		{"q", d.Q, p.q, 5e-5}, {"phi", d.Phi, p.phi, 5e-6}, {"icc", d.ICC, p.icc, 5e-7}, {"tau_dl", d.TauDL, p.tauDL, 5e-8},
		{"tau_robust", d.TauRobust, p.tauRobust, 5e-7}, {"sigma_z", d.SigmaZ, p.sigmaZ, 5e-7}, {"sd_z", d.SDZ, p.sdZ, 5e-7}, {"r1", d.R1, p.r1, 5e-7},
	} {
		if !math.IsNaN(f.want) {
			near(t, f.name, f.got, f.want, f.tol)
		}
	}
}

var none = math.NaN()

func TestPublishedDispersions(t *testing.T) {
	golden := windowsOf(
		[]int64{110, 84, 128, 52, 138, 97, 73, 118, 88, 83, 113, 96, 101, 64, 123, 60, 78, 129, 87, 98},
		[]int64{120, 95, 140, 60, 150, 110, 80, 130, 100, 90, 125, 105, 115, 70, 135, 100, 85, 145, 95, 110})
	sixteenth := Gap{From: golden[15].T, To: golden[15].End()}
	for _, c := range []struct {
		name    string
		windows []release.Window
		exclude []Gap
		k       int
		p0      float64
		want    published
	}{
		{ // Montgomery 7.1, NIST/SEMATECH e-Handbook 6.3.3.2; dispersion computed from it
			"orange juice", windowsOf([]int64{12, 15, 8, 10, 4, 7, 16, 9, 14, 10, 5, 6, 17, 12, 22, 8, 10, 5, 13, 11, 20, 18, 24, 15, 9, 12, 7, 13, 9, 6}, []int64{50}), nil,
			30, 347.0 / 1500, published{85.4093, 2.94515, 0.0396969, 0.0831725, 0.086329, 1.660867, 1.716144, none},
		},
		{ // Montgomery table 7.4
			"purchase orders, unequal samples", windowsOf(
				[]int64{12, 8, 6, 9, 10, 12, 11, 16, 10, 6, 20, 15, 9, 8, 6, 8, 10, 7, 5, 8, 5, 8, 10, 6, 9},
				[]int64{100, 80, 80, 100, 110, 110, 100, 100, 90, 90, 110, 120, 120, 120, 110, 80, 80, 80, 90, 100, 100, 100, 100, 90, 90}), nil,
			25, 0.095510204082, published{28.55897, 1.189957, none, 0.01294471, 0, 0.965674, none, 0.213400},
		},
		{ // our own, computed by hand
			"golden set with its incident", golden, nil,
			20, 8.0 / 9, published{93.859571, 4.939977, 0.036921, 0.06010525, 0, 1.664315, 2.222370, -0.172533},
		},
		{ // 17 moving ranges, none across the gap
			"golden set without its incident", golden, []Gap{sixteenth},
			19, 1860.0 / 2060, published{5.923610, 0.329089, none, 0, none, 0.857381, none, none},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := measure(t, c.windows, Options{AllowShort: true, Exclude: c.exclude})
			d := r.Dispersion["10m"]
			near(t, "p0", r.Centre.P0, c.p0, 5e-13)
			if d.K != c.k {
				t.Errorf("k %d, want %d", d.K, c.k)
			}
			c.want.check(t, d)
		})
	}
}

// The exact figures of the shop's clean hours (data/README.md).
func TestPetshopDispersion(t *testing.T) {
	r := measure(t, petshop(t), Options{})
	want := published{none, 3.797489, 0.00202954, 0.00134674, none, 1.336666, 1.948715, none}
	want.check(t, r.Dispersion["10m"])
	if r.Dispersion["10m"].K != 294 {
		t.Errorf("k %d", r.Dispersion["10m"].K)
	}
	if r.Slow.Plain.OneWindow != 14 || r.Slow.Plain.Of != 294 {
		t.Errorf("the plain one-window rule trips on %d of %d, want 14 of 294", r.Slow.Plain.OneWindow, r.Slow.Plain.Of)
	}
	worst := slices.ContainsFunc(r.Incidents, func(i Incident) bool {
		at := time.Date(2023, 9, 7, 1, 50, 0, 0, time.UTC)
		return !i.From.After(at) && i.To.After(at)
	})
	if !worst {
		t.Errorf("the worst window, 2023-09-07T01:50Z, is in no incident: %+v", r.Incidents)
	}
}

// Fourteen days of a production service's traffic, without outcomes.
func TestServegenTraffic(t *testing.T) {
	f, err := os.Open(shared(t, "servegen", "derived_m-large_total_10min.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var ws []release.Window
	for _, row := range rows[1:] {
		s, errT := strconv.ParseInt(row[0], 10, 64)
		n, errN := strconv.ParseInt(row[1], 10, 64)
		if errT != nil || errN != nil {
			t.Fatal(row)
		}
		ws = append(ws, release.Window{T: time.Unix(s, 0).UTC(), Span: 10 * time.Minute, Arm: release.All, Total: n})
	}
	r := measure(t, ws, Options{})
	if len(r.Time.Weeks) != 2 {
		t.Fatalf("weeks %+v", r.Time.Weeks)
	}
	near(t, "week 2 over week 1", r.Time.Weeks[1].Ratio, 0.869, 5e-4)
	near(t, "peak to trough by hour", r.Traffic.PeakToTrough, 1.45, 5e-3)
	if !warned(r, "traffic-drift") || !warned(r, "no-outcome") {
		t.Errorf("warnings %v", r.Warnings)
	}
	if r.Slow.SolveBaseline != 0 || len(r.Settings()) != 0 || r.Verdict.OK {
		t.Errorf("settings out of nothing: %+v", r.Settings())
	}
}
