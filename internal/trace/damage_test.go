package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/canaryctl/canaryctl/internal/release"
)

// sample is an input whose every damage is tried.
type sample struct {
	text string
	opt  Options
	rows int64 // what its windows sum up to
	// lines says that rows end at newlines, and not with the document.
	lines bool
}

// samples are inputs of every format.
func samples(t testing.TB) map[string]sample {
	answer := fmt.Sprintf(answerOf, `{"metric":{"version":"canary"},"values":[[1777852860,"10"],[1777852920,"12"],[1777852980,"7"]]}`)
	return map[string]sample{
		"JSON lines": {recordLines + recordLines[:len(recordLines)-1], Options{}, 8, true},
		"CSV":        {recordCSV, Options{}, 4, true},
		"windows":    {fiveMinutes, Options{}, 190, true},
		"JSON array": {"[" + strings.ReplaceAll(strings.TrimSpace(recordLines), "\n", ",") + "]\n", Options{}, 4, false},
		"Prometheus": {answer, options(t, "total=value"), 29, false},
	}
}

// prefixes are the figures that a cut at n may leave: those of the whole rows
// before it, and with the row that it is in, if the cut is past its figures.
func (s *sample) prefixes(n int) []string {
	var out []string
	ends := []int{strings.LastIndexByte(s.text[:n], '\n') + 1, len(s.text)}
	if !s.lines {
		ends = ends[1:]
	}
	for e := n; s.lines && e < len(s.text); e++ {
		if s.text[e] != '\n' {
			continue
		}
		if d, err := read(s.text[:e+1], s.opt); err == nil && d.Bad == 0 {
			ends[1] = e + 1
			break
		}
	}
	for _, e := range ends {
		if d, err := read(s.text[:e], s.opt); err == nil {
			out = append(out, table(d.Windows))
		}
	}
	return out
}

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	for part := range strings.SplitAfterSeq(text, "\n") { // a member a line
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func zstded(t testing.TB, text string) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	half := len(text) / 2
	return z.EncodeAll([]byte(text[half:]), z.EncodeAll([]byte(text[:half]), nil)) // two frames
}

// Whatever byte a file is cut at: an error, a counted bad line, a note, or the
// very figures of the rows that are whole.
func TestAFileCutAtAnyByteIsNeverWrongInSilence(t *testing.T) {
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			s.opt.MaxBad = anyBad
			for n := range len(s.text) {
				got, err := read(s.text[:n], s.opt)
				if err != nil || got.Bad > 0 || noted(got, "the last line has no newline") {
					continue
				}
				if figures := table(got.Windows); !slices.Contains(s.prefixes(n), figures) {
					t.Errorf("cut at %d of %d: read in silence as\n%s", n, len(s.text), figures)
				}
			}
		})
	}
}

func TestCompressedFilesAreReadWholeOrRefused(t *testing.T) {
	for _, name := range []string{"JSON lines", "windows"} {
		s := samples(t)[name]
		want := table(mustRead(t, s.text, s.opt).Windows)
		for kind, packed := range map[string][]byte{"gzip": zipped(t, s.text), "zstd": zstded(t, s.text)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				if got := table(mustRead(t, string(packed), s.opt).Windows); got != want {
					t.Fatalf("got\n%swant\n%s", got, want)
				}
				s.opt.MaxBad = anyBad
				silent := 0
				for n := range packed {
					if d, err := read(string(packed[:n]), s.opt); err == nil && d.Bad == 0 && table(d.Windows) != want {
						silent++ // a cut between two members or frames cannot be seen
					}
				}
				if members := strings.Count(s.text, "\n") + 1; silent > members {
					t.Errorf("%d cuts of %d pass in silence, there are %d members", silent, len(packed), members)
				}
				for n := range packed {
					for _, flip := range []byte{0x01, 0xff} {
						damaged := bytes.Clone(packed)
						damaged[n] ^= flip
						if d, err := read(string(damaged), s.opt); err == nil && d.Bad == 0 && table(d.Windows) != want && n > 3 {
							t.Errorf("byte %d of %d flipped by %#x: read in silence", n, len(packed), flip)
						}
					}
				}
			})
		}
	}
}

func TestACutCompressedFileSaysSo(t *testing.T) {
	packed := zipped(t, recordLines)
	_, err := read(string(packed[:len(packed)-5]), Options{})
	if err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Error(err)
	}
	packed = zstded(t, recordLines)
	_, err = read(string(packed[:len(packed)-5]), Options{})
	if err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Error(err)
	}
	packed[len(packed)-1] ^= 1
	if _, err = read(string(packed), Options{}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	if _, err = read(string(zipped(t, string(zipped(t, recordLines)))), Options{}); err == nil || !strings.Contains(err.Error(), "gzip inside the compressed data") {
		t.Error(err)
	}
}

// What follows compressed data is no cut, whatever its length; the file that was
// cut off within its second member is.
func TestWhatFollowsCompressedDataIsSaid(t *testing.T) {
	gz, zst := zipped(t, recordLines), zstded(t, recordLines)
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"one byte":               {append(bytes.Clone(gz), 'x'), "after the compressed data come bytes that are no gzip (78)"},
		"a few bytes":            {append(bytes.Clone(gz), "garbage"...), "after the compressed data come bytes that are no gzip (67 61 72 62 61 67 65)"},
		"lines":                  {append(bytes.Clone(gz), recordLines...), "after the compressed data come bytes that are no gzip (7b 22 "},
		"zeros":                  {append(bytes.Clone(gz), make([]byte, 512)...), "after the compressed data come bytes that are no gzip (00 00 "},
		"half a magic number":    {append(bytes.Clone(gz), 0x1f), "cut off"},
		"half a second member":   {append(bytes.Clone(gz), gz[:len(gz)/2]...), "cut off"},
		"zstd and lines":         {append(bytes.Clone(zst), recordLines...), "after the compressed data come bytes that are no zstd"},
		"half a second of zstds": {append(bytes.Clone(zst), zst[:len(zst)/2]...), "cut off"},
	} {
		_, err := read(string(c.text), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(c.want, "after") && strings.Contains(err.Error(), "cut off") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := read(string(append(gz, 'x')), Options{})
	if h, ok := errors.AsType[Hinter](err); !ok || h.Hint() == "" {
		t.Errorf("%v says nothing of what to do", err)
	}
	once, twice := mustRead(t, string(zipped(t, recordLines)), Options{}), mustRead(t, string(append(zipped(t, recordLines), zipped(t, recordLines)...)), Options{})
	if twice.Rows != 2*once.Rows {
		t.Errorf("%d rows of two members, %d of one", twice.Rows, once.Rows)
	}
}

// Whatever byte is flipped: no panic, and no row is lost in silence.
func TestAFileWithAnyByteFlippedLosesNoRowInSilence(t *testing.T) {
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			s.opt.MaxBad = anyBad
			for n := range len(s.text) {
				for _, bit := range []int{0, 3, 5} {
					damaged := []byte(s.text)
					damaged[n] ^= 1 << bit
					d, err := read(string(damaged), s.opt)
					if err != nil || d.Bad > 0 || d.Duplicates > 0 || s.rows > 100 {
						continue
					}
					if total := totalOf(d.Windows); total != s.rows && name != "Prometheus" {
						t.Errorf("byte %d, bit %d: %d of %d requests\n%s", n, bit, total, s.rows, damaged)
					}
				}
			}
		})
	}
}

func totalOf(windows []release.Window) (total int64) {
	for _, w := range windows {
		total += w.Total
	}
	return total
}

// checkAccount is what holds of every input: rows are good or bad, and every
// window can be.
func checkAccount(t *testing.T, d *Data, err error) {
	t.Helper()
	if d.Rows != d.Good+d.Bad {
		t.Fatalf("%d rows, %d good, %d bad", d.Rows, d.Good, d.Bad)
	}
	if err != nil {
		return
	}
	for i, w := range d.Windows {
		if w.Judged > w.Total || w.Solved > w.Judged || w.Total < 0 || w.Solved < 0 || w.Slow > w.Total || w.Slow < 0 || w.Span <= 0 || w.Known&^d.Supplied != 0 {
			t.Fatalf("%+v", w)
		}
		if i > 0 && w.T.Before(d.Windows[i-1].T) {
			t.Fatal("not sorted")
		}
		if w.T.Before(d.First.Add(-w.Span)) || w.T.After(d.Last) {
			t.Fatalf("%s outside %s to %s", w.T, d.First, d.Last)
		}
	}
	again, err := read(asCSV(d.Windows), Options{SumDuplicates: true})
	if err != nil || table(again.Windows) != table(d.Windows) || slowOf(again.Windows) != slowOf(d.Windows) {
		t.Fatalf("does not read back: %v\n%s", err, asCSV(d.Windows))
	}
}

// checkDistributions is what holds of every input read with Distributions: the
// values add up, and what CountSlow counts is what a second reading counts
// above the edge.
func checkDistributions(t *testing.T, text []byte, opt Options, ms float64) {
	t.Helper()
	opt.Distributions, opt.maxLatencies, opt.maxValues = true, 3, 3
	d, err := ReadFiles(context.Background(), []string{"-"}, bytes.NewReader(text), opt, nil)
	checkAccount(t, d, err)
	if err != nil || d.Kind != Records {
		return
	}
	for _, of := range []map[release.Arm]*Distribution{d.Latency, d.Cost} {
		for arm, dist := range of {
			n, last := int64(0), math.Inf(-1)
			for _, v := range dist.Values() {
				if !(v.Value > last) || v.Weight < 1 || v.Value < 0 {
					t.Fatalf("%s: %v", arm, dist.Values())
				}
				n, last = n+v.Weight, v.Value
			}
			if n != dist.N || n == 0 || !slices.Contains(d.Arms, arm) {
				t.Fatalf("%s: %d values of %d", arm, n, dist.N)
			}
		}
	}
	edge := d.CountSlow(ms)
	checkAccount(t, d, nil)
	if !(edge >= ms) || edge > max(ms*(1+1.0/64), spreadLow) && !math.IsInf(edge, 1) {
		t.Fatalf("%v: edge %v", ms, edge)
	}
	opt.Distributions, opt.SlowMS = false, edge
	again, err := ReadFiles(context.Background(), []string{"-"}, bytes.NewReader(text), opt, nil)
	if err != nil || slowOf(again.Windows) != slowOf(d.Windows) {
		t.Fatalf("above %v: %s, and with --slow-ms %s, %v", edge, slowOf(d.Windows), slowOf(again.Windows), err)
	}
}

func fuzzRead(f *testing.F, maps string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s), false, 0.0)
		f.Add([]byte(s), true, 300.0)
	}
	opt := options(f, maps)
	opt.MaxBad = anyBad
	f.Fuzz(func(t *testing.T, text []byte, merge bool, slowMS float64) {
		opt := opt
		if merge {
			opt.MergeArms, opt.Span = true, 600e9
		}
		d, err := ReadFiles(context.Background(), []string{"-"}, bytes.NewReader(text), opt, nil)
		checkAccount(t, d, err)
		if slowMS > 0 {
			checkDistributions(t, text, opt, slowMS)
		}
	})
}

func FuzzJSONL(f *testing.F) {
	fuzzRead(f, "", recordLines, recordLines[:100], `[{"ts":1777852800,"solved":1}]`, `{"t":"2026-05-04T00:00:00Z","span":"1m","total":5,"solved":4}`,
		`{"t":"2026-05-04T00:00:00Z","span":"1m","total":5,"slow":4}`, `{"ts":"2026-05-04T00:00:00Z","latency_ms":304,"cost_usd":0}`,
		"{\"ts\":\"2026-05-04T00:00:00Z\",\"\\u0061rm\":\"\xff\",\"violation\":true,\"violation\":null}")
}

func FuzzCSV(f *testing.F) {
	fuzzRead(f, "", recordCSV, fiveMinutes, "t,span,total,slow\n1777852800,1m,5,4\n1777852860,1m,5,\n", "ts,latency_ms,cost_usd\n1777852800,1e9,5\n1777852800,1e-9,0\n1777852801,,\n", "ts\n1777852800\n", "t,total,solved\n2026-05-04 00:00:00,5,4\n2026-05-04 00:01:00,5,4\n", "a,\"b\"\"\n\",c\n1,2,3\n")
}

func FuzzPrometheus(f *testing.F) {
	fuzzRead(f, "total=value", fmt.Sprintf(answerOf, `{"metric":{"version":"canary"},"values":[[1777852860.5,"10"],[1777852920,"NaN"],[1777852980,"7"]]}`),
		`{"status":"error","errorType":"bad_data","error":"x"}`, fmt.Sprintf(answerOf, ""))
}
