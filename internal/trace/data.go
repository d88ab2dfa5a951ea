package trace

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Kind says what the rows of a feed are.
type Kind uint8

// The kinds of feed. The zero value is a feed of which no row could be read.
const (
	Unknown Kind = iota
	// Records are single requests; they were counted into windows.
	Records
	// Windows were counted by somebody else.
	Windows
)

// String returns the kind's name in files and output.
func (k Kind) String() string {
	switch k {
	case Records:
		return "records"
	case Windows:
		return "windows"
	}
	return "unknown"
}

// MarshalText implements [encoding.TextMarshaler].
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Data is a whole feed: its windows, and what was met on the way to them.
type Data struct {
	Kind    Kind
	Windows []release.Window // by T, then arm

	Rows     int64 // rows met, bad ones included, blank lines not
	Good     int64 // rows that could be read as records or windows, duplicates included
	Bad      int64 // rows that could not be read
	BadLines []BadLine

	Duplicates int64 // rows dropped: the same request or window a second time
	Identical  int64 // records equal to another byte by byte, kept: nothing tells them apart from two requests
	OutOfOrder int64 // rows older than one before them in the same file; handled
	Late       int64 // records that came after values of their window were let go to save memory; counted, see Approximate
	// Approximate is how many percentiles are not exact but within 0.8 % of it,
	// because values came after others of their window were let go.
	Approximate int64
	NonFinite   int64 // figures that were NaN or infinite: missing, never compared
	NoData      int64 // window rows without a total: gaps
	LeftOut     int64 // rows of versions that no --arm named

	// Scenes counts the rows of each scene met, of the arms asked for, the
	// first 64 of them; nil where no row names one.
	Scenes map[string]int64
	// OtherScenes counts the rows that were left out because they are of
	// another scene than the one asked for, Sceneless those that name none.
	OtherScenes, Sceneless int64
	// Strange are statuses that are in no table and counted as errors, the
	// first dozen of them.
	Strange []string

	// Snapshots is set where the windows are the differences of snapshots of
	// /metrics.
	Snapshots bool

	// First and Last are the instants covered: the first and last record, or
	// the start of the first and the end of the last window.
	First, Last time.Time

	// Span is the length of the windows, 0 where they differ.
	Span time.Duration
	// Partial lists merged windows that the rows cover only in part.
	Partial []Partial
	// Supplied is the union of the figures that the windows carry.
	Supplied release.Figures
	// Arms are the arms of Windows, sorted.
	Arms []release.Arm
	// Latency (milliseconds) and Cost (USD) are the distributions of the arms
	// whose records carry any; nil without [Options].Distributions and for feeds
	// of windows.
	Latency, Cost map[release.Arm]*Distribution
	// TTFT and ITL are the same for times to first token and the means of each
	// stream's times between tokens, both in milliseconds, of [ReadWhole] alone.
	TTFT, ITL map[release.Arm]*Distribution
	spreads   []windowSpread // by time, then arm
	// Notes are sentences for the person at the terminal: what was guessed,
	// dropped, or taken for something.
	Notes []string
	// Unused are the columns, or top-level keys of the first row, that mean
	// nothing to canaryctl, in the order of the first file.
	Unused []string
}

// leftOut is how many rows are of other versions or scenes than those asked
// for.
func (d *Data) leftOut() int64 { return d.LeftOut + d.OtherScenes + d.Sceneless }

// BadLine is a row that could not be read. The first ten of a feed are kept,
// and the last line of a file where it is cut off.
type BadLine struct {
	File    string `json:"file"` // "-" is standard input
	Line    int64  `json:"line"` // 1 is the first; elements where the file is a JSON array
	Message string `json:"message"`
}

// String returns file:line: message.
func (b BadLine) String() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Message) }

// Partial is a window of which the input covers only a part.
type Partial struct {
	T       time.Time
	Arm     release.Arm
	Covered time.Duration
}
