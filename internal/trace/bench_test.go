package trace

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// mixedKeys writes the members of every third line in another order.
func mixedKeys(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines)-1; i += 3 {
		members := strings.Split(strings.Trim(lines[i], "{}\n"), ",")
		members[1], members[2], members[3] = members[3], members[1], members[2]
		lines[i] = "{" + strings.Join(members, ",") + "}\n"
	}
	return strings.Join(lines, "")
}

func packed(b *testing.B, text string, pack func(io.Writer) io.WriteCloser) string {
	var out bytes.Buffer
	w := pack(&out)
	if _, err := io.WriteString(w, text); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.String()
}

// BenchmarkReaders reads a file into windows of ten minutes, by the columns that
// `make bench-rivals` asks for and by all. MB/s are those of the text, unpacked.
func BenchmarkReaders(b *testing.B) {
	const rows = 200_000
	lines := benchJSONL(rows)
	var csv strings.Builder
	if _, err := io.Copy(&csv, &rowStream{rows: rows}); err != nil {
		b.Fatal(err)
	}
	columns, err := ParseColumns("t,total,solved,judged,violations,transfers,cost_mean,p99_ms")
	if err != nil {
		b.Fatal(err)
	}
	some, all := Options{MergeArms: true, Columns: columns}, Options{MergeArms: true}
	spread := Options{SlowMS: 1800, Distributions: true}
	zst := packed(b, lines, func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })
	gz := packed(b, lines, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	for _, c := range []struct {
		name, file string
		text       int
		opt        Options
	}{
		{"JSON lines", lines, len(lines), some},
		{"JSON lines, all columns", lines, len(lines), all},
		{"JSON lines, for calibrate", lines, len(lines), spread},
		{"JSON lines, keys in another order", mixedKeys(lines), len(lines), some},
		{"CSV", csv.String(), csv.Len(), some},
		{"CSV, all columns", csv.String(), csv.Len(), all},
		{"JSON lines, zstd", zst, len(lines), some},
		{"JSON lines, gzip", gz, len(lines), some},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "in")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				b.Fatal(err)
			}
			benchmarkFile(b, path, c.opt)
			b.SetBytes(int64(c.text))
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func benchmarkFile(b *testing.B, path string, opt Options) {
	opt.Span = 10 * time.Minute
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadFiles(context.Background(), []string{path}, nil, opt, nil); err != nil {
			b.Fatal(err)
		}
	}
}

var benchFile = flag.String("bench-file", "", "file that BenchmarkFile reads")

// BenchmarkFile reads a file of yours, for profiles:
//
//	go test ./internal/trace -run '^$' -bench File -bench-file requests.jsonl -cpuprofile cpu.out
func BenchmarkFile(b *testing.B) {
	info, err := os.Stat(*benchFile)
	if err != nil {
		b.Skip("name a file with -bench-file")
	}
	b.SetBytes(info.Size())
	columns, err := ParseColumns("t,total,solved,judged,violations,transfers,cost_mean,p99_ms")
	if err != nil {
		b.Fatal(err)
	}
	benchmarkFile(b, *benchFile, Options{MergeArms: true, Columns: columns})
}
