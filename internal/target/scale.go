package target

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
)

// scale is how a target writes a share: the canary's weight as a multiple of
// whole with places decimals at most, and stable's as what is left of whole.
type scale struct {
	whole  int64
	places int
}

func scaleOf(u config.Unit) scale { return scale{whole: u.Whole, places: u.Places} }

// decimal is a number as JSON, YAML and people write it: no sign, no NaN, no
// fraction, no leading 0 (YAML reads 010 as 8), no exponent that takes minutes
// to work out.
var decimal = pattern.New(`^((0|[1-9][0-9]{0,39})(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?$`)

var (
	errNotWeight = errors.New("is not a weight: a decimal number of at least 0 is wanted")
	errNoTraffic = errors.New("both weights are 0: that is no share of anything")
)

// render writes a share as the two weights, exactly, with no more decimals
// than each needs: "0.05" and "0.95". They add up to the whole. What it cannot
// write exactly is a [*FineError] without its target's name.
func (s scale) render(w release.Weight) (canary, stable string, err error) {
	ring := max(w.Ring, 1)
	if w.Slots < 0 || w.Slots > ring {
		return "", "", fmt.Errorf("%d of %d slots are no share", w.Slots, ring)
	}
	whole := new(big.Rat).SetInt64(s.whole)
	c := new(big.Rat).Mul(whole, big.NewRat(w.Slots, ring))
	digits, exact := c.FloatPrec()
	if !exact || digits > s.places {
		return "", "", &FineError{Weight: w, Finest: s.finest()}
	}
	return c.FloatString(digits), new(big.Rat).Sub(whole, c).FloatString(digits), nil
}

// check returns the [*FineError] of render under a target's name, or nil.
func (s scale) check(name string, w release.Weight) error {
	_, _, err := s.render(w)
	return nameFine(name, err)
}

// nameFine puts a target's name into a [*FineError].
func nameFine(name string, err error) error {
	if fine, ok := errors.AsType[*FineError](err); ok {
		fine.Target = name
	}
	return err
}

// finest is the smallest share above 0 that the scale holds.
func (s scale) finest() release.Weight {
	parts := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s.places)), nil)
	if parts.Mul(parts, big.NewInt(s.whole)); !parts.IsInt64() {
		return release.Weight{Slots: 1, Ring: math.MaxInt64}
	}
	return release.Weight{Slots: 1, Ring: parts.Int64()}
}

// parse reads the canary's share. With a stable weight the two are relative
// to each other, as balancers take them: canary/(canary+stable), whatever they
// add up to. Without ("") it is canary/whole. The share comes in slots of ring
// where that is whole, else in lowest terms.
func (s scale) parse(canary, stable string, ring int64) (release.Weight, error) {
	c, err := parseWeight(canary)
	if err != nil {
		return release.Weight{}, fmt.Errorf("the canary's weight %w", err)
	}
	whole := new(big.Rat).SetInt64(s.whole)
	if stable != "" {
		rest, err := parseWeight(stable)
		if err != nil {
			return release.Weight{}, fmt.Errorf("stable's weight %w", err)
		}
		whole.Add(c, rest)
	}
	switch {
	case whole.Sign() == 0:
		return release.Weight{}, errNoTraffic
	case c.Cmp(whole) > 0:
		return release.Weight{}, fmt.Errorf("the canary's weight %s is more than the whole, %d: is the unit right?", canary, s.whole)
	}
	return onRing(c.Quo(c, whole), ring)
}

func parseWeight(text string) (*big.Rat, error) {
	if decimal.MatchString(text) {
		if r, ok := new(big.Rat).SetString(text); ok {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%q %w", shorten(text, 40), errNotWeight)
}

// onRing returns a share in slots of ring where that is whole, else in lowest
// terms.
func onRing(share *big.Rat, ring int64) (release.Weight, error) {
	if slots := new(big.Rat).Mul(share, new(big.Rat).SetInt64(ring)); ring > 0 && slots.IsInt() {
		return release.Weight{Slots: slots.Num().Int64(), Ring: ring}, nil
	}
	exact, err := release.RatioOf(share)
	if err != nil {
		return release.Weight{}, fmt.Errorf("the share %s: %w", share.FloatString(20), err)
	}
	return release.Weight{Slots: exact.Num, Ring: exact.Den}, nil
}

// shorten cuts a text for a message to at most n bytes.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n] + "..."
}
