// Package shadow judges pairs of answers, stable's and a canary's to the same
// request, without a user being touched.
//
// There are two judgements. [Contract.Judge] is for answers that are
// structured: one verdict a pair, in the order structure, compliance,
// semantics. [Windows] is for chat completions with or without tool calls: per
// fingerprint of a version, over its last pairs, what ought to be done with
// the copies.
//
// Neither compares texts nor asks a model: what decides by itself must be
// exact and the same tomorrow. No answer's value is kept or quoted: a reason
// names kind and field, never what stands there.
package shadow
