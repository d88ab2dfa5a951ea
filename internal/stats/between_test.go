package stats

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// BCG vaccine against tuberculosis, Colditz et al. 1994 as in metafor's dat.bcg:
// log relative risks.
func TestDerSimonianLairdOfTheBCGTrials(t *testing.T) {
	trials := [][4]float64{
		{4, 119, 11, 128}, {6, 300, 29, 274}, {3, 228, 11, 209}, {62, 13536, 248, 12619}, {33, 5036, 47, 5761},
		{180, 1361, 372, 1079}, {8, 2537, 10, 619}, {505, 87886, 499, 87892}, {29, 7470, 45, 7232}, {17, 1699, 65, 1600},
		{186, 50448, 141, 27197}, {5, 2493, 3, 2338}, {27, 16886, 29, 17825}}
	var y, v []float64
	for _, c := range trials {
		n1, n2 := c[0]+c[1], c[2]+c[3]
		y = append(y, math.Log(c[0]/n1/(c[2]/n2)))
		v = append(v, 1/c[0]-1/n1+1/c[2]-1/n2)
	}
	h := DerSimonianLaird(y, v)
	near(t, "tau2", h.Tau2, .3088, 5e-5)
	near(t, "Q", h.Q, 152.2330, 5e-5)
	near(t, "I2", 100*h.I2, 92.1173, 5e-5)
	near(t, "H2", h.H2, 12.6861, 5e-5)
}

// The CLASP trials of DerSimonian and Kacker 2007: log odds ratios.
func TestDerSimonianLairdOfTheCLASPTrials(t *testing.T) {
	n1, n2 := []float64{156, 303, 565, 1570, 103, 4659}, []float64{74, 303, 477, 1565, 105, 4650}
	a, c := []float64{5, 5, 12, 69, 9, 313}, []float64{8, 17, 9, 94, 11, 352}
	var y, v []float64
	for i := range a {
		b, d := n1[i]-a[i], n2[i]-c[i]
		y = append(y, math.Log(a[i]*d/(b*c[i])))
		v = append(v, 1/a[i]+1/b+1/c[i]+1/d)
	}
	near(t, "tau", math.Sqrt(DerSimonianLaird(y, v).Tau2), .2323, 5e-5)
}

// Hine et al. 1989 as in Normand 1999: risk differences in percentage points
// that agree better than chance would have it.
func TestDerSimonianLairdIsNeverBelowZero(t *testing.T) {
	n1, n2 := []float64{39, 44, 107, 103, 110, 154}, []float64{43, 44, 110, 100, 106, 146}
	a, c := []float64{2, 4, 6, 7, 7, 11}, []float64{1, 4, 4, 5, 3, 4}
	yi, vi := []float64{2.8026, 0, 1.9711, 1.7961, 3.5334, 4.4031}, []float64{17.7575, 37.5657, 8.1323, 10.8998, 8.0114, 6.1320}
	var y, v []float64
	for i := range a {
		p, q := a[i]/n1[i], c[i]/n2[i]
		y, v = append(y, 100*(p-q)), append(v, 1e4*(p*(1-p)/n1[i]+q*(1-q)/n2[i]))
		near(t, "y", y[i], yi[i], 5e-5)
		near(t, "v", v[i], vi[i], 5e-5)
	}
	h := DerSimonianLaird(y, v)
	near(t, "Q", h.Q, .8597, 5e-5)
	if h.Tau2 != 0 || h.I2 != 0 || h.H2 != 1 {
		t.Errorf("underdispersed: %+v", h)
	}
	if h := DerSimonianLaird(y[:1], v[:1]); !math.IsNaN(h.Tau2) || !math.IsNaN(h.Q) {
		t.Errorf("one study: %+v", h)
	}
}

// goldenSet has an incident in its 16th window.
var goldenSet = samples(
	[]int64{120, 95, 140, 60, 150, 110, 80, 130, 100, 90, 125, 105, 115, 70, 135, 100, 85, 145, 95, 110},
	[]int64{110, 84, 128, 52, 138, 97, 73, 118, 88, 83, 113, 96, 101, 64, 123, 60, 78, 129, 87, 98})

// joined says of n windows that all but the first follow one another.
func joined(n int) []bool {
	adjacent := slices.Repeat([]bool{true}, n)
	adjacent[0] = false
	return adjacent
}

func TestNoiseOfTheGoldenSet(t *testing.T) {
	sigmaZ, sdZ := Laney(goldenSet, joined(20))
	near(t, "sigma_z", sigmaZ, 1.664315, 5e-7)
	near(t, "sd_z", sdZ, 2.222370, 5e-7)
	near(t, "tau_DL", TauDL(goldenSet), .06010525, 5e-9)
	near(t, "ICC", ICC(goldenSet), .036921, 5e-7)
	near(t, "tau of the ICC", TauOfICC(ICC(goldenSet), Pool(goldenSet).Rate()), .06038621, 5e-9)
	near(t, "tau_robust", TauRobust(goldenSet), 0, 0)
	near(t, "r1", Lag1(goldenSet, joined(20)), -.172533, 5e-7)
	var rates []float64
	for _, p := range goldenSet {
		rates = append(rates, p.Rate())
	}
	near(t, "median", Median(rates), .909402, 5e-7)
}

func TestNoRangeIsTakenAcrossTheGap(t *testing.T) {
	clean := slices.Concat(goldenSet[:15], goldenSet[16:])
	adjacent := joined(19)
	ignored, _ := Laney(clean, adjacent)
	near(t, "sigma_z with the gap ignored", ignored, .816501, 5e-7)
	adjacent[15] = false
	sigmaZ, _ := Laney(clean, adjacent)
	near(t, "sigma_z", sigmaZ, .857381, 5e-7)
	near(t, "tau_DL", TauDL(clean), 0, 0)
	near(t, "ICC", ICC(clean), 0, 0)

	// A window of nobody in the place of the incident is the same gap.
	empty := slices.Clone(goldenSet)
	empty[15] = Proportion{}
	same, _ := Laney(empty, joined(20))
	near(t, "sigma_z around an empty window", same, sigmaZ, 1e-12)
	near(t, "r1 around an empty window", Lag1(empty, joined(20)), Lag1(clean, adjacent), 1e-12)
	near(t, "tau_robust of an empty window", TauRobust(empty), TauRobust(clean), 0)
	near(t, "tau_DL of an empty window", TauDL(empty), 0, 0)
}

// Where every second pair is missing, pairs that are alike are still correlated
// by 1, and not by a half.
func TestMissingPairsDoNotHideCorrelation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var ps []Proportion
	var adjacent []bool
	for range 100 {
		p := Proportion{N: 1000, X: binomialDraw(rng, 1000, 0.9+0.05*rng.NormFloat64())}
		ps, adjacent = append(ps, p, p), append(adjacent, false, true)
	}
	near(t, "r1", Lag1(ps, adjacent), 100.0/101, 1e-12)
}

func TestNoiseOfThePCharts(t *testing.T) {
	// Montgomery 7.1, orange juice.
	sigmaZ, sdZ := Laney(orangeJuice, joined(30))
	near(t, "sigma_z", sigmaZ, 1.660867, 5e-7)
	near(t, "sd_z", sdZ, 1.716144, 5e-7)
	near(t, "tau_DL", TauDL(orangeJuice), .0831725, 5e-8)
	near(t, "ICC", ICC(orangeJuice), .0396969, 5e-8)
	near(t, "tau_robust", TauRobust(orangeJuice), .086329, 5e-7)
	// Montgomery table 7.4, purchase orders.
	sigmaZ, _ = Laney(purchaseOrders, joined(25))
	near(t, "sigma_z", sigmaZ, .965674, 5e-7)
	near(t, "tau_DL", TauDL(purchaseOrders), .01294471, 5e-9)
	near(t, "tau of the ICC", TauOfICC(ICC(purchaseOrders), Pool(purchaseOrders).Rate()), .01301131, 5e-9)
	near(t, "tau_robust", TauRobust(purchaseOrders), 0, 0)
	near(t, "r1", Lag1(purchaseOrders, joined(25)), .213400, 5e-7)
}

// The entry service of the petshop, 49 hours as 294 whole 10-minute windows.
func TestNoiseOfThePetshop(t *testing.T) {
	ps := petshop(t)
	if len(ps) != 294 {
		t.Fatalf("%d windows", len(ps))
	}
	sigmaZ, sdZ := Laney(ps, joined(294))
	near(t, "p0", Pool(ps).Rate(), .999105, 5e-7)
	near(t, "phi", Disperse(ps).Phi, 3.797489, 5e-7)
	near(t, "tau_DL", TauDL(ps), .00134674, 5e-9)
	near(t, "ICC", ICC(ps), .00202954, 5e-9)
	near(t, "sigma_z", sigmaZ, 1.336666, 5e-7)
	near(t, "sd_z", sdZ, 1.948715, 5e-7)
}

func petshop(t *testing.T) []Proportion {
	t.Helper()
	root := os.Getenv("CANARYCTL_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(root, "data", "petshop", "derived_petsite_noissue_high_traffic.csv"))
	if err != nil {
		t.Skipf("no public data: %v (set CANARYCTL_SHARED)", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var ps []Proportion
	rows = rows[1:]
	for ; len(rows) >= 2; rows = rows[2:] {
		var p Proportion
		for _, row := range rows[:2] {
			n, err1 := strconv.ParseInt(row[2], 10, 64)
			x, err2 := strconv.ParseInt(row[4], 10, 64)
			if err1 != nil || err2 != nil {
				t.Fatal(row)
			}
			p.N, p.X = p.N+n, p.X+x
		}
		ps = append(ps, p)
	}
	return ps
}

func TestNoiseThatDoesNotExistIsNaN(t *testing.T) {
	for name, ps := range map[string][]Proportion{
		"nothing": nil, "one window": {{40, 50}}, "one window with samples": {{40, 50}, {0, 0}}, "all solved": {{50, 50}, {50, 50}},
	} {
		adjacent := make([]bool, len(ps))
		for i := range adjacent {
			adjacent[i] = i > 0
		}
		sigmaZ, sdZ := Laney(ps, adjacent)
		if !math.IsNaN(TauDL(ps)) || !math.IsNaN(ICC(ps)) || !math.IsNaN(sigmaZ) || !math.IsNaN(sdZ) || !math.IsNaN(Lag1(ps, adjacent)) {
			t.Errorf("%s: tau %v, ICC %v, sigma_z %v, sd_z %v, r1 %v", name, TauDL(ps), ICC(ps), sigmaZ, sdZ, Lag1(ps, adjacent))
		}
	}
	apart := []bool{false, false}
	two := []Proportion{{40, 50}, {45, 50}}
	if sigmaZ, sdZ := Laney(two, apart); !math.IsNaN(sigmaZ) || math.IsNaN(sdZ) || !math.IsNaN(Lag1(two, apart)) {
		t.Errorf("two windows apart: sigma_z %v, sd_z %v", sigmaZ, sdZ)
	}
	if tau := TauRobust(two[:1]); !math.IsNaN(tau) {
		t.Errorf("robust tau of one window: %v", tau)
	}
	if rho := ICC([]Proportion{{1, 1}, {0, 1}, {1, 1}}); !math.IsNaN(rho) {
		t.Errorf("ICC of windows of one request: %v", rho)
	}
	if tau := TauRobust([]Proportion{{50, 50}, {50, 50}, {40, 50}}); tau != 0 {
		t.Errorf("robust tau where most never fail: %v", tau)
	}
	if tau := TauRobust([]Proportion{{50, 50}, {50, 50}, {50, 50}, {0, 50}, {0, 50}}); tau != 0 {
		t.Errorf("robust tau where two of five never solve: %v", tau)
	}
	if tau := TauRobust([]Proportion{{0, 50}, {50, 50}}); math.Abs(tau-0.5) > 1e-9 {
		t.Errorf("robust tau of all or nothing: %v", tau)
	}
}

// With 5 % of windows at -25 pp the moments say 5.7 pp and the median still the truth, 2 pp.
func TestIncidentsDoNotMoveTheRobustTau(t *testing.T) {
	const tau, n = 0.02, 1000
	rng := rand.New(rand.NewPCG(7, 1))
	clean := make([]Proportion, 1000)
	for i := range clean {
		clean[i] = Proportion{N: n, X: binomialDraw(rng, n, 0.9+tau*rng.NormFloat64())}
	}
	near(t, "tau_DL, clean", TauDL(clean), tau, 0.001)
	near(t, "tau_robust, clean", TauRobust(clean), tau, 0.003)
	for i := range 50 {
		clean[20*i].X -= 250
	}
	near(t, "tau_DL, 5 % bad", TauDL(clean), 0.057, 0.004)
	near(t, "tau_robust, 5 % bad", TauRobust(clean), tau, 0.003)
}

// Both ways to say it agree: the beta-binomial of the ICC has the variance of NoiseSigma.
func TestTauAndICCAreTheSameNoise(t *testing.T) {
	const p, tau = 0.9, 0.02
	rho := ICCOf(tau*tau, p)
	near(t, "there and back", TauOfICC(rho, p), tau, 1e-15)
	for _, n := range []int64{1, 10, 250} {
		var m1, m2 float64
		for k := range n {
			tail := BetaBinomialTail(k+1, n, p, rho)
			m1 += tail
			m2 += float64(2*k+1) * tail
		}
		digits(t, "sd", math.Sqrt(m2-m1*m1)/float64(n), NoiseSigma(p, n, tau, 0), 9)
	}
	if rho := ICCOf(0.02, 1); rho != 0 {
		t.Errorf("a service that never fails: %v", rho)
	}
}

// binomialDraw draws from Bin(n, p), p cut to 0 and 1.
func binomialDraw(rng *rand.Rand, n int64, p float64) (x int64) {
	for range n {
		if rng.Float64() < p {
			x++
		}
	}
	return x
}
