package throttle_test

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

// A client whose upstream answers 429: it waits as long as it was asked to, and
// after 20 failures it stops calling.
func Example() {
	now := time.Date(2026, 3, 2, 2, 17, 0, 0, time.UTC)
	gates := throttle.NewGates(throttle.DefaultGates())
	wait, known := throttle.RetryAfter("2", now)
	refused := throttle.Outcome{Status: 429, Code: "rate_limit_exceeded", RetryAfter: wait, RetryAfterKnown: known}
	for range 20 {
		pass, _ := gates.Enter(now, 1200)
		gates.Leave(now, pass, refused)
	}
	wait, again := throttle.DefaultRetry().Next(1, refused, 0.5)
	fmt.Println(again, wait)
	_, refusal := gates.Enter(now, 1200)
	fmt.Println(refusal, gates.State(throttle.Short, now).Wait)
	_, refusal = gates.Enter(now, 48_000)
	fmt.Println(refusal)
	// Output:
	// true 2.3s
	// breaker 15s
	// admitted
}
