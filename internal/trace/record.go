package trace

// record is what a row says of one request. There may be millions of them on
// their way to be counted: it holds no pointers and is kept small.
type record struct {
	t       int64   // nanoseconds since the epoch, or noTime
	digest  uint64  // of the row as it stands in the file; 0: not compared with others
	cost    int64   // nano-USD
	latency float64 // milliseconds
	ttft    float64 // milliseconds
	itl     int64   // nanoseconds

	line    int32 // in its batch, from 0
	label   uint8 // which of its batch's labels says its arm and scene
	unknown uint8 // which of its batch's unknown statuses it has, from 1; 0: none

	nonFinite uint8   // figures that were NaN or infinite
	zeros     uint8   // times of a stream of 0, which nothing takes
	status    outcome // of the status
	said
}

// said is what a record says of itself by yes or no.
type said struct {
	solved, judged, solvedSeen bool
	flags, flagged             [len(flagFields)]bool // is one, and says whether it is

	priced, timed, ttftKnown, itlKnown bool // which figures it carries

	hungUp    bool // the client did, so a stream that broke off is no abort
	streamed  bool // it carries something that only streams have
	shapeless bool // the status is an object or an array
	strange   bool // the status is in no table
	named     bool // it carries an id: the same again is the same request
	span      bool // its digest is that of an id, which may come again at another time
	twice     bool // a field stood in its row more than once
	foreign   bool // its row has bytes that are not UTF-8
	odd       bool // nothing of this was read: the row waits in its batch's odd rows
}

// streams reports whether the record says anything of its stream or status.
func (rec *record) streams() bool {
	return rec.status != statusUnknown || rec.streamed || rec.itlKnown || rec.shapeless || rec.zeros > 0 || rec.strange || rec.unknown > 0
}

// flagFields are the fields of a tally's flags.
var flagFields = [...]Field{FieldViolation, FieldTransfer, FieldStreamAborted}

// abortFlag is the place of stream_aborted among them, whose whole is not all
// records but those that are streams.
const abortFlag = 2

// read takes what a row says of its request, but for its time, digest and label.
func (rec *record) read(p *plan, r *row, opt *Options) (err error) {
	rec.solvedSeen = r.cells[FieldSolved].kind != absent
	if rec.solved, rec.judged, err = r.flag(FieldSolved); err != nil {
		return err
	}
	for i, f := range flagFields[:abortFlag] {
		if rec.flags[i], rec.flagged[i], err = r.flag(f); err != nil {
			return err
		}
	}
	n, fig, err := r.number(FieldCostUSD)
	if err != nil {
		return err
	}
	switch fig {
	case nonFinite:
		rec.nonFinite++
	case finite:
		if rec.cost, err = nanoDollars(n, p.unit[FieldCostUSD], r.cells[FieldCostUSD].text); err != nil {
			return err
		}
		rec.priced = true
	}
	if rec.latency, fig, err = r.measure(FieldLatency, millis(p.unit[FieldLatency])); err != nil {
		return err
	}
	rec.timed = fig == finite
	if fig == nonFinite {
		rec.nonFinite++
	}
	return rec.readStream(p, r, opt)
}

// maxCost bounds what one request may cost, in nano-USD: a million dollars.
const maxCost = 1_000_000_000_000_000

func nanoDollars(n number, u Unit, text []byte) (int64, error) {
	if n.negative() {
		return 0, badField(FieldCostUSD, "%s is negative", quote(text))
	}
	v, ok := n.round(9 + u.exp())
	switch {
	case !ok || v > maxCost:
		return 0, badField(FieldCostUSD, "%s is more than a million dollars for one request", quote(text))
	case v == 0 && n.mant != 0:
		return 0, badField(FieldCostUSD, "%s is less than a billionth of a dollar for one request; is its unit right?", quote(text))
	}
	return v, nil
}

// millis is the power of ten that turns a unit into milliseconds.
func millis(u Unit) int {
	if u == NoUnit {
		return 0
	}
	return 3 + u.exp()
}
