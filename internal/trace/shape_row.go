package trace

import (
	"encoding/json"
	"fmt"
	"strconv"
)

func validObject(text []byte) bool {
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// give fills a field with what a foreign row says, if that is a scalar and
// stands for something.
func (r *row) give(f Field, text []byte) {
	if len(text) > 0 {
		r.cells[f] = cell{kind: scalar, text: text}
	}
}

// flagged fills a field that is true or false.
func (r *row) flagged(f Field, v bool) {
	r.cells[f] = cell{kind: scalar, text: falseText}
	if v {
		r.cells[f].text = trueText
	}
}

// moment is a time of a foreign row.
type moment struct {
	ns    int64
	known bool
}

// moment reads a time: a number of a unit, or of a unit guessed from its size
// where that is NoUnit, or a date with a time of day, in UTC unless it says
// otherwise. One that is missing, or 0, is not known; one that is no time is a
// *badRow.
func (b *bag) moment(unit Unit, names ...string) (moment, error) {
	for _, name := range names {
		text := b.text(name)
		if text == nil {
			continue
		}
		ns, ok := readMoment(text, unit)
		switch {
		case !ok:
			return moment{}, &badRow{fmt.Sprintf("%s %s is not a time", name, quote(text))}
		case ns != 0:
			return moment{ns, true}, nil
		}
	}
	return moment{}, nil
}

func readMoment(text []byte, unit Unit) (int64, bool) {
	n, fig := parseNumber(text)
	if fig != finite {
		ns, _, ok := parseCalendar(text)
		return ns, ok && inRange(ns)
	}
	if n.mant == 0 {
		return 0, true
	}
	if unit == NoUnit {
		guess, ok := guessEpoch(n)
		if !ok {
			return 0, false
		}
		unit = guess
	}
	ns, ok := n.floor(9 + unit.exp())
	return ns, ok && inRange(ns)
}

// start fills in when the request began.
func (r *row) start(m moment) {
	if m.known {
		r.give(FieldTS, strconv.AppendInt(nil, m.ns, 10))
	}
}

// elapsed fills in a duration between two times. A later time that is not after
// the first says nothing: clocks go back, and loggers write the start for an end
// that never came.
func (r *row) elapsed(f Field, from, to moment) {
	if from.known && to.known && to.ns > from.ns {
		r.give(f, decimal(to.ns-from.ns, -6))
	}
}

// scaled fills a field of milliseconds with a number of another unit, which is
// 10^pow milliseconds. What is no number of at least 0 is left out, since a
// foreign log writes -1 for a time that it does not know, and so is a first token
// after no time at all.
func (r *row) scaled(f Field, text []byte, pow int) {
	n, fig := parseNumber(text)
	if len(text) == 0 || fig != finite || n.neg || n.mant > 1<<62 || f == FieldTTFT && n.mant == 0 {
		return
	}
	r.give(f, decimal(int64(n.mant), n.exp+pow))
}

// count fills a field with a whole number of at least 0.
func (r *row) whole(f Field, text []byte) {
	n, fig := parseNumber(text)
	if len(text) == 0 || fig != finite {
		return
	}
	if w, ok := n.whole(); ok && w >= 0 {
		r.give(f, strconv.AppendInt(nil, w, 10))
	}
}

// money fills in a cost in dollars of at least 0.
func (r *row) money(text []byte) {
	if n, fig := parseNumber(text); len(text) > 0 && fig == finite && !n.negative() {
		r.give(FieldCostUSD, text)
	}
}

// decimal writes n times 10^exp.
func decimal(n int64, exp int) []byte {
	out := strconv.AppendInt(nil, n, 10)
	if exp == 0 {
		return out
	}
	return strconv.AppendInt(append(out, 'e'), int64(exp), 10)
}

var hungUpText, limitedText, errorText = []byte("499"), []byte("429"), []byte("error")

// failure fills in the status of a request that failed, by the class of its
// error: an HTTP status, a class name, an error code.
func (r *row) failure(class []byte) {
	r.cells[FieldStatus] = cell{kind: scalar, text: failureStatus(class)}
}

// failureStatus is the status that the class of an error stands for. A class
// that says nothing more is an error.
func failureStatus(class []byte) []byte {
	last := class
	for i, c := range class {
		if c == '.' && i+1 < len(class) {
			last = class[i+1:] // of asyncio.exceptions.CancelledError
		}
	}
	switch string(last) {
	case "insufficient_quota", "rate_limit_exceeded":
		return limitedText // with which HTTP status they come
	case "APIUserAbortError", "CancelledError", "AbortError", "context canceled", "Canceled":
		return hungUpText // the caller did not wait
	}
	switch o, known := statusOutcome(last); {
	case !known, o == statusOK, o == statusUnknown:
		return errorText
	}
	return last
}
