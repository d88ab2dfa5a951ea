// Package trace reads what a service logged, records or windows, from JSONL,
// CSV, Parquet, JSON arrays, Prometheus query_range answers and snapshots of
// /metrics, plain, gzip or zstd, and returns windows:
//
//	data, err := trace.ReadFiles(ctx, []string{"monday.jsonl.zst"}, nil, trace.Options{}, nil)
//	for _, w := range data.Windows { ... } // by time, then arm
//
// Records are counted into windows per arm; window rows are taken as they are.
// Several files are one feed, and the order of rows does not matter. The rows
// themselves are not kept: memory grows with the number of windows, not with
// the length of the input.
//
// No figure is invented. A minute without rows is a gap; a figure that no row
// carries is missing from the window, which is not the same as zero. Whatever
// was guessed, dropped or repaired is counted in [Data] and said in its Notes.
//
// Which file format is read is the business of a rowReader; what a row means is
// decided once, behind it. JSON lines, CSV and Parquet are read by several
// goroutines into batches of records; what is unusual in a row leaves it to the
// rowReader, so that both come to the same. Exports of tracers and gateways, known
// by the names in them, are turned into records by a shape; an [SSE] follows one
// streamed answer.
package trace
