package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxLabel = 128 // bytes of a name that others give, in output
	maxCode  = 64  // of the code of an error
	maxTools = 256 // names of tools of one answer
)

// bounded is a name that a client or an upstream gave, as it may stand in output:
// printable, and no longer than names are. Of a longer one the end is replaced by
// a digest, so that different names stay different.
func bounded(name string) string {
	if len(name) <= maxLabel && isPlain(name) {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	long := len(name) > maxLabel
	name = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, name[:min(len(name), maxLabel)])
	if !long {
		return name
	}
	return strings.ToValidUTF8(name[:min(len(name), maxLabel-17)], "") + "~" + hex.EncodeToString(digest[:8])
}

// isPlain reports whether a text is printable ASCII.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// isCode reports whether a text looks like the code of an error. Upstreams put
// sentences there as well, which may quote the request.
func isCode(text string) bool {
	for i := range len(text) {
		c := text[i] | 0x20
		if (c < 'a' || c > 'z') && (text[i] < '0' || text[i] > '9') && !strings.Contains("_.-", text[i:i+1]) {
			return false
		}
	}
	return text != "" && len(text) <= maxCode
}

// boundedAll bounds names of tools.
func boundedAll(names []string) []string {
	out := make([]string, 0, min(len(names), maxTools))
	for _, name := range names[:min(len(names), maxTools)] {
		out = append(out, bounded(name))
	}
	return out
}
