package trace

// sum sums up the rows of a batch. It returns false where that leads nowhere:
// too many labels.
func (f *parquetFill) sum(b *parquetBatch) bool {
	span := f.feed.records.span
	b.latencies, b.ascending = b.latencies[:0], true
	out := b.stretches[:0]
	for i, n := 0, len(b.times); i < n; {
		s := stretch{t: floorTo(b.times[i], span), row: int32(i), first: b.times[i], last: b.times[i], solvedSeen: b.seen.has(FieldSolved)}
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
		if _, err := f.commitStretch(run, &b.batch, s, own); err != nil {
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
