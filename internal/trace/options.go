package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Options say how to read. The zero value reads canaryctl's own names.
type Options struct {
	Map  []Mapping              // other names and units; see [ParseMapping]
	Arms map[string]release.Arm // value of arm, version or model -> arm; rows of other versions are left out
	// MergeArms counts all rows as one arm, [release.All].
	MergeArms bool

	InputSpan time.Duration // span of window rows that carry none
	Span      time.Duration // length of the windows wanted; 0: a minute for records, as they are for windows
	Epoch     Unit          // unit of times that are numbers; NoUnit guesses and says so

	// MaxBad is the largest share of bad rows that is accepted; the zero
	// value means 1/1000.
	MaxBad release.Ratio
	// SumDuplicates adds up window rows of the same time and arm (several
	// machines) instead of refusing them.
	SumDuplicates bool

	// SlowMS counts the records of each window with latency_ms above it; 0:
	// none. Windows in which not every record carries a latency get no count.
	SlowMS float64
	// TTFTLimitMS counts the records of each window with ttft_ms above it,
	// beside those that carry ttft_ms at all; 0: none.
	TTFTLimitMS float64
	// NullStatusOK takes a status that is there and null, or an empty cell, for
	// ok: so writes a logger that fills the field only when something is wrong.
	// A row without the field says nothing either way.
	NullStatusOK bool
	// Scene counts only rows of this scene; "" counts all. The others are left
	// out, and so are rows that name none; see [Data].OtherScenes.
	Scene string

	// Distributions gathers, from records, how latencies and costs are
	// distributed, for [Data]'s Latency and Cost, and how the latencies of each
	// window are, for [Data.CountSlow]. That takes up to half of MaxMemory, and
	// beside it for each window 2 bytes a bucket with latencies in it, at most a
	// few hundred of them in practice.
	Distributions bool

	// Columns are the columns of windows that are wanted; nil: all. Fields of
	// records on which none of them rests are not read, unless Map names them.
	Columns []Column

	// MaxMemory bounds what is held for exact percentiles and for telling
	// duplicates, in bytes; 0: 256 MiB. Past it the windows not touched for
	// longest are finished first; see [Data].Approximate. Beside it reading
	// takes some 20 MB, each window a kilobyte, and ranking as much again as the
	// largest window holds.
	MaxMemory int64

	maxLatencies int  // latencies and times to first token held at once, 8 bytes each
	maxHashes    int  // digests of rows held at once, 8 bytes each in the order of time, else up to 22
	byRow        bool // files are read a row at a time, as the reference for the fast readers
	whole        bool // all records are one window, with times or without; see [ReadWhole]
	maxValues    int  // different values of a figure kept for one arm
}

const (
	defaultSpan      = time.Minute
	defaultMaxMemory = 256 << 20
)

var defaultMaxBad = release.Ratio{Num: 1, Den: 1000}

// withDefaults fills in what the zero value means.
func (o Options) withDefaults() Options {
	if o.MaxBad.IsZero() {
		o.MaxBad = defaultMaxBad
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = defaultMaxMemory
	}
	share := int(o.MaxMemory / 16)
	defaults := func(v *int, n int) {
		if *v <= 0 {
			*v = max(n, 1)
		}
	}
	defaults(&o.maxHashes, share/16)
	if o.Distributions { // they take half
		defaults(&o.maxLatencies, 4*share/8)
		defaults(&o.maxValues, 8*share/(fullDistributions*weightedSize))
	} else {
		defaults(&o.maxLatencies, 12*share/8)
		defaults(&o.maxValues, 1)
	}
	return o
}

// recordSpan is the length of the windows that records are counted into.
func (o *Options) recordSpan() time.Duration {
	if o.Span > 0 {
		return o.Span
	}
	return defaultSpan
}

// ParseArm reads one --arm: "all", which merges, or ARM=VALUE, which says that
// VALUE of version, model or arm is that arm. It changes o.
func (o *Options) ParseArm(s string) error {
	if s == string(release.All) {
		o.MergeArms = true
		return nil
	}
	name, value, ok := strings.Cut(s, "=")
	arm := release.Arm(name)
	switch {
	case !ok || value == "":
		return &MappingError{Text: s, Msg: "want stable=VERSION, canary=VERSION or all"}
	case arm != release.Stable && arm != release.Canary && arm != release.All:
		return &MappingError{Text: s, Msg: fmt.Sprintf("%q is not an arm", name), Advice: "the arms are stable and canary"}
	}
	if before, taken := o.Arms[value]; taken && before != arm {
		return &MappingError{Text: s, Msg: fmt.Sprintf("%q is %s already", value, before)}
	}
	if o.Arms == nil {
		o.Arms = make(map[string]release.Arm)
	}
	o.Arms[value] = arm
	return nil
}
