package trace

import "bytes"

// liveLines reads the JSON lines of a file that grows as the blocks of others
// are read.
type liveLines struct {
	block  block
	batch  batch
	parser jsonParser
	recipe *recipe
}

// feedLines is [LiveFile.Feed] for JSON lines.
func (f *LiveFile) feedLines(j *jsonlReader, piece []byte, at int64) (n int, err error) {
	b := &f.lines.block
	b.room(len(piece))
	b.from, b.to = 0, copy(b.buf, piece)
	b.close(b.to)
	var r row
	for n < len(piece) {
		next, err := f.quick(n)
		if next == 0 && err == nil {
			next = n + bytes.IndexByte(b.buf[n:], '\n') + 1
			err = f.careful(j, &r, n, next, at)
		}
		switch {
		case isNoTime(err):
			return 0, err // said at the end of rows that were all without a time
		case err != nil:
			return n, err
		}
		n = min(next, len(piece))
	}
	if j.noTime != nil {
		j.noTime.File = f.run.name
		return 0, j.noTime
	}
	return n, nil
}

// quick reads the line that starts at n, and returns where the next one starts,
// or 0 where it must be read with care.
func (f *LiveFile) quick(n int) (next int, err error) {
	l, q := f.live, &f.lines
	if f.run.plan == nil {
		return 0, nil
	}
	if q.recipe == nil || q.recipe.outdated(f.run) {
		q.recipe = l.feed.recipeOf(f.run)
		q.parser.use(q.recipe)
		q.parser.useKeys(q.recipe.keys)
	}
	if !q.recipe.quick || l.kind != Records {
		return 0, nil
	}
	q.batch.reset()
	if next = q.parser.line(&q.block, skipBlanks(q.block.buf, n), 0, &q.batch); next == 0 {
		return 0, nil
	}
	rec, run := &q.batch.records[0], f.run
	run.clock.zone = run.clock.zone || q.batch.zone
	run.plan.strike(q.batch.seen)
	if l.wants(rec.t) {
		before := l.feed.data.leftOut()
		if err := l.feed.countRecord(&q.batch, rec); err != nil {
			return 0, fatal(&source{name: run.name}, 0, err)
		}
		if l.feed.data.leftOut() == before {
			l.serve(q.parser.user())
		}
	}
	l.tally.Rows++
	run.rows++
	return next, nil
}

// careful reads the line in [n, next) as it is read by itself.
func (f *LiveFile) careful(j *jsonlReader, r *row, n, next int, at int64) error {
	text := f.lines.block.buf[n:next]
	if blank(text) {
		return nil
	}
	err := j.nextIn(r, &oddRow{text: text, cut: next > f.lines.block.to, long: len(text) > maxLine})
	if err == nil {
		err = f.live.take(f.run, r)
	}
	_, err = f.settle(r, at+int64(n), err)
	return err
}

// user is the user that the row names, empty if none.
func (w *rowTaker) user() []byte {
	if !w.q.present(FieldUserID) {
		return nil
	}
	return w.q.names[FieldUserID]
}
