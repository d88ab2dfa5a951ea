package calibrate

import (
	"slices"
	"testing"
)

// TestChancesWithoutRoomAreDrawnWithoutMemory: of more chances in turn than a
// memory has room for, on every way of drawing, the draws are those of memories
// with room for all, and no turn but the first allocates.
func TestChancesWithoutRoomAreDrawnWithoutMemory(t *testing.T) {
	const turns = 4
	chance := func(i int) float64 { return 0.05 + float64(0.004*float64(i)) }
	var tight memory
	var rooms [2]memory
	a, b := newDice(1, drawThin, 0).with(&tight), newDice(1, drawThin, 0)
	got, want := make([]int64, 0, 4<<20), []int64(nil)
	round := func(d *dice, out []int64, memoryOf func(i int) *memory) []int64 {
		for i := range 100 {
			d.with(memoryOf(i))
			for range noneFrom + 20 {
				for _, n := range []int64{8, 12, 500, noneOf - 1, 2 * noneOf} {
					out = append(out, d.binomial(n, chance(i)))
				}
			}
		}
		return out
	}
	turn := func() { got = round(a, got, func(int) *memory { return &tight }) }
	if n := testing.AllocsPerRun(turns-1, turn); n != 0 {
		t.Errorf("%v allocations in a turn", n)
	}
	for range turns {
		want = round(b, want, func(i int) *memory { return &rooms[i/50] })
	}
	if !slices.Equal(got, want) {
		t.Error("the draws are not those of memories with room for all")
	}
	if len(tight.all) != mostChances || len(rooms[0].all) != 50 || len(rooms[1].all) != 50 {
		t.Errorf("kept %d, %d and %d chances", len(tight.all), len(rooms[0].all), len(rooms[1].all))
	}
}
