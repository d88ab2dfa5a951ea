package journal

import "github.com/canaryctl/canaryctl/internal/release"

// WindowStreaming is what a [Window] knows of streaming and infrastructure. A
// denominator that two figures share is written once.
type WindowStreaming struct {
	TTFTOf       *int64   `json:"ttft_of,omitempty"`
	TTFTP99MS    *float64 `json:"ttft_p99_ms,omitempty"`
	TTFTSlow     *int64   `json:"ttft_slow,omitempty"`
	ITLOf        *int64   `json:"itl_of,omitempty"`
	ITLMS        *float64 `json:"itl_ms,omitempty"`
	Streams      *int64   `json:"streams,omitempty"`
	Aborted      *int64   `json:"aborted,omitempty"`
	StatusOf     *int64   `json:"status_of,omitempty"`
	Errors       *int64   `json:"errors,omitempty"`
	ServerErrors *int64   `json:"server_errors,omitempty"`
	KVCache      *float64 `json:"kv_cache,omitempty"`
}

func streamingOf(w *release.Window) (out WindowStreaming) {
	if w.Known&release.StreamingFigures == 0 {
		return out
	}
	c := *w // what is kept is not the caller's
	if w.Known&(release.HasTTFT|release.HasTTFTSlow) != 0 {
		out.TTFTOf = &c.TTFTOf
	}
	if w.Known&(release.HasErrors|release.HasServerErrors) != 0 {
		out.StatusOf = &c.StatusOf
	}
	if w.Has(release.HasTTFT) {
		out.TTFTP99MS = &c.TTFTP99MS
	}
	if w.Has(release.HasTTFTSlow) {
		out.TTFTSlow = &c.TTFTSlow
	}
	if w.Has(release.HasITL) {
		out.ITLOf, out.ITLMS = &c.ITLOf, &c.ITLMS
	}
	if w.Has(release.HasAborts) {
		out.Streams, out.Aborted = &c.Streams, &c.Aborted
	}
	if w.Has(release.HasErrors) {
		out.Errors = &c.Errors
	}
	if w.Has(release.HasServerErrors) {
		out.ServerErrors = &c.ServerErrors
	}
	if w.Has(release.HasKVCache) {
		out.KVCache = &c.KVCache
	}
	return out
}

// into puts the figures back where they came from.
func (s *WindowStreaming) into(w *release.Window) {
	count := func(of *int64, from *int64) bool {
		if from != nil {
			*of = *from
		}
		return from != nil
	}
	figure := func(of *float64, from *float64) bool {
		if from != nil {
			*of = *from
		}
		return from != nil
	}
	known := func(f release.Figures, there ...bool) {
		for _, ok := range there {
			if !ok {
				return
			}
		}
		w.Known |= f
	}
	ttft, status := count(&w.TTFTOf, s.TTFTOf), count(&w.StatusOf, s.StatusOf)
	known(release.HasTTFT, ttft, figure(&w.TTFTP99MS, s.TTFTP99MS))
	known(release.HasTTFTSlow, ttft, count(&w.TTFTSlow, s.TTFTSlow))
	known(release.HasITL, count(&w.ITLOf, s.ITLOf), figure(&w.ITLMS, s.ITLMS))
	known(release.HasAborts, count(&w.Streams, s.Streams), count(&w.Aborted, s.Aborted))
	known(release.HasErrors, status, count(&w.Errors, s.Errors))
	known(release.HasServerErrors, status, count(&w.ServerErrors, s.ServerErrors))
	known(release.HasKVCache, figure(&w.KVCache, s.KVCache))
}
