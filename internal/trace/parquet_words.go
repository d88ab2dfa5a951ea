package trace

import (
	"bytes"
	"unicode/utf8"
)

// wordTable numbers the different texts of a column. The numbers are good for
// as long as the table.
type wordTable struct {
	ids   map[string]uint16
	words [][]byte // by number; the first is none
	means []meaning
}

// meaning is what a text says as a status, and as a flag.
type meaning struct {
	outcome outcome
	strange bool // as a status, it is in no table
	flag    flagCode
}

// Numbers of texts that are none.
const (
	noWord    uint16 = 0 // null or nothing
	oddWord   uint16 = 1<<16 - 2
	unsetWord uint16 = 1<<16 - 1
	maxWords         = 50_000 // past it, every new one is odd
)

// flagCode says what a value is as a flag, in bits.
type flagCode uint8

const (
	flagTrue flagCode = 1 << iota
	flagKnown
	flagHungUp // the client did, as stream_aborted may say
	flagOdd
)

func newWordTable() *wordTable {
	return &wordTable{ids: make(map[string]uint16), words: make([][]byte, 1), means: make([]meaning, 1)}
}

// number returns the number of a text.
func (t *wordTable) number(text []byte) uint16 {
	if id, ok := t.ids[string(text)]; ok {
		return id
	}
	id := t.numberNew(text)
	if len(t.ids) < maxWords {
		t.ids[string(text)] = id
	}
	return id
}

func (t *wordTable) numberNew(text []byte) uint16 {
	word := bytes.TrimSpace(text)
	switch {
	case len(word) == 0:
		return noWord
	case !utf8.Valid(word) || len(t.ids) >= maxWords:
		return oddWord
	}
	word = bytes.Clone(word)
	m := meaning{}
	known := false
	m.outcome, known = statusOutcome(word)
	m.strange = !known
	m.flag = flagCodeOf(word)
	t.words, t.means = append(t.words, word), append(t.means, m)
	return uint16(len(t.words) - 1)
}

// flagCodeOf reads a text as [row.flag] does, or as [record.readAbort].
func flagCodeOf(word []byte) flagCode {
	value, known, ok := flagOf(word)
	code := flagCode(0)
	switch {
	case !ok:
		code = flagOdd
	case known && value:
		code = flagTrue | flagKnown
	case known:
		code = flagKnown
	}
	if o, ok := wordOutcome(word); ok && o == statusGone {
		code |= flagHungUp
	}
	return code
}

// wordsOf numbers the values of a column: those of a dictionary once each, as
// they are met.
type wordsOf struct {
	table      *wordTable
	dictionary int      // the number of the dictionary in the column
	ids        []uint16 // of its entries
	scratch    []uint16 // of values that stand for themselves
	text       []byte
}

// of returns where the numbers of a piece's values are kept; value from is the
// first of them. Those that are not known yet are unset.
func (w *wordsOf) of(p *piece, values int) (ids []uint16, from int) {
	if p.index == nil {
		w.scratch = unset(w.scratch, values)
		return w.scratch, p.value
	}
	if p.dictionary != w.dictionary {
		w.dictionary, w.ids = p.dictionary, unset(w.ids, p.cells.n)
	}
	return w.ids, 0
}

func unset(ids []uint16, n int) []uint16 {
	if cap(ids) < n {
		ids = make([]uint16, n)
	}
	ids = ids[:n]
	for i := range ids {
		ids[i] = unsetWord
	}
	return ids
}

// at returns the number of the value at a place of those that [wordsOf.of] gave.
func (w *wordsOf) at(ids []uint16, place int32, from int, p *piece) uint16 {
	id := ids[place]
	if id == unsetWord {
		id = w.number(&p.cells, from+int(place))
		ids[place] = id
	}
	return id
}

// number numbers a value.
func (w *wordsOf) number(c *cells, i int) uint16 {
	if c.form.kind == formText {
		return w.table.number(c.text(i))
	}
	w.text = c.append(w.text[:0], i)
	return w.table.number(w.text)
}
