package release

import "fmt"

// Verdict is what the evidence says about a signal. The five are never merged:
// too few samples is not "no data", and a source that could not be read is
// neither.
type Verdict uint8

// The verdicts, from the one that outranks all others to the weakest: one
// failing signal fails a gate even while others lack data, and a gate passes
// only if every needed signal does.
const (
	Fail Verdict = iota
	Error
	NoData
	Insufficient
	Pass
)

var verdictNames = [...]string{"fail", "error", "no_data", "insufficient", "pass"}

// String returns the verdict's name in files and output.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *Verdict) UnmarshalText(b []byte) error { return parseName(v, verdictNames[:], b) }

// Outranks reports whether v decides a gate over o.
func (v Verdict) Outranks(o Verdict) bool { return v < o }

// Phase is the breaker's state.
type Phase uint8

// The three states of the breaker.
const (
	Closed   Phase = iota // the canary serves its share and is watched
	Open                  // weight 0 until the cooldown is over, or locked
	HalfOpen              // probes at the first step's share
)

var phaseNames = [...]string{"CLOSED", "OPEN", "HALF_OPEN"}

// String returns the state's name in files and output.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// MarshalText implements [encoding.TextMarshaler].
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Phase) UnmarshalText(b []byte) error { return parseName(p, phaseNames[:], b) }

// Move is what the ladder decides to do.
type Move uint8

// The moves of the ladder.
const (
	Hold          Move = iota // leave the weight where it is
	Start                     // weight to the first step
	Advance                   // weight to the next step
	RollBackMove              // weight to 0
	Probe                     // weight to the first step, on trial
	Complete                  // the last step's gates passed; the weight stays
	AwaitApproval             // everything but a person's word is there
	Lock                      // weight to 0 until a person clears it
	Adjust                    // weight up or down within the step's bounds
)

var moveNames = [...]string{"hold", "start", "advance", "roll_back", "probe", "complete", "await_approval", "lock", "adjust"}

// String returns the move's name in files and output.
func (m Move) String() string {
	if int(m) < len(moveNames) {
		return moveNames[m]
	}
	return fmt.Sprintf("move(%d)", uint8(m))
}

// MarshalText implements [encoding.TextMarshaler].
func (m Move) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Move) UnmarshalText(b []byte) error { return parseName(m, moveNames[:], b) }

func parseName[T ~uint8](dst *T, names []string, b []byte) error {
	for i, name := range names {
		if name == string(b) {
			*dst = T(i)
			return nil
		}
	}
	return fmt.Errorf("unknown name %q, want one of %v", b, names)
}
