package trace

import (
	"math"
	"math/bits"
	"strconv"
)

// number is a decimal as written: (-1)^neg * mant * 10^exp, less than one unit
// of the last place more where digits were cut.
type number struct {
	mant uint64
	exp  int
	neg  bool
	cut  bool // digits other than zero past the 19th were dropped
}

// figure says what a cell that should hold a number holds.
type figure uint8

const (
	notNumber figure = iota
	finite
	nonFinite // NaN, +Inf, -Inf
	missing   // empty, null
)

// maxExponent bounds exponents: past it a number is no figure of this world,
// and arithmetic on exponents cannot overflow.
const maxExponent = 400

// parseNumber reads a decimal with optional sign, fraction and exponent. It
// accepts neither hexadecimal nor underscores.
func parseNumber(s []byte) (number, figure) {
	if n, ok := plainNumber(s); ok {
		return n, finite
	}
	if isMissing(s) {
		return number{}, missing
	}
	var n number
	i := 0
	if s[i] == '-' || s[i] == '+' {
		n.neg = s[i] == '-'
		i++
	}
	i, digits := n.digits(s, i)
	if digits == 0 {
		if isNonFinite(s) {
			return number{}, nonFinite
		}
		return number{}, notNumber
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		e, err := strconv.Atoi(string(s[i+1:]))
		if err != nil || e < -maxExponent || e > maxExponent {
			return number{}, notNumber
		}
		n.exp += e
		i = len(s)
	}
	if i != len(s) {
		return number{}, notNumber
	}
	return n, finite
}

// plainNumber reads what nearly all numbers look like: up to 19 digits with a
// point among or before them. Of everything else it says no.
func plainNumber(s []byte) (n number, ok bool) {
	if len(s) > 20 {
		return n, false
	}
	point := len(s)
	for i, c := range s {
		switch d := c - '0'; {
		case d < 10:
			n.mant = n.mant*10 + uint64(d)
		case c == '.' && point == len(s):
			point = i
		default:
			return n, false
		}
	}
	if point < len(s) {
		n.exp = point + 1 - len(s)
		return n, len(s) > 1
	}
	return n, len(s) > 0 && len(s) < 20
}

// digits reads an integer part and a fraction from s[i:] and returns where
// they end and how many digits they have.
func (n *number) digits(s []byte, i int) (end, count int) {
	fraction := false
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !fraction {
			fraction = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		count++
		if n.mant > (math.MaxUint64-9)/10 {
			n.cut = n.cut || c != '0'
			if !fraction {
				n.exp++
			}
			continue
		}
		n.mant = n.mant*10 + uint64(c-'0')
		if fraction {
			n.exp--
		}
	}
	return i, count
}

// scaled returns |n| * 10^pow as whole and rem/div, or false when the whole
// part does not fit 63 bits.
func (n number) scaled(pow int) (whole, rem, div uint64, ok bool) {
	e := n.exp + pow
	switch {
	case n.mant == 0:
		return 0, 0, 1, true
	case e > 18:
		return 0, 0, 1, false
	case e >= 0:
		hi, lo := bits.Mul64(n.mant, pow10(e))
		return lo, 0, 1, hi == 0 && lo <= math.MaxInt64
	case e < -19:
		// Less than a half whatever the mantissa: 2^64 < 10^20 / 2.
		return 0, 1, math.MaxUint64, true
	}
	div = pow10(-e)
	whole, rem = n.mant/div, n.mant%div
	return whole, rem, div, whole <= math.MaxInt64
}

// pow10 is 10^e for e from 0 to 19.
func pow10(e int) uint64 { return powersOf10[e] }

var powersOf10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// whole returns n as an integer if it is one.
func (n number) whole() (int64, bool) {
	w, rem, _, ok := n.scaled(0)
	if !ok || rem != 0 || n.cut {
		return 0, false
	}
	return n.signed(w), true
}

// floor returns n * 10^pow rounded down.
func (n number) floor(pow int) (int64, bool) {
	w, rem, _, ok := n.scaled(pow)
	if !ok {
		return 0, false
	}
	if n.neg && (rem != 0 || n.cut) {
		w++
	}
	return n.signed(w), true
}

// round returns n * 10^pow rounded half to even, or false when it does not fit,
// or has more than 18 digits before the point and more behind it than are kept.
func (n number) round(pow int) (int64, bool) {
	w, rem, div, ok := n.scaled(pow)
	if !ok || n.cut && n.exp+pow >= 0 {
		return 0, false
	}
	if half := div - rem; rem > half || rem == half && (n.cut || w%2 == 1) {
		w++
	}
	return n.signed(w), true
}

func (n number) signed(w uint64) int64 {
	if n.neg {
		return -int64(w)
	}
	return int64(w)
}

// negative reports whether n is below zero; -0 is not.
func (n number) negative() bool { return n.neg && (n.mant != 0 || n.cut) }

// exact returns the float64 nearest to n * 10^pow where that is one operation
// away: a mantissa below 2^53 and a power of ten up to 10^15 are float64s
// themselves, and their quotient or product is rounded once, hence right
// (Clinger, How to Read Floating Point Numbers Accurately, PLDI 1990).
func (n *number) exact(pow int) (float64, bool) {
	e := n.exp + pow
	if n.cut || n.mant >= 1<<53 || e > 15 || e < -15 {
		return 0, false
	}
	f := float64(n.mant)
	if e < 0 {
		f /= float64(powersOf10[-e])
	} else {
		f *= float64(powersOf10[e])
	}
	if n.neg && f != 0 {
		f = -f
	}
	return f, true
}

// float returns the float64 nearest to the number written in s times 10^pow,
// or false when it is out of range. s was accepted by parseNumber.
func (n number) float(s []byte, pow int) (float64, bool) {
	if f, ok := n.exact(pow); ok {
		return f, true
	}
	if pow != 0 {
		base, exp := s, pow
		for i, c := range s {
			if c == 'e' || c == 'E' {
				e, _ := strconv.Atoi(string(s[i+1:]))
				base, exp = s[:i], e+pow
				break
			}
		}
		s = strconv.AppendInt(append(append(make([]byte, 0, len(s)+8), base...), 'e'), int64(exp), 10)
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if f == 0 {
		f = 0 // no negative zero
	}
	return f, err == nil
}

// missingWords stand for no value in exports of databases and scripts.
var missingWords = []string{"null", "none", "na", "n/a", `\n`}

func isMissing(s []byte) bool {
	return len(s) == 0 || len(s) <= 4 && foldedIn(s, missingWords)
}

var nonFiniteWords = []string{"nan", "inf", "infinity"}

func isNonFinite(s []byte) bool {
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	return foldedIn(s, nonFiniteWords)
}

// foldedIn reports whether s is one of words, which are lower case ASCII, in
// any case.
func foldedIn(s []byte, words []string) bool {
	for _, w := range words {
		if len(w) == len(s) && foldedEqual(s, w) {
			return true
		}
	}
	return false
}

func foldedEqual(s []byte, w string) bool {
	for i := range s {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != w[i] {
			return false
		}
	}
	return true
}
