// Package target reads and writes the canary's weight where a gateway, a
// balancer or a flag service takes it from: a file, an HTTP API, a git
// repository, etcd, HAProxy, Unleash, or a program of the user's own.
//
//	t, err := target.New(cfg.Target, target.Options{Service: "order-service", Ring: 100, Getenv: os.Getenv})
//	was, err := t.Read(ctx)
//	err = t.Write(ctx, was, target.Change{To: five})
//	is, err := t.Read(ctx) // only this counts
//
// A write is compare-and-swap: it is refused with a [*ConflictError] when the
// target no longer holds what was read. What a write returns says only how it
// went; whoever wrote reads back.
package target

import (
	"context"
	"net/http"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Reading is what a target held at one moment.
type Reading struct {
	Weight release.Weight // the canary's share
	// Revision identifies the document that was read: an ETag, a commit, a
	// mod_revision. "" where the target has none, and a write then compares
	// the weight itself just before.
	Revision string
	// State is what [Change].State put beside the weight; nil where there is
	// none or the target keeps none.
	State []byte
	// By says who moved the weight last, where the target can tell (git); "".
	By string
}

// Change is a write.
type Change struct {
	To release.Weight
	// Overwrite writes whatever the target holds: a rollback is not stopped by
	// somebody else's weight. The write is still made against the newest
	// revision, read anew as often as that takes.
	Overwrite bool
	// State, if not nil, is kept beside the weight in the same write, by
	// targets that can; see [Target.KeepsState].
	State []byte

	Key      string // idempotency key: release/attempt/step/move; stable over retries and restarts
	Service  string
	Release  string // id of the release
	Attempt  int
	Step     int    // from 1; 0 for a rollback
	Move     string // start, advance, roll_back, probe, lock
	Reason   string // one sentence
	Evidence string // digest of the evidence that the decision rests on
	Token    uint64 // fencing token of the lock under which it is written
}

// Target is where weights are written.
type Target interface {
	// Read returns the weight in force. Errors are *UnreachableError,
	// *RefusedError or *ShapeError.
	Read(ctx context.Context) (Reading, error)
	// Write moves the weight from what was read to c.To. Errors are
	// *ConflictError (it holds something else: nothing was written),
	// *RefusedError (it will not: nothing was written, and again would be no
	// better), *UnreachableError (it was not asked, or did not answer: Read
	// tells whether it was written) or *FineError.
	Write(ctx context.Context, was Reading, c Change) error
	// Check returns a *FineError for a weight that the target cannot hold
	// exactly. It asks nobody.
	Check(w release.Weight) error
	// KeepsState reports whether Change.State is kept.
	KeepsState() bool
	// ReadBack is how long a reading may be stale after a write.
	ReadBack() time.Duration
	// String names the target for people: "git main:route.yaml".
	String() string
}

// Options are what targets need of the world.
type Options struct {
	Service string
	Scene   string              // releases of several scenes may write in one document; "": there are none
	Ring    int64               // slots that readings are expressed in, where they are whole slots
	Getenv  func(string) string // variables of the configuration and of the CI
	Client  *http.Client        // nil: one with sensible timeouts; targets set their own limits of time
	Dir     string              // what relative paths are relative to; "" is the working directory
	// KeepState asks targets that can to keep Change.State.
	KeepState bool
}
