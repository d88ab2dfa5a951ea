package release

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
)

// Ratio is an exact, non-negative rational number, as written by a user:
// "0.0005" is 1/2000. The zero value is not a number; build one with
// [ParseRatio], [NewRatio] or [RatioOf]. Den is always positive.
type Ratio struct {
	Num, Den int64
}

// ErrRatioRange says that an exact value does not fit numerator and
// denominator of 63 bits each, or is negative.
var ErrRatioRange = errors.New("number is negative or has too many digits to be held exactly")

// NewRatio returns num/den in lowest terms. It panics when num is negative or
// den is not positive: such values are the programmer's, not the user's.
func NewRatio(num, den int64) Ratio {
	if num < 0 || den <= 0 {
		panic(fmt.Sprintf("release: ratio %d/%d", num, den))
	}
	r, err := RatioOf(big.NewRat(num, den))
	if err != nil {
		panic(err)
	}
	return r
}

// ParseRatio reads a decimal number such as 0.0005, 3 or 1e-3 exactly.
// Fractions, signs, NaN and infinities are refused.
func ParseRatio(s string) (Ratio, error) {
	if f, err := strconv.ParseFloat(s, 64); err != nil || f < 0 || f > 1e18 {
		return Ratio{}, fmt.Errorf("%q: %w", s, ErrRatioRange)
	}
	rat, ok := new(big.Rat).SetString(s)
	if !ok {
		return Ratio{}, fmt.Errorf("%q: %w", s, ErrRatioRange)
	}
	return RatioOf(rat)
}

// MustRatio is [ParseRatio] for constants; it panics on an error.
func MustRatio(s string) Ratio {
	r, err := ParseRatio(s)
	if err != nil {
		panic(err)
	}
	return r
}

// RatioOf converts an exact value, or returns [ErrRatioRange].
func RatioOf(rat *big.Rat) (Ratio, error) {
	if rat.Sign() < 0 || !rat.Num().IsInt64() || !rat.Denom().IsInt64() {
		return Ratio{}, ErrRatioRange
	}
	return Ratio{Num: rat.Num().Int64(), Den: rat.Denom().Int64()}, nil
}

// Rat returns the value for exact arithmetic.
func (r Ratio) Rat() *big.Rat { return big.NewRat(r.Num, r.Den) }

// Mul returns r times s, exactly, or [ErrRatioRange].
func (r Ratio) Mul(s Ratio) (Ratio, error) {
	return RatioOf(new(big.Rat).Mul(r.Rat(), s.Rat()))
}

// IsZero reports whether r is the zero value, that is no number at all.
func (r Ratio) IsZero() bool { return r.Den == 0 }

// Float64 returns the nearest float64. A decimal limit and the same decimal in
// a data file give the same float64, so >= between the two is exact.
func (r Ratio) Float64() float64 {
	const exact = 1 << 53 // up to here a float64 holds every integer, and one division rounds once
	switch {
	case r.Den == 0:
		return 0
	case r.Num <= exact && r.Den <= exact:
		return float64(r.Num) / float64(r.Den)
	}
	f, _ := r.Rat().Float64()
	return f
}

// Compare compares the proportion count/total with r: -1, 0 or +1 as the
// proportion is below, equal to or above it. It is exact for all non-negative
// int64 arguments.
func (r Ratio) Compare(count, total int64) int {
	lhi, llo := bits.Mul64(uint64(count), uint64(r.Den))
	rhi, rlo := bits.Mul64(uint64(total), uint64(r.Num))
	switch {
	case lhi != rhi:
		if lhi < rhi {
			return -1
		}
		return 1
	case llo < rlo:
		return -1
	case llo > rlo:
		return 1
	}
	return 0
}

// FloorOf returns floor(n times r) for non-negative n, saturated at the
// largest int64.
func (r Ratio) FloorOf(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Num))
	if hi >= uint64(r.Den) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(r.Den))
	if q > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(q)
}

// String returns the shortest decimal that reads back as the same float64.
func (r Ratio) String() string {
	return strconv.FormatFloat(r.Float64(), 'g', -1, 64)
}
