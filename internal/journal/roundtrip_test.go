package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestEveryKindComesBackAsItWasWritten, also over a second process, and the
// heads say where each line ends.
func TestEveryKindComesBackAsItWasWritten(t *testing.T) {
	want := append(kinds(), kinds()...)
	path := written(t, want[:len(want)/2]...)
	appendTo(t, path, want[len(want)/2:]...)
	got, heads, err := readFrom(path, journal.Head{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	lines := bytes.SplitAfter(load(t, path), []byte("\n"))
	size := int64(0)
	for i, h := range heads {
		size += int64(len(lines[i]))
		if h.N != int64(i+1) || h.Size != size {
			t.Errorf("line %d has head %+v, ends at %d", i+1, h, size)
		}
		rest, _, err := readFrom(path, h)
		if err != nil || len(rest) != len(want)-i-1 {
			t.Errorf("behind line %d: %d entries, %v", i+1, len(rest), err)
		}
	}
	if h := open(t, path).Head(); h != heads[len(heads)-1] {
		t.Errorf("opened at %+v, want %+v", h, heads[len(heads)-1])
	}
}

// TestTheFormOfALine: another program can check the chain with a SHA-256 and
// nothing else.
func TestTheFormOfALine(t *testing.T) {
	path := written(t, kinds()...)
	prev := ""
	for i, line := range bytes.Split(bytes.TrimSuffix(load(t, path), []byte("\n")), []byte("\n")) {
		at := bytes.LastIndex(line, []byte(`,"sum":"`))
		sum := sha256.Sum256(line[:at])
		var v struct {
			N         int64
			Prev, Sum string
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("line %d is no JSON: %v", i+1, err)
		}
		if v.Sum != hex.EncodeToString(sum[:]) || v.Prev != prev || v.N != int64(i+1) {
			t.Errorf("line %d: n %d, prev %s, sum %s", i+1, v.N, v.Prev, v.Sum)
		}
		prev = v.Sum
	}
}

// anyFloat draws finite floats of every size, and those that decimals miss.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }),
		rapid.SampledFrom([]float64{0, 0.1, 0.1 + 0.2, 1.0 / 3, math.MaxFloat64, math.SmallestNonzeroFloat64, 1<<53 + 2, 1e21, 1e-7}),
	)
}

// drawWindow draws a window with any subset of figures; those that are not
// known are 0, as every source leaves them.
func drawWindow(t *rapid.T, arm release.Arm) release.Window {
	count := rapid.Int64()
	w := release.Window{
		T:    time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "t"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
		Span: time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "span")), Arm: arm, Total: count.Draw(t, "total"),
	}
	has := func(f release.Figures) bool {
		if !rapid.Bool().Draw(t, "known") {
			return false
		}
		w.Known |= f
		return true
	}
	for _, f := range []struct {
		figures release.Figures
		counts  []*int64
		floats  []*float64
	}{
		{release.HasSolved, []*int64{&w.Judged, &w.Solved}, nil}, {release.HasViolations, []*int64{&w.Violations}, nil},
		{release.HasTransfers, []*int64{&w.Transfers}, nil}, {release.HasCost, nil, []*float64{&w.Cost}},
		{release.HasCostMean, nil, []*float64{&w.CostMean}}, {release.HasP99, nil, []*float64{&w.P99MS}},
		{release.HasSlow, []*int64{&w.Slow}, nil}, {release.HasControl, []*int64{&w.ControlJudged, &w.ControlSolved}, nil},
		{release.HasUsers, []*int64{&w.Users}, nil},
		{release.HasTTFT, []*int64{&w.TTFTOf}, []*float64{&w.TTFTP99MS}}, {release.HasTTFTSlow, []*int64{&w.TTFTOf, &w.TTFTSlow}, nil},
		{release.HasITL, []*int64{&w.ITLOf}, []*float64{&w.ITLMS}}, {release.HasAborts, []*int64{&w.Streams, &w.Aborted}, nil},
		{release.HasErrors, []*int64{&w.StatusOf, &w.Errors}, nil}, {release.HasServerErrors, []*int64{&w.StatusOf, &w.ServerErrors}, nil},
		{release.HasKVCache, nil, []*float64{&w.KVCache}},
	} {
		if !has(f.figures) {
			continue
		}
		for _, n := range f.counts {
			*n = count.Draw(t, "count")
		}
		for _, x := range f.floats {
			*x = anyFloat().Draw(t, "float")
		}
	}
	return w
}

// TestWindowsComeBackAsDecideSawThem: every figure that was known with its very
// bits, and none that was not.
func TestWindowsComeBackAsDecideSawThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j := open(t, path)
	rapid.Check(t, func(t *rapid.T) {
		var want ladder.Evidence
		for range rapid.IntRange(0, 5).Draw(t, "canary") {
			want.Windows = append(want.Windows, drawWindow(t, release.Canary))
		}
		for range rapid.IntRange(0, 5).Draw(t, "stable") {
			want.Stable = append(want.Stable, drawWindow(t, release.Stable))
		}
		want.SourceFailed = rapid.Bool().Draw(t, "failed")
		if rapid.Bool().Draw(t, "known") {
			want.Observed = ladder.Observed{Weight: pct(rapid.Int64Range(0, 100).Draw(t, "weight")), At: t0.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "at"))), Known: true}
		}
		before := j.Head()
		err := j.Append(&journal.Entry{T: t0, Kind: journal.Decide, Decided: &journal.Decided{
			Canary: journal.WindowsOf(want.Windows), Stable: journal.WindowsOf(want.Stable), SourceFailed: want.SourceFailed,
			Observed: journal.Observed{Weight: want.Observed.Weight, At: want.Observed.At, Known: want.Observed.Known},
		}})
		if err != nil {
			t.Fatal(err)
		}
		entries, _, err := readFrom(path, before)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		got := entries[0].Decided.Evidence()
		if a, b := fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got); a != b { // bit by bit, down to -0 and the location
			t.Fatalf("want %s\ngot  %s\n%s", a, b, cmp.Diff(want, got))
		}
	})
}

// TestWhatNoFileCanHoldIsRefusedWhole: JSON has no word for it, and the journal
// goes on as if it had not been asked.
func TestWhatNoFileCanHoldIsRefusedWhole(t *testing.T) {
	path := written(t, kinds()...)
	j := open(t, path)
	before, was := load(t, path), j.Head()
	for name, e := range map[string]*journal.Entry{
		"not a number": {Kind: journal.Decide, Decided: &journal.Decided{Canary: []journal.Window{{P99MS: new(math.NaN())}}}},
		"infinity":     {Kind: journal.Record, Record: &journal.Rollback{Finding: &release.Finding{Value: math.Inf(1)}}},
		"no JSON":      {Kind: journal.Adopt, Adopted: json.RawMessage(`{`)},
		"year 10000":   {Kind: journal.Note, T: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if err := j.Append(e); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if !bytes.Equal(before, load(t, path)) || j.Head() != was {
		t.Error("the journal changed")
	}
	if err := j.Append(&journal.Entry{T: t0, Kind: journal.Note, Note: "on"}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := readFrom(path, was); err != nil || len(got) != 1 || got[0].Note != "on" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestAJournalIsKnownByItsBeginning, and nothing else is.
func TestAJournalIsKnownByItsBeginning(t *testing.T) {
	for _, e := range kinds() {
		b := load(t, written(t, e))
		if !journal.IsJournal(b) || !journal.IsJournal(b[:min(len(b), 200)]) {
			t.Errorf("not known: %.80s", b)
		}
	}
	for _, s := range []string{"", "{", `{"n":1,"t":"`, `{"n":1,"t":"2026-03-02T10:00:00Z","total":5}`, `{"t":"2026-03-02T10:00:00Z","arm":"canary"}`,
		`[{"n":1,"t":"2026","kind":"note"}]`, "canary:\n  target_service: s\n", `{"n":2,"t":"2026-03-02T10:00:00Z","kind":"note"}`, "\x00\x00"} {
		if journal.IsJournal([]byte(s)) {
			t.Errorf("taken for a journal: %s", s)
		}
	}
}
