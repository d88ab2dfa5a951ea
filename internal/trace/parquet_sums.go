package trace

// stretch is a run of rows of a batch that are of one window and have the same
// label, summed up.
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
}

// sum sums up the rows of a batch. It returns false where that leads nowhere:
// too many labels.
func (f *parquetFill) sum(b *parquetBatch) bool {
	span := f.feed.records.span
	b.latencies, b.ascending = b.latencies[:0], true
	out := b.stretches[:0]
	for i, n := 0, len(b.times); i < n; {
		s := stretch{t: floorTo(b.times[i], span), row: int32(i), first: b.times[i], last: b.times[i]}
		key := f.keys[i]
		label, ok := f.label(b, key)
		if !ok {
			return false
		}
		s.label = label
		j := f.reach(&s, b, i)
		s.n = int32(j - i)
		f.sumRows(&s, b, i, j)
		out = append(out, s)
		i = j
	}
	b.stretches = out
	return true
}

// reach returns the end of the stretch that starts at row i.
func (f *parquetFill) reach(s *stretch, b *parquetBatch, i int) int {
	span, key, before := f.feed.records.span, f.keys[i], b.times[i]
	for j, t := range b.times[i+1:] {
		if t < before {
			b.ascending = false
		}
		if uint64(t-s.t) >= uint64(span) || f.said && f.keys[i+1+j] != key {
			return i + 1 + j
		}
		if t < before {
			s.first = min(s.first, t)
		}
		s.last = max(s.last, t)
		before = t
	}
	return len(b.times)
}

// sumRows adds up the rows from i to j.
func (f *parquetFill) sumRows(s *stretch, b *parquetBatch, i, j int) {
	s.solved, s.judged = f.yes[0].count(i, j), f.told[0].count(i, j)
	for k := range s.flags {
		s.flags[k], s.flagged[k] = f.yes[k+1].count(i, j), f.told[k+1].count(i, j)
	}
	if s.priced = f.priced.count(i, j); s.priced > 0 {
		for _, c := range f.costs[i:j] {
			s.cost += c
		}
	}
	if f.none {
		for _, n := range f.nonFinite[i:j] {
			s.nonFinite += int64(n)
		}
	}
	s.timed = f.timed.count(i, j)
	before := len(b.latencies)
	if s.timed == s.n {
		b.latencies = append(b.latencies, f.latencies[i:j]...)
	} else {
		for k := i; k < j; k++ {
			if f.timed.has(k) {
				b.latencies = append(b.latencies, f.latencies[k])
			}
		}
	}
	for _, v := range b.latencies[before:] {
		if v > s.most {
			s.most = v
		}
	}
}

// commitStretches counts a batch as [feed.commit] does one of records.
func (f *feed) commitStretches(run *fileRun, b *parquetBatch) error {
	latencies := b.latencies
	for i := range b.stretches {
		s := &b.stretches[i]
		own := latencies[:s.timed]
		latencies = latencies[s.timed:]
		if err := f.commitStretch(run, b, s, own); err != nil {
			return fatal(run.src, run.line+int64(s.row)+1, err)
		}
	}
	if !f.opt.whole && (!b.ascending || b.times[0] < run.latest) {
		for _, t := range b.times {
			if t < run.latest {
				f.data.OutOfOrder++
			}
			run.latest = max(run.latest, t)
		}
	}
	run.latest = max(run.latest, b.times[len(b.times)-1])
	run.line += b.lines
	run.clock.zone = run.clock.zone || b.zone
	run.plan.strike(b.seen)
	return nil
}

func (f *feed) commitStretch(run *fileRun, b *parquetBatch, s *stretch, latencies []float64) error {
	l := &b.labels[s.label]
	n := int64(s.n)
	run.rows += n
	f.data.Rows += n
	f.data.Good += n
	c := f.records
	if !l.found {
		if err := f.lookUp(l); err != nil {
			return err
		}
	}
	if l.nameless {
		c.arms.nameless += n
	}
	switch {
	case l.arm == leftOut:
		f.data.LeftOut += n
	case c.scenes.takesMany(l, n):
		c.countStretch(s, l.arm, b.seen.has(FieldSolved), latencies)
	}
	return nil
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
func (c *counter) countStretch(s *stretch, arm int, solvedSeen bool, latencies []float64) {
	tl := c.tally(s.t, arm)
	c.data.NonFinite += s.nonFinite
	c.first, c.last0 = min(c.first, s.first), max(c.last0, s.last)
	tl.total += int64(s.n)
	tl.solvedSeen = tl.solvedSeen || solvedSeen
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
		all := tl.latency.state == open99 && c.latencies.held+len(latencies) <= c.latencies.most
		if !all {
			if c.time(tl, latencies[0]) {
				c.data.Late++
			}
			latencies = latencies[1:]
			continue
		}
		tl.latency.most = max(tl.latency.most, most)
		c.values.pushAll(&tl.latency.values, latencies)
		c.latencies.held += len(latencies)
		tl.inSpeed.n += len(latencies)
		return
	}
}

// pushAll appends values to a list.
func (s *valueStore) pushAll(l *valueList, values []float64) {
	for len(values) > 0 {
		at := l.n % chunkLen
		if at == 0 {
			s.push(l, values[0])
			values = values[1:]
			continue
		}
		n := copy(s.values(l.last)[at:], values)
		l.n += n
		values = values[n:]
	}
}
