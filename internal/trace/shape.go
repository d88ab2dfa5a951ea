package trace

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// shape is a format of somebody else's, known by the names in its rows. What
// its rows mean is not what canaryctl's own names say, so they are read by rules
// of their own (docs/reference/input-formats.md).
type shape struct {
	name string // in notes: "litellm"
	time string // what it calls the time of a request, for messages
	one  string // what is counted in notes: "request"
	many string // and several of them

	// is tells it by the names of an object, or of the columns.
	is func(k *keys) bool
	// read makes a record of a row. It reports false for a row that is no
	// request, which is left out.
	read func(b *bag, r *row) (bool, error)
	// strict says that a row says nothing by canaryctl's own names.
	strict bool
	// refused says why rows of this shape are no requests, and what to give
	// instead; nil where they are.
	refused *InputError
}

// shapes are tried in this order.
var shapes = []*shape{otlpShape, litellmShape, langfuseScores, langfuseTraces, langfuseShape, heliconeShape, envoyShape, nginxShape, chunkShape, captureShape, completionShape}

// refuse says that a file holds no requests.
func (s *shape) refuse(file string) error {
	return &InputError{File: file, Msg: s.refused.Msg, Advice: s.refused.Advice}
}

// keys are the names of an object, with the values of those that tell shapes
// apart.
type keys struct {
	names  []string
	values map[string][]byte // nil in CSV
}

func (k *keys) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(k.names, n) })
}

func (k *keys) any(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(k.names, n) })
}

// own reports whether the object has a time or a latency by canaryctl's own
// name: then it was written for canaryctl.
func (k *keys) own() bool { return k.any(FieldTS.String(), FieldT.String(), FieldLatency.String()) }

// find returns the shape of these keys, or nil.
func (k *keys) find() *shape {
	for _, s := range shapes {
		if s.is(k) {
			return s
		}
	}
	return nil
}

// foreignRows reads the requests of a file of some shape, whatever holds them.
type foreignRows interface {
	// next fills r and b with the next row. Errors are those of a rowReader.
	// It reports false for what is no request.
	next(b *bag, r *row) (bool, error)
	// restart forgets what has been read ahead: another text follows.
	restart()
	// cutOff reports whether the last line of the file is cut off.
	cutOff() bool
}

// shapedReader reads the requests of a file of some shape as records.
type shapedReader struct {
	shape *shape
	rows  foreignRows
	bag   bag
	bind  func() (*plan, error)
	plan  *plan // nil until the first row

	read, others int64 // requests, and what was no request
}

func (s *shapedReader) next(r *row) error {
	if s.plan == nil {
		p, err := s.bind()
		if err != nil {
			return err
		}
		s.plan = p
	}
	for {
		r.reset()
		ok, err := s.rows.next(&s.bag, r)
		if err != nil {
			return err
		}
		if !ok {
			s.others++
			continue
		}
		s.read++
		s.ownNames(r)
		for _, c := range s.plan.columns {
			if c.mapped {
				r.cells[c.field] = s.bag.path(c.path)
			}
		}
		return nil
	}
}

// ownNames takes what a row says by canaryctl's own names and its shape has no
// other name for: a gateway's log format, say, is the user's own.
func (s *shapedReader) ownNames(r *row) {
	if s.shape.strict {
		return
	}
	for _, f := range [...]Field{FieldArm, FieldVersion, FieldScene, FieldUserID, FieldConversationID, FieldCostUSD, FieldSolved,
		FieldViolation, FieldTransfer, FieldTTFT, FieldITL, FieldOutputTokens, FieldStreamAborted} {
		if r.cells[f].kind == absent {
			r.cells[f] = s.bag.get(f.String())
		}
	}
}

// note says what was read of the file.
func (s *shapedReader) note(file string) string {
	rows := s.shape.many
	if s.read == 1 {
		rows = s.shape.one
	}
	text := fmt.Sprintf("%s: %s: %d %s read", file, s.shape.name, s.read, rows)
	switch s.others {
	case 0:
		return text
	case 1:
		return text + ", 1 other left out"
	}
	return fmt.Sprintf("%s, %d others left out", text, s.others)
}

// bindShape makes the plan for a file of some shape: its time is in
// nanoseconds, and what --map says counts before what the shape says.
func (o *Options) bindShape(s *shape) (*plan, error) {
	p := &plan{}
	mapped := o.mapped()
	if ts, ok := mapped[FieldTS]; ok {
		p.set(FieldTS, ts.Path, true, ts.Unit, true)
	} else {
		p.set(FieldTS, Path{s.time}, false, Nanoseconds, true)
	}
	if err := p.checkKind(o.Map); err != nil {
		return nil, err
	}
	for f := range numRead {
		if m, ok := mapped[f]; ok && f != FieldTS {
			p.add(column{f, m.Path, true}, m.Unit)
		}
	}
	p.noteUnits()
	return p, nil
}

// mapsWindows reports whether the user says that rows are windows: then no
// shape of requests fits.
func (o *Options) mapsWindows() bool {
	return slices.ContainsFunc(o.Map, func(m Mapping) bool { return fieldTable[m.Field].of == Windows })
}

// newShaped makes the reader of a file whose shape was found.
func (f *feed) newShaped(src *source, use func(*plan) *plan) *shapedReader {
	s := &shapedReader{shape: src.shape.shape, rows: src.shape.open(src.text)}
	if o, ok := s.rows.(*objectRows); ok && s.shape == langfuseShape {
		o.scores = f.scores
	}
	s.bind = func() (*plan, error) {
		if s.shape.refused != nil {
			return nil, s.shape.refuse(src.name)
		}
		p, err := f.opt.bindShape(s.shape)
		if err != nil {
			return nil, err
		}
		return use(p), nil
	}
	return s
}

// csvUnder is the CSV reader that a reader reads rows with, if it does.
func csvUnder(r rowReader) (*csvReader, bool) {
	s, ok := r.(*shapedReader)
	if !ok {
		c, ok := r.(*csvReader)
		return c, ok
	}
	o, ok := s.rows.(*objectRows)
	if !ok {
		return nil, false
	}
	c, ok := o.from.(*csvObjects)
	if !ok {
		return nil, false
	}
	return c.csv, true
}

// bag is what one row of a foreign file says, by name.
type bag struct {
	cells map[string]*bagCell
	turn  int
}

type bagCell struct {
	cell
	turn int // of the row that it is of
}

// maxBag bounds how many names are remembered between rows.
const maxBag = 4096

// reset empties the bag for another row. The names stay, so that the next row
// need not make them again.
func (b *bag) reset() {
	b.turn++
	if b.cells == nil || len(b.cells) > maxBag {
		b.cells = make(map[string]*bagCell)
	}
}

// put keeps a cell under a name; of two the last counts.
func (b *bag) put(name []byte, c cell) {
	if old := b.cells[string(name)]; old != nil {
		old.cell, old.turn = c, b.turn
		return
	}
	b.cells[string(name)] = &bagCell{c, b.turn}
}

// object puts the members of a JSON object into the bag.
func (b *bag) object(obj []byte) {
	jsonscan.EachMember(obj, func(key, v []byte) { b.put(key, jsonCell(v)) })
}

// get returns the first cell of the names that has a value; without one, null
// if one is null, else absent.
func (b *bag) get(names ...string) cell {
	out := cell{}
	for _, n := range names {
		c := b.cells[n]
		if c == nil || c.turn != b.turn {
			continue
		}
		if c.present() {
			return c.cell
		}
		out.kind = null
	}
	return out
}

// text is a scalar cell's text, "" where there is none. A dash stands for
// nothing in logs of gateways, and so do the words of [missingWords].
func (b *bag) text(names ...string) []byte {
	c := b.get(names...)
	if c.kind != scalar || isMissing(c.text) || string(c.text) == "-" {
		return nil
	}
	return c.text
}

// path returns the cell that a path leads to: the longest literal name first,
// then into what it holds.
func (b *bag) path(p Path) cell {
	for n := len(p); n > 0; n-- {
		c := b.get(Path(p[:n]).String())
		if n < len(p) {
			c = innerOf(c, p[n:])
		}
		if c.kind != absent {
			return c
		}
	}
	return cell{}
}

// innerOf looks into a cell that is an object, or a text that holds one.
func innerOf(c cell, p Path) cell {
	text := bytes.TrimSpace(c.text)
	if !c.present() || len(text) == 0 || text[0] != '{' || c.kind == scalar && !validObject(text) {
		return cell{}
	}
	if v, ok := findPath(text, p); ok {
		return jsonCell(v)
	}
	return cell{}
}

// restart tells a reader that reads ahead that another text follows.
func restart(r rowReader) {
	if s, ok := r.(*shapedReader); ok {
		s.rows.restart()
	}
}

// cutOff reports whether a reader's last line was cut off.
func cutOff(r rowReader) bool {
	switch r := r.(type) {
	case *jsonlReader:
		return r.truncated
	case *shapedReader:
		return r.rows.cutOff()
	}
	return false
}

// takeOthers reports whether a file without requests held something else, which
// then says why there is no data.
func (f *feed) takeOthers(run *fileRun) bool {
	s, ok := run.reader.(*shapedReader)
	if !ok || s.others == 0 {
		return false
	}
	f.others = append(f.others, s.note(run.name))
	return true
}

// whyNoRows says what was found instead of rows.
func (f *feed) whyNoRows() string {
	if len(f.others) > 0 {
		return f.others[0]
	}
	return "there are no rows"
}
