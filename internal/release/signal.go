package release

import "fmt"

// Signal names what a verdict, a breaker event or a rollback rests on. The
// first ones are quantities read off windows, in the order in which the
// breaker looks at them; Cooldown and Probes are the breaker's own changes.
type Signal uint8

// The signals, in the breaker's order (DESIGN section 6).
const (
	Violations Signal = iota
	Cost
	P99
	Transfers
	TTFTP99
	TTFTSlow
	ITL
	StreamAborts
	ServerErrors
	Errors
	KVCache
	SolveRate
	Cooldown
	Probes
)

// Judged is the number of signals that are read off windows and judged; they
// are the values below it.
const Judged = int(SolveRate) + 1

var signalNames = [...]string{"violations", "cost", "p99", "transfers",
	"ttft_p99", "ttft_slow", "itl", "stream_aborts", "server_errors", "errors", "kv_cache",
	"solve_rate", "cooldown", "probes"}

// String returns the signal's name in files and output.
func (s Signal) String() string {
	if int(s) < len(signalNames) {
		return signalNames[s]
	}
	return fmt.Sprintf("signal(%d)", uint8(s))
}

// MarshalText implements [encoding.TextMarshaler].
func (s Signal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Signal) UnmarshalText(b []byte) error {
	for i, name := range signalNames {
		if name == string(b) {
			*s = Signal(i)
			return nil
		}
	}
	return fmt.Errorf("unknown signal %q", b)
}

// Mode says what becomes of a signal that is past its limit.
type Mode uint8

// The modes of a signal.
const (
	// Enforce trips the breaker and needs a pass at the gate if the source supplies the signal.
	Enforce Mode = iota
	// Required is Enforce written out by the user: the gate needs a pass even
	// if the source supplies nothing.
	Required
	// Observe shows would_fail and decides nothing.
	Observe
	// Off does not look.
	Off
)

// OnFail says what a failing signal does to the release.
type OnFail uint8

// The answers to a failing signal.
const (
	// RollBack trips the breaker: weight to 0.
	RollBack OnFail = iota
	// HoldStep stops the ladder where it is for the rest of the attempt.
	HoldStep
	// Throttle lowers the weight bit by bit as long as the signal fails, and
	// holds the step meanwhile.
	Throttle
)
