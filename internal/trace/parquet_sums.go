package trace

import "sort"

// sum sums up the rows of a batch. It returns false where that leads nowhere:
// too many labels.
func (f *parquetFill) sum(b *parquetBatch) bool {
	span := f.feed.records.span
	b.ascending = true
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
	f.takeLatencies(b)
	from := int32(0)
	for i := range out {
		s := &out[i]
		s.most = largest(b.latencies[from : from+s.timed])
		from += s.timed
	}
	return true
}

// reach returns the end of the stretch that starts at row i.
func (f *parquetFill) reach(s *stretch, b *parquetBatch, i int) int {
	times, span, before, j := b.times, uint64(f.feed.records.span), b.times[i], i+1
	if b.sorted && !f.said {
		j += sort.Search(len(times)-j, func(k int) bool { return uint64(times[j+k]-s.t) >= span })
		s.last = times[j-1]
		return j
	}
	for key := f.keys[i]; j < len(times); j++ {
		t := times[j]
		if t < before {
			b.ascending = false
		}
		if uint64(t-s.t) >= span || f.keys[j] != key {
			return j
		}
		s.first, s.last = min(s.first, t), max(s.last, t)
		before = t
	}
	return j
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
}

// takeLatencies moves the latencies of the batch's rows there, without a copy
// where all have one.
func (f *parquetFill) takeLatencies(b *parquetBatch) {
	n := len(b.times)
	if f.timed.count(0, n) == int32(n) {
		b.latencies, f.latencies = f.latencies, b.latencies
		return
	}
	b.latencies = b.latencies[:0]
	for i, v := range f.latencies {
		if f.timed.has(i) {
			b.latencies = append(b.latencies, v)
		}
	}
}

// largest returns the largest of values of at least 0.
func largest(values []float64) (most float64) {
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
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
