// Package release holds the nouns of canaryctl: arms, weights, windows,
// signals, verdicts, decisions, breaker events and rollback records. It has no
// behaviour beyond their arithmetic and their names, and imports nothing but
// the standard library, so that every other package can speak in its words.
//
// Numbers that decide are exact: counts are int64, limits are [Ratio] values
// read from the decimals a user wrote, and comparisons multiply in 128 bits
// instead of dividing in floats.
package release
