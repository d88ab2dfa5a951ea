package trace

import "time"

// Moments reads times as files of records are read: calendar times, or numbers
// of one unit, which is guessed from the first. Each file has one of its own.
type Moments struct{ clock clock }

// Read reads a time. The error says what is wrong with it and may quote it.
func (m *Moments) Read(text string) (time.Time, error) {
	ns, err := m.clock.instant([]byte(text))
	if err != nil {
		return time.Time{}, err
	}
	return instantOf(ns), nil
}

// CallEnd is how a call ended, by its status.
type CallEnd uint8

// The ends of a call.
const (
	CallUnknown CallEnd = iota // the status says nothing
	CallOK
	CallFailed
	CallGone // the client did not wait for the end: nobody's fault
)

// ReadStatus reads a status by the table of records: a code or a word.
func ReadStatus(text string) CallEnd {
	switch o, _ := statusOutcome([]byte(text)); o {
	case statusUnknown:
		return CallUnknown
	case statusOK:
		return CallOK
	case statusGone:
		return CallGone
	}
	return CallFailed
}

// SameFile refuses a file that is named twice, under whatever name: its lines
// would count twice. The error is an [*InputError].
func SameFile(paths []string) error { return sameFile(paths, nil) }
