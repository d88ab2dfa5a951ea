package trace

// stretch is a run of rows of a batch that are of one window and have the same
// label, summed up: to count sums takes a fraction of what rows take.
type stretch struct {
	t           int64 // start of the window
	first, last int64 // times of the earliest and of the latest row
	row, n      int32 // of the batch, the first row; and how many there are
	label       uint8

	solved, judged int32
	flags, flagged [2]int32 // of the first flagFields
	priced         int32
	timed          int32   // rows with a latency, and as many latencies of the batch
	most           float64 // the largest of them
	nonFinite      int64
	cost           int64 // nano-USD

	solvedSeen bool // some row had the field
}

// commitStretch counts a stretch as [feed.commitRecord] does each of its rows.
// It returns the tally that the rows were counted in, nil if they were left out.
func (f *feed) commitStretch(run *fileRun, b *batch, s *stretch, latencies []float64) (*tally, error) {
	l := &b.labels[s.label]
	n := int64(s.n)
	run.rows += n
	f.data.Rows += n
	f.data.Good += n
	c := f.records
	if !l.found {
		if err := f.lookUp(l); err != nil {
			return nil, err
		}
	}
	if l.nameless {
		c.arms.nameless += n
	}
	switch {
	case l.arm == leftOut:
		f.data.LeftOut += n
	case c.scenes.takesMany(l, n):
		return c.countStretch(s, l.arm, latencies), nil
	}
	return nil, nil
}

// takesMany is [sceneNames.takes] for n rows of a label.
func (s *sceneNames) takesMany(l *label, n int64) bool {
	switch {
	case l.of:
		if l.counter != nil {
			*l.counter += n
		}
		if s.want != "" && string(l.scene) != s.want {
			s.data.OtherScenes += n
			return false
		}
	case s.want != "":
		s.data.Sceneless += n
		return false
	}
	return true
}

// countStretch counts rows as [counter.count] does each of their records.
func (c *counter) countStretch(s *stretch, arm int, latencies []float64) *tally {
	tl := c.tally(s.t, arm)
	c.data.NonFinite += s.nonFinite
	c.first, c.last0 = min(c.first, s.first), max(c.last0, s.last)
	tl.total += int64(s.n)
	tl.solvedSeen = tl.solvedSeen || s.solvedSeen
	tl.judged += int64(s.judged)
	tl.solved += int64(s.solved)
	c.flag(tl, &record{}) // which makes room for the arm
	for i := range s.flags {
		use := &c.sparse[i][arm]
		use.yes = use.yes || s.flags[i] > 0
		use.no = use.no || s.flagged[i] > s.flags[i]
		tl.flags[i] += int64(s.flags[i])
		tl.flagged[i] += int64(s.flagged[i])
	}
	tl.priced += int64(s.priced)
	tl.cost.add(uint64(s.cost))
	c.timeMany(tl, latencies, s.most)
	return tl
}

// timeMany is [counter.time] for many latencies of records, the largest of which
// is most.
func (c *counter) timeMany(tl *tally, latencies []float64, most float64) {
	if tl.speed != nil {
		for _, ms := range latencies {
			c.measureSpeed(tl, ms)
		}
	}
	for len(latencies) > 0 {
		room := c.latencies.most - c.latencies.held - 1 // in chunks, of which one may be begun
		if tl.latency.state != open99 || len(latencies)/chunkLen >= room {
			if c.time(tl, latencies[0]) {
				c.data.Late++
			}
			latencies = latencies[1:]
			continue
		}
		tl.latency.most = max(tl.latency.most, most)
		chunks := c.values.pushAll(&tl.latency.values, latencies)
		c.latencies.held += chunks
		tl.inSpeed.n += chunks
		return
	}
}

// sum adds the row to the batch as part of a sum. It reports false where it does
// not come after the one before, or is no usual one: the block is read again
// then, without summing up.
func (w *rowTaker) sum(out *batch, line int, foreign bool) bool {
	q, rc := &w.q, w.rc
	there := q.has &^ q.null
	n := len(out.stretches)
	if !there.has(rc.plan.time) || q.nonFinite != 0 || n > 0 && q.t <= out.newest {
		return false
	}
	label, ok := w.label(out)
	if !ok {
		return false
	}
	if n == 0 || uint64(q.t)-uint64(out.stretches[n-1].t) >= uint64(rc.span) || out.stretches[n-1].label != label || out.stretches[n-1].cost > maxCost {
		out.stretches = append(out.stretches, stretch{t: floorTo(q.t, rc.span), first: q.t, row: int32(line), label: label})
		n++
	}
	s := &out.stretches[n-1]
	if there.has(FieldCostUSD) {
		cost, ok := q.cost(rc)
		if !ok {
			return false
		}
		s.priced++
		s.cost += cost
	}
	if there.has(FieldLatency) {
		ms, ok := q.measure(FieldLatency, rc.latency)
		if !ok {
			return false
		}
		s.timed++
		s.most = max(s.most, ms)
		out.latencies = append(out.latencies, ms)
	}
	s.n++
	s.last, out.newest = q.t, q.t
	s.solvedSeen = s.solvedSeen || q.has.has(FieldSolved)
	s.judged += there.one(FieldSolved)
	s.solved += q.flags.one(FieldSolved)
	s.flags[0] += q.flags.one(FieldViolation)
	s.flagged[0] += there.one(FieldViolation)
	s.flags[1] += q.flags.one(FieldTransfer)
	s.flagged[1] += there.one(FieldTransfer)
	if out.origin == nil {
		out.digests = append(out.digests, digestOf(rc.seed, q.raw))
	}
	if foreign && q.foreign() {
		out.foreign++
	}
	if q.twice {
		out.twice++
	}
	out.zone = out.zone || w.clock.zone
	if rc.missing {
		out.seen |= q.has
	}
	return true
}

// one is 1 where the field is in the set, else 0.
func (s fieldSet) one(f Field) int32 { return int32(s >> f & 1) }

// takesSums reports whether the batch can be counted by its sums: its rows are
// later than all before them, and so none of them was counted before.
func (f *feed) takesSums(run *fileRun, b *batch) bool {
	first := b.stretches[0].first
	return first > f.records.last0 && first >= run.latest
}

// commitSums counts the sums of a batch.
func (f *feed) commitSums(run *fileRun, b *batch) error {
	latencies, digests := b.latencies, b.digests
	first, last := maxTime, -maxTime // of those that are counted
	for i := range b.stretches {
		s := &b.stretches[i]
		tl, err := f.commitStretch(run, b, s, latencies[:s.timed])
		if err != nil {
			return fatal(run.src, run.line+int64(s.row)+1, err)
		}
		latencies = latencies[s.timed:]
		var own []uint64
		if b.origin == nil {
			own, digests = digests[:s.n], digests[s.n:]
		}
		if tl != nil {
			first, last = min(first, s.first), s.last
			f.records.keep(tl, s, own)
		}
		run.latest = s.last
	}
	if b.origin != nil && first <= last {
		f.records.owe(b, first, last)
	}
	f.foreign += b.foreign
	f.twice += b.twice
	return nil
}

// keep remembers the digests of rows that are later than all of their tally, or
// without any that they are owed. With no room for all of them it goes as it would
// row by row.
func (c *counter) keep(tl *tally, s *stretch, digests []uint64) {
	left := int(s.n)
	for left > 0 && !tl.noDigest {
		n := left
		if room := c.digests.most - c.digests.held; room < n {
			n = max(room, 1)
		}
		if digests == nil {
			tl.digests.keep(s.last, n, nil)
		} else {
			tl.digests.keep(s.last, n, digests[:n])
			digests = digests[n:]
		}
		c.digests.putMany(&tl.inSeen, tl, n)
		left -= n
		c.dropDigests()
	}
	c.uncompared(tl, int64(left))
}
