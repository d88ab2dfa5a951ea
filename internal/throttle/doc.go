// Package throttle holds the policies of a client whose upstream answers 429:
// what is tried again and when, when to stop calling at all, and how many calls
// of which size may be under way at once.
//
//	gates := throttle.NewGates(throttle.DefaultGates())
//	pass, refusal := gates.Enter(now, promptTokens)
//	if refusal != throttle.Admitted { ... } // no call goes out
//	outcome := call(...)
//	gates.Leave(now, pass, outcome)
//	if wait, again := throttle.DefaultRetry().Next(attempt, outcome, u); again { ... }
//
// It is pure: time is an argument, jitter is a number that the caller draws,
// and nothing is locked, so one goroutine at a time may use a Breaker or Gates.
// Times must not run backwards.
//
// The figures of the Default functions are those published for clients under
// 429 storms; docs/reference/throttle.md has them with their reasons.
package throttle
