package shadow

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Contract is what an answer must be: its structure, what it must not hold, and
// how much each field counts in a comparison.
type Contract struct {
	Name string
	// Structure returns what is wrong with the structure of an answer, nothing
	// if it is valid. Its faults must not quote the answer's values.
	Structure func(answer any) []Fault
	Fields    []Field
	Benign    release.Ratio // similarity from which on a pair is benign
	Risk      release.Ratio // from which on it is a risk; below it is fatal
	Kinds     []Kind
	Except    []string // fields in which Kinds are not looked for: order_id, items[].sku
}

// Fault is one way in which an answer breaks the structure.
type Fault struct {
	Path []string // keys and indexes to where it is
	Text string   // what is wrong, without values: "is missing", "want a string, is a number"
}

// Field is a field of answers that is compared.
type Field struct {
	Path      []string // keys from the top; one key may hold several parts, with points between them
	Weight    release.Ratio
	As        As
	Tolerance release.Ratio // of Number: how far apart the two may be
}

// As is how a field is compared.
type As uint8

// The ways to compare.
const (
	Exact  As = iota // equal as JSON: numbers by value, lists in order
	Set              // lists with the same items as often, in any order
	Number           // numbers that are at most Tolerance apart
)

var asNames = [...]string{"exact", "set", "number"}

// String returns the name in files.
func (a As) String() string {
	if int(a) < len(asNames) {
		return asNames[a]
	}
	return fmt.Sprintf("as(%d)", uint8(a))
}

// AsNames lists the ways to compare.
func AsNames() []string { return asNames[:] }

// ParseAs reads the name of a way to compare.
func ParseAs(name string) (As, bool) {
	for i, n := range asNames {
		if n == name {
			return As(i), true
		}
	}
	return 0, false
}

// DefaultThresholds returns the published thresholds of similarity, 0.95 and
// 0.70.
func DefaultThresholds() (benign, risk release.Ratio) {
	return release.NewRatio(95, 100), release.NewRatio(70, 100)
}

// ErrWeights says that a contract's weights add up to nothing, or to more than
// can be held exactly.
var ErrWeights = errors.New("the weights must add up to a number above 0 that can be held exactly")

// Check returns [ErrWeights] where the weights are of no use: where they are all
// zero, or where a sum of some of them could not be held exactly.
func (c *Contract) Check() error {
	scale := big.NewInt(1) // the smallest number that makes all of them whole
	for i := range c.Fields {
		den := big.NewInt(c.Fields[i].Weight.Den)
		if den.Sign() == 0 {
			return ErrWeights
		}
		gcd := new(big.Int).GCD(nil, nil, scale, den)
		scale.Mul(scale, den.Quo(den, gcd))
	}
	whole := sum(c.Fields, func(int) bool { return true })
	most := new(big.Rat).Mul(whole, new(big.Rat).SetInt(scale))
	if whole.Sign() == 0 || !scale.IsInt64() || !most.Num().IsInt64() {
		return ErrWeights
	}
	return nil
}
