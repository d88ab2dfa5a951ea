package stats

// smallest returns the smallest k >= 0 with ok(k), for an ok that stays true
// once it is; hi is a first guess of where it is true. It gives up at 2^62.
func smallest(ok func(k int64) bool, hi int64) int64 {
	lo := int64(-1) // ok(lo) is taken to be false
	for hi = max(hi, 1); !ok(hi); hi *= 2 {
		if hi >= 1<<61 {
			return 1 << 62
		}
		lo = hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// bisect returns the place between lo and hi where above turns from true to
// false, to the last float64.
func bisect(above func(x float64) bool, lo, hi float64) float64 {
	for {
		mid := lo + (hi-lo)/2
		switch {
		case mid <= lo || mid >= hi:
			return mid
		case above(mid):
			lo = mid
		default:
			hi = mid
		}
	}
}
