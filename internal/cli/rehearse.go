package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/app"
	"github.com/isthmus-mesh/isthmus/output"
)

// mostLines is how many lines of an object's difference are printed as text.
const mostLines = 20

// rehearsal is what would be written and why, as -o json and -o yaml print it.
// Its fields are described in docs/reference/istio.md.
type rehearsal struct {
	Sources []rehearsed       `json:"sources"`
	Writer  string            `json:"writer"`  // the output that would write; empty if there is none
	Actions []output.Action   `json:"actions"` // in the order of the objects
	LeftOut []output.Omission `json:"leftOut"`
	Counts  counts            `json:"counts"` // of the actions
}

// rehearsed is a source that was read once.
type rehearsed struct {
	Name      string          `json:"name"`
	Kind      string          `json:"kind"`
	State     string          `json:"state"`
	Reason    string          `json:"reason"` // of the state
	Services  int             `json:"services"`
	Endpoints int             `json:"endpoints"`
	Ignored   map[string]int  `json:"ignored"` // objects of other kinds, by kind
	Refused   []admin.Refused `json:"refused"`
}

type counts struct {
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`
	Leave  int `json:"leave"`
}

// timeoutFlag bounds how long a rehearsal may take.
func timeoutFlag(c *cobra.Command, limit *time.Duration) {
	c.Flags().DurationVar(limit, "timeout", time.Minute, "how long to wait for the sources and the API server")
}

// rehearsing tells a command that prints a rehearsal only with a certain flag
// that -o was given without it.
func rehearsing(c *cobra.Command, flag string, on bool) error {
	if !on && c.Flags().Changed("output") {
		return errors.New("-o says how --" + flag + " prints what would be written; add --" + flag + " or leave -o away")
	}
	return nil
}

// rehearse prints what would be written.
func rehearse(c *cobra.Command, loaded *config.Config, log *slog.Logger, f format, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(c.Context(), limit)
	defer cancel()
	plan, err := app.Rehearse(ctx, loaded, log)
	if err != nil {
		return wrong{err}
	}
	r := shape(plan)
	return printAs(c, f, r, func() error {
		printRehearsal(c, r)
		return nil
	})
}

func shape(plan app.Rehearsal) rehearsal {
	r := rehearsal{
		Sources: []rehearsed{}, Writer: strings.Join(plan.Writers, ", "),
		Actions: append([]output.Action{}, plan.Actions...), LeftOut: append([]output.Omission{}, plan.LeftOut...),
	}
	for _, s := range plan.Sources {
		source := rehearsed{
			Name: s.Name, Kind: s.Kind, State: string(s.State), Reason: s.Reason, Services: s.Services, Endpoints: s.Endpoints,
			Ignored: map[string]int{}, Refused: []admin.Refused{},
		}
		maps.Copy(source.Ignored, s.Ignored)
		for _, refused := range s.Refused {
			source.Refused = append(source.Refused, admin.Refused{
				Object: refused.Object, Where: refused.Where, Field: refused.Field, Reason: refused.Reason,
			})
		}
		r.Sources = append(r.Sources, source)
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
	for _, s := range r.Sources {
		say(out, "source %s: %s, %d services, %d endpoints, %d refused\n", s.Name, s.State, s.Services, s.Endpoints, len(s.Refused))
	}
	for _, a := range r.Actions {
		printAction(c, a)
	}
	for _, o := range r.LeftOut {
		if o.Count == 0 { // nothing of it is written
			say(out, "left out %s: %s\n", o.Object, o.Reason)
			continue
		}
		say(out, "left out of %s: %d: %s\n", o.Object, o.Count, o.Reason)
	}
	if r.Writer == "" {
		fmt.Fprintln(out, "no output writes anywhere")
		return
	}
	say(out, "would create %d, update %d, delete %d and leave %d objects; nothing was written\n",
		r.Counts.Create, r.Counts.Update, r.Counts.Delete, r.Counts.Leave)
}

func printAction(c *cobra.Command, a output.Action) {
	out := c.OutOrStdout()
	say(out, "%s %s: %s\n", a.Verb, a.Object, a.Reason)
	for i, line := range a.Diff {
		if i == mostLines {
			say(out, "    and %d lines more\n", len(a.Diff)-i)
			return
		}
		say(out, "    %s\n", line)
	}
}
