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
			if rapid.Bool().Draw(t, "fill") {
				set.fill(i, j)
				for k := i; k < j; k++ {
					want[k] = true
				}
				continue
			}
			from := rapid.IntRange(0, 20).Draw(t, "from")
			if rapid.Bool().Draw(t, "even") {
				i, from = i&^63, from&^7
				j = max(i, j)
			}
			src := rapid.SliceOfN(rapid.Byte(), (from+j-i+7)/8, -1).Draw(t, "src")
			for k := i; k < j; k++ { // rows that nothing was said of
				set.drop(k)
			}
			set.take(i, j-i, src, from)
			for k := i; k < j; k++ {
				want[k] = src[(from+k-i)/8]>>((from+k-i)%8)&1 == 1
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
