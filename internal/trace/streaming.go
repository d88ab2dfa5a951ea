package trace

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/canaryctl/canaryctl/internal/release"
)

// streaming is what a tally knows of streams and statuses. It is made for the
// first record that says anything of them.
type streaming struct {
	ttft     ranks
	ttftOf   int64
	ttftSlow int64 // above [Options].TTFTLimitMS

	itlOf int64
	itl   wideSum // nanoseconds

	streams int64 // records that are known to be streams, by what they carry

	statusOf, errors, serverErrors int64
}

// maxITL bounds the time between two tokens: eleven days, in milliseconds.
const maxITL = 1e9

// readStream reads the fields of streams and the status.
func (rec *record) readStream(p *plan, r *row, opt *Options) error {
	if r.cells[FieldStatus].kind|r.cells[FieldTTFT].kind|r.cells[FieldITL].kind|r.cells[FieldStreamAborted].kind|r.cells[FieldOutputTokens].kind == absent {
		return nil
	}
	if err := rec.readStatus(r, opt); err != nil {
		return err
	}
	if err := rec.readAbort(r); err != nil {
		return err
	}
	var err error
	if rec.ttft, rec.ttftKnown, err = rec.elapsed(r, FieldTTFT, millis(p.unit[FieldTTFT])); err != nil {
		return err
	}
	itl, known, err := rec.elapsed(r, FieldITL, millis(p.unit[FieldITL]))
	switch {
	case err != nil:
		return err
	case itl > maxITL:
		return badField(FieldITL, "%s is longer than eleven days; is its unit right?", quote(r.cells[FieldITL].text))
	case known:
		rec.itl, rec.itlKnown = nanoseconds(itl), true
	}
	output, fig, err := r.count(FieldOutputTokens)
	if err != nil {
		return err
	}
	if fig == nonFinite {
		rec.nonFinite++
	}
	rec.streamed = rec.ttftKnown || rec.itlKnown || rec.flagged[abortFlag]
	rec.deriveITL(output)
	return nil
}

// elapsed reads a time that something took. Nothing takes none at all: a 0 was
// written by a logger that had nothing to write, and is missing.
func (rec *record) elapsed(r *row, f Field, pow int) (float64, bool, error) {
	v, fig, err := r.measure(f, pow)
	switch {
	case err != nil:
		return 0, false, err
	case fig == nonFinite:
		rec.nonFinite++
	case fig == finite && v == 0:
		rec.zeros++
	}
	return v, fig == finite && v > 0, nil
}

// deriveITL is the mean time between the tokens after the first one, where the
// record does not give it: (latency - ttft) / (output_tokens - 1).
func (rec *record) deriveITL(output int64) {
	if rec.itlKnown || !rec.ttftKnown || !rec.timed || output < 2 || rec.latency > maxITL || rec.ttft >= rec.latency {
		return
	}
	gaps := output - 1
	rec.itl = (nanoseconds(rec.latency) - nanoseconds(rec.ttft) + gaps/2) / gaps
	rec.itlKnown = true
}

// nanoseconds of a time in milliseconds that is at most maxITL.
func nanoseconds(ms float64) int64 { return int64(math.Round(ms * 1e6)) }

func (rec *record) readStatus(r *row, opt *Options) error {
	switch c := &r.cells[FieldStatus]; c.kind {
	case null:
		if opt.NullStatusOK {
			rec.status = statusOK
		}
	case composite:
		rec.shapeless = true
	case scalar:
		known := false
		if rec.status, known = statusOutcome(c.text); !known {
			rec.strange = true
		}
	}
	rec.hungUp = rec.status == statusGone
	return nil
}

// strangeIn is the status of the row, where that is in no table.
func (rec *record) strangeIn(r *row) []byte {
	if !rec.strange {
		return nil
	}
	return r.cells[FieldStatus].text
}

// readAbort reads whether the stream broke off: true, false, or a word that
// says that the client did it.
func (rec *record) readAbort(r *row) (err error) {
	c := &r.cells[FieldStreamAborted]
	if c.kind == scalar {
		if o, known := wordOutcome(c.text); known && o == statusGone {
			rec.flags[abortFlag], rec.flagged[abortFlag], rec.hungUp = true, true, true
			return nil
		}
	}
	rec.flags[abortFlag], rec.flagged[abortFlag], err = r.flag(FieldStreamAborted)
	return err
}

// stream counts what a record says of its stream and its status. It reports
// whether its time to first token came after those of its window were ranked.
func (c *counter) stream(tl *tally, rec *record, strange []byte) (late bool) {
	c.zeros += int64(rec.zeros)
	if rec.shapeless {
		c.shapeless++
	}
	if strange != nil {
		c.data.meet(strange)
	}
	if !rec.streamed && !rec.itlKnown && rec.status == statusUnknown {
		return false
	}
	s := tl.streaming
	if s == nil {
		s = &streaming{}
		tl.streaming = s
	}
	if rec.streamed {
		s.streams++
		c.streamed[tl.arm] = c.streamed[tl.arm] || rec.ttftKnown || rec.itlKnown
	}
	if rec.itlKnown {
		s.itlOf++
		s.itl.add(uint64(rec.itl))
		if c.opt.whole && c.opt.Distributions {
			c.pool.add(c.pool.of(&c.itl, tl.arm), float64(rec.itl))
		}
	}
	if rec.ttftKnown {
		late = c.timeFirst(tl, rec.ttft)
	}
	switch rec.status {
	case statusUnknown:
		return late
	case statusServer:
		s.serverErrors++
		s.errors++
	case statusFailed:
		s.errors++
	}
	s.statusOf++
	return late
}

// timeFirst counts a time to first token, and keeps it as [counter.time] keeps
// a latency.
func (c *counter) timeFirst(tl *tally, ms float64) (late bool) {
	s := tl.streaming
	s.ttftOf++
	if ms > c.opt.TTFTLimitMS {
		s.ttftSlow++
	}
	if c.opt.whole && c.opt.Distributions {
		c.pool.add(c.pool.of(&c.ttft, tl.arm), ms)
	}
	late, chunk := s.ttft.hold(&c.values, ms)
	if chunk {
		c.hold(tl)
	}
	return late
}

// fill writes what was counted of streams and statuses into a window.
func (c *counter) fill(w *release.Window, tl *tally) {
	c.aborts(w, tl)
	s := tl.streaming
	if s == nil {
		return
	}
	if s.ttft.state != never99 {
		w.TTFTP99MS, w.TTFTOf = s.ttft.p99, s.ttftOf
		w.Known |= release.HasTTFT
		if s.ttft.state == rough99 {
			c.roughFirst++
		}
	}
	if s.ttftOf > 0 && c.opt.TTFTLimitMS > 0 {
		w.TTFTSlow, w.TTFTOf = s.ttftSlow, s.ttftOf
		w.Known |= release.HasTTFTSlow
	}
	if s.itlOf > 0 {
		w.ITLMS, w.ITLOf = s.itl.over(s.itlOf, 1e6), s.itlOf
		w.Known |= release.HasITL
	}
	if s.statusOf > 0 {
		w.StatusOf, w.Errors, w.ServerErrors = s.statusOf, s.errors, s.serverErrors
		w.Known |= release.HasErrors | release.HasServerErrors
	}
}

// aborts writes how many streams broke off. They are counted among the records
// that say whether theirs did; where an arm only ever says that it did, among
// all its streams, which are its records if nothing else tells which they are.
func (c *counter) aborts(w *release.Window, tl *tally) {
	of := tl.flagged[abortFlag]
	if use := c.sparse[abortFlag][tl.arm]; use.yes && !use.no {
		of = tl.total
		if c.streamed[tl.arm] {
			of = 0
			if tl.streaming != nil {
				of = tl.streaming.streams
			}
		}
	}
	if of > 0 {
		w.Streams, w.Aborted = of, tl.flags[abortFlag]
		w.Known |= release.HasAborts
	}
}

// streamNotes says what the user should know about how they were counted.
func (c *counter) streamNotes(f *feed) {
	f.noteCount(c.zeros, "1 time of a stream is 0: missing, since nothing takes no time", "%d times of streams are 0: missing, since nothing takes no time")
	f.noteCount(c.shapeless, "1 status is an object or an array: missing; --map status=status.code reads what is in it",
		"%d statuses are objects or arrays: missing; --map status=status.code reads what is in them")
	if len(c.data.Strange) > 0 {
		f.note("%s", strangeNote(c.data.Strange))
	}
}

// strangeNote says which statuses were taken for failures because nothing says
// what they are.
func strangeNote(words []string) string {
	return fmt.Sprintf("a status that is not known counts as an error: %s; if that is no status, map another column (--map status=COLUMN)", list(words))
}

// maxStrange bounds how many statuses that are not known are kept to be told.
const maxStrange = 12

// meet remembers a status that is not known.
func (d *Data) meet(status []byte) {
	if len(d.Strange) < maxStrange && !slices.Contains(d.Strange, string(status)) {
		d.Strange = append(d.Strange, string(status))
	}
}

// wideSum is a sum of counts that may not fit 64 bits.
type wideSum struct{ hi, lo uint64 }

func (s *wideSum) add(n uint64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, n, 0)
	s.hi += carry
}

func (s *wideSum) big() *big.Int {
	sum := new(big.Int).SetUint64(s.hi)
	return sum.Lsh(sum, 64).Add(sum, new(big.Int).SetUint64(s.lo))
}

// over is the sum divided by n units of so many, exact until the last rounding.
func (s *wideSum) over(n, unit int64) float64 {
	f, _ := new(big.Rat).SetFrac(s.big(), new(big.Int).Mul(big.NewInt(n), big.NewInt(unit))).Float64()
	return f
}
