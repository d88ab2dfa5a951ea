// Package proxy stands in front of an API that is compatible with OpenAI's. It
// answers users with stable or, by slot and weight, with the canary; it sends
// copies of what stable has answered to the canary and judges the pairs; and it
// writes what it sees as records.
//
//	p, err := proxy.New(proxy.Options{Stable: stable, Canary: canary, Sample: tenth})
//	server := &http.Server{Handler: p}
//	...
//	p.Close(ctx)
//
// What a user gets never waits for a copy, fails with one or is slowed by one:
// a copy goes out when stable's answer has been written, in a goroutine of its
// own, with its own connections and time limit, and where too many are under
// way it is dropped and counted, never queued. Nothing of an answer is changed
// or held back: bytes are passed on as they come.
//
// Requests to paths that it does not know are passed to stable as they are,
// without any of this.
package proxy
