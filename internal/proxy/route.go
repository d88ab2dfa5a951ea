package proxy

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/canaryctl/canaryctl/internal/release"
)

// whereTo decides who answers. Only where some weight is on the canary is the
// request waited for: its user may stand in it, and its model must be changed.
func (p *Proxy) whereTo(x *exchange) {
	h := x.in.Header
	if p.o.UserFrom != "" {
		x.user = h.Get(p.o.UserFrom)
	}
	if p.o.SegmentOf != "" {
		x.segment = h.Get(p.o.SegmentOf)
	}
	weight := p.weights.get()
	if weight.IsZero() {
		return
	}
	if x.user != "" {
		if a := p.o.Router.Route(x.user, x.segment, weight); a.Arm == release.Stable {
			x.why = a.Why.String()
			return // without a look at the body
		}
	}
	var text []byte // of a request without a body
	whole := true
	if x.body != nil {
		text, whole = x.body.whole()
	}
	if !whole {
		p.count.unroutable.Add(1) // the canary cannot be asked for its own model
		x.why = "too_long"
		return
	}
	x.text = text
	if x.readShape(text); x.shapeEr != nil {
		p.count.malformed.Add(1)
		x.why = "not_json"
		return // stable says what is wrong with it
	}
	x.identify(text)
	a := p.o.Router.Route(x.user, x.segment, weight)
	x.arm, x.why = a.Arm, a.Why.String()
	if x.anonymous {
		x.why += ", by a digest of the request: no user is named"
	}
}

// identify names the user: by the header, else by the body, else by a digest of
// the request, so that the same request asked again goes where it went.
func (x *exchange) identify(text []byte) {
	if x.user == "" {
		x.user = x.shape.user
	}
	if x.user == "" {
		sum := sha256.Sum256(text)
		x.user, x.anonymous = "anonymous:"+hex.EncodeToString(sum[:]), true
	}
}

// userID is the user as records name it; "" for none.
func (x *exchange) userID() string {
	switch {
	case x.anonymous || x.user == "":
		return ""
	case x.p.o.PlainIDs:
		return x.user
	}
	sum := sha256.Sum256([]byte(x.user))
	return "u-" + hex.EncodeToString(sum[:8])
}
