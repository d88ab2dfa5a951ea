package simulate

import (
	"slices"
	"sort"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Windows returns the windows of each arm that had been shown by frame i and do
// not start before a time, oldest first and at most so many, the newest. They are
// as they were known by then: what became known of a window later is not in it.
func (f *Film) Windows(i int, since time.Time, most int) (canary, stable []release.Window) {
	return f.canary.newest(i, since, most), f.stable.newest(i, since, most)
}

// shots are the windows of one arm in the order in which a film was shown them.
type shots struct {
	pages []page
	ends  []int32 // by frame: how many had been shown after it
	n     int32

	// As long as every window is later than all before it, which is the rule, they
	// are in order of time and these are nil.
	order []int32 // the last showing of each window, by the window's time
	older []int32 // of each showing: the one before of the same window; -1: none
	top   []int32 // of each showing: that of the latest window up to it
}

// page is a part of the windows: a slice that only grew would be copied again
// and again.
type page struct {
	first   int32 // how many are in the pages before
	windows []release.Window
}

// Windows of a page, unless more are shown at once.
const (
	leastPage = 64
	mostPage  = 4096
)

// add keeps a copy of windows that are shown together, in one piece, and returns
// it.
func (s *shots) add(ws []release.Window) []release.Window {
	if len(ws) == 0 {
		return nil
	}
	last := len(s.pages) - 1
	if last < 0 || cap(s.pages[last].windows)-len(s.pages[last].windows) < len(ws) {
		room := max(len(ws), min(max(int(s.n), leastPage), mostPage))
		s.pages = append(s.pages, page{first: s.n, windows: make([]release.Window, 0, room)})
		last++
	}
	p := &s.pages[last]
	p.windows = append(p.windows, ws...)
	for i := range ws {
		s.place(&ws[i])
	}
	n := len(p.windows)
	return p.windows[n-len(ws) : n : n]
}

// cut ends a frame.
func (s *shots) cut() { s.ends = append(s.ends, s.n) }

// of returns the windows that were shown in a frame.
func (s *shots) of(frame int) []release.Window {
	from, to := int32(0), s.ends[frame]
	if frame > 0 {
		from = s.ends[frame-1]
	}
	if from == to {
		return nil
	}
	p := s.page(from)
	return p.windows[from-p.first : to-p.first : to-p.first]
}

// page finds the page of a showing.
func (s *shots) page(n int32) *page {
	return &s.pages[sort.Search(len(s.pages), func(i int) bool { return s.pages[i].first > n })-1]
}

func (s *shots) window(n int32) *release.Window {
	p := s.page(n)
	return &p.windows[n-p.first]
}

// place finds the place of the next showing in the order of time.
func (s *shots) place(w *release.Window) {
	n := s.n
	s.n++
	if s.order == nil {
		if n == 0 || w.T.After(s.window(n-1).T) {
			return
		}
		for i := range n {
			s.order, s.older, s.top = append(s.order, i), append(s.older, -1), append(s.top, i)
		}
	}
	top, older := s.top[n-1], int32(-1)
	at, found := s.find(w.T)
	if found {
		older, s.order[at] = s.order[at], n
	} else {
		s.order = slices.Insert(s.order, at, n)
	}
	if !w.T.Before(s.window(top).T) {
		top = n
	}
	s.older, s.top = append(s.older, older), append(s.top, top)
}

// find looks for a window in the order of time.
func (s *shots) find(t time.Time) (at int, found bool) {
	return slices.BinarySearchFunc(s.order, t, func(n int32, t time.Time) int { return s.window(n).T.Compare(t) })
}

// newest returns the latest n windows from a time on that had been shown by a
// frame, oldest first.
func (s *shots) newest(frame int, since time.Time, n int) []release.Window {
	shown := s.ends[frame]
	if shown == 0 || n <= 0 {
		return nil
	}
	at := int(shown) - 1
	if s.order != nil {
		at, _ = s.find(s.window(s.top[at]).T)
	}
	var out []release.Window
	for ; at >= 0 && len(out) < n; at-- {
		k := s.known(at, shown)
		if k < 0 {
			continue
		}
		w := s.window(k)
		if w.T.Before(since) {
			break
		}
		out = append(out, *w)
	}
	slices.Reverse(out)
	return out
}

// known is the last showing, among the first so many, of the window at a place
// of the order; -1: it had not been shown.
func (s *shots) known(at int, shown int32) int32 {
	if s.order == nil {
		return int32(at)
	}
	k := s.order[at]
	for k >= shown {
		k = s.older[k]
	}
	return k
}
