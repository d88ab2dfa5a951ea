package release

import "iter"

// SignalSet is a set of signals. In files it is a number, and the digests of
// states in journals rest on it: a signal's bit never changes, whatever its
// place among the signals.
type SignalSet uint16

// signalBits gives each signal its bit: the first seven are those of the journals
// from before there were signals of streaming.
var signalBits = [...]uint8{
	Violations: 0, Cost: 1, P99: 2, Transfers: 3, SolveRate: 4, Cooldown: 5, Probes: 6,
	TTFTP99: 7, TTFTSlow: 8, ITL: 9, StreamAborts: 10, ServerErrors: 11, Errors: 12, KVCache: 13,
}

// Has reports whether s is in the set.
func (set SignalSet) Has(s Signal) bool { return set&(1<<signalBits[s]) != 0 }

// With returns the set with s in it.
func (set SignalSet) With(s Signal) SignalSet { return set | 1<<signalBits[s] }

// All yields the set's signals in their order.
func (set SignalSet) All() iter.Seq[Signal] {
	return func(yield func(Signal) bool) {
		for s := range Signal(len(signalNames)) {
			if set.Has(s) && !yield(s) {
				return
			}
		}
	}
}
