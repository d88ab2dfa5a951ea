package trace

import (
	"encoding/binary"
	"math/bits"
)

// rowBits is a set of rows of a batch.
type rowBits []uint64

// room empties the set and makes room for n rows.
func (s rowBits) room(n int) rowBits { return zeros(s, (n+63)/64) }

func (s rowBits) set(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s rowBits) drop(i int)     { s[i>>6] &^= 1 << (i & 63) }
func (s rowBits) has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }

// some reports whether there is any row in the set.
func (s rowBits) some() bool {
	all := uint64(0)
	for _, w := range s {
		all |= w
	}
	return all != 0
}

// fill puts the rows from i to j into the set.
func (s rowBits) fill(i, j int) {
	for ; i < j && i&63 != 0; i++ {
		s.set(i)
	}
	for ; i+64 <= j; i += 64 {
		s[i>>6] = ^uint64(0)
	}
	for ; i < j; i++ {
		s.set(i)
	}
}

// count is how many rows from i to j are in the set.
func (s rowBits) count(i, j int) int32 {
	if i >= j {
		return 0
	}
	first, last := i>>6, (j-1)>>6
	head, tail := ^uint64(0)<<(i&63), ^uint64(0)>>(63-(j-1)&63)
	if first == last {
		return int32(bits.OnesCount64(s[first] & head & tail))
	}
	n := bits.OnesCount64(s[first]&head) + bits.OnesCount64(s[last]&tail)
	for _, w := range s[first+1 : last] {
		n += bits.OnesCount64(w)
	}
	return int32(n)
}

// wordAt returns 64 bits of src from one on, zeros behind its end.
func wordAt(src []byte, from int) uint64 {
	b, shift := src[min(from>>3, len(src)):], from&7
	if len(b) > 8 {
		return binary.LittleEndian.Uint64(b)>>shift | uint64(b[8])<<(64-shift)
	}
	word := uint64(0)
	for i, v := range b {
		word |= uint64(v) << (8 * i)
	}
	return word >> shift
}

// equalBytes returns a bit for each of at most 64 bytes, set where it is v.
func equalBytes(b []byte, v byte) (set uint64) {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		set |= same(load(b, i), v) >> 7 * 0x0102040810204080 >> 56 << i // the highest bits of the bytes side by side
	}
	for ; i < len(b); i++ {
		if b[i] == v {
			set |= 1 << i
		}
	}
	return set
}

// deposit puts the lowest bits of word where mask has bits, in their order.
func deposit(word, mask uint64) (out uint64) {
	if gaps := ^mask; bits.OnesCount64(gaps) < 32 {
		for ; gaps != 0; gaps &= gaps - 1 { // make a gap, from the lowest on
			below := gaps&-gaps - 1
			word = word&below | word&^below<<1
		}
		return word
	}
	for ; mask != 0; mask &= mask - 1 {
		out |= mask & -mask & -(word & 1)
		word >>= 1
	}
	return out
}
