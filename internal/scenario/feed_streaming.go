package scenario

import "github.com/canaryctl/canaryctl/internal/simulate"

// streaming reads what both arms do beside the first signals.
func (s *section) streaming(m *simulate.Streaming) {
	m.Share, _ = s.number("streams_share", 0, 1)
	if s.has("streams_share") && m.Share == 0 {
		s.refuse("streams_share", "out-of-range", "leave the figures of streams out instead", "streams_share: a service without streams has no figures of them")
	}
	m.TTFTP99MS, m.ITLMS = s.some("ttft_p99_ms"), s.some("itl_ms")
	m.TTFTSlow, m.Aborts = s.level("ttft_slow_rate", "ttft_slow"), s.level("abort_rate", "aborts")
	m.ServerErrors, m.Refusals = s.level("server_error_rate", "server_errors"), s.level("refusal_rate", "refusals")
	m.KVCache, _ = s.number("kv_cache", 0, 1)
	if s.has("kv_cache") && m.KVCache == 0 {
		s.refuse("kv_cache", "out-of-range", "leave it out, and its check is not judged", "kv_cache: 0 is no figure")
	}
	of := m.TTFTP99MS > 0 || m.ITLMS > 0 || m.TTFTSlow.Known || m.Aborts.Known
	if s.has("streams_share") && !of {
		s.refuse("streams_share", "missing-key", "", "streams_share says nothing without ttft_p99_ms, ttft_slow_rate, itl_ms or abort_rate")
	}
}
