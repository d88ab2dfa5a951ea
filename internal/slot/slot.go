// Package slot decides which user is on the canary: user id -> slot of a ring
// -> arm (DESIGN section 4). It is pure, and small enough to be written again
// in a gateway's own language; [Vectors] proves that the two agree.
//
//	r := slot.Router{Ring: 100, ExcludeUsers: slot.SetOf("C-88001")}
//	r.Route("C-1001", "retail", release.Weight{Slots: 5, Ring: 100}) // {Arm: stable, Slot: 19, Why: slot}
//
// A share that grows only adds users: the slots below n are among the slots
// below n+1, so nobody who was on the canary leaves it while a ladder rises.
// It does not know steps, releases or whole traffic: a split by user is only
// as even as the users are, and one large user can carry a step alone.
package slot

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Of returns the user's slot on a ring: the first 8 bytes of SHA-256 of the
// id's bytes as a big-endian unsigned integer, modulo ring. The id is taken as
// it is: no trimming, no case folding, no Unicode normalisation. The ring must
// be positive.
func Of(user string, ring int64) int64 {
	return int64(hash(user) % uint64(ring))
}

func hash(user string) uint64 {
	var short [128]byte // an id that fits is hashed from the stack
	sum := sha256.Sum256(append(short[:0], user...))
	return binary.BigEndian.Uint64(sum[:8])
}

// Below returns how many slots of the ring a share takes:
// round_half_even(pct x ring), exactly. Half a slot of 100 (0.005) is 0 slots,
// one and a half (0.015) are 2.
func Below(pct release.Ratio, ring int64) int64 {
	return roundHalfEven(new(big.Rat).Mul(pct.Rat(), new(big.Rat).SetInt64(ring)))
}

// roundHalfEven rounds a non-negative value to the nearest integer, a half to
// the even one.
func roundHalfEven(r *big.Rat) int64 {
	twice := new(big.Int).Lsh(r.Denom(), 1)
	quo, rem := new(big.Int).QuoRem(new(big.Int).Lsh(r.Num(), 1), twice, new(big.Int))
	// rem/twice is the fraction that was cut off; rem against den is that fraction against a half.
	if c := rem.Cmp(r.Denom()); c > 0 || c == 0 && quo.Bit(0) == 1 {
		quo.Add(quo, big.NewInt(1))
	}
	return quo.Int64()
}
