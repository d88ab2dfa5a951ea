package trace

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// inBlock is a text as it stands in a block: behind it a newline, a NUL, and what
// was in the buffer before.
func inBlock(text []byte, before byte) []byte {
	b := &block{buf: bytes.Repeat([]byte{before}, len(text)+1+blockPad)}
	copy(b.buf, text)
	b.close(len(text))
	return b.buf
}

// eachText calls f with all texts of up to so many of the pieces.
func eachText(pieces []string, most int, f func(text []byte)) {
	var grow func(text []byte, left int)
	grow = func(text []byte, left int) {
		f(text)
		if left == 0 {
			return
		}
		for _, p := range pieces {
			grow(append(slices.Clip(text), p...), left-1)
		}
	}
	grow(nil, most)
}

// All times that differ from the one before in one place are read as they are
// without it.
func TestATimeIsReadAsWithoutTheOneBefore(t *testing.T) {
	for at := time.Date(2026, 1, 28, 0, 0, 7, 0, time.UTC); at.Year() < 2028; at = at.Add(11*time.Hour + 7*time.Minute) {
		base := []byte(at.Format(time.RFC3339))
		for i := range base {
			for c := byte('0'); c <= '9'; c++ {
				text := slices.Clone(base)
				text[i] = c
				var used, fresh clock
				if _, err := used.instant(base); err != nil {
					t.Fatal(err)
				}
				got, gotErr := used.instant(text)
				want, wantErr := fresh.instant(text)
				if got != want || (gotErr == nil) != (wantErr == nil) {
					t.Fatalf("%s after %s: %d, %v; want %d, %v", text, base, got, gotErr, want, wantErr)
				}
			}
		}
	}
}

// A number in one word is what strconv makes of it, wherever its point stands and
// whatever comes behind.
func TestAShortNumberIsThatOfStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	read := 0
	for before := range 11 {
		for after := range 11 {
			for _, behind := range []string{",", "}", "\n", " ", "e1", "E", ".", "x", "\x80", "\xb0", ":", "/", "-"} {
				for range 40 {
					text := []byte(strconv.Itoa(r.IntN(1e9) + 1e9)[10-min(before, 10):])
					if after > 0 {
						text = append(append(text, '.'), strconv.Itoa(r.IntN(1e9) + 1e9)[10-after:]...)
					}
					if r.IntN(2) == 0 {
						text = append([]byte("-"), text...)
					}
					b := inBlock(append(slices.Clip(text), behind...), "09.e,"[r.IntN(5)])
					n, end, ok := shortNumber(b, 0)
					if short := shortEnd(b, 0); short > 0 && short != len(text) {
						t.Fatalf("%q ends at %d", b[:40], short)
					}
					if !ok {
						continue
					}
					read++
					got, exact := n.exact(0)
					want, err := strconv.ParseFloat(string(text), 64)
					if end != len(text) || err != nil || n.mant < 1<<53 && (!exact || got != want) {
						t.Fatalf("%q: %v up to %d, want %v", b[:40], got, end, want)
					}
				}
			}
		}
	}
	if read < 10_000 {
		t.Errorf("only %d were read", read)
	}
}

// quotedByByte is [csvParser.quoted] a byte at a time.
func quotedByByte(b []byte) (end, newlines int, ok bool) {
	for b[end] != '"' || b[end+1] == '"' {
		switch b[end] {
		case 0:
			return 0, 0, false
		case '"':
			end++
		case '\n':
			newlines++
		}
		end++
	}
	text := b[:end]
	if end++; b[end] == '\r' && b[end+1] == '\n' {
		end++
	}
	return end, newlines, ends(b[end]) && (newlines == 0 || !bytes.Contains(text, []byte("\r\n")))
}

func TestAQuotedCellEndsWhereItDoesByteByByte(t *testing.T) {
	p, use := &csvParser{}, &cellUse{use: skipped}
	check := func(text []byte) {
		for _, before := range []byte(`",`) {
			b := inBlock(text, before)
			end, newlines, ok := p.quoted(use, b, 0)
			wantEnd, wantLines, want := quotedByByte(b)
			if ok != want || ok && (end != wantEnd || newlines != wantLines) {
				t.Fatalf("%q: %d, %d, %v; want %d, %d, %v", b[:len(text)+2], end, newlines, ok, wantEnd, wantLines, want)
			}
		}
	}
	for n := range 10 {
		eachText([]string{`"`, ",", "\n", "\r", "a", "é", "\x00"}, 4, func(text []byte) {
			check(append(bytes.Repeat([]byte("a"), n), text...))
			check(append(bytes.Repeat([]byte(`""`), n), text...))
		})
	}
	eachText([]string{`"`, ",", "\n"}, 10, check)
}

func TestSkippedCellsEndWhereTheyDoByteByByte(t *testing.T) {
	skipped := 0
	check := func(text []byte, n int) {
		b := inBlock(text, ',')
		got := skipCells(b, 0, n)
		if got == 0 {
			return
		}
		skipped++
		if row := b[:got]; bytes.Count(row, []byte(",")) != n || row[got-1] != ',' || bytes.ContainsAny(row, "\"\n\x00") || slices.Max(row) >= 0x80 {
			t.Fatalf("%q: %d cells are %q", b[:len(text)+2], n, row)
		}
	}
	for before := range 10 {
		eachText([]string{`"`, ",", "\n", "\r", "a", "\xac", "\x00", "+", "-"}, 4, func(text []byte) {
			for n := 1; n < 4; n++ {
				check(append(bytes.Repeat([]byte("a"), before), text...), n)
				check(append(bytes.Repeat([]byte(","), before), text...), n+before)
			}
		})
	}
	if skipped < 10_000 {
		t.Errorf("only %d were skipped", skipped)
	}
}

// The percentile of values of which only some are looked at twice is that of all.
func TestAPercentileByTheValuesNearTheTopIsThatOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := &valueStore{}
	var scratch []float64
	for round := range 3000 {
		n := 1 + r.IntN(700)
		values := make([]float64, n)
		for i := range values {
			switch first := i%chunkLen == 0; round % 6 {
			case 0:
				values[i] = r.Float64()
			case 1:
				values[i] = float64(r.IntN(3))
			case 2:
				values[i] = float64(i)
			case 3:
				values[i] = float64(n - i)
			case 4, 5: // the first of each chunk says nothing of the others
				values[i] = r.Float64()
				if first == (round%6 == 4) {
					values[i] += 1000
				}
			}
		}
		var l valueList
		for rest := values; len(rest) > 0; {
			k := 1 + r.IntN(len(rest))
			s.pushAll(&l, rest[:k])
			rest = rest[k:]
		}
		var got float64
		got, scratch = s.nearest99(&l, scratch)
		if want := nearest99(values); got != want {
			t.Fatalf("round %d, %d values: %v, want %v", round, n, got, want)
		}
		s.drop(&l)
	}
}
