package splice

import (
	"fmt"
	"strings"
)

// diffContext is how many unchanged lines are shown around a change.
const diffContext = 3

// Diff returns a unified diff of two texts under one name, with three lines of
// context, as `patch -p1` and `git apply` read it; "" when they are equal.
func Diff(name string, before, after []byte) string {
	if string(before) == string(after) {
		return ""
	}
	ops := diffLines(lines(string(before)), lines(string(after)))
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", name, name)
	for at := 0; at < len(ops); {
		if ops[at].kind == ' ' {
			at++
			continue
		}
		from, to := max(at-diffContext, 0), hunkEnd(ops, at)
		writeHunk(&b, ops[from:to])
		at = to
	}
	return b.String()
}

// lineOp is a line that both texts have (' '), that goes ('-') or comes ('+').
type lineOp struct {
	kind     byte
	text     string // with its line end, if it has one
	old, new int    // lines of both texts before this one
}

// lines splits a text after each LF.
func lines(s string) []string {
	out := strings.SplitAfter(s, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// hunkEnd returns the end of the hunk that begins with the change at ops[at]:
// changes closer than two contexts are shown together.
func hunkEnd(ops []lineOp, at int) int {
	last := at
	for i := at; i < len(ops) && i <= last+2*diffContext; i++ {
		if ops[i].kind != ' ' {
			last = i
		}
	}
	return min(last+1+diffContext, len(ops))
}

func writeHunk(b *strings.Builder, ops []lineOp) {
	var gone, come int
	for _, op := range ops {
		if op.kind != '+' {
			gone++
		}
		if op.kind != '-' {
			come++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", hunkRange(ops[0].old, gone), hunkRange(ops[0].new, come))
	for _, op := range ops {
		b.WriteByte(op.kind)
		b.WriteString(op.text)
		if !strings.HasSuffix(op.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func hunkRange(before, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}

// maxTable bounds the table of the longest common subsequence; beyond it the
// differing middle is shown as replaced whole.
const maxTable = 1 << 24

// diffLines turns a into b by the fewest lines, deletions first.
func diffLines(a, b []string) []lineOp {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var w opWriter
	w.keep(a[:head])
	w.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	w.keep(a[len(a)-tail:])
	return w.ops
}

type opWriter struct {
	ops      []lineOp
	old, new int
}

func (w *opWriter) add(kind byte, text string) {
	w.ops = append(w.ops, lineOp{kind, text, w.old, w.new})
	if kind != '+' {
		w.old++
	}
	if kind != '-' {
		w.new++
	}
}

func (w *opWriter) keep(lines []string) {
	for _, l := range lines {
		w.add(' ', l)
	}
}

func (w *opWriter) middle(a, b []string) {
	common := commonTable(a, b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && common != nil && a[i] == b[j]:
			w.add(' ', a[i])
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common == nil || common[i+1][j] >= common[i][j+1]):
			w.add('-', a[i])
			i++
		default:
			w.add('+', b[j])
			j++
		}
	}
}

// commonTable holds the length of the longest common subsequence of a[i:] and
// b[j:]; nil when it would be too large.
func commonTable(a, b []string) [][]int32 {
	if (len(a)+1)*(len(b)+1) > maxTable {
		return nil
	}
	t := make([][]int32, len(a)+1)
	for i := range t {
		t[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}
