package trace

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// padded is a text as it stands in a block, behind it what was there before.
func enemyBlock(text []byte, junk byte) []byte {
	b := make([]byte, len(text)+2+blockPad)
	for i := range b {
		b[i] = junk
	}
	copy(b, text)
	n := len(text)
	if n == 0 || text[n-1] != '\n' {
		b[n] = '\n'
		n++
	}
	b[n] = 0
	return b
}

func naiveNumber(s []byte) (end, digitsBefore, digitsAfter int, ok bool) {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	st := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	digitsBefore = i - st
	if digitsBefore == 0 || digitsBefore > 1 && s[st] == '0' {
		return i, digitsBefore, 0, false
	}
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j < len(s) && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		digitsAfter = j - i - 1
		if digitsAfter == 0 {
			return i, digitsBefore, 0, false
		}
		i = j
	}
	return i, digitsBefore, digitsAfter, i == len(s) || s[i]|0x20 != 'e'
}

func TestEnemyNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	terms := []byte{',', '}', '\n', ' ', 'e', 'E', '"', 'x', 0x80, 0xb0, 0xff, 0, ':', '/', ']', '\r', '-', '+', 0x10, 0x19}
	okCount, big8 := 0, 0
	check := func(text []byte, junk byte) {
		b := enemyBlock(text, junk)
		b[len(text)+0] = b[len(text)]
		n, end, ok := shortNumber(b, 0)
		wend, before, after, wok := naiveNumber(b)
		if ok {
			okCount++
			if before == 8 && b[8+btoi(b[0] == '-')] == '.' {
				big8++
				if end != 8+btoi(b[0] == '-') {
					t.Fatalf("%q end %d", text, end)
				}
				return
			}
			if !wok || end != wend {
				t.Fatalf("%q: end %d ok, want %d %v", text, end, wend, wok)
			}
			got, ok2 := n.exact(0)
			want, _ := strconv.ParseFloat(string(b[:end]), 64)
			if n.mant < 1<<53 && (!ok2 || got != want && !(got == 0 && want == 0)) {
				t.Fatalf("%q: %v %v, want %v", text, got, ok2, want)
			}
			p, pok := plainNumber(bytes.TrimPrefix(b[:end], []byte("-")))
			if !pok || p.mant != n.mant || p.exp != n.exp || n.neg != (b[0] == '-') || n.cut {
				t.Fatalf("%q: %+v, want %+v", text, n, p)
			}
		} else if wok && before < 8 && after <= 8 && (b[wend] != '.' || after == 0) && !(b[wend]-'0' <= 9) {
			t.Fatalf("%q: refused", text)
		}
		e := shortEnd(b, 0)
		if e > 0 && (!wok || e != wend || b[e] != ',' && b[e] != '}') {
			t.Fatalf("shortEnd %q: %d, want %d %v", text, e, wend, wok)
		}
		if e == 0 && wok && before < 7 && after < 8 && (b[wend] == ',' || b[wend] == '}') {
			t.Fatalf("shortEnd %q: refused", text)
		}
	}
	for n := 0; n <= 17; n++ {
		for mask := 0; mask < 1<<n; mask++ {
			if n > 12 && r.IntN(8) > 0 && bitsOf(mask) > 2 {
				continue
			}
			for _, sign := range []string{"", "-"} {
				text := []byte(sign)
				for i := range n {
					if mask>>i&1 == 1 {
						text = append(text, '.')
					} else {
						d := byte('0' + r.IntN(10))
						if r.IntN(3) == 0 {
							d = "09"[r.IntN(2)]
						}
						text = append(text, d)
					}
				}
				check(append(text, terms[r.IntN(len(terms))], byte(r.IntN(256))), byte(r.IntN(256)))
			}
		}
	}
	// All terminators behind all usual lengths.
	for before := range 10 {
		for after := range 10 {
			for _, c := range terms {
				for range 20 {
					var text []byte
					for range before {
						text = append(text, byte('0'+r.IntN(10)))
					}
					if after > 0 {
						text = append(text, '.')
					}
					for range after {
						text = append(text, byte('0'+r.IntN(10)))
					}
					check(append(text, c, byte(r.IntN(256)), "0123456789.e,}"[r.IntN(14)]), byte(r.IntN(256)))
				}
			}
		}
	}
	t.Log(okCount, big8)
}

func bitsOf(m int) (n int) {
	for ; m != 0; m &= m - 1 {
		n++
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func strs(alphabet []string, most int, f func(s []byte)) {
	var rec func(s []byte, left int)
	rec = func(s []byte, left int) {
		f(s)
		if left == 0 {
			return
		}
		for _, a := range alphabet {
			rec(append(s[:len(s):len(s)], a...), left-1)
		}
	}
	rec(nil, most)
}

func TestEnemyQuoted(t *testing.T) {
	p := &csvParser{}
	text := &cellUse{use: skipped}
	oks := 0
	check := func(s []byte, junk byte) {
		b := enemyBlock(s, junk)
		n := len(s)
		p.high = false
		end, newlines, ok := p.quoted(text, b, 0)
		// naive
		i := 0
		closed := false
		nl := 0
		for i < n {
			if b[i] == 0 {
				break
			}
			if b[i] == '"' {
				if b[i+1] == '"' && i+1 < n {
					i += 2
					continue
				}
				closed = true
				break
			}
			if b[i] == '\n' {
				nl++
			}
			i++
		}
		wok := closed
		wend := i + 1
		crlf := false
		if closed {
			if b[wend] == '\r' && b[wend+1] == '\n' {
				wend++
			}
			wok = b[wend] == ',' || b[wend] == '\n'
			crlf = nl > 0 && bytes.Contains(b[:i], []byte("\r\n"))
			high := slices.ContainsFunc(b[:i], func(c byte) bool { return c >= 0x80 })
			if high && ok && !p.high {
				t.Fatalf("%q: not high", s)
			}
		}
		if crlf {
			wok = false
		}
		if ok != wok || ok && (end != wend || newlines != nl) {
			t.Fatalf("%q (junk %x): %d %d %v, want %d %d %v", s, junk, end, newlines, ok, wend, nl, wok)
		}
		if ok {
			oks++
		}
	}
	alphabet := []string{`"`, ",", "\n", "\r", "a", "\xc3\xa9", "\x00", "#"}
	most := 6
	for pad := range 10 {
		prefix := bytes.Repeat([]byte("a"), pad)
		if pad == 0 {
			most = 7
		} else {
			most = 5
		}
		strs(alphabet, most, func(s []byte) {
			check(append(prefix[:len(prefix):len(prefix)], s...), '"')
			if pad > 0 {
				check(append(prefix[:len(prefix):len(prefix)], s...), ',')
			}
		})
		double := bytes.Repeat([]byte(`""`), pad)
		strs(alphabet, 4, func(s []byte) { check(append(double[:len(double):len(double)], s...), 'a') })
	}
	strs([]string{`"`, ",", "\n"}, 12, func(s []byte) { check(s, '"') })
	t.Log(oks)
}

func TestEnemySkip(t *testing.T) {
	oks := 0
	check := func(s []byte, n int, junk byte) {
		b := enemyBlock(s, junk)
		got := skipCells(b, 0, n)
		left, want := n, 0
		for i := range s {
			c := b[i]
			if c == '"' || c == '\n' || c == 0 || c >= 0x80 {
				break
			}
			if c == ',' {
				if left--; left == 0 {
					want = i + 1
					break
				}
			}
		}
		if got != 0 && got != want {
			t.Fatalf("%q %d (junk %x): %d, want %d", s, n, junk, got, want)
		}
		if got != 0 {
			oks++
		}
	}
	alphabet := []string{`"`, ",", "\n", "\r", "a", "\xc3", "\x00", "+", "-", "#", "!", " ", "\xac"}
	for pad := range 10 {
		prefix := bytes.Repeat([]byte("a"), pad)
		commas := bytes.Repeat([]byte(","), pad)
		strs(alphabet, 4, func(s []byte) {
			for n := 1; n < 4; n++ {
				check(append(prefix[:pad:pad], s...), n, ',')
				check(append(commas[:pad:pad], s...), n+pad, ',')
			}
		})
	}
	strs([]string{"a", ",", "\n", "+"}, 9, func(s []byte) {
		for n := 1; n < 5; n++ {
			check(s, n, ',')
		}
	})
	t.Log(oks)
}

func TestEnemyNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := &valueStore{}
	var scratch []float64
	for round := range 30000 {
		var l valueList
		n := 1 + r.IntN(600)
		if round%50 == 0 {
			n = 1 + r.IntN(60000)
		}
		var all []float64
		kind := r.IntN(6)
		for i := range n {
			var v float64
			switch kind {
			case 0:
				v = r.Float64()
			case 1:
				v = float64(r.IntN(3))
			case 2:
				v = float64(i)
			case 3:
				v = float64(n - i)
			case 4: // large ones never first in their chunks
				if i%chunkLen != 0 {
					v = 1000 + r.Float64()
				}
			case 5: // and only first
				if i%chunkLen == 0 {
					v = 1000 + r.Float64()
				}
			}
			all = append(all, v)
		}
		rest := all
		for len(rest) > 0 {
			k := 1 + r.IntN(len(rest))
			s.pushAll(&l, rest[:k])
			rest = rest[k:]
		}
		var got float64
		got, scratch = s.nearest99(&l, scratch)
		slices.Sort(all)
		if want := all[(99*n+99)/100-1]; got != want {
			t.Fatalf("%d of kind %d: %v, want %v", n, kind, got, want)
		}
		s.drop(&l)
	}
}

func TestEnemyMinute(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	oks := 0
	bases := []string{"2026-05-04T01:02", "1969-12-31T23:59", "1970-01-01T00:00", "1680-01-01T00:00", "2259-12-31T23:59", "2024-02-29T12:30"}
	c := &clock{}
	for range 3000000 {
		base := bases[r.IntN(len(bases))]
		if r.IntN(50) == 0 {
			c.minute = minute{}
		}
		s := []byte(base)
		s = append(s, ":"...)
		s = strconv.AppendInt(s, int64(r.IntN(7)), 10)
		s = strconv.AppendInt(s, int64(r.IntN(10)), 10)
		if r.IntN(4) > 0 {
			s = append(s, '.')
			for range r.IntN(12) {
				s = append(s, byte('0'+r.IntN(10)))
			}
		}
		s = append(s, []string{"Z", "Z", "Z", "z", "", "+00:00", "+01:00", " UTC", "ZZ", "Z "}[r.IntN(10)]...)
		if r.IntN(30) == 0 {
			s[r.IntN(len(s))] = "0123456789TZ:.-,\" \x00\xb0"[r.IntN(20)]
		}
		was := c.minute
		got, ok := c.of(s)
		want, _, wok := parseCalendar(s)
		if ok {
			oks++
			if !wok || got != want {
				t.Fatalf("%q after %q: %d, want %d %v", s, was, got, want, wok)
			}
		}
		fresh := &clock{}
		w, err := fresh.instant(s)
		g, gerr := c.instant(s)
		if w != g || (err == nil) != (gerr == nil) {
			t.Fatalf("%q: %d %v, want %d %v", s, g, gerr, w, err)
		}
		// what follows in place of the end
		b := enemyBlock(append(slices.Clone(s), `",}0123`[r.IntN(7)], '9'), '0')
		g, end, ok := c.minute.read(b, 0)
		if ok && b[end] != '"' && b[end] != ',' {
			continue
		}
		if ok {
			w, err := fresh.instant(b[:end])
			if err != nil || w != g {
				t.Fatalf("%q: %d, want %d %v", b, g, w, err)
			}
		}
	}
	t.Log(oks)
}
