package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// webhook sends the message as it is, as JSON. Any 2xx is success.
type webhook struct{ secret string }

func (w webhook) request(m Message, now time.Time) (outgoing, error) {
	m.Schema = 1
	body, err := encode(m)
	if err != nil {
		return outgoing{}, err
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	header := http.Header{}
	header.Set("Idempotency-Key", m.Key)
	header.Set("X-Canaryctl-Event", string(m.Event))
	header.Set("X-Canaryctl-Timestamp", stamp)
	if w.secret != "" {
		header.Set("X-Canaryctl-Signature", "sha256="+webhookSign(w.secret, stamp, body))
	}
	return outgoing{body: body, header: header}, nil
}

// webhookSign is hex(HMAC-SHA256(secret, timestamp "." body)). The timestamp
// is signed too, or a message that was caught could be sent again tomorrow
// under a fresh one.
func webhookSign(secret, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (webhook) judge(a answer) error { return a.accepted() }
