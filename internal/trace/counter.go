package trace

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math/big"
	"slices"

	"github.com/canaryctl/canaryctl/internal/release"
)

// counter counts records into windows per arm, aligned to the epoch. Every sum
// is an integer, so the order of the records does not matter.
type counter struct {
	opt    *Options
	data   *Data
	arms   *armNames
	scenes sceneNames

	span    int64
	tallies map[tallyKey]*tally
	last    *tally // where the record before went
	lastKey tallyKey

	seed      maphash.Seed
	owed      []owedRows      // in the order of time
	repay     func(of *tally) // finds the digests of its rows that are owed
	values    valueStore      // latencies and times to first token
	latencies shelf
	digests   shelf

	sparse   [len(flagFields)][]flagUse // by arm: how each flag is logged
	streamed []bool                     // by arm: some record carries a time of its stream

	pool          distributions
	latency, cost []*Distribution // by arm, the costs in nano-USD
	ttft, itl     []*Distribution // the same of records judged whole, itl in nanoseconds

	first, last0 int64 // times of the first and last record
	unsure       int64 // records that came too late to be compared with those before
	lost         int64 // records that could not be, since the file of those changed
	rough        int64 // windows whose p99 is that of the spread, to save memory
	roughFirst   int64 // the same of times to first token
	halfTimed    int64 // windows in which some records carry a latency and some do not
	unflagged    [len(flagFields)]int64
	zeros        int64 // times of streams that are 0
	shapeless    int64 // statuses that are objects or arrays
}

type tallyKey struct {
	t   int64
	arm int
}

// flagUse says whether a flag was ever logged as true and as false.
type flagUse struct{ yes, no bool }

// tally is what is known of one arm in one window.
type tally struct {
	t   int64
	arm int

	total, judged, solved int64
	solvedSeen            bool                   // some record had the field, if only as null
	flags                 [len(flagFields)]int64 // violations, transfers, aborted streams
	flagged               [len(flagFields)]int64 // records that say whether they are one

	priced int64   // records with a cost
	cost   wideSum // nano-USD

	latency   ranks
	inSpeed   place // among the tallies that hold latencies or times to first token
	speed     *speed
	streaming *streaming

	digests  digestLog
	noDigest bool // digests were given up to save memory
	lost     bool // or since their file is not any more what was read
	inSeen   place
}

// speed is what else is counted of the latencies where [Options] ask for it.
type speed struct {
	timed, slow int64 // records with a latency, and with one above SlowMS
}

func newCounter(opt *Options, data *Data) *counter {
	return &counter{
		opt: opt, data: data, arms: newArmNames(opt), scenes: sceneNames{want: opt.Scene, data: data},
		span:      int64(opt.recordSpan()),
		tallies:   make(map[tallyKey]*tally),
		seed:      maphash.MakeSeed(),
		latencies: shelf{most: max(opt.maxLatencies/chunkLen, 1)},
		digests:   shelf{most: opt.maxHashes},
		pool:      distributions{most: opt.maxValues, batch: minPending},
		first:     maxTime, last0: -maxTime,
	}
}

// add counts a row that starts at t. A *badRow leaves everything as it was.
func (c *counter) add(p *plan, r *row, t int64) error {
	var rec record
	if err := rec.read(p, r, c.opt); err != nil {
		return err
	}
	arm, err := c.arms.of(r)
	if err != nil {
		return err
	}
	if arm == leftOut {
		c.data.LeftOut++
		return nil
	}
	if !c.scenes.takes(r) {
		return nil
	}
	rec.t = t
	if c.digested(r.span) {
		rec.digest, rec.named = c.digest(r)
		rec.span = r.span
	}
	c.count(&rec, arm, rec.strangeIn(r))
	return nil
}

// count counts a record of an arm. strange is its status where that is in no
// table.
func (c *counter) count(rec *record, arm int, strange []byte) {
	tl := c.tally(rec.t, arm)
	if c.duplicate(tl, rec) {
		return
	}
	c.data.NonFinite += int64(rec.nonFinite)
	if rec.t != noTime {
		c.first, c.last0 = min(c.first, rec.t), max(c.last0, rec.t)
	}
	tl.total++
	tl.solvedSeen = tl.solvedSeen || rec.solvedSeen
	if rec.judged {
		tl.judged++
	}
	if rec.solved {
		tl.solved++
	}
	c.flag(tl, rec)
	if rec.priced {
		tl.priced++
		tl.cost.add(uint64(rec.cost))
		if c.opt.Distributions {
			c.pool.add(c.pool.of(&c.cost, arm), float64(rec.cost))
		}
	}
	late := false
	if rec.timed {
		c.measureSpeed(tl, rec.latency)
		late = c.time(tl, rec.latency)
	}
	if rec.streams() && c.stream(tl, rec, strange) {
		late = true
	}
	if late {
		c.data.Late++
	}
}

// tally returns the tally for a time and arm.
func (c *counter) tally(t int64, arm int) *tally {
	// Without a division. Unsigned, since the ends of time are further apart than an int64 goes.
	if c.last != nil && arm == c.lastKey.arm && (c.opt.whole || t >= c.lastKey.t && uint64(t)-uint64(c.lastKey.t) < uint64(c.span)) {
		return c.last
	}
	key := tallyKey{arm: arm}
	if !c.opt.whole {
		key.t = floorTo(t, c.span)
	}
	tl := c.tallies[key]
	if tl == nil {
		tl = &tally{t: key.t, arm: arm}
		if c.opt.SlowMS > 0 || c.opt.Distributions {
			tl.speed = &speed{}
		}
		c.tallies[key] = tl
	}
	c.last, c.lastKey = tl, key
	c.latencies.touch(&tl.inSpeed)
	c.digests.touch(&tl.inSeen)
	return tl
}

// floorTo rounds t down to a multiple of span.
func floorTo(t, span int64) int64 {
	m := t % span
	if m < 0 {
		m += span
	}
	return t - m
}

// digested reports whether rows are told apart by their digests. Among records
// judged whole only one with an id of its own can be a duplicate: without a
// time, nothing tells what one user did twice from what was logged twice.
func (c *counter) digested(span bool) bool { return !c.opt.whole || span }

// digest is that of a row as it stands in the file, never 0, and whether the row
// carries an id.
func (c *counter) digest(r *row) (digest uint64, named bool) {
	return digestOf(c.seed, r.raw), r.named || r.cells[FieldUserID].present() || r.cells[FieldConversationID].present()
}

func digestOf(seed maphash.Seed, raw []byte) uint64 {
	return max(maphash.Bytes(seed, raw), 1)
}

// duplicate reports whether the row was counted before: a request that carries
// an id, byte for byte, in the same window.
func (c *counter) duplicate(tl *tally, rec *record) bool {
	if rec.digest == 0 {
		return false
	}
	if tl.noDigest {
		c.uncompared(tl, 1)
		return false
	}
	if tl.digests.owed > 0 && (rec.span || rec.t <= tl.digests.latest) {
		if c.repay(tl); tl.noDigest {
			c.uncompared(tl, 1)
			return false
		}
	}
	if !tl.digests.add(rec.t, rec.digest, rec.span) {
		if rec.named {
			c.data.Duplicates++
			return true
		}
		c.data.Identical++
		return false
	}
	c.digests.put(&tl.inSeen, tl)
	c.dropDigests()
	return false
}

// uncompared counts rows of a tally without digests.
func (c *counter) uncompared(tl *tally, n int64) {
	if tl.lost {
		c.lost += n
	} else {
		c.unsure += n
	}
}

// dropDigests lets go of digests while there are too many, of the tallies that
// were not touched for longest first.
func (c *counter) dropDigests() {
	for c.digests.full() {
		old := c.digests.drop()
		old.digests, old.noDigest = digestLog{}, true
	}
}

func (c *counter) flag(tl *tally, rec *record) {
	if len(c.streamed) > tl.arm && rec.flagged == [len(flagFields)]bool{} {
		return
	}
	for len(c.streamed) <= tl.arm {
		c.streamed = append(c.streamed, false)
		for i := range c.sparse {
			c.sparse[i] = append(c.sparse[i], flagUse{})
		}
	}
	for i := range flagFields {
		use := &c.sparse[i][tl.arm]
		if !rec.flagged[i] {
			continue
		}
		tl.flagged[i]++
		if !rec.flags[i] {
			use.no = true
			continue
		}
		use.yes = true
		if i != abortFlag || !rec.hungUp {
			tl.flags[i]++
		}
	}
}

// measureSpeed counts a latency for what else than the p99 is asked for.
func (c *counter) measureSpeed(tl *tally, ms float64) {
	if tl.speed == nil {
		return
	}
	tl.speed.timed++
	if ms > c.opt.SlowMS {
		tl.speed.slow++
	}
	if c.opt.Distributions {
		c.pool.add(c.pool.of(&c.latency, tl.arm), ms)
	}
}

// time keeps a latency, and reports whether it came after others of its tally
// were let go.
func (c *counter) time(tl *tally, ms float64) (late bool) {
	late, chunk := tl.latency.hold(&c.values, ms)
	if chunk {
		c.hold(tl)
	}
	return late
}

// hold counts a chunk of values that a tally has come to hold. When there are
// too many, the tallies that were not touched for longest are ranked and let go.
func (c *counter) hold(tl *tally) {
	c.latencies.put(&tl.inSpeed, tl)
	for c.latencies.full() {
		c.seal(c.latencies.drop(), true) // tl itself, if alone it fills all the room there is
	}
}

// seal ranks what the tally holds and lets it go. more says that more values may
// come.
func (c *counter) seal(tl *tally, more bool) {
	tl.latency.seal(&c.values, more || c.opt.Distributions)
	if tl.streaming != nil {
		tl.streaming.ttft.seal(&c.values, more)
	}
}

// finish turns the tallies into windows.
func (c *counter) finish(f *feed) {
	d := c.data
	if c.first <= c.last0 {
		d.First, d.Last = instantOf(c.first), instantOf(c.last0)
	}
	tallies := make([]*tally, 0, len(c.tallies))
	for _, tl := range c.tallies {
		tallies = append(tallies, tl)
	}
	slices.SortFunc(tallies, func(a, b *tally) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.arm, b.arm)) })
	d.Windows = slices.Grow(d.Windows, len(tallies))
	c.rankAll(tallies)
	for _, tl := range tallies {
		tl.digests = digestLog{} // nothing is compared any more
		if tl.total > 0 {
			d.Windows = append(d.Windows, c.window(tl))
		}
	}
	c.relateCosts()
	if c.opt.Distributions {
		c.pool.finish()
		d.Latency, d.Cost = byName(c.latency, c.arms.arms, 1), byName(c.cost, c.arms.arms, 1e9)
		d.TTFT, d.ITL = byName(c.ttft, c.arms.arms, 1), byName(c.itl, c.arms.arms, 1e6)
		slices.SortFunc(d.spreads, windowSpread.compare)
	}
	c.notes(f)
}

func (c *counter) window(tl *tally) release.Window {
	w := release.Window{
		Arm: c.arms.arms[tl.arm], Total: tl.total, Judged: tl.judged, Solved: tl.solved, Violations: tl.flags[0], Transfers: tl.flags[1],
	}
	c.place(&w, tl.t)
	if tl.solvedSeen {
		w.Known |= release.HasSolved
	}
	for i, has := range [2]release.Figures{release.HasViolations, release.HasTransfers} {
		use := c.sparse[i][tl.arm]
		if tl.flagged[i] > 0 || use.yes && !use.no {
			w.Known |= has
		}
		if tl.flagged[i] > 0 && use.no {
			c.unflagged[i] += tl.total - tl.flagged[i]
		}
	}
	if tl.priced > 0 {
		w.CostMean = tl.cost.over(tl.priced, 1e9)
		w.Known |= release.HasCostMean
	}
	if q := &tl.latency; q.state != never99 {
		w.P99MS = q.p99
		w.Known |= release.HasP99
		if q.state == rough99 {
			c.rough++
		}
	}
	c.slow(tl, &w)
	c.fill(&w, tl)
	return w
}

// slow fills in how many requests were slow, or keeps the spread to count them
// later. A request without a latency may have been slow as well: with one of
// those among them nobody knows.
func (c *counter) slow(tl *tally, w *release.Window) {
	switch s := tl.speed; {
	case s == nil || s.timed == 0:
		return
	case s.timed < tl.total:
		if !c.opt.whole { // there, nobody asked for a count
			c.halfTimed++
		}
		return
	}
	if c.opt.SlowMS > 0 {
		w.Slow = tl.speed.slow
		w.Known |= release.HasSlow
	}
	if c.opt.Distributions {
		c.data.spreads = append(c.data.spreads, windowSpread{w.T.UnixNano(), w.Arm, tl.latency.spread})
	}
}

// relateCosts gives each canary window its cost as a ratio to stable's in the
// same window, exact until the last rounding.
func (c *counter) relateCosts() {
	stable, ok := c.arms.index[string(release.Stable)]
	if !ok {
		return
	}
	for i := range c.data.Windows {
		w := &c.data.Windows[i]
		if w.Arm != release.Canary {
			continue
		}
		own := c.tallies[tallyKey{w.T.UnixNano(), c.arms.index[string(release.Canary)]}]
		base := c.tallies[tallyKey{w.T.UnixNano(), stable}]
		if base == nil || own.priced == 0 || base.priced == 0 || base.cost == (wideSum{}) {
			continue
		}
		num := new(big.Int).Mul(own.cost.big(), big.NewInt(base.priced))
		den := new(big.Int).Mul(base.cost.big(), big.NewInt(own.priced))
		w.Cost, _ = new(big.Rat).SetFrac(num, den).Float64()
		w.Known |= release.HasCost
	}
}

// notes says what the user should know about how the records were counted.
func (c *counter) notes(f *feed) {
	for i, field := range flagFields {
		for arm, use := range c.sparse[i] {
			if use.yes && !use.no {
				f.note("%s is only ever logged as true%s: a record without it counts as none", field, ofArm(c.arms, arm))
			}
		}
		if i == abortFlag {
			continue // one that does not say is not among the streams
		}
		f.noteCount(c.unflagged[i], fmt.Sprintf("1 record does not say %s though others in its window do; it counts as none", field),
			"%d records do not say "+field.String()+" though others in their window do; they count as none")
	}
	c.noteRough(f)
	f.noteCount(c.halfTimed, "1 window has no count of slow requests: some of its requests carry no latency",
		"%d windows have no count of slow requests: some of their requests carry no latency")
	c.streamNotes(f)
	c.scenes.tell(f)
	f.noteCount(c.unsure, "1 record came too long after others of its window to be compared with them",
		"%d records came too long after others of their window to be compared with them; duplicates among them were counted")
	f.noteCount(c.lost, "1 record could not be compared with others of its window: their file is not any more what was read",
		"%d records could not be compared with others of their window: their file is not any more what was read; duplicates among them were counted")
}

// noteRough says where percentiles are approximate because of memory.
func (c *counter) noteRough(f *feed) {
	c.data.Approximate = c.rough + c.roughFirst
	why := fmt.Sprintf("within 0.8 %% of the exact one: the values did not fit into %s in this order", bytesText(c.opt.MaxMemory))
	if !c.opt.whole {
		why += "; --max-memory gives them more, and sorted by time they need less"
	}
	for what, n := range [...]int64{c.rough, c.roughFirst} {
		switch name := [...]Field{FieldP99, FieldTTFTP99}[what]; {
		case c.opt.whole && n > 0:
			f.note("the %s is %s", name, why)
		case n == 1:
			f.note("the %s of 1 window is %s", name, why)
		case n > 1:
			f.note("the %s of %d windows is %s", name, n, why)
		}
	}
}

// bytesText prints a size in the largest unit that it is a whole number of.
func bytesText(n int64) string {
	for _, u := range [...]struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func ofArm(a *armNames, i int) string {
	if len(a.arms) == 1 {
		return ""
	}
	return fmt.Sprintf(" for %s", printable(string(a.arms[i])))
}
