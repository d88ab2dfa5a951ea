package trace

import "math/bits"

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

// take puts n rows from i on into the set, as the bits of src from one on say.
func (s rowBits) take(i, n int, src []byte, from int) {
	for ; n > 0; n-- {
		if i&63 == 0 && from&7 == 0 && n >= 64 {
			words := n / 64
			for k := range words {
				b := src[from>>3+8*k:][:8]
				s[i>>6+k] = uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
			}
			i, from, n = i+64*words, from+64*words, n-64*words
			if n == 0 {
				return
			}
		}
		s[i>>6] |= uint64(src[from>>3]>>(from&7)&1) << (i & 63)
		i, from = i+1, from+1
	}
}
