package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/slot"
)

// routeOptions are the flags of route.
type routeOptions struct {
	Segment   string
	Vectors   bool
	Anonymous bool
}

func newRouteCmd(app *App) *cobra.Command {
	var o routeOptions
	cmd := &cobra.Command{
		Use:   "route USER...",
		Short: "Explain on which version users are, step by step",
		Long: "route says for each user the slot on the ring, and the version that serves it at each step of the\n" +
			"configuration. A user of - reads ids from standard input, one a line. --vectors prints test vectors with\n" +
			"which a gateway in another language proves that it routes the same way; it needs no configuration.\n\n" +
			"With --anonymous the ids are those of requests without a user: the request is hashed in the user's place, after what the\n" +
			"lists say of segments. Such a split is by request: one person may be answered by both versions.",
		Example: "  canaryctl route C-1001 C-88001\n" +
			"  canaryctl route C-1001 --segment finance -o json\n" +
			"  canaryctl route --anonymous 4bf92f3577b34da6a3ce929d0e0e4736\n" +
			"  canaryctl route --vectors > routing-vectors.json",
		RunE: func(_ *cobra.Command, users []string) error { return runRoute(app, o, users) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Segment, "segment", "", "the users' `segment`, as in exclude.segments")
	f.BoolVar(&o.Vectors, "vectors", false, "print test vectors as JSON")
	f.BoolVar(&o.Anonymous, "anonymous", false, "the ids are of requests without a user")
	app.registerScene(f)
	return cmd
}

func runRoute(app *App, o routeOptions, users []string) error {
	if o.Vectors {
		return printVectors(app, o, users)
	}
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if len(users) == 0 {
		return usage(errors.New("no user given"), "canaryctl route USER..., or - to read ids from standard input")
	}
	cfg, err := app.loadConfig()
	if err != nil {
		return err
	}
	if users, err = expandStdin(users, app.Stdin); err != nil {
		return err
	}
	for _, id := range users {
		if !utf8.ValidString(id) {
			return usage(fmt.Errorf("user id %q is not UTF-8", id), "ids are hashed as UTF-8 text; convert them, or look at what the gateway hashes")
		}
	}
	rep := explainRoutes(cfg, users, o)
	if format == "json" {
		return encodeIndented(app.Stdout, rep)
	}
	return rep.text(app.Stdout)
}

func printVectors(app *App, o routeOptions, users []string) error {
	if len(users) > 0 || o.Segment != "" || o.Anonymous {
		return usage(errors.New("--vectors takes neither users nor a segment"), "the vectors are always the same")
	}
	if _, err := app.wantOutput("json"); err != nil {
		return err
	}
	return encodeIndented(app.Stdout, slot.Vectors())
}

// expandStdin puts the lines of standard input in the place of "-". An empty
// line is the empty id; a line's end is no part of it.
func expandStdin(users []string, stdin io.Reader) ([]string, error) {
	var all []string
	read := false
	for _, user := range users {
		if user != "-" {
			all = append(all, user)
			continue
		}
		if read {
			return nil, usage(errors.New("standard input is named twice"), "one - is enough")
		}
		read = true
		sc := bufio.NewScanner(stdin)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			all = append(all, strings.TrimSuffix(sc.Text(), "\r"))
		}
		if err := sc.Err(); err != nil {
			return nil, usage(fmt.Errorf("read user ids: %w", err), "")
		}
	}
	return all, nil
}

// routeReport is route's answer.
type routeReport struct {
	Schema    int          `json:"schema"`
	Scene     string       `json:"scene,omitempty"`
	Dimension string       `json:"traffic_dimension"`
	Anonymous bool         `json:"anonymous,omitempty"` // users are requests
	Ring      int64        `json:"ring"`
	Steps     []routeStep  `json:"steps"`
	Users     []routedUser `json:"users"`
	weights   []release.Weight
}

type routeStep struct {
	Step  int         `json:"step"` // from 1
	Pct   json.Number `json:"pct"`
	Slots int64       `json:"slots"` // slots below this one are on the canary
}

type routedUser struct {
	User    string       `json:"user"`
	Segment string       `json:"segment,omitempty"`
	Slot    int64        `json:"slot"`
	From    *int         `json:"canary_from_step"` // null: on no step
	Reason  string       `json:"reason"`
	Steps   []routedStep `json:"steps"`
}

type routedStep struct {
	Step int         `json:"step"`
	Pct  json.Number `json:"pct"`
	Arm  release.Arm `json:"arm"`
	Why  slot.Why    `json:"why"`
}

func explainRoutes(cfg *config.Config, users []string, o routeOptions) *routeReport {
	rep := &routeReport{Schema: 1, Scene: cfg.Scene, Dimension: cfg.TrafficDimension, Anonymous: o.Anonymous, Ring: cfg.HashRingSlots}
	for i, s := range cfg.Steps {
		rep.Steps = append(rep.Steps, routeStep{Step: i + 1, Pct: json.Number(s.Pct.String()), Slots: s.Weight.Slots})
		rep.weights = append(rep.weights, s.Weight)
	}
	r := slot.Router{
		Ring:            cfg.HashRingSlots,
		ExcludeUsers:    slot.SetOf(cfg.Exclude.UserIDs...),
		ExcludeSegments: slot.SetOf(cfg.Exclude.Segments...),
		IncludeUsers:    slot.SetOf(cfg.Include...),
	}
	if o.Anonymous { // nobody is on a list
		r.ExcludeUsers, r.IncludeUsers = nil, nil
	}
	for _, user := range users {
		rep.Users = append(rep.Users, rep.explain(&r, user, o.Segment))
	}
	return rep
}

func (rep *routeReport) explain(r *slot.Router, user, segment string) routedUser {
	u := routedUser{User: user, Segment: segment, Slot: slot.Of(user, r.Ring)}
	for i, w := range rep.weights {
		a := r.Route(user, segment, w)
		if a.Arm == release.Canary && u.From == nil {
			u.From = new(i + 1)
		}
		u.Steps = append(u.Steps, routedStep{Step: i + 1, Pct: rep.Steps[i].Pct, Arm: a.Arm, Why: a.Why})
	}
	u.Reason = rep.reason(u)
	return u
}

// reason says in words what the answers rest on. It is the same at every step:
// an answer changes with the share alone.
func (rep *routeReport) reason(u routedUser) string {
	switch u.Steps[0].Why {
	case slot.ExcludedUser:
		return "excluded by user id: never on the canary"
	case slot.ExcludedSegment:
		return fmt.Sprintf("excluded by segment %q: never on the canary", u.Segment)
	case slot.IncludedUser:
		return "included by user id: on the canary at every step, at weight 0 not"
	}
	text := fmt.Sprintf("slot %d is above every step's share", u.Slot)
	if u.From != nil {
		at := rep.Steps[*u.From-1]
		text = fmt.Sprintf("slot %d is below %d: on the canary from step %d on", u.Slot, at.Slots, at.Step)
	}
	switch {
	case rep.Anonymous:
		text += "; by this request's hash: the same person's next one may be elsewhere"
	case u.User == "":
		text += "; all requests without an id share this slot: hash the request's instead, --anonymous"
	}
	return text
}

// text prints a table, one user a line.
func (rep *routeReport) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	of := "USER"
	if rep.Anonymous {
		of = "REQUEST"
	}
	fmt.Fprintf(w, "%s\tSLOT OF %d", of, rep.Ring)
	for _, weight := range rep.weights {
		fmt.Fprintf(w, "\t%s", weight)
	}
	fmt.Fprintln(w, "\tWHY")
	for _, u := range rep.Users {
		fmt.Fprintf(w, "%s\t%d", shownID(u.User), u.Slot)
		for _, a := range u.Steps {
			fmt.Fprintf(w, "\t%s", a.Arm)
		}
		fmt.Fprintf(w, "\t%s\n", u.Reason)
	}
	return w.Flush()
}

// shownID quotes an id that would not be seen as it is.
func shownID(id string) string {
	if quoted := fmt.Sprintf("%q", id); id == "" || strings.Contains(id, " ") || quoted != `"`+id+`"` {
		return quoted
	}
	return id
}
