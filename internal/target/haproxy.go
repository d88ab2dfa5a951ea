package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	haproxyTotal    = 200 // steps of 0.5 %
	haproxyHeaviest = 256 // HAProxy's own limit of one server's weight
	haproxyTimeout  = 10 * time.Second
)

// haproxy is two servers of a backend, by the runtime API.
type haproxy struct {
	socket  haproxySocket
	backend string
	stable  string
	canary  string
	scale   scale
	ring    int64
}

// newHAProxy returns the target of a backend. It does not connect.
func newHAProxy(cfg *config.HAProxyTarget, o Options) (Target, error) {
	for _, name := range []string{cfg.Backend, cfg.Stable, cfg.Canary} {
		// A name is put into a command: it must not end it, or name another.
		if name == "" || strings.ContainsAny(name, " \t\r\n;/\\<\"'#") {
			return nil, fmt.Errorf("haproxy: %q is not the name of a backend or server", name)
		}
	}
	if cfg.Stable == cfg.Canary {
		return nil, fmt.Errorf("haproxy: stable and canary are the same server, %s", cfg.Canary)
	}
	total := cfg.Total
	if total == 0 {
		total = haproxyTotal
	}
	if total < 1 || total > haproxyHeaviest {
		return nil, fmt.Errorf("haproxy: total %d: a server's weight is between 0 and %d", total, haproxyHeaviest)
	}
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = haproxyTimeout
	}
	network, address := haproxyAddress(cfg.Address, o.Dir)
	return &haproxy{
		socket:  haproxySocket{network: network, address: address, timeout: timeout},
		backend: cfg.Backend, stable: cfg.Stable, canary: cfg.Canary,
		scale: scale{whole: total}, ring: o.Ring,
	}, nil
}

// haproxyAddress tells a host and port from the path of a socket, which is
// relative to dir.
func haproxyAddress(address, dir string) (network, where string) {
	path, isPath := strings.CutPrefix(address, "unix@")
	if _, _, err := net.SplitHostPort(address); err == nil && !isPath && !strings.ContainsRune(address, '/') {
		return "tcp", address
	}
	if dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return "unix", path
}

// String implements [Target].
func (h *haproxy) String() string { return "haproxy " + h.backend + "/" + h.canary }

// KeepsState implements [Target]: a weight is all that a server holds.
func (h *haproxy) KeepsState() bool { return false }

// ReadBack implements [Target]: a weight is in force when it is answered.
func (h *haproxy) ReadBack() time.Duration { return 0 }

// Check implements [Target].
func (h *haproxy) Check(w release.Weight) error { return h.scale.check(h.String(), w) }

// Read implements [Target]: canary/(canary+stable) of the weights that are
// set. A server that is down or in maintenance keeps its weight: HAProxy then
// sends its share to the other, and gives it back when it is up.
func (h *haproxy) Read(ctx context.Context) (Reading, error) {
	pair, err := h.look(ctx)
	return Reading{Weight: pair.share}, err
}

// Write implements [Target]. HAProxy has no compare-and-swap: the weights are
// read just before, and both are sent in one line, so that there is no moment
// between them at which this program could die.
func (h *haproxy) Write(ctx context.Context, was Reading, c Change) error {
	canary, stable, err := h.scale.render(c.To)
	if err != nil {
		return nameFine(h.String(), err)
	}
	held, err := h.look(ctx)
	_, broken := errors.AsType[*ShapeError](err)
	switch {
	case broken && c.Overwrite:
		// Weights that are no share, or a third server, are no reason to leave
		// users on the canary; a server that is not there is refused below.
	case broken:
		return &ConflictError{Target: h.String(), Err: err}
	case err != nil:
		return err
	case !c.Overwrite && !held.share.Same(was.Weight):
		return &ConflictError{Target: h.String(), Held: &held.share}
	}
	if !broken && c.To.Above(held.share) {
		if err := h.inService(held); err != nil {
			return err
		}
	}
	first, second := h.setWeight(h.canary, canary), h.setWeight(h.stable, stable)
	if h.stableFirst(held, c.To) {
		first, second = second, first
	}
	answers, err := h.socket.ask(ctx, first, second)
	if err != nil {
		return h.unreachable(err)
	}
	for _, answer := range answers {
		if answer != "" {
			return h.refusal(answer)
		}
	}
	return nil
}

func (h *haproxy) setWeight(server, weight string) string {
	return fmt.Sprintf("set server %s/%s weight %s", h.backend, server, weight)
}

// stableFirst reports in which order the weights are set. Upwards the canary
// comes last and downwards first, so that what is in force between the two is
// never more than the larger of the shares; but never are both 0, which would
// answer every request with 503.
func (h *haproxy) stableFirst(held haproxyPair, to release.Weight) bool {
	switch {
	case held.canary.weight == "0" && to.Slots == to.Ring:
		return false
	case held.stable.weight == "0":
		return true
	}
	return to.Above(held.share)
}

// inService returns why more traffic must not be asked for, or nil. A share is
// one only while both servers take part: without the canary nobody would be on
// it, without stable everybody.
func (h *haproxy) inService(p haproxyPair) error {
	for _, s := range []haproxyServer{p.canary, p.stable} {
		effect := "nobody would be on the canary"
		if s.name == h.stable {
			effect = "everybody would be on the canary"
		}
		what := fmt.Sprintf("server %s/%s %%s: %s", h.backend, s.name, effect)
		switch {
		case s.admin != 0:
			return &RefusedError{
				Target: h.String(), Err: fmt.Errorf(what, "has been taken out of service"),
				Hint: fmt.Sprintf("set server %s/%s state ready", h.backend, s.name),
			}
		case s.down:
			return &UnreachableError{Target: h.String(), Err: fmt.Errorf(what, "is down")}
		}
	}
	return nil
}

// haproxyPair is the two servers at one moment.
type haproxyPair struct {
	stable, canary haproxyServer
	share          release.Weight
}

// look reads the backend's servers. The share is one of the whole backend, so
// a third server that takes requests is a [*ShapeError].
func (h *haproxy) look(ctx context.Context) (haproxyPair, error) {
	servers, err := h.servers(ctx)
	if err != nil {
		return haproxyPair{}, err
	}
	var p haproxyPair
	for _, s := range servers {
		switch {
		case s.name == h.stable:
			p.stable = s
		case s.name == h.canary:
			p.canary = s
		case s.takesPart():
			err = errors.Join(err, fmt.Errorf("server %s/%s has weight %s and takes requests as well", h.backend, s.name, s.weight))
		}
	}
	for _, missing := range []struct{ name, got string }{{h.stable, p.stable.name}, {h.canary, p.canary.name}} {
		if missing.got == "" {
			return p, h.shape(fmt.Errorf("backend %s has no server %s", h.backend, missing.name), "name the servers as haproxy.cfg does")
		}
	}
	if err != nil {
		return p, h.shape(err, "a share is one of two servers: set the others' weight to 0, or put them into a backend of their own")
	}
	if p.share, err = h.scale.parse(p.canary.weight, p.stable.weight, h.ring); err != nil {
		return p, h.shape(err, fmt.Sprintf("set server %s/%s weight %d", h.backend, h.stable, h.scale.whole))
	}
	return p, nil
}

func (h *haproxy) servers(ctx context.Context) ([]haproxyServer, error) {
	answers, err := h.socket.ask(ctx, "show servers state "+h.backend, "show stat "+h.backend+" 4 -1")
	if err != nil {
		return nil, h.unreachable(err)
	}
	for _, answer := range answers {
		switch {
		case strings.HasPrefix(answer, "No such"), strings.HasPrefix(answer, "Can't find backend"):
			return nil, h.shape(errors.New("HAProxy answers: "+shorten(answer, 200)), "name the backend as haproxy.cfg does")
		case !strings.Contains(answer, "# "):
			return nil, h.refusal(answer)
		}
	}
	servers, err := parseServers(answers[0], answers[1])
	if err != nil {
		return nil, h.shape(err, "")
	}
	return servers, nil
}

func (h *haproxy) shape(err error, hint string) error {
	return &ShapeError{Target: h.String(), Err: err, Hint: hint}
}

// unreachable says why HAProxy was not asked, or did not answer.
func (h *haproxy) unreachable(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return &RefusedError{Target: h.String(), Err: err, Hint: "the mode, user and group of `stats socket` say who may use it"}
	}
	return &UnreachableError{Target: h.String(), Err: err}
}

// refusal turns an answer into an error. Answers have no codes: these are the
// texts of HAProxy 2.6.
func (h *haproxy) refusal(answer string) error {
	line, _, _ := strings.Cut(answer, "\n")
	err := errors.New("HAProxy answers: " + shorten(line, 200))
	switch {
	case strings.HasPrefix(line, "No such"):
		return &RefusedError{Target: h.String(), Err: err, Hint: "name the backend and the servers as haproxy.cfg does"}
	case strings.HasPrefix(line, "Permission denied"):
		return &RefusedError{Target: h.String(), Err: err, Hint: "give the socket `level admin` in haproxy.cfg"}
	case strings.Contains(line, "static LB algorithm"):
		return &RefusedError{
			Target: h.String(), Err: err,
			Hint: "use `balance roundrobin`, `leastconn` or `random`, or `hash-type consistent` with a hash: static ones take no weights at run time",
		}
	}
	return &RefusedError{Target: h.String(), Err: err}
}
