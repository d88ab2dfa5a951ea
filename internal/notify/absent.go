package notify

import (
	"context"
	"errors"

	"github.com/canaryctl/canaryctl/internal/config"
)

// absent stands in for a channel or a hook that cannot be used from here, for
// want of a variable: whatever it is to do fails, to be tried again by whoever
// has the variable.
type absent struct {
	name string
	why  error
}

func (a *absent) fail() error {
	return &DeliveryError{To: a.name, Err: a.why, Retry: true, Untried: true}
}

// String names what it stands in for.
func (a *absent) String() string { return a.name }

// absentChannel wants what the channel would.
type absentChannel struct {
	absent
	wants func(Event) bool
}

// Send implements [Channel].
func (a *absentChannel) Send(context.Context, Message) error { return a.fail() }

// Wants implements [Channel].
func (a *absentChannel) Wants(e Event) bool { return e == Test || a.wants(e) }

// absentHook is tried as often as the hook would be.
type absentHook struct {
	absent
	tries int
}

// Run implements [Hook].
func (a *absentHook) Run(context.Context, Message) error { return a.fail() }

// Tries implements [Hook].
func (a *absentHook) Tries() int { return a.tries }

// NewOrAbsent is [New] for commands that must not be kept from their work: with
// the error comes a channel that stands in for the one that cannot be opened.
// Each message fails there with the error, as one that was not tried.
func NewOrAbsent(c config.Channel, index int, o Options) (Channel, error) {
	ch, err := New(c, index, o)
	if err == nil {
		return ch, nil
	}
	return &absentChannel{absent: absent{channelName(c, index), bare(err)}, wants: wantsOf(c)}, err
}

// NewHookOrAbsent is [NewHook] in the same way.
func NewHookOrAbsent(h config.Hook, index int, o Options) (Hook, error) {
	hook, err := NewHook(h, index, o)
	if err == nil {
		return hook, nil
	}
	return &absentHook{absent: absent{hookName(h, index), bare(err)}, tries: triesOf(h)}, err
}

// bare is an error of New or NewHook without the name before it.
func bare(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// wantsOf is what a channel wants to be told, without opening it: everything, if
// that cannot be read either.
func wantsOf(c config.Channel) func(Event) bool {
	events, err := parseEvents(c.Events)
	if err != nil {
		return eventSet(nil).has
	}
	if c.Kind == "alertmanager" {
		return (&alertmanager{events: events}).wants
	}
	return events.has
}
