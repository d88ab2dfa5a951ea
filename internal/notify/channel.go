package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
)

// channelTimeout is the limit of one delivery where the configuration has none.
const channelTimeout = 10 * time.Second

// dialect is what makes one kind of channel: its body, the way it signs, and
// what it takes for success.
type dialect interface {
	// request returns what is sent. An error is permanent.
	request(m Message, now time.Time) (outgoing, error)
	// judge says whether an answer of any status means that the message got
	// through.
	judge(a answer) error
}

// channel is a dialect with an address.
type channel struct {
	name  string
	wants func(Event) bool
	link  *link
	say   dialect
	now   func() time.Time
}

// New returns the channel that c configures; index is its place in the list,
// for messages. The address and the secrets are read from the environment
// here, once: an error says which variable is missing, and never what one
// holds.
func New(c config.Channel, index int, o Options) (Channel, error) {
	name := channelName(c, index)
	ch, err := newChannel(c, name, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ch, nil
}

func channelName(c config.Channel, index int) string {
	return fmt.Sprintf("%s (notify[%d])", c.Kind, index)
}

func newChannel(c config.Channel, name string, o Options) (*channel, error) {
	env := envsecret.New(o.Getenv)
	events, err := parseEvents(c.Events)
	if err != nil {
		return nil, err
	}
	link := newLink(o, c.Timeout, channelTimeout)
	if link.url, err = address(env, c.URL, c.URLEnv); err != nil {
		return nil, err
	}
	ch := &channel{name: name, link: link, now: o.now(), wants: events.has}
	secret := ""
	if c.SecretEnv != "" {
		if secret, err = env.Value("secret_env", c.SecretEnv); err != nil {
			return nil, err
		}
	}
	if err := ch.link.authorize(env, c.TokenEnv, c.Headers); err != nil {
		return nil, err
	}
	if err := ch.speak(c, secret, events); err != nil {
		return nil, err
	}
	link.secrets = env.Secrets()
	return ch, nil
}

// speak sets the dialect of the channel's kind; secret is what it signs with.
func (ch *channel) speak(c config.Channel, secret string, events eventSet) (err error) {
	switch c.Kind {
	case "webhook":
		ch.say = webhook{secret: secret}
	case "slack":
		ch.say = slack{}
	case "feishu":
		ch.say = feishu{secret: secret, keyword: c.Keyword}
	case "dingtalk":
		ch.say = dingtalk{secret: secret, keyword: c.Keyword}
	case "wecom":
		ch.say = wecom{}
	case "alertmanager":
		var am *alertmanager
		if am, err = newAlertmanager(c.Labels, events); err == nil {
			ch.say, ch.wants = am, am.wants
			ch.link.url = withPath(ch.link.url, alertsPath)
		}
	default:
		err = fmt.Errorf("no such kind of channel; the kinds are webhook, slack, feishu, dingtalk, wecom, alertmanager")
	}
	return err
}

// Send implements [Channel].
func (ch *channel) Send(ctx context.Context, m Message) error {
	out, err := ch.say.request(m, ch.now())
	if err != nil {
		return &DeliveryError{To: ch.name, Err: ch.link.secrets.Clean(err)}
	}
	a, err := ch.link.do(ctx, out)
	if err == nil {
		err = ch.say.judge(a)
	}
	return ch.link.failure(ch.name, err, ch.now)
}

// Wants implements [Channel]. Everybody gets test messages.
func (ch *channel) Wants(e Event) bool { return e == Test || ch.wants(e) }

// String implements [Channel].
func (ch *channel) String() string { return ch.name }
