package trace

import (
	"bytes"
	"math"
)

// verdict says what a value is.
type verdict uint8

const (
	isFigure verdict = iota
	isNoNumber
	isNothing
	isOdd // left to the careful reader, who says what is wrong with it
)

// measured is a value as a float64 of at least 0, counted one as an integer.
type (
	measured struct {
		v  float64
		is verdict
	}
	counted struct {
		v  int64
		is verdict
	}
)

// measures appends values as [row.measure] reads their texts.
func (c *cells) measures(dst []measured, from, n, pow int) []measured {
	if c.form.kind == formDouble && pow == 0 {
		for _, v := range c.doubles[from : from+n] {
			if v > 0 && v <= math.MaxFloat64 {
				dst = append(dst, measured{v: v})
			} else {
				dst = append(dst, notPositive(v))
			}
		}
		return dst
	}
	for i := from; i < from+n; i++ {
		dst = append(dst, c.measure(i, pow))
	}
	return dst
}

// notPositive says what a floating-point number stands for that is none above 0.
func notPositive(v float64) measured {
	switch {
	case v == 0:
		return measured{} // without a sign
	case v < 0 && v >= -math.MaxFloat64:
		return measured{is: isOdd}
	}
	return measured{is: isNoNumber}
}

func (c *cells) measure(i, pow int) measured {
	switch c.form.kind {
	case formDouble, formFloat:
		v, most := c.double(i)
		if !(v > 0 && v <= math.MaxFloat64) {
			return notPositive(v)
		}
		if f, ok := shortDecimal(v, most, pow); ok {
			return measured{v: f}
		}
	default:
		v, ok := c.integer(i)
		if ok && v < 0 {
			return measured{is: isOdd}
		}
		if f, exact := shift(v, pow-c.form.scale); ok && exact {
			return measured{v: f}
		}
	}
	var buf [64]byte
	text := c.plain(buf[:0], i)
	switch n, fig := parseNumber(text); {
	case fig == missing:
		return measured{is: isNothing}
	case fig == nonFinite:
		return measured{is: isNoNumber}
	case fig == finite && !n.negative():
		if v, ok := n.float(text, pow); ok {
			return measured{v: v}
		}
	}
	return measured{is: isOdd}
}

// double returns a floating-point number, and below which whole number its
// shortest decimal is the only one with as few digits.
func (c *cells) double(i int) (v, most float64) {
	if c.form.kind == formFloat {
		return float64(c.floats[i]), 1e6
	}
	return c.doubles[i], 1e15
}

// shortDecimal returns the float64 nearest to 10^pow times the shortest decimal
// that stands for v, if that has few digits. A decimal of at most 15 digits is
// the only one of so few digits near its float64 (6 and float32), so that
// finding one is finding the shortest.
func shortDecimal(v, most float64, pow int) (float64, bool) {
	const places = 6
	digits := math.Round(v * 1e6)
	if digits >= most {
		return 0, false
	}
	back := digits / 1e6
	if most < 1e15 {
		back = float64(float32(back))
	}
	if back != v {
		return 0, false
	}
	return shift(int64(digits), pow-places)
}

// shift returns the float64 nearest to v times 10^pow where one exact operation
// gives it.
func shift(v int64, pow int) (float64, bool) {
	if v < 0 || v >= 1<<53 || pow < -15 || pow > 15 {
		return 0, false
	}
	if pow < 0 {
		return float64(v) / float64(pow10(-pow)), true
	}
	return float64(v) * float64(pow10(pow)), true
}

// price is an amount in nano-USD of at least 0, or below it a verdict of what is
// none: a table of them is half of what one of [counted] takes.
type price int64

func (p price) verdict() verdict {
	if p < 0 {
		return verdict(^p)
	}
	return isFigure
}

// costs appends amounts of money as [nanoDollars] reads their texts.
func (c *cells) costs(dst []price, from, n int, u Unit) []price {
	for i := from; i < from+n; i++ {
		cost := c.cost(i, u)
		if cost.is != isFigure {
			cost.v = ^int64(cost.is)
		}
		dst = append(dst, price(cost.v))
	}
	return dst
}

func (c *cells) cost(i int, u Unit) counted {
	if c.form.kind == formDouble {
		v := c.doubles[i]
		if !(v > 0 && v <= math.MaxFloat64) {
			return counted{is: notPositive(v).is}
		}
		if nano, ok := nanoOf(v, 9+u.exp()); ok {
			return counted{v: nano}
		}
	}
	n, fig := c.number(i)
	switch fig {
	case missing:
		return counted{is: isNothing}
	case nonFinite:
		return counted{is: isNoNumber}
	case finite:
		if v, err := nanoDollars(n, u, nil); err == nil {
			return counted{v: v}
		}
	}
	return counted{is: isOdd}
}

// nanoOf rounds 10^pow times the shortest decimal that stands for v, if there
// is no doubt: both that decimal and the product in float64 are off by at most
// 2^-53 of themselves, and the distance to where rounding turns is more than
// that.
func nanoOf(v float64, pow int) (int64, bool) {
	x := v * float64(pow10(pow))
	if !(x >= 1 && x < maxCost) {
		return 0, false
	}
	whole := math.Floor(x)
	rest := x - whole
	if math.Abs(rest-0.5) <= float64(x*0x1p-50) {
		return 0, false
	}
	if rest > 0.5 {
		whole++
	}
	return int64(whole), true
}

// number reads a value as [row.number] does its text.
func (c *cells) number(i int) (number, figure) {
	if v, ok := c.integer(i); ok {
		n := number{mant: uint64(v), exp: -c.form.scale}
		if v < 0 {
			n.neg, n.mant = true, -n.mant
		}
		return n, finite
	}
	var buf [64]byte
	return parseNumber(c.plain(buf[:0], i))
}

// counts appends whole numbers as [row.count] reads their texts.
func (c *cells) counts(dst []counted, from, n int) []counted {
	for i := from; i < from+n; i++ {
		dst = append(dst, c.count(i))
	}
	return dst
}

func (c *cells) count(i int) counted {
	n, fig := c.number(i)
	switch fig {
	case missing:
		return counted{is: isNothing}
	case nonFinite:
		return counted{is: isNoNumber}
	case finite:
		if v, ok := n.whole(); ok && v >= 0 && v <= maxCount {
			return counted{v: v}
		}
	}
	return counted{is: isOdd}
}

// plain is the text of a value, without blanks around it.
func (c *cells) plain(buf []byte, i int) []byte {
	if c.form.kind == formText {
		return bytes.TrimSpace(c.text(i))
	}
	return c.append(buf, i)
}
