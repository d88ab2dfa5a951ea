package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// readings are what all readers must agree on: the data and the error.
type reading struct {
	Data  *Data
	Error string
	Hint  string
}

func readingOf(d *Data, err error) reading {
	out := reading{Data: d}
	if err != nil {
		out.Error = err.Error()
	}
	if h, ok := errors.AsType[Hinter](err); ok {
		out.Hint = h.Hint()
	}
	return out
}

var sameData = cmp.Options{cmp.AllowUnexported(Data{}, Distribution{}, windowSpread{}), cmpopts.EquateNaNs()}

// readBothWays reads a text a row at a time, and as file and as stream in blocks of
// a size, and wants the same.
func readBothWays(t *testing.T, text string, opt Options, size int) {
	t.Helper()
	opt.MaxBad = anyBad
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	slow := opt
	slow.byRow = true
	want := readingOf(ReadFiles(context.Background(), []string{path}, nil, slow, nil))
	defer func(n int) { blockSize = n }(blockSize)
	blockSize = size
	got := readingOf(ReadFiles(context.Background(), []string{path}, nil, opt, nil))
	if diff := cmp.Diff(want, got, sameData); diff != "" {
		t.Fatalf("in blocks of %d bytes of a file: -by row +in blocks\n%s\n%.3000q", size, diff, text)
	}
	d, err := ReadFiles(context.Background(), []string{"-"}, strings.NewReader(text), opt, nil)
	got = readingOf(d, err)
	named := func(s string) string { return strings.ReplaceAll(s, path, "-") }
	want.Error, want.Hint = named(want.Error), named(want.Hint)
	for i := range want.Data.Notes {
		want.Data.Notes[i] = named(want.Data.Notes[i])
	}
	for i := range want.Data.BadLines {
		want.Data.BadLines[i].File = "-"
	}
	if diff := cmp.Diff(want, got, sameData); diff != "" {
		t.Fatalf("in blocks of %d bytes of a stream: -by row +in blocks\n%s\n%.3000q", size, diff, text)
	}
}

// oddities are pieces of JSON that readers may fall over.
var oddities = []string{
	`"a\u00e9"`, `"\ud83d\ude00"`, `"\ud800"`, "\"\xff\xfe\"", `""`, `" x "`, `"v1\n"`, `1e3`, `1E-2`, `-0`, `-0.0`, `0.1234567890123456789`, `12345678901234567890123`, `01`, `1.`, `.5`, `+1`,
	`-`, `-5`, `1e`, `1e400`, `tru`, `true`, `false`, `null`, `nul`, `"true"`, `"False"`, `"1"`, `1`, `0`, `"NaN"`, `"inf"`, `NaN`, `"null"`, `"N/A"`, `{}`, `[]`, `{"a":[1,{"b":"]}"}]}`, `[1,]`, `{"a"}`, `{"a":1,}`,
	`"unterminated`, `"tab	in it"`, `"\x"`, `"\u12"`, `"stable"`, `"canary"`, `"client_cancelled"`, `503`, `"timeout"`, `"what is this"`, `1747000000`, `1747000000123`, `"2026-05-04T00:01:02.5+02:00"`,
	`"2026-05-04 00:01:02"`, `"2026-05-04T00:01:60Z"`, `"2026-05-04T00:01:02.0000000009Z"`, `"2026-05-04T00:01:02.Z"`, `"1500-05-04T00:01:02Z"`, `9007199254740993`, `1234.5678901234567`, `0.30000000000000004`, `4.53267e+09`, `123456789.125`, `0.00000000001`, `2e6`, `1000001`,
}

// drawLine draws a JSON line, mostly like those of a log and sometimes not.
func drawLine(r *rand.Rand) string {
	members := []string{
		fmt.Sprintf(`"ts":"2026-05-04T00:%02d:%02d.%dZ"`, r.IntN(3), r.IntN(60), r.IntN(1000)),
		fmt.Sprintf(`"user_id":"u_%d"`, r.IntN(5)), fmt.Sprintf(`"version":"v%d"`, r.IntN(2)), fmt.Sprintf(`"model":"m%d"`, r.IntN(2)),
		fmt.Sprintf(`"latency_ms":%d.%d`, r.IntN(3000), r.IntN(1000)), fmt.Sprintf(`"ttft_ms":%d`, r.IntN(300)), fmt.Sprintf(`"output_tokens":%d`, r.IntN(300)),
		fmt.Sprintf(`"cost_usd":0.00%d`, r.IntN(100)), fmt.Sprintf(`"solved":%s`, []string{"true", "false", "null"}[r.IntN(3)]),
		fmt.Sprintf(`"violation":%t`, r.IntN(9) == 0), `"tool_calls":[{"args":"{\"id\":\"1\"}","ok":true}]`, `"status":"ok"`, `"scene":"chat"`,
	}
	for range r.IntN(3) {
		i := r.IntN(len(members))
		members[i], members[0] = members[0], members[i]
	}
	members = members[:len(members)-r.IntN(3)]
	if r.IntN(4) == 0 {
		name, _, _ := strings.Cut(members[r.IntN(len(members))], ":")
		members = append(members, name+":"+oddities[r.IntN(len(oddities))])
	}
	if r.IntN(12) == 0 {
		members = append(members, fmt.Sprintf(`"%s":%d`, []string{"latency", "x", `\u0074s`, "é", "violatoin"}[r.IntN(5)], r.IntN(4)))
	}
	comma := []string{",", ", ", " ,"}[max(r.IntN(20)-17, 0)]
	line := "{" + strings.Join(members, comma) + "}"
	switch r.IntN(40) {
	case 0:
		line = line[:r.IntN(len(line))]
	case 1:
		line += " x"
	case 2:
		line = "  " + line + "\t\r"
	case 3:
		line = ""
	case 4:
		b := []byte(line)
		b[r.IntN(len(b))] = byte(r.IntN(256))
		line = string(bytes.ReplaceAll(b, []byte("\n"), []byte(" ")))
	}
	return line
}

// drawOptions draws ways to read.
func drawOptions(r *rand.Rand) Options {
	opt := Options{}
	if r.IntN(2) == 0 {
		opt.MergeArms = true
	}
	if r.IntN(4) == 0 {
		opt.Arms = map[string]release.Arm{"v1": release.Canary, "m0": release.Stable}
	}
	if r.IntN(4) == 0 {
		opt.Scene = "chat"
	}
	if r.IntN(4) == 0 {
		opt.Columns, _ = ParseColumns("t,total,solved,p99_ms")
	}
	if r.IntN(4) == 0 {
		opt.SlowMS, opt.TTFTLimitMS, opt.NullStatusOK, opt.Distributions = 500, 100, true, true
	}
	if r.IntN(6) == 0 {
		opt.maxLatencies, opt.maxHashes = 1+r.IntN(40*chunkLen), 1+r.IntN(40)
	}
	if r.IntN(6) == 0 {
		m, _ := ParseMapping([]string{"latency_ms=tool.x:s", "latency_ms=latency_ms:s", "ttft_ms=ttft_ms:us,cost_usd=cost_usd:musd"}[r.IntN(3)])
		opt.Map = m
	}
	return opt
}

// The fast readers give the very data, notes and errors that reading row by row
// gives, wherever blocks are cut.
func TestBlocksOfJSONLinesAreReadAsRowByRow(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString(drawLine(r) + "\n")
		}
		text := b.String()
		if r.IntN(3) == 0 {
			text = strings.TrimSuffix(text, "\n")
		}
		if r.IntN(10) == 0 {
			text = "\xef\xbb\xbf" + text
		}
		readBothWays(t, text, drawOptions(r), 1+r.IntN(600))
	}
}

// Rows in the order of time are counted as sums: with rows between that are not,
// arms that alternate, windows that begin within a block, duplicates of rows long
// past, and bad ones, they come to what reading row by row comes to.
func TestBlocksInTheOrderOfTimeAreReadAsRowByRow(t *testing.T) {
	summed := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		at, csv := int64(1777852800000), r.IntN(2) == 0
		var lines []string
		for range r.IntN(300) {
			at += int64(r.IntN(3000))
			switch r.IntN(60) {
			case 0:
				at -= 5000
			case 1:
				if len(lines) > 0 {
					lines = append(lines, lines[r.IntN(len(lines))])
				}
			}
			ts := time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
			arm, ms := []string{"stable", "canary", "v9"}[r.IntN(20)*3/40+r.IntN(2)], fmt.Sprintf("%d.%d", r.IntN(3000), r.IntN(10))
			if r.IntN(90) == 0 {
				ms = "-1"
			}
			solved := []string{"true", "false"}[r.IntN(2)]
			if csv {
				lines = append(lines, fmt.Sprintf("%s,u%d,%s,%s,0.00%d,%s,%t", ts, r.IntN(9), arm, ms, r.IntN(100), solved, r.IntN(20) == 0))
			} else {
				lines = append(lines, fmt.Sprintf(`{"ts":"%s","user_id":"u%d","version":"%s","latency_ms":%s,"cost_usd":0.00%d,"solved":%s,"violation":%t}`, ts, r.IntN(9), arm, ms, r.IntN(100), solved, r.IntN(20) == 0))
			}
		}
		text := strings.Join(lines, "\n") + "\n"
		if csv {
			text = "ts,user_id,version,latency_ms,cost_usd,solved,violation\n" + text
		}
		opt := drawOptions(r)
		opt.Distributions, opt.Map = false, nil
		opt.Columns, _ = ParseColumns("t,total,solved,violations,cost_mean,p99_ms,slow")
		f := newFeed(opt)
		if f.opt.restsOn()&streamFields == 0 {
			summed++
		}
		readBothWays(t, text, opt, 200+r.IntN(3000))
	}
	if summed == 0 {
		t.Error("nothing was summed")
	}
}

func FuzzJSONLines(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		f.Add(drawLine(r)+"\n"+drawLine(r), uint16(40))
	}
	for _, o := range oddities {
		f.Add(`{"ts":"2026-05-04T00:00:00Z","latency_ms":`+o+"}\n"+`{"ts":"2026-05-04T00:00:00Z","latency_ms":`+o+`,"version":`+o+`,"solved":`+o+"}\n", uint16(1))
	}
	f.Fuzz(func(t *testing.T, text string, size uint16) {
		// The plan comes from a line that is usual.
		readBothWays(t, `{"ts":"2026-05-04T00:00:00Z","latency_ms":1,"solved":true,"version":"v1","user_id":"u"}`+"\n"+text, Options{}, int(size)+1)
	})
}

// FuzzScanner holds the scanner's grammar against encoding/json's: the same texts
// are objects, and the fields are those of a decoded map.
func FuzzScanner(f *testing.F) {
	for _, o := range oddities {
		f.Add(`{"a":` + o + `,"ts":"2026-05-04T00:00:00Z","b":[` + o + `,{"c":` + o + `}]}`)
	}
	f.Add(`{"\u0076ersion":"x","version":"y"}`)
	f.Add(strings.Repeat(`{"a":`, 1200) + "1" + strings.Repeat("}", 1200))
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\n") || len(text) == 0 || text[0] != '{' {
			return
		}
		b := append([]byte(text), '\n')
		b = append(b, make([]byte, blockPad)...)
		var s jsonScanner
		s.useKeys(&keyBook{full: true})
		end, ok := s.object(b, 0)
		ok = ok && blank(b[end:len(text)])
		valid := json.Valid([]byte(text))
		if deep := strings.Count(text, "{")+strings.Count(text, "[") > maxDepth; ok != valid && !deep || ok && !valid {
			t.Fatalf("accepted %t, valid %t: %q", ok, valid, text)
		}
		if valid {
			sameFields(t, text, b)
		}
	})
}

// sameFields compares what the scanner reads of a valid object with what
// encoding/json does.
func sameFields(t *testing.T, text string, b []byte) {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &m) != nil {
		return
	}
	book := &keyBook{full: true, flat: map[string][]Field{"version": {FieldVersion}, "latency_ms": {FieldLatency}, "solved": {FieldSolved}, "user_id": {FieldUserID}}}
	var s jsonScanner
	s.use(&recipe{})
	s.useKeys(book)
	s.q.reset()
	if _, ok := s.object(b, 0); !ok {
		return // to be read with care
	}
	for name, fields := range book.flat {
		v, there := m[name]
		f := fields[0]
		if s.q.has.has(f) != there {
			t.Fatalf("%s is there: %t, want %t: %q", name, s.q.has.has(f), there, text)
		}
		if !there {
			continue
		}
		c := jsonCell(v)
		var r row
		r.cells[f] = c
		switch f {
		case FieldVersion:
			if s.q.present(f) != c.present() || c.present() && string(s.q.names[f]) != string(c.text) {
				t.Fatalf("%s is %q, want %q: %q", name, s.q.names[f], c.text, text)
			}
		case FieldSolved:
			value, known, err := r.flag(f)
			if err != nil || s.q.flags.has(f) != value || s.q.present(f) != known {
				t.Fatalf("%s is %t %t, want %t %t %v: %q", name, s.q.flags.has(f), s.q.present(f), value, known, err, text)
			}
		case FieldLatency:
			n, fig, err := r.number(f)
			if err != nil || fig == finite && (s.q.nums[f].scaledTo(n) != 0 || s.q.nums[f].neg != n.neg) {
				t.Fatalf("%s is %+v, want %+v %v: %q", name, s.q.nums[f], n, err, text)
			}
		}
	}
}

// scaledTo is 0 where two numbers are the same, however their exponents stand.
func (n number) scaledTo(o number) int {
	for n.exp < o.exp {
		o.mant, o.exp = o.mant*10, o.exp-1
	}
	for o.exp < n.exp {
		n.mant, n.exp = n.mant*10, n.exp-1
	}
	if n.mant == o.mant {
		return 0
	}
	return 1
}

// drawCSV draws a CSV text, mostly well formed.
func drawCSV(r *rand.Rand) string {
	header := "ts,user_id,version,latency_ms,cost_usd,solved,note,violation"
	if r.IntN(5) == 0 {
		header = `"ts",user_id,"version",latency_ms,cost_usd,solved,"no""te",violation`
	}
	newline := "\n"
	if r.IntN(4) == 0 {
		newline = "\r\n"
	}
	var b strings.Builder
	b.WriteString(header + newline)
	for range r.IntN(50) {
		cells := []string{
			fmt.Sprintf("2026-05-04T00:%02d:%02dZ", r.IntN(3), r.IntN(60)), fmt.Sprintf("u_%d", r.IntN(5)), fmt.Sprintf("v%d", r.IntN(2)), fmt.Sprintf("%d.%d", r.IntN(3000), r.IntN(1000)),
			fmt.Sprintf("0.00%d", r.IntN(100)), []string{"true", "false", "", "1", "NULL"}[r.IntN(5)],
			[]string{"", "x", `"a,b"`, `"say ""x"""`, "\"two" + newline + "lines\"", `"[{""a"":""b""}]"`, "é", "\xff", `"` + "\r" + `"`}[r.IntN(9)], fmt.Sprint(r.IntN(9) == 0),
		}
		if r.IntN(6) == 0 {
			cells[r.IntN(len(cells))] = []string{`"v1"`, `" v1 "`, `"v""1"`, `v"1`, `"v1" `, `"v1`, "nan", "-5", " 7 ", "1e3", "\x00", "v1,", "\"v\n1\"", "é", "x", "0x1", `""`}[r.IntN(17)]
		}
		line := strings.Join(cells, ",")
		if r.IntN(30) == 0 {
			line = line[:r.IntN(len(line))]
		}
		b.WriteString(line + newline)
	}
	return b.String()
}

func TestBlocksOfCSVAreReadAsRowByRow(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		text := drawCSV(r)
		if r.IntN(3) == 0 {
			text = text[:len(text)-r.IntN(min(len(text), 20))]
		}
		readBothWays(t, text, drawOptions(r), 1+r.IntN(400))
	}
}

func FuzzCSVBlocks(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 4))
	for range 30 {
		f.Add(drawCSV(r), uint16(30))
	}
	f.Fuzz(func(t *testing.T, text string, size uint16) {
		readBothWays(t, "ts,version,latency_ms,solved\n"+text, Options{}, int(size)+1)
	})
}

// Lines longer than a block, and than is read at all, wherever they stand.
func TestLongLinesInBlocks(t *testing.T) {
	defer func(n int) { maxLine = n }(maxLine)
	maxLine = 3000
	good := func(i int) string {
		return fmt.Sprintf(`{"ts":"2026-05-04T00:00:%02dZ","latency_ms":%d}`, i%60, i) + "\n"
	}
	for _, n := range []int{1, 100, 2950, 2999, 3000, 3001, 7000, 20_000} {
		long := `{"ts":"2026-05-04T00:00:00Z","prompt":"` + strings.Repeat("x", n) + "\"}\n"
		csv := "ts,prompt,latency_ms\n2026-05-04T00:00:00Z,a,1\n2026-05-04T00:00:00Z," + strings.Repeat("x", n) + ",2\n2026-05-04T00:00:00Z,\"" + strings.Repeat("x\n", n/2) + "\",2\n2026-05-04T00:00:01Z,b,3\n"
		for _, size := range []int{1, 64, 1000, 4096} {
			readBothWays(t, good(1)+long+good(2)+good(3)+long, Options{}, size)
			readBothWays(t, long+good(1)+strings.TrimSuffix(long, "\n"), Options{}, size)
			readBothWays(t, csv, Options{}, size)
		}
	}
}

// However many goroutines there are, the bytes are the same.
func TestCoresChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var b strings.Builder
	for range 5000 {
		b.WriteString(drawLine(r) + "\n")
	}
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(n int) { blockSize = n }(blockSize)
	blockSize = 1000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var want reading
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		got := readingOf(ReadFiles(context.Background(), []string{path}, nil, Options{MaxBad: anyBad, maxLatencies: 900, maxHashes: 900}, nil))
		if cores == 1 {
			want = got
		} else if diff := cmp.Diff(want, got, sameData); diff != "" {
			t.Fatalf("%d cores: %s", cores, diff)
		}
	}
}

// Blocks cover a file: every byte once, in order, and each starts with a row.
func TestBlocksCoverTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("a,\"\n\n")), 0, 300, -1).Draw(t, "text")
		size := rapid.IntRange(1, 60).Draw(t, "size")
		for name, in := range map[string]blockSource{
			"lines of a file":   &fileBlocks{ctx: context.Background(), file: strings.NewReader(text), end: int64(len(text)), size: size},
			"lines of a stream": newStreamBlocks(context.Background(), strings.NewReader(text), size, wholeLines),
			"rows of a stream":  newStreamBlocks(context.Background(), strings.NewReader(text), size, wholeRows),
		} {
			var got strings.Builder
			var b block
			for seq := int64(0); in.next(&b); seq++ {
				if b.seq != seq || b.err != nil {
					t.Fatalf("%s: block %d is %d: %v", name, seq, b.seq, b.err)
				}
				if at := got.Len(); b.to > b.from && at > 0 && text[at-1] != '\n' {
					t.Fatalf("%s: a block starts at byte %d, within a line", name, at)
				}
				got.Write(b.text())
			}
			if got.String() != text {
				t.Fatalf("%s: %q, want %q", name, got.String(), text)
			}
		}
	})
}

// A row that is read costs no allocation: ten times as many rows, as many
// allocations, but for what grows with the data.
func TestReadersAllocateNothingForARow(t *testing.T) {
	for name, text := range map[string]func(rows int) string{
		"JSON lines": func(rows int) string { return benchJSONL(rows) },
		"CSV": func(rows int) string {
			return "ts,user_id,version,latency_ms,cost_usd,solved,note\n" + strings.Repeat("2026-05-04T00:00:00Z,u,v1,12.5,0.001,true,\"a \"\"b\"\"\"\n", rows)
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(rows int) float64 {
				s := text(rows)
				return testing.AllocsPerRun(3, func() { mustRead(t, s, Options{MergeArms: true, Span: 48 * time.Hour}) })
			}
			few, many := of(10_000), of(100_000)
			if each := (many - few) / 90_000; each > 0.01 {
				t.Errorf("%g allocations for 10,000 rows, %g for 100,000: %.3f a row", few, many, each)
			}
		})
	}
}

// A reading that is stopped ends at once, with the error that says so and no
// goroutine left, also where the pipe gives nothing more.
func TestAStoppedReadingEndsAtOnce(t *testing.T) {
	line := benchJSONL(1)
	for name, c := range map[string]struct {
		text string
		want func(error) bool
		stop bool
	}{
		"by the user":                         {strings.Repeat(line, 9000), func(err error) bool { return errors.Is(err, context.Canceled) }, true},
		"by rows that do not belong together": {strings.Repeat(line, 9000) + strings.Repeat(`{"ts":"2026-05-04T00:00:00Z","version":"v`, 1), func(err error) bool { return errors.Is(err, context.Canceled) }, true},
		"by too many versions":                {manyVersions(), func(err error) bool { _, ok := errors.AsType[*InputError](err); return ok }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r, w := io.Pipe()
				defer r.Close()
				go io.WriteString(w, c.text) //nolint:errcheck // the reader may leave
				if c.stop {
					go func() { time.Sleep(time.Second); cancel() }()
				}
				if _, err := ReadFiles(ctx, []string{"-"}, r, Options{}, nil); !c.want(err) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func manyVersions() string {
	var b strings.Builder
	for i := range 50_000 { // several blocks
		fmt.Fprintf(&b, `{"ts":"2026-05-04T00:00:00Z","latency_ms":1,"version":"v%d"}`+"\n", i)
	}
	return b.String()
}
