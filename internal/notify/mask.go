package notify

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
)

// masked stands for a secret in messages.
const masked = "***"

// masker returns a function that replaces the secrets in a text, longest
// first, so that a part of one does not keep the rest of it from being found.
func masker(secrets []string) func(string) string {
	sorted := slices.Clone(secrets)
	slices.SortFunc(sorted, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(sorted) {
		pairs = append(pairs, s, masked)
	}
	return strings.NewReplacer(pairs...).Replace
}

// cleanError is an error whose text has no secrets. It keeps of its cause
// only whether time or the caller ended it: the cause's own text may not be
// shown.
type cleanError struct {
	text string
	is   error // context.Canceled, context.DeadlineExceeded or nil
}

func (e *cleanError) Error() string { return e.text }

func (e *cleanError) Unwrap() error { return e.is }

// cleaned takes the address that an *url.Error carries and every secret out of
// an error.
func cleaned(err error, mask func(string) string) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	out := &cleanError{text: mask(err.Error())}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			out.is = end
		}
	}
	return out
}
