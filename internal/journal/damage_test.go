package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
)

// sound is an undamaged journal: its bytes, and where each line begins.
type sound struct {
	t      *testing.T
	path   string // where damaged copies are put
	bytes  []byte
	starts []int // and the end
	heads  []journal.Head
}

// soundOf writes a journal with so many lines.
func soundOf(t *testing.T, lines int) *sound {
	t.Helper()
	var entries []*journal.Entry
	for len(entries) < lines {
		entries = append(entries, kinds()...)
	}
	for i, e := range entries[:lines] {
		e.T = t0.Add(time.Duration(i) * time.Minute) // no two lines alike
	}
	s := &sound{t: t, path: written(t, entries[:lines]...), starts: []int{0}}
	s.bytes = load(t, s.path)
	_, heads, err := readFrom(s.path, journal.Head{})
	if err != nil || len(heads) != lines {
		t.Fatalf("%d lines, %v", len(heads), err)
	}
	for _, h := range heads {
		s.starts = append(s.starts, int(h.Size))
	}
	s.heads = append([]journal.Head{{}}, heads...)
	return s
}

func (s *sound) lines() int { return len(s.heads) - 1 }

// line returns the line, from 1, that a byte belongs to.
func (s *sound) line(at int) int {
	i, found := slices.BinarySearch(s.starts, at)
	if found {
		i++
	}
	return i
}

// want reads a damaged copy, from a file and its beginning or, quickly, from
// memory and the line before the damage, and fails unless the first wrong line
// is the one given and every line before it is read. 0: no line is wrong, and
// whole says how many there are.
func (s *sound) want(what string, damaged []byte, wrong, whole int, quick bool) {
	s.t.Helper()
	from, read := 0, 0
	count := func(*journal.Entry, journal.Head) error { read++; return nil }
	var err error
	if quick {
		from = max(max(wrong, whole+1)-2, 0)
		err = journal.ReadBytes(damaged, s.path, s.heads[from], count)
	} else {
		put(s.t, s.path, damaged)
		err = journal.Read(s.t.Context(), s.path, journal.Head{}, count)
	}
	read += from
	var corrupt *journal.CorruptError
	switch {
	case wrong == 0 && (err != nil || read != whole):
		s.t.Fatalf("%s: %d lines, want %d, and %v", what, read, whole, err)
	case wrong > 0 && (!errors.As(err, &corrupt) || corrupt.Line != int64(wrong) || corrupt.Path != s.path || read != wrong-1):
		s.t.Fatalf("%s: %d lines and then %v, want line %d to be wrong", what, read, err, wrong)
	}
}

// change makes one change of a byte and checks what is found.
func (s *sound) change(kind, at int, b byte, quick bool) {
	s.t.Helper()
	line, n := s.line(at), s.lines()
	last := at == len(s.bytes)-1 // the last newline: without it the line is one that is being written
	what := fmt.Sprintf("change %d at byte %d of line %d, %q", kind, at, line, b)
	switch kind {
	case 0:
		s.bytes[at] ^= b
		defer func() { s.bytes[at] ^= b }()
		if last {
			s.want(what, s.bytes, 0, n-1, quick)
			return
		}
		s.want(what, s.bytes, line, 0, quick)
	case 1:
		d := slices.Delete(bytes.Clone(s.bytes), at, at+1)
		if last {
			s.want(what, d, 0, n-1, quick)
			return
		}
		s.want(what, d, line, 0, quick)
	case 2:
		if b == '\n' && s.bytes[at] == '\n' {
			line++ // an empty line behind this one
		}
		s.want(what, slices.Insert(bytes.Clone(s.bytes), at, b), line, 0, quick)
	}
}

// TestEveryByteOfASmallJournalCounts: each changed to two others, taken out,
// and something put in before it.
func TestEveryByteOfASmallJournalCounts(t *testing.T) {
	s := soundOf(t, 3)
	for at := range s.bytes {
		for _, b := range []byte{0x20, 0x81} { // 0x20: the other case of a letter
			s.change(0, at, b, at%100 != 0)
		}
		s.change(1, at, 0, at%100 != 0)
		for _, b := range []byte{' ', '\n', 0} {
			s.change(2, at, b, at%100 != 0)
		}
	}
	t.Logf("%d bytes, %d changes", len(s.bytes), 6*len(s.bytes))
}

// TestRandomDamageOfALongJournalIsFoundInItsLine.
func TestRandomDamageOfALongJournalIsFoundInItsLine(t *testing.T) {
	s := soundOf(t, 60)
	rng := rand.New(rand.NewPCG(4, 60))
	for i := range 20_000 {
		s.change(i%3, rng.IntN(len(s.bytes)), byte(1+rng.IntN(255)), i%100 != 0)
	}
}

// TestLinesOutOfPlaceAreFound: taken out, exchanged, doubled, put in.
func TestLinesOutOfPlaceAreFound(t *testing.T) {
	s := soundOf(t, 30)
	text := func(s *sound, line int) []byte { return s.bytes[s.starts[line-1]:s.starts[line]] }
	build := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	n := s.lines()
	for i := 1; i <= n; i++ {
		before, behind := s.bytes[:s.starts[i-1]], s.bytes[s.starts[i]:]
		out := i
		if i == n {
			out = 0 // an end that was cut off is the state's to find
		}
		s.want("taken out", build(before, behind), out, n-1, false)
		s.want("doubled", build(before, text(s, i), text(s, i), behind), i+1, 0, false)
		s.want("an empty line before it", build(before, []byte("\n"), text(s, i), behind), i, 0, false)
		for j := i + 1; j <= n; j++ {
			s.want("exchanged", build(before, text(s, j), s.bytes[s.starts[i]:s.starts[j-1]], text(s, i), s.bytes[s.starts[j]:]), i, 0, false)
		}
	}
}

// TestALineWrittenAnewIsFoundAtTheNext: somebody changes a line and forms its
// sum again; the line behind it knows the old one.
func TestALineWrittenAnewIsFoundAtTheNext(t *testing.T) {
	s := soundOf(t, 30)
	for i := 1; i <= s.lines(); i++ {
		line := s.bytes[s.starts[i-1] : s.starts[i]-1]
		body := bytes.Replace(line[:bytes.LastIndex(line, []byte(`,"sum":`))], []byte(`"kind":`), []byte(`"by":"eve","kind":`), 1)
		sum := sha256.Sum256(body)
		forged := fmt.Appendf(nil, "%s,\"sum\":\"%s\"}\n", body, hex.EncodeToString(sum[:]))
		wrong := i + 1
		if i == s.lines() {
			wrong = 0 // nothing behind it knows; the head that the state keeps does
		}
		s.want("forged", slices.Concat(s.bytes[:s.starts[i-1]], forged, s.bytes[s.starts[i]:]), wrong, s.lines(), false)
	}
	put(t, s.path, s.bytes)
	head := s.heads[10]
	head.Sum = s.heads[9].Sum
	var corrupt *journal.CorruptError
	if entries, _, err := readFrom(s.path, head); len(entries) != 0 || !errors.As(err, &corrupt) || corrupt.Line != 11 {
		t.Errorf("behind a head with another sum: %d lines, %v", len(entries), err)
	}
}

// TestOtherProgramsWaysWithATextFile are found, or harm nothing.
func TestOtherProgramsWaysWithATextFile(t *testing.T) {
	s := soundOf(t, 10)
	s.want("Windows' line ends", bytes.ReplaceAll(s.bytes, []byte("\n"), []byte("\r\n")), 1, 0, false)
	s.want("a byte order mark", append([]byte("\xef\xbb\xbf"), s.bytes...), 1, 0, false)
	s.want("indented", bytes.ReplaceAll(s.bytes, []byte(`{"n":`), []byte(`{ "n":`)), 1, 0, false)
	s.want("a newline at the end", append(bytes.Clone(s.bytes), '\n'), 11, 0, false)
	s.want("zeros at the end, after a power cut", append(bytes.Clone(s.bytes), make([]byte, 4096)...), 0, 10, false)
	zeros := bytes.Clone(s.bytes)
	clear(zeros[s.starts[4]:s.starts[6]])
	s.want("zeros in the middle", zeros, 5, 0, false)
	s.want("nothing but zeros", make([]byte, 100), 0, 0, false)
	s.want("empty", nil, 0, 0, false)
	s.want("another file", []byte("canary:\n  steps: []\n"), 1, 0, false)
}

// TestACutOffEndIsLeftOutByReadersAndTakenAwayByOpen, at every byte of the last
// two lines; what was taken away is said, and the journal goes on.
func TestACutOffEndIsLeftOutByReadersAndTakenAwayByOpen(t *testing.T) {
	s := soundOf(t, 10)
	for at := s.starts[8]; at <= len(s.bytes); at++ {
		whole := s.line(at) - 1
		s.want(fmt.Sprintf("cut at %d", at), s.bytes[:at], 0, whole, false)
		j, err := journal.Open(s.path)
		if err != nil {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if want := int64(at - s.starts[whole]); j.Torn != want || j.Head() != s.heads[whole] {
			t.Fatalf("cut at %d: %d bytes taken away, want %d; head %+v", at, j.Torn, want, j.Head())
		}
		if !bytes.Equal(load(t, s.path), s.bytes[:s.starts[whole]]) {
			t.Fatalf("cut at %d: the file is not the whole lines", at)
		}
		if at%97 == 0 { // syncs take their time
			if err := j.Append(kinds()[0]); err != nil {
				t.Fatal(err)
			}
			s.want("and on", load(t, s.path), 0, whole+1, false)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenNamesADamagedLastLine and touches nothing.
func TestOpenNamesADamagedLastLine(t *testing.T) {
	s := soundOf(t, 10)
	for at := s.starts[9]; at < len(s.bytes)-1; at++ {
		d := bytes.Clone(s.bytes)
		d[at] ^= 1
		line := int64(10)
		if d[at] == '\n' {
			line = 11
		}
		put(t, s.path, d)
		_, err := journal.Open(s.path)
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Line != line || corrupt.Path != s.path {
			t.Fatalf("byte %d: %v", at, err)
		}
		if !bytes.Equal(load(t, s.path), d) {
			t.Fatalf("byte %d: Open changed a damaged journal", at)
		}
	}
	for name, d := range map[string][]byte{
		"an empty line": append(bytes.Clone(s.bytes), '\n'), "another file": []byte("not a journal\n"), "an empty first line": []byte("\n"),
	} {
		put(t, s.path, d)
		if _, err := journal.Open(s.path); err == nil {
			t.Errorf("%s was taken for a journal", name)
		}
	}
}

// TestCheckKnowsTheLineThatAStateStandsAt, and looks at no other.
func TestCheckKnowsTheLineThatAStateStandsAt(t *testing.T) {
	s := soundOf(t, 12)
	for _, h := range s.heads {
		if err := journal.Check(s.path, h); err != nil {
			t.Errorf("line %d: %v", h.N, err)
		}
	}
	at := s.heads[6]
	for i := s.starts[5]; i < s.starts[6]; i++ {
		d := bytes.Clone(s.bytes)
		d[i] ^= 1
		put(t, s.path, d)
		var corrupt *journal.CorruptError
		if err := journal.Check(s.path, at); !errors.As(err, &corrupt) || corrupt.Line != 6 {
			t.Fatalf("byte %d of line 6: %v", i-s.starts[5], err)
		}
	}
	put(t, s.path, s.bytes)
	for name, h := range map[string]journal.Head{
		"another sum": {N: 6, Sum: s.heads[5].Sum, Size: at.Size}, "another number": {N: 7, Sum: at.Sum, Size: at.Size}, "another place": {N: 6, Sum: at.Sum, Size: at.Size - 1},
		"the line behind": {N: 6, Sum: at.Sum, Size: s.heads[7].Size}, "behind the end": {N: 6, Sum: at.Sum, Size: int64(len(s.bytes)) + 1},
	} {
		if err := journal.Check(s.path, h); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestOpenOfWhatIsNoFile.
func TestOpenOfWhatIsNoFile(t *testing.T) {
	if _, err := journal.Open(t.TempDir()); err == nil {
		t.Error("a directory was opened as a journal")
	}
	if _, err := journal.Open(t.TempDir() + "/missing/journal.jsonl"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a directory that is not there: %v", err)
	}
	if _, _, err := readFrom(t.TempDir()+"/journal.jsonl", journal.Head{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading nothing: %v", err)
	}
}
