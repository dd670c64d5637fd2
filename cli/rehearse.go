package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/plain"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
)

// mostLines bounds the lines of an object's difference that are printed as text.
const mostLines = 20

// rehearsal is the actions that would be written and their reasons, as -o json and -o yaml
// print them. Its fields are described in docs/reference/istio.md.
type rehearsal struct {
	Sources  []rehearsed       `json:"sources"`
	Warnings []string          `json:"warnings"` // the assumptions under which the actions hold
	Writer   string            `json:"writer"`   // the output that would write; empty if there is none
	Actions  []output.Action   `json:"actions"`  // in the order of the objects
	LeftOut  []output.Omission `json:"leftOut"`
	Counts   counts            `json:"counts"` // of the actions
	Rights   output.Rights     `json:"rights"` // in the API server

	unmet []string // effects of the configuration that its services prevent, if all sources were read
}

// rehearsed is a source that was read once.
type rehearsed struct {
	Name      string             `json:"name"`
	Kind      string             `json:"kind"`
	State     string             `json:"state"`
	Reason    string             `json:"reason"` // of the state
	Services  int                `json:"services"`
	Endpoints int                `json:"endpoints"`
	Carried   map[model.Kind]int `json:"carried,omitempty"` // objects that are passed on to control planes alone, by kind
	Ignored   map[string]int     `json:"ignored"`           // objects of other kinds, by kind
	Rejected  []admin.Rejected   `json:"refused"`
}

type counts struct {
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`
	Leave  int `json:"leave"`
}

// rehearsalFlags adds the flags of commands that rehearse.
func rehearsalFlags(c *cobra.Command, f *term.Format, limit *term.Timeout) {
	term.FormatFlag(c, f)
	term.TimeoutFlag(c, limit, time.Minute, "how long to wait for the sources and the API server")
}

// rehearsing reports flags of a dry run that were given without the flag that requests it.
func rehearsing(c *cobra.Command, dry bool) error {
	switch {
	case !dry && c.Flags().Changed("output"):
		return errors.New("-o works only with --dry-run; add --dry-run, or remove -o")
	case !dry && c.Flags().Changed("timeout"):
		return errors.New("--timeout works only with --dry-run; add --dry-run, or remove --timeout")
	}
	return nil
}

// rehearse returns the actions that would be written; with an error, the state of the
// sources alone.
func rehearse(c *cobra.Command, loaded *config.Config, outputs []config.Output, log *slog.Logger, limit term.Timeout) (rehearsal, error) {
	ctx, cancel := context.WithTimeout(c.Context(), time.Duration(limit))
	defer cancel()
	plan, err := app.Rehearse(ctx, loaded, log)
	r := shape(plan)
	r.unmet = append(r.unmet, unaddressed(ctx, outputs, plan.Services)...)
	switch {
	case c.Context().Err() != nil:
		return r, term.Wrong(errors.New("interrupted before all sources were listed; nothing was written"))
	case err != nil:
		return r, term.Wrong(err)
	}
	if slices.ContainsFunc(r.Sources, func(s rehearsed) bool { return !s.read() }) {
		r.unmet = nil // the services of a source are unknown
	}
	return r, nil
}

// unaddressed lists the conflicts over ports of services that need an address: Envoys have no listener
// for the port, or lead connections to addresses of no service to it.
func unaddressed(ctx context.Context, outputs []config.Output, services *catalog.Snapshot) (list []string) {
	for _, o := range outputs {
		settings, ok := o.Settings.(*xds.Config)
		if !ok || settings.Envoy == nil || services == nil {
			continue
		}
		for _, conflict := range settings.Envoy.Losers(ctx, services, false) {
			if conflict.Alone() {
				list = append(list, fmt.Sprintf("outputs.%s: %s: %s: %s", o.Kind, conflict.Lost, conflict.Field, conflict.Reason))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// complaints returns the faults of the sources that keep objects from being served; nil if
// there are none.
func (r rehearsal) complaints() error {
	rejected, unread := 0, 0
	for _, s := range r.Sources {
		rejected += len(s.Rejected)
		if !s.read() {
			unread++
		}
	}
	switch {
	case unread > 0 && rejected > 0:
		return fmt.Errorf("%s, %s: see above, and correct them", countOf(unread, "source could", "sources could", "not be read"),
			countOf(rejected, "object would", "objects would", "be rejected"))
	case unread > 0:
		return fmt.Errorf("%s: see the reason above", countOf(unread, "source could", "sources could", "not be read"))
	case rejected > 0:
		return fmt.Errorf("%s: correct the objects listed above, or remove them", countOf(rejected, "object would", "objects would", "be rejected"))
	case len(r.Rights.Missing) > 0:
		return errors.New("permissions are missing in the API server: apply the manifest printed above")
	default:
		return nil
	}
}

// countOf formats a count with its noun and predicate.
func countOf(n int, one, many, what string) string {
	if n == 1 {
		return "1 " + one + " " + what
	}
	return fmt.Sprintf("%d %s %s", n, many, what)
}

// read reports whether the source was read and its state is current.
func (s rehearsed) read() bool {
	return s.State == string(source.StateLive) || s.State == string(source.StateHeld)
}

func shape(plan app.Rehearsal) rehearsal {
	r := rehearsal{
		Sources: []rehearsed{}, Warnings: append([]string{}, plan.Warnings...), Writer: strings.Join(plan.Writers, ", "),
		Actions: append([]output.Action{}, plan.Actions...), LeftOut: append([]output.Omission{}, plan.LeftOut...),
	}
	r.Rights, r.unmet = plan.Rights, plan.Unmet
	r.Rights.Missing = append([]output.Right{}, plan.Rights.Missing...)
	for _, s := range plan.Sources {
		shown := rehearsed{
			Name: s.Name, Kind: s.Kind, State: string(s.State), Reason: s.Reason, Services: s.Services, Endpoints: s.Endpoints,
			Carried: s.Carried, Ignored: map[string]int{}, Rejected: []admin.Rejected{},
		}
		maps.Copy(shown.Ignored, s.Ignored)
		for _, object := range s.Rejected {
			shown.Rejected = append(shown.Rejected, admin.Rejected{
				Object: object.Object, Where: object.Where, Field: object.Field, Reason: object.Reason,
			})
		}
		r.Sources = append(r.Sources, shown)
	}
	for _, a := range plan.Actions {
		r.Counts.add(a.Verb)
	}
	return r
}

func (c *counts) add(v output.Verb) {
	switch v {
	case output.Create:
		c.Create++
	case output.Update:
		c.Update++
	case output.Delete:
		c.Delete++
	case output.Leave:
		c.Leave++
	}
}

func printRehearsal(c *cobra.Command, r rehearsal) {
	out := c.OutOrStdout()
	printSourcesOf(c, r)
	for _, w := range r.Warnings {
		term.Say(out, "warning: %s\n", w)
	}
	for _, a := range r.Actions {
		printAction(c, a)
	}
	for _, o := range r.LeftOut {
		if o.Count == 0 { // the object is not written at all
			term.Say(out, "left out %s: %s\n", o.Object, o.Reason)
			continue
		}
		term.Say(out, "left out of %s: %d: %s\n", o.Object, o.Count, o.Reason)
	}
	if r.Writer == "" {
		fmt.Fprintln(out, "nothing to write: no output istio is configured")
		return
	}
	term.Say(out, "would create %d, update %d, delete %d and leave %d objects; nothing was written\n",
		r.Counts.Create, r.Counts.Update, r.Counts.Delete, r.Counts.Leave)
	printHandOver(c, r.Actions)
	printRights(c, r.Rights)
}

func printSourcesOf(c *cobra.Command, r rehearsal) {
	for _, s := range r.Sources {
		printRehearsed(c, s)
	}
}

// printRehearsed prints a source, and all of its rejected objects: the author of a change
// needs the complete list.
func printRehearsed(c *cobra.Command, s rehearsed) {
	out := c.OutOrStdout()
	term.Say(out, "source %s: %s, %d services, %d endpoints, %d rejected", s.Name, s.State, s.Services, s.Endpoints, len(s.Rejected))
	if s.Reason != "" {
		term.Say(out, ": %s", s.Reason)
	}
	fmt.Fprintln(out)
	term.ByKind(out, "  carried for control planes: ", s.Carried)
	term.ByKind(out, "  without effect here: ", s.Ignored)
	for _, r := range s.Rejected {
		term.Say(out, "  rejected %s at %s: %s\n", term.OrDash(r.Object), term.OrDash(r.Where), r.Complaint())
	}
}

func printAction(c *cobra.Command, a output.Action) {
	out := c.OutOrStdout()
	term.Say(out, "%s %s: %s\n", a.Verb, a.Object, a.Reason)
	for i, line := range a.Diff {
		if i == mostLines {
			term.Say(out, "    and %d lines more\n", len(a.Diff)-i)
			return
		}
		term.Say(out, "    %s\n", line)
	}
}

// printHandOver prints the effect of a hand-over, if there are objects to hand over.
func printHandOver(c *cobra.Command, actions []output.Action) {
	would := map[output.Verb]int{}
	for _, a := range actions {
		would[a.HandOver]++
	}
	if would[output.Update]+would[output.Delete] == 0 {
		return
	}
	term.Say(c.OutOrStdout(), "once they are handed over, it would update %d and delete %d of those that it leaves\n",
		would[output.Update], would[output.Delete])
}

// printRights prints the rights that the API server denies, and how to grant them.
func printRights(c *cobra.Command, r output.Rights) {
	out := c.OutOrStdout()
	if r.Reason != "" {
		term.Say(out, "%s\n", r.Reason)
	}
	if len(r.Missing) == 0 {
		return
	}
	term.Say(out, "the API server does not allow %s to\n", r.Subject)
	for _, right := range r.Missing {
		term.Say(out, "    %s\n", right.String())
	}
	fmt.Fprint(out, "apply this, and what is needed is allowed:\n"+plain.Lines(r.Manifest))
}
