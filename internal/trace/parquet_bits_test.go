package trace

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRowBitsAreASetOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "rows")
		set, want := rowBits(nil).room(n), make([]bool, n)
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			i := rapid.IntRange(0, n).Draw(t, "i")
			j := rapid.IntRange(i, n).Draw(t, "j")
			set.fill(i, j)
			for k := i; k < j; k++ {
				want[k] = true
			}
		}
		i := rapid.IntRange(0, n).Draw(t, "count from")
		j := rapid.IntRange(i, n).Draw(t, "count to")
		count, some := int32(0), false
		for k, w := range want {
			if set.has(k) != w {
				t.Fatalf("row %d: %v", k, !w)
			}
			if w && i <= k && k < j {
				count++
			}
			some = some || w
		}
		if got := set.count(i, j); got != count || set.some() != some {
			t.Fatalf("%d rows from %d to %d, want %d; some %v", got, i, j, count, set.some())
		}
	})
}

func TestBitsAreLaidWhereLevelsSayThatThereAreValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "src")
		from := rapid.IntRange(0, 8*len(src)).Draw(t, "from")
		bit := func(i int) bool { return i < 8*len(src) && src[i/8]>>(i%8)&1 == 1 }
		level := rapid.SampledFrom([]byte{1, 2, 128, 255}).Draw(t, "level")
		levels := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 127, 128, 254, 255, level, level}), 0, 64).Draw(t, "levels")
		word := wordAt(src, from)
		mask := equalBytes(levels, level)
		laid, next := deposit(word, mask), from
		for i := range 64 {
			if word>>i&1 == 1 != bit(from+i) {
				t.Fatalf("bit %d of the word %b", i, word)
			}
			there := i < len(levels) && levels[i] == level
			if mask>>i&1 == 1 != there {
				t.Fatalf("bit %d of the levels %b", i, mask)
			}
			if want := there && bit(next); laid&mask>>i&1 == 1 != want {
				t.Fatalf("bit %d of what was laid, %b", i, laid)
			}
			if there {
				next++
			}
		}
	})
}
