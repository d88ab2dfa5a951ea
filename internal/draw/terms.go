package draw

// Terms are the chances that 0, 1, 2, ... of n requests happen which happen with
// one chance each, kept as far as they have been asked for.
type Terms struct {
	n     int64
	odds  float64
	terms []float64
}

// NewTerms begins with none, the chance (1-p)^n that none of n happen with
// chance p.
func NewTerms(n int64, p, none float64) Terms {
	return Terms{n: n, odds: p / (1 - p), terms: append(make([]float64, 0, 16), none)}
}

// Empty reports whether t is the zero value.
func (t *Terms) Empty() bool { return t.terms == nil }

// Draw is [FromNone] of a number u of [0, 1), without forming what is kept.
func (t *Terms) Draw(u float64) int64 {
	for k, term := range t.terms {
		if u <= term || int64(k) >= t.n {
			return int64(k)
		}
		u -= term
	}
	return t.further(u)
}

// further goes on where the kept terms end, and keeps what it forms.
func (t *Terms) further(u float64) int64 {
	for {
		k := int64(len(t.terms))
		term := nextTerm(t.terms[k-1], t.odds, t.n, k)
		t.terms = append(t.terms, term)
		if u <= term || k >= t.n {
			return k
		}
		u -= term
	}
}

// nextTerm is the chance of k of n, after that of one less.
func nextTerm(term, odds float64, n, k int64) float64 {
	return float64(term * (odds * float64(n-k+1) / float64(k)))
}
