package trace

import (
	"bytes"
	"errors"
	"io"
	"math"
	"time"
)

// timeReader reads the times of a file as [clock.instant] reads their texts.
// Times that it is not sure of are odd.
type timeReader struct {
	clock clock // its zone is set where a time had none
}

// times appends times in nanoseconds since the epoch.
func (r *timeReader) times(dst []counted, c *cells, from, n int) []counted {
	switch c.form.kind {
	case formStamp:
		if r.clock.unit != NoUnit && !r.clock.guessed {
			break // of which the user says that it is a number
		}
		return r.stamps(dst, c.int64s[from:from+n], c.form)
	case formText:
		for i := from; i < from+n; i++ {
			dst = append(dst, r.calendar(c.text(i)))
		}
		return dst
	case formInt96:
		for i := from; i < from+n; i++ {
			dst = append(dst, r.ofOldKind(int96Time(c.int96s[i])))
		}
		return dst
	case formBool, formDate, formNull:
	default:
		for i := from; i < from+n; i++ {
			dst = append(dst, r.epoch(c, i))
		}
		return dst
	}
	for range n {
		dst = append(dst, counted{is: isOdd})
	}
	return dst
}

// stampsOf fills dst with timestamps from one on, and says whether each is at or
// after the one before. It returns false where that is not all there is to it.
func (r *timeReader) stampsOf(dst []int64, c *cells, from int) (ascending, ok bool) {
	if c.form.kind != formStamp || r.clock.unit != NoUnit && !r.clock.guessed {
		return false, false
	}
	ascending = true
	before := int64(math.MinInt64)
	scale := int64(pow10(9 + c.form.unit.exp()))
	most := maxTime / scale
	for i, v := range c.int64s[from : from+len(dst)] {
		if uint64(v+most) >= uint64(2*most) { // below -most, or not below most
			return false, false
		}
		if v < before {
			ascending = false
		}
		before = v
		dst[i] = v * scale
	}
	r.clock.zone = r.clock.zone || !c.form.utc
	return ascending, true
}

func (r *timeReader) stamps(dst []counted, values []int64, f form) []counted {
	scale := int64(pow10(9 + f.unit.exp()))
	most := maxTime / scale
	for _, v := range values {
		if -most <= v && v < most {
			dst = append(dst, counted{v: v * scale})
			r.clock.zone = r.clock.zone || !f.utc
		} else {
			dst = append(dst, counted{is: isOdd})
		}
	}
	return dst
}

func (r *timeReader) ofOldKind(at time.Time) counted {
	if s := at.Unix(); s < -maxTime/int64(time.Second) || s >= maxTime/int64(time.Second) || r.clock.unit != NoUnit && !r.clock.guessed {
		return counted{is: isOdd}
	}
	r.clock.zone = true
	return counted{v: at.UnixNano()}
}

// epoch reads a time that is a number, in the unit that is given or was settled
// before: see [parquetRead.settleUnit].
func (r *timeReader) epoch(c *cells, i int) counted {
	n, fig := c.number(i)
	if fig != finite || r.clock.unit == NoUnit {
		return counted{is: isOdd}
	}
	if r.clock.guessed {
		if guess, ok := guessEpoch(n); !ok || guess != r.clock.unit {
			return counted{is: isOdd}
		}
	}
	t, ok := n.floor(9 + r.clock.unit.exp())
	if !ok || !inRange(t) {
		return counted{is: isOdd}
	}
	return counted{v: t}
}

// calendar reads a time as text.
func (r *timeReader) calendar(text []byte) counted {
	if r.clock.unit != NoUnit && !r.clock.guessed {
		return counted{is: isOdd}
	}
	if t, ok := r.clock.of(text); ok {
		return counted{v: t}
	}
	text = bytes.TrimSpace(text)
	t, zone, ok := parseCalendar(text)
	if !ok || !inRange(t) {
		return counted{is: isOdd}
	}
	if zone {
		r.clock.remember(text, t)
	} else {
		r.clock.zone = true
	}
	return counted{v: t}
}

// settleUnit guesses the unit of times that are numbers from the first of them
// that can be guessed, as [clock.epoch] does row by row: the slices are not
// read in order.
func (p *parquetRead) settleUnit() error {
	for i := range p.columns {
		c := &p.columns[i]
		if c.field != p.run.plan.time || p.run.clock.unit != NoUnit || p.careful {
			continue
		}
		switch c.form.kind {
		case formText, formStamp, formInt96, formBool, formDate, formNull:
			return nil
		}
		return p.guessUnit(&cursor{column: c}, i)
	}
	return nil
}

func (p *parquetRead) guessUnit(c *cursor, at int) error {
	room := new(pageRoom)
	for i := range p.slices {
		s := &p.slices[i]
		if err := c.open(p.r, room, &s.starts[at]); err != nil {
			return err
		}
		for left := int(s.rows); left > 0; {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			n := min(left, batchRows)
			pieces, err := c.take(n)
			if errors.Is(err, io.EOF) {
				return nil // those who read the rows say so
			}
			if err != nil {
				return err
			}
			for j := range pieces {
				if p.guessIn(&pieces[j]) {
					return nil
				}
			}
			left -= n
		}
	}
	return nil
}

// guessIn looks for a time in some rows.
func (p *parquetRead) guessIn(piece *piece) bool {
	found := false
	piece.each(func(_, value int) {
		if found {
			return
		}
		if n, fig := piece.cells.number(value); fig == finite {
			if unit, ok := guessEpoch(n); ok {
				p.run.clock.unit, p.run.clock.guessed, found = unit, true, true
			}
		}
	})
	return found
}
