package trace

import "fmt"

// Unit is the unit of a time, a latency or an amount of money in the input.
type Unit uint8

// The units. NoUnit is the field's own: milliseconds for latencies, US dollars
// for money, a guess from the size for times that are numbers.
const (
	NoUnit Unit = iota
	Seconds
	Milliseconds
	Microseconds
	Nanoseconds
	Dollars
	MilliDollars
	MicroDollars
)

// unitNames holds each unit's name in --map and --epoch, and the power of ten
// that turns it into seconds or dollars.
var unitNames = [...]struct {
	name string
	exp  int
	kind unitKind
}{
	NoUnit:       {"", 0, noUnits},
	Seconds:      {"s", 0, timeUnits},
	Milliseconds: {"ms", -3, timeUnits},
	Microseconds: {"us", -6, timeUnits},
	Nanoseconds:  {"ns", -9, timeUnits},
	Dollars:      {"usd", 0, moneyUnits},
	MilliDollars: {"musd", -3, moneyUnits},
	MicroDollars: {"uusd", -6, moneyUnits},
}

type unitKind uint8

const (
	noUnits unitKind = iota
	timeUnits
	moneyUnits
)

// String returns the unit's name in --map.
func (u Unit) String() string { return unitNames[u].name }

func (u Unit) kind() unitKind { return unitNames[u].kind }

// exp is the power of ten of the unit, in seconds or dollars.
func (u Unit) exp() int { return unitNames[u].exp }

// ParseEpoch reads the unit of times that are numbers: s, ms, us or ns.
func ParseEpoch(s string) (Unit, error) {
	u, ok := unitOf(s)
	if !ok || u.kind() != timeUnits {
		return NoUnit, &MappingError{Text: s, Msg: fmt.Sprintf("%q is not a unit of time", s), Advice: "the units are s, ms, us and ns"}
	}
	return u, nil
}

func unitOf(s string) (Unit, bool) {
	for u, n := range unitNames {
		if n.name == s && s != "" {
			return Unit(u), true
		}
	}
	return NoUnit, false
}
