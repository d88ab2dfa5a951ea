package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/proxy"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/slot"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// shadowProxyOptions are the flags of shadow proxy.
type shadowProxyOptions struct {
	app    *App
	format string

	Listen, AdminListen       string
	Open                      bool
	ClientKeyEnv              string
	Sample                    shareFlag
	MaxCopies                 int
	Records, Attempts, Pairs  string
	Bodies, PlainUserIDs      bool
	Paths                     []string
	UserHeader, SegmentHeader string
	Poll                      time.Duration
	Retries, Short, Long      int
	NoBreaker                 bool
	MaxBody                   int64
	StableWait, CanaryWait    time.Duration
	BodyWait                  time.Duration
	Drain                     time.Duration
	changesGiven              bool
	adminLoopback             bool // --admin-listen is reached from this machine only
	policyFlags
}

func newShadowProxyCmd(app *App) *cobra.Command {
	o := &shadowProxyOptions{app: app}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Mirror an OpenAI-compatible API to the canary, and split its traffic",
		Long: `Stand in front of an API that is compatible with OpenAI's. Users are answered by versions.stable; of the requests that
--sample takes, a copy goes to versions.canary when stable's answer has been written. No copy delays a user, fails
one or changes what a user gets. What the pairs of answers say (see shadow decide) is done to the copies: after
roll_back none are sent, while throttled at most --throttle-to.

With a target in the configuration it also splits the traffic: it reads the weight that run and promote write there,
and sends the users whose slot is below it to the canary. A request that the canary fails before its first byte is
answered by stable. Until the weight has been read everybody is on stable; what can no longer be read stays in force.

--records writes each request for calibrate, and for run as source: {records: ...}. --attempt-log writes each call to
an upstream for diagnose. Neither holds a text of a request or an answer; --pairs does with --bodies alone.

It listens on loopback unless --listen says otherwise, and elsewhere only with a key for its clients (--client-key-env)
or --open; so does --admin-listen. It answers /-/healthy, /-/status and /-/metrics about itself, there if that is given.

EXIT STATUS
  1    it could not go on
  2    it cannot start: the configuration, a key, a file, or the address is taken
  130  ended by Ctrl-C, with the answers under way given
  143  ended by SIGTERM, with the answers under way given`,
		Example: `  canaryctl shadow proxy --sample 0.1 --pairs pairs.jsonl
  canaryctl shadow proxy --listen 127.0.0.1:0 --records requests.jsonl -o json
  canaryctl shadow proxy --sample 0 --records requests.jsonl --attempt-log attempts.jsonl --retries 0 --no-breaker`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.changesGiven = cmd.Flags().Changed("changes")
			return runShadowProxy(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *shadowProxyOptions) flags(cmd *cobra.Command) {
	limits, retry, gates := proxy.DefaultLimits(), throttle.DefaultRetry(), throttle.DefaultGates()
	o.Sample = shareFlag(release.NewRatio(1, 10))
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8418", "`address` to listen on; port 0 is any free one")
	f.StringVar(&o.AdminListen, "admin-listen", "", "`address` for /-/ alone, instead of beside the API")
	f.BoolVar(&o.Open, "open", false, "listen beyond loopback without a key for clients: whoever reaches it spends the keys of the versions")
	f.StringVar(&o.ClientKeyEnv, "client-key-env", "", "environment `variable` with the key that clients must show as bearer token")
	f.Var(&o.Sample, "sample", "`share` of the requests that are copied, as 0.1 or 10%; 0 for none")
	f.IntVar(&o.MaxCopies, "max-copies", limits.Copies, "`copies` under way at most; what is beyond is dropped and counted")
	f.StringVar(&o.Records, "records", "", "append each request to this `file`, JSON lines")
	f.StringVar(&o.Attempts, "attempt-log", "", "append each call to an upstream to this `file`, JSON lines")
	f.StringVar(&o.Pairs, "pairs", "", "append each pair's verdict to this `file`, JSON lines")
	f.BoolVar(&o.Bodies, "bodies", false, "pairs hold the request and both answers as well")
	f.BoolVar(&o.PlainUserIDs, "plain-user-ids", false, "records hold user ids as they are, not hashed")
	f.StringSliceVar(&o.Paths, "path", []string{"/chat/completions"}, "`path` behind the base URL that is split, copied and recorded; again for another")
	f.StringVar(&o.UserHeader, "user-header", "X-User-Id", "`header` that names the user; without it the request's user does, else its digest")
	f.StringVar(&o.SegmentHeader, "segment-header", "X-Segment", "`header` that names the user's segment")
	f.DurationVar(&o.Poll, "poll", 0, "`time` between two readings of the weight (default 2s, of a git target 30s)")
	f.IntVar(&o.Retries, "retries", retry.Attempts-1, "`times` that a call to stable is tried again before its first byte; 0 for never")
	f.IntVar(&o.Short, "short", gates.Short, "`calls` under way at most with short prompts, to each version; 0 for no bound")
	f.IntVar(&o.Long, "long", gates.Long, fmt.Sprintf("`calls` under way at most with prompts over %d tokens (bytes / 4); 0 for no bound", throttle.SplitTokens))
	f.BoolVar(&o.NoBreaker, "no-breaker", false, "go on calling a version that keeps failing")
	f.Int64Var(&o.MaxBody, "max-body", limits.Body, "`bytes` of a request up to which it can be copied, tried again, or sent to the canary")
	f.DurationVar(&o.StableWait, "stable-wait", limits.StableHeader, "`time` that stable may take to begin its answer")
	f.DurationVar(&o.CanaryWait, "canary-wait", limits.CanaryHeader, "`time` that the canary may take to begin a user's answer before stable is asked")
	f.DurationVar(&o.BodyWait, "body-wait", limits.Sending, "`time` that a user may take to send a request")
	f.DurationVar(&o.Drain, "drain", 30*time.Second, "`time` that answers under way may take at the end")
	o.app.registerScene(f)
	o.register(cmd)
}

func runShadowProxy(ctx context.Context, o *shadowProxyOptions) (err error) {
	if o.format, err = o.app.wantOutput("text", "json"); err != nil {
		return err
	}
	stayWithoutReader()
	defer proxy.Quiet()()
	cfg, err := o.app.loadConfig()
	if err != nil {
		return err
	}
	opt, err := o.options(cfg)
	if err != nil {
		return err
	}
	l, admin, err := o.listeners(&opt)
	if err != nil {
		return err
	}
	files, err := o.files(cfg, &opt)
	defer func() { err = errors.Join(err, closeAll(files)) }()
	if err != nil {
		return errors.Join(err, closeAll([]io.Closer{l, admin}))
	}
	p, err := proxy.New(opt)
	if err != nil {
		return errors.Join(usage(err, ""), closeAll([]io.Closer{l, admin}))
	}
	if err = o.announce(cfg, &opt, l, admin); err != nil {
		err = errors.Join(err, closeAll([]io.Closer{l, admin}))
	} else {
		err = o.serve(ctx, p, l, admin)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	err = errors.Join(err, p.Close(end))
	s := p.Status()
	o.app.say("%d requests answered by stable, %d by the canary; %d copies sent, %d dropped, %d failed",
		s.Requests.Stable, s.Requests.Canary, s.Copies.Sent, s.Copies.Dropped, s.Copies.Failed)
	return err
}

// maxCopyMS is the longest time limit of a copy, milliseconds.
const maxCopyMS = 600_000

// closeLimit is how long the end may take once all answers are given.
const closeLimit = 5 * time.Second

func closeAll(list []io.Closer) error {
	var errs []error
	for _, c := range list {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// options turns flags and configuration into what the proxy needs.
func (o *shadowProxyOptions) options(cfg *config.Config) (opt proxy.Options, err error) {
	if err := o.check(); err != nil {
		return opt, err
	}
	policy, err := o.policy()
	if err != nil {
		return opt, err
	}
	o.warn(o.app)
	if policy.TimeoutMS < 1 || policy.TimeoutMS > maxCopyMS {
		return opt, usage(fmt.Errorf("--timeout-ms %g: a copy takes from 1 ms to %d ms", policy.TimeoutMS, maxCopyMS), "a copy that hangs holds its place until then")
	}
	stable, err := o.version(release.Stable, cfg.Versions.Stable)
	if err != nil {
		return opt, err
	}
	canary, err := o.version(release.Canary, cfg.Versions.Canary)
	if err != nil {
		return opt, err
	}
	if !o.changesGiven { // what the configuration itself says that they differ in
		policy.Changes |= stable.Parts.Differs(canary.Parts)
	}
	limits := proxy.DefaultLimits()
	limits.Body, limits.Copies, limits.StableHeader, limits.CanaryHeader = o.MaxBody, o.MaxCopies, o.StableWait, o.CanaryWait
	limits.Sending = o.BodyWait
	limits.Copy = time.Duration(policy.TimeoutMS * float64(time.Millisecond))
	retry, gates := throttle.DefaultRetry(), throttle.DefaultGates()
	retry.Attempts, gates.Short, gates.Long = o.Retries+1, o.Short, o.Long
	opt = proxy.Options{
		Stable: stable, Canary: canary, Paths: o.Paths, Sample: release.Ratio(o.Sample), Policy: policy,
		Router: slot.Router{
			Ring: cfg.HashRingSlots, ExcludeUsers: slot.SetOf(cfg.Exclude.UserIDs...), ExcludeSegments: slot.SetOf(cfg.Exclude.Segments...),
			IncludeUsers: slot.SetOf(cfg.Include...),
		},
		Scene: cfg.Scene, UserFrom: o.UserHeader, SegmentOf: o.SegmentHeader, PlainIDs: o.PlainUserIDs, Every: o.poll(cfg),
		Retry: retry, Gates: gates, NoBreaker: o.NoBreaker, Limits: limits, AdminPaths: o.AdminListen == "", Bodies: o.Bodies,
		Say: o.app.say, Warn: o.app.warn,
	}
	if o.ClientKeyEnv != "" {
		if opt.ClientKey = strings.TrimSpace(o.app.Getenv(o.ClientKeyEnv)); opt.ClientKey == "" {
			return opt, usage(fmt.Errorf("the environment variable %q holds no key", o.ClientKeyEnv), "set it, or leave --client-key-env out")
		}
	}
	if cfg.Target == nil {
		return opt, nil
	}
	t, err := o.app.target(cfg)
	if err != nil {
		return opt, err
	}
	opt.Weight = func(ctx context.Context) (release.Weight, error) {
		r, err := t.Read(ctx)
		return r.Weight, err
	}
	return opt, nil
}

// check refuses numbers that mean nothing.
func (o *shadowProxyOptions) check() error {
	for _, n := range []struct {
		flag  string
		value int64
		least int64
		most  int64
	}{
		{"max-copies", int64(o.MaxCopies), 1, 10_000}, {"retries", int64(o.Retries), 0, 20}, {"short", int64(o.Short), 0, 1_000_000},
		{"long", int64(o.Long), 0, 1_000_000}, {"max-body", o.MaxBody, 1, 1 << 30}, {"poll", int64(o.Poll), 0, int64(time.Hour)},
		{"stable-wait", int64(o.StableWait), 1, math.MaxInt64}, {"canary-wait", int64(o.CanaryWait), 1, math.MaxInt64}, {"body-wait", int64(o.BodyWait), 1, math.MaxInt64}, {"drain", int64(o.Drain), 0, math.MaxInt64},
	} {
		if n.value < n.least || n.value > n.most {
			return usage(fmt.Errorf("--%s is out of range", n.flag), "see canaryctl shadow proxy --help")
		}
	}
	if err := o.checkHeaders(); err != nil {
		return err
	}
	if o.Bodies && o.Pairs == "" {
		return usage(errors.New("--bodies says what pairs hold, and none are written"), "add --pairs FILE")
	}
	return nil
}

// version resolves address and key of a version.
func (o *shadowProxyOptions) version(arm release.Arm, v *config.Version) (out proxy.Version, err error) {
	if v == nil {
		return out, usage(fmt.Errorf("versions.%s is not configured", arm), "add it with base_url, model_id and api_key_env")
	}
	name := fmt.Sprintf("versions.%s.base_url", arm)
	u, err := url.Parse(strings.TrimSpace(v.BaseURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return out, usage(fmt.Errorf("%s is no address of the form https://host/v1", name), "it ends before /chat/completions, mostly with /v1")
	}
	if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") {
		return out, usage(fmt.Errorf("%s ends with /chat/completions, which clients put behind it themselves", name), "leave that out of base_url")
	}
	out = proxy.Version{BaseURL: u, ModelID: v.ModelID, Key: v.APIKey.Reveal(), ID: fmt.Sprintf("%.12s", v.Digest())}
	if v.APIKeyEnv != "" {
		if key := strings.TrimSpace(o.app.Getenv(v.APIKeyEnv)); key != "" {
			out.Key = key
		}
		if out.Key == "" {
			return out, usage(fmt.Errorf("versions.%s.api_key_env: the environment variable %s is not set or empty", arm, v.APIKeyEnv), "set it, or leave api_key_env out to pass on the key of each user")
		}
	}
	if strings.ContainsAny(out.Key, "\r\n") {
		return out, usage(fmt.Errorf("the key of versions.%s has a line end in it", arm), "set it to the key alone")
	}
	out.Parts = shadow.Version{Model: v.ModelID, PromptVersion: v.PromptVersion, ToolsVersion: v.ToolsVersion}
	if !v.Temperature.IsZero() {
		out.Parts.Temperature = v.Temperature.String()
	}
	return out, nil
}

func (o *shadowProxyOptions) poll(cfg *config.Config) time.Duration {
	switch {
	case o.Poll > 0:
		return o.Poll
	case cfg.Target != nil && cfg.Target.Kind == "git":
		return 30 * time.Second // each reading is a fetch
	}
	return 2 * time.Second
}

// listeners takes the addresses, before anything else is done.
func (o *shadowProxyOptions) listeners(opt *proxy.Options) (l, admin net.Listener, err error) {
	addr, err := o.resolve("listen", o.Listen)
	if err != nil {
		return nil, nil, err
	}
	if err := o.mayListen("listen", o.Listen, addr, opt); err != nil {
		return nil, nil, err
	}
	opt.Loopback = addr.IP.IsLoopback() && opt.ClientKey == "" && !o.Open
	if l, err = o.listen("listen", addr); err != nil || o.AdminListen == "" {
		return l, nil, err
	}
	if addr, err = o.resolve("admin-listen", o.AdminListen); err == nil {
		err = o.mayListen("admin-listen", o.AdminListen, addr, opt)
	}
	if err == nil {
		o.adminLoopback = addr.IP.IsLoopback()
		admin, err = o.listen("admin-listen", addr)
	}
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, admin, nil
}

// mayListen refuses an address that other machines reach where nothing is asked
// of them.
func (o *shadowProxyOptions) mayListen(flag, text string, addr *net.TCPAddr, opt *proxy.Options) error {
	if addr.IP.IsLoopback() || opt.ClientKey != "" || o.Open {
		return nil
	}
	return usage(fmt.Errorf("--%s %s can be reached from other machines, and no key is asked for", flag, text),
		"name a variable with a key for the clients (--client-key-env), say --open, or listen on 127.0.0.1")
}

func (o *shadowProxyOptions) resolve(flag, text string) (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return nil, usage(fmt.Errorf("--%s %s: %w", flag, text, inner(err)), "give host:port, such as 127.0.0.1:8418")
	}
	return addr, nil
}

func (o *shadowProxyOptions) listen(flag string, addr *net.TCPAddr) (net.Listener, error) {
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, usage(fmt.Errorf("listen on %s: %w", addr, inner(err)), "give another address with --"+flag+"; port 0 is any free one")
	}
	return l, nil
}

// files opens what is written. None may be read by others where it holds texts
// of users.
func (o *shadowProxyOptions) files(cfg *config.Config, opt *proxy.Options) (files []io.Closer, err error) {
	apart := o.inputs(cfg)
	for _, f := range []struct {
		flag, path string
		into       *io.Writer
		private    bool
	}{
		{"records", o.Records, &opt.Records, false}, {"attempt-log", o.Attempts, &opt.Attempts, false}, {"pairs", o.Pairs, &opt.Pairs, o.Bodies},
	} {
		if f.path == "" {
			continue
		}
		file, err := apart.open("--"+f.flag, f.path, f.private)
		if err != nil {
			return files, usage(fmt.Errorf("--%s %s: %w", f.flag, f.path, inner(err)), hintForLines(err))
		}
		files = append(files, file)
		*f.into = file
	}
	return files, nil
}

var errReadable = errors.New("others may read it, and with --bodies it holds what users wrote")

func hintForLines(err error) string {
	if errors.Is(err, errReadable) {
		return "chmod 600 it, or give another file"
	}
	if _, taken := errors.AsType[*takenError](err); taken {
		return "give each a file of its own"
	}
	return "give a file that can be written"
}

// openLines opens a file that lines are appended to.
func openLines(path string, private bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && private && info.Mode().IsRegular() && !onlyOwner(info) {
		err = errReadable
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// announce says where it listens and what it does, once it does.
func (o *shadowProxyOptions) announce(cfg *config.Config, opt *proxy.Options, l, admin net.Listener) error {
	o.app.say("users are answered by stable at %s; %s", bareURL(opt.Stable.BaseURL), o.copying(opt))
	if opt.Weight != nil {
		o.app.say("traffic is split by the weight that %s reads from its target every %s", cfg.TargetService, opt.Every)
	}
	if !o.NoBreaker || o.Retries > 0 || o.Short > 0 || o.Long > 0 {
		o.app.say("calls to each version: %s", o.throttling(opt))
	}
	url := "http://" + l.Addr().String()
	adminURL := url
	if admin != nil {
		adminURL = "http://" + admin.Addr().String()
	}
	if o.format == "json" {
		return encodeLine(o.app.Stdout, struct {
			Schema int    `json:"schema"`
			URL    string `json:"url"`
			Admin  string `json:"admin_url"`
		}{1, url, adminURL + "/-/"})
	}
	_, err := fmt.Fprintf(o.app.Stdout, "listening on %s\n", url)
	return err
}

func (o *shadowProxyOptions) copying(opt *proxy.Options) string {
	if opt.Sample.IsZero() || opt.Sample.Compare(0, 1) == 0 {
		return "no copies are sent"
	}
	return fmt.Sprintf("%s of the requests are copied to the canary at %s", sharePercent(opt.Sample), bareURL(opt.Canary.BaseURL))
}

func (o *shadowProxyOptions) throttling(opt *proxy.Options) string {
	places := func(n int) string {
		if n == 0 {
			return "any number"
		}
		return fmt.Sprint(n)
	}
	text := fmt.Sprintf("%s short and %s long ones at once", places(o.Short), places(o.Long))
	if o.Retries > 0 {
		text += fmt.Sprintf(", %d attempts", opt.Retry.Attempts)
	}
	if b := opt.Gates.Breaker; !o.NoBreaker {
		text += fmt.Sprintf(", none for %s after %d failures in %s", b.OpenFor, b.Failures, b.Within)
	}
	return text
}

// bareURL is an address without what may be secret in it.
func bareURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// serve answers until the context ends, then lets the answers under way end.
func (o *shadowProxyOptions) serve(ctx context.Context, p *proxy.Proxy, l, admin net.Listener) error {
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(warnWriter(o.app.warn), "", 0),
	}
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(l) }()
	servers := []*http.Server{server}
	if admin != nil {
		aside := newHTTPServer(p.AdminAside(o.adminLoopback && !o.Open), o.app.warn, serveLimits).Server
		servers = append(servers, aside)
		go func() { failed <- aside.Serve(admin) }()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	o.app.say("finishing the answers under way")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
	defer cancel()
	for _, s := range servers {
		if err := s.Shutdown(drain); err != nil {
			o.app.warn("some answers were broken off after %s", o.Drain)
			p.BreakOff()
			_ = s.Close() // what is left is broken off
		}
	}
	return context.Cause(ctx)
}
