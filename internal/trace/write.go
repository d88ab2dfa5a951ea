package trace

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Column is a column of window output.
type Column struct {
	at int // in columnTable
}

// String returns the column's name.
func (c Column) String() string { return columnTable[c.at].field.String() }

// columnTable says what each column holds of a window: text, a count or a
// measure. Those with figures are written where a window carries one of them;
// with wanted they are written only where the input does.
var columnTable = []struct {
	field   Field
	figures release.Figures // any of them; 0: always there
	wanted  bool
	text    func(*release.Window) string
	count   func(*release.Window) int64
	measure func(*release.Window) float64
}{
	{field: FieldT, text: func(w *release.Window) string { return w.T.UTC().Format(time.RFC3339Nano) }},
	{field: FieldSpan, text: func(w *release.Window) string { return FormatSpan(w.Span) }},
	{field: FieldArm, text: func(w *release.Window) string { return string(w.Arm) }},
	{field: FieldTotal, count: func(w *release.Window) int64 { return w.Total }},
	{field: FieldJudged, figures: release.HasSolved, count: func(w *release.Window) int64 { return w.Judged }},
	{field: FieldSolved, figures: release.HasSolved, count: func(w *release.Window) int64 { return w.Solved }},
	{field: FieldViolations, figures: release.HasViolations, count: func(w *release.Window) int64 { return w.Violations }},
	{field: FieldTransfers, figures: release.HasTransfers, count: func(w *release.Window) int64 { return w.Transfers }},
	{field: FieldCost, figures: release.HasCost, measure: func(w *release.Window) float64 { return w.Cost }},
	{field: FieldCostMean, figures: release.HasCostMean, measure: func(w *release.Window) float64 { return w.CostMean }},
	{field: FieldP99, figures: release.HasP99, measure: func(w *release.Window) float64 { return w.P99MS }},
	{field: FieldSlow, figures: release.HasSlow, wanted: true, count: func(w *release.Window) int64 { return w.Slow }},
	{field: FieldTTFTOf, figures: release.HasTTFT | release.HasTTFTSlow, wanted: true, count: func(w *release.Window) int64 { return w.TTFTOf }},
	{field: FieldTTFTP99, figures: release.HasTTFT, wanted: true, measure: func(w *release.Window) float64 { return w.TTFTP99MS }},
	{field: FieldTTFTSlow, figures: release.HasTTFTSlow, wanted: true, count: func(w *release.Window) int64 { return w.TTFTSlow }},
	{field: FieldITLOf, figures: release.HasITL, wanted: true, count: func(w *release.Window) int64 { return w.ITLOf }},
	{field: FieldITL, figures: release.HasITL, wanted: true, measure: func(w *release.Window) float64 { return w.ITLMS }},
	{field: FieldStreams, figures: release.HasAborts, wanted: true, count: func(w *release.Window) int64 { return w.Streams }},
	{field: FieldAborted, figures: release.HasAborts, wanted: true, count: func(w *release.Window) int64 { return w.Aborted }},
	{field: FieldStatusOf, figures: release.HasErrors | release.HasServerErrors, wanted: true, count: func(w *release.Window) int64 { return w.StatusOf }},
	{field: FieldErrors, figures: release.HasErrors, wanted: true, count: func(w *release.Window) int64 { return w.Errors }},
	{field: FieldServerErrors, figures: release.HasServerErrors, wanted: true, count: func(w *release.Window) int64 { return w.ServerErrors }},
	{field: FieldKVCache, figures: release.HasKVCache, wanted: true, measure: func(w *release.Window) float64 { return w.KVCache }},
}

// allColumns are the columns that make a window whole: written with all of
// them, windows read back as they were.
var allColumns = func() (out []Column) {
	for i := range columnTable {
		out = append(out, Column{i})
	}
	return out
}()

// Columns are the columns that make windows whole which carry these figures,
// such as [Data].Supplied: all, but slow and those of streams, statuses and the
// KV cache only where there are any.
func Columns(carried release.Figures) []Column {
	return slices.DeleteFunc(slices.Clone(allColumns), func(c Column) bool {
		t := &columnTable[c.at]
		return t.wanted && carried&t.figures == 0
	})
}

// ParseColumns reads names separated by commas. The error is a
// [*MappingError].
func ParseColumns(s string) ([]Column, error) {
	var names []string
	for _, c := range allColumns {
		names = append(names, c.String())
	}
	var out []Column
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(names, name)
		if i < 0 {
			e := &MappingError{Text: s, Msg: fmt.Sprintf("windows have no column %q", name), Advice: "the columns are " + strings.Join(names, ",")}
			if near := diag.Nearest(name, names); near != "" {
				e.Advice = fmt.Sprintf("did you mean %s?", near)
			}
			return nil, e
		}
		if slices.Contains(out, allColumns[i]) {
			return nil, &MappingError{Text: s, Msg: fmt.Sprintf("column %s is named twice", name)}
		}
		out = append(out, allColumns[i])
	}
	return out, nil
}

// WriteCSV writes windows with a header. Missing figures are empty cells,
// times RFC 3339 in UTC.
func WriteCSV(w io.Writer, windows []release.Window, columns []Column) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.String()
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	for i := range windows {
		for j, c := range columns {
			cells[j] = c.text(&windows[i])
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteJSONL writes windows as one JSON object a line. Missing figures have no
// key.
func WriteJSONL(w io.Writer, windows []release.Window, columns []Column) error {
	out := bufio.NewWriter(w)
	var line []byte
	for i := range windows {
		line = append(AppendJSON(line[:0], &windows[i], columns), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// AppendJSON appends a window as a JSON object with the columns as keys, those
// of missing figures left out.
func AppendJSON(b []byte, w *release.Window, columns []Column) []byte {
	b = append(b, '{')
	for _, c := range columns {
		text := c.text(w)
		if text == "" {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(append(b, c.String()...), `":`...)
		if columnTable[c.at].text == nil {
			b = append(b, text...)
			continue
		}
		quoted, _ := json.Marshal(text) // a string always marshals
		b = append(b, quoted...)
	}
	return append(b, '}')
}

// text is the column of a window as text, "" where it is missing.
func (c Column) text(w *release.Window) string {
	t := &columnTable[c.at]
	switch {
	case t.text != nil:
		return t.text(w)
	case t.figures != 0 && w.Known&t.figures == 0:
		return ""
	case t.count != nil:
		return strconv.FormatInt(t.count(w), 10)
	}
	return measure(t.measure(w))
}

// measure prints the shortest decimal that reads back as f, without exponent
// where that is not absurdly long.
func measure(f float64) string {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-9 || a >= 1e21) {
		format = 'g'
	}
	return strconv.FormatFloat(f, format, -1, 64)
}
