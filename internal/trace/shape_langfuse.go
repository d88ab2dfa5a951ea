package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// langfuseShape is an observation of Langfuse as its blob storage export writes
// it (observations_v2, enriched, or the older observations), and with the names
// of its API. Its latency and time_to_first_token are in seconds or, from
// integrations made before April 2026, in milliseconds, and nothing in the file
// says which: they are not read, the times say the same.
var langfuseShape = &shape{
	name: "langfuse", time: "start_time", one: "generation", many: "generations",
	is: func(k *keys) bool {
		snake := k.has("trace_id", "type", "start_time") && k.any("parent_observation_id", "completion_start_time", "provided_model_name", "usage_details")
		camel := k.has("traceId", "type", "startTime") && k.any("parentObservationId", "completionStartTime", "usageDetails")
		return !k.own() && (snake || camel)
	},
	read:   readLangfuse,
	strict: true,
}

func readLangfuse(b *bag, r *row) (bool, error) {
	if !bytes.EqualFold(b.text("type"), []byte("GENERATION")) {
		return false, nil
	}
	var times [3]moment
	for i, names := range [...][]string{{"start_time", "startTime"}, {"end_time", "endTime"}, {"completion_start_time", "completionStartTime"}} {
		var err error
		if times[i], err = b.moment(NoUnit, names...); err != nil {
			return false, err
		}
	}
	start, end, first := times[0], times[1], times[2]
	r.start(start)
	r.elapsed(FieldLatency, start, end)
	// An integration that did not stream writes the end for the first token.
	if first.known && end.known && first.ns < end.ns {
		r.elapsed(FieldTTFT, start, first)
	}
	output := b.inner("usage_details", "output")
	if output == nil {
		output = b.inner("usageDetails", "output")
	}
	r.whole(FieldOutputTokens, output)
	langfuseCost(b, r)
	r.give(FieldModel, b.text("provided_model_name", "providedModelName", "model"))
	r.give(FieldVersion, b.text("version", "release", "prompt_version", "promptVersion"))
	r.give(FieldUserID, b.text("user_id", "userId"))
	r.give(FieldConversationID, b.text("session_id", "sessionId"))
	r.armOf(b.get("tags"))
	failed := bytes.EqualFold(b.text("level"), []byte("ERROR"))
	r.cells[FieldStatus] = cell{kind: scalar, text: okText}
	if failed {
		r.cells[FieldStatus].text = errorText
	}
	if r.cells[FieldTTFT].present() {
		r.flagged(FieldStreamAborted, failed)
	}
	return true, nil
}

// langfuseCost fills in the cost. A 0 without details is of a model whose price
// nobody told Langfuse.
func langfuseCost(b *bag, r *row) {
	text := b.text("total_cost", "totalCost", "calculatedTotalCost")
	if n, _ := parseNumber(text); n.mant == 0 {
		details := b.get("cost_details", "costDetails")
		if details.kind != composite || !holds(details.text) {
			return
		}
	}
	r.money(text)
}

// langfuseScores are the scores of Langfuse, which are joined to observations.
var langfuseScores = &shape{
	name: "langfuse scores", time: "timestamp", one: "score", many: "scores",
	is: func(k *keys) bool {
		return !k.own() && k.has("name", "value") && k.any("trace_id", "traceId", "session_id", "sessionId") &&
			k.any("string_value", "stringValue", "data_type", "dataType")
	},
	refused: &InputError{Msg: "scores of Langfuse, which are no requests", Advice: "name the file of observations in the same command: the scores are joined to it"},
}

// langfuseTraces are the traces of Langfuse, each over several requests.
var langfuseTraces = &shape{
	name: "langfuse traces", time: "timestamp", one: "trace", many: "traces",
	is: func(k *keys) bool {
		return !k.own() && k.has("id", "timestamp", "name") && k.any("bookmarked", "public") && k.any("session_id", "sessionId", "user_id", "userId")
	},
	refused: &InputError{Msg: "traces of Langfuse, which are no requests", Advice: "name the file of observations: each generation in it is a request"},
}

// maxScores is the most scores that are held to be joined.
const maxScores = 1_000_000

// scoreBook holds the scores of Langfuse by what they judge, until the
// observation comes that they are of.
type scoreBook struct {
	most    int
	of      map[string][]heldScore
	names   map[string]string // each name once
	held    int
	read    int64 // scores read
	unknown int64 // of those, some that judge nothing a record has
	joined  int64
}

func newScoreBook(most int) *scoreBook {
	return &scoreBook{most: most, of: make(map[string][]heldScore), names: make(map[string]string)}
}

// heldScore is a score and when it was given.
type heldScore struct {
	name    string
	verdict bool
	at      int64
}

// The prefixes of what a score judges: an id alone could be of either.
const (
	ofObservation = "o "
	ofTrace       = "t "
	ofSession     = "s "
)

// add keeps a score. Of the same score twice the later one counts.
func (s *scoreBook) add(b *bag) error {
	s.read++
	judged := score{name: b.text("name"), label: b.text("string_value", "stringValue"), value: b.text("value")}
	switch string(bytes.ToUpper(b.text("data_type", "dataType"))) {
	case "CATEGORICAL":
		judged.value = nil // the place of the category among others
	case "TEXT":
		judged.label, judged.value = nil, nil
	}
	v, known := judged.verdict()
	key := ""
	for _, by := range [...]struct {
		prefix string
		id     []byte
	}{{ofObservation, b.text("observation_id", "observationId")}, {ofTrace, b.text("trace_id", "traceId")}, {ofSession, b.text("session_id", "sessionId")}} {
		if by.id != nil {
			key = by.prefix + string(by.id)
			break
		}
	}
	if !known || key == "" || judged.name == nil {
		s.unknown++
		return nil
	}
	at, err := b.moment(NoUnit, "timestamp", "createdAt", "created_at")
	if err != nil {
		return err
	}
	if _, ok := s.names[string(judged.name)]; !ok {
		s.names[string(judged.name)] = string(judged.name)
	}
	h := heldScore{s.names[string(judged.name)], v, at.ns}
	list := s.of[key]
	if i := slices.IndexFunc(list, func(o heldScore) bool { return o.name == h.name }); i >= 0 {
		if h.at >= list[i].at {
			list[i] = h
		}
		return nil
	}
	if s.held == s.most {
		return &InputError{Msg: fmt.Sprintf("more than %d scores to join", s.most), Advice: "give fewer days at once"}
	}
	s.held++
	s.of[key] = append(list, h)
	return nil
}

// join puts the scores of an observation into its row, and those of its trace
// and session if it is the first of them: they were given once and count once.
func (s *scoreBook) join(b *bag, r *row) {
	if s == nil {
		return
	}
	for _, key := range [...]string{
		ofSession + string(b.text("session_id", "sessionId")), ofTrace + string(b.text("trace_id", "traceId")), ofObservation + string(b.text("id")),
	} {
		list, ok := s.of[key]
		if !ok {
			continue
		}
		delete(s.of, key)
		for _, h := range list {
			s.joined++
			label := falseText
			if h.verdict {
				label = trueText
			}
			(&score{name: []byte(h.name), label: label}).judge(b, r)
		}
	}
}

// note says what became of the scores.
func (s *scoreBook) note(f *feed) {
	if s == nil {
		return
	}
	text := fmt.Sprintf("langfuse: %d of %d scores joined", s.joined, s.read)
	if s.unknown > 0 {
		text += fmt.Sprintf("; %d say neither yes nor no", s.unknown)
	}
	f.note("%s", text)
}

// takeScores reads the files of scores among several, before the observations
// that they are joined to, and returns the paths of the others. Files that can
// be read only once are left to their turn.
func (f *feed) takeScores(ctx context.Context, paths []string, progress func(int64)) (rest []string, err error) {
	if len(paths) < 2 {
		return paths, nil
	}
	for _, path := range paths {
		is, err := f.holdsScores(ctx, path)
		if err == nil && is {
			err = f.readScores(ctx, path, progress)
		} else if err == nil {
			rest = append(rest, path)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(rest) == 0 {
		return nil, langfuseScores.refuse(paths[0])
	}
	return rest, nil
}

// holdsScores looks whether a regular file holds scores. What is wrong with it
// is said when it is read.
func (f *feed) holdsScores(ctx context.Context, path string) (bool, error) {
	if info, err := os.Stat(path); path == stdinName || err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	src, err := open(ctx, path, nil, nil)
	if err != nil {
		return false, ctx.Err()
	}
	defer src.Close()
	format, err := src.detect(&f.opt)
	return err == nil && format == formatShaped && src.shape.shape == langfuseScores, nil
}

func (f *feed) readScores(ctx context.Context, path string, progress func(int64)) error {
	src, err := open(ctx, path, nil, progress)
	if err != nil {
		return err
	}
	defer src.Close()
	if _, err := src.detect(&f.opt); err != nil {
		return err
	}
	if f.scores == nil {
		f.scores = newScoreBook(maxScores)
	}
	run := &fileRun{name: path}
	rows := src.shape.objects(src.text)
	var b bag
	for r := (row{}); ; {
		r.reset()
		b.reset()
		err := rows.next(&b, &r)
		if err == nil {
			err = f.scores.add(&b)
		}
		bad, isBad := errors.AsType[*badRow](err)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case isBad:
			f.bad(run, &r, bad)
		case err != nil:
			return fatal(src, r.line, err)
		}
	}
}
