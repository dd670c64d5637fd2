package inspect

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/source"
)

func newSources() *cobra.Command {
	var flags Flags
	var state oneOf
	c := &cobra.Command{
		Use:   "sources [NAME]",
		Short: "Show the registries: state, since when, and what they rejected",
		Long: `Sources shows the state of every registry. A source that is held lists far less than
it did; what is missing is kept until the registry has said so for a while, or until
you release it with 'isthmus sources release NAME'.

It prints a line for each source, with its state, how long it has had that, and the
reason, and below them up to 20 rejected objects of each, with place and remedy. With a
NAME it prints that source alone, and what a registry that pushes sent of each type.
States: listing (never read completely), live, stale (cannot be read; the last known good
is served), held. With --state it prints only sources in that state. Next, 'isthmus services HOST' shows what is served of one service.

Exit status: 0 the sources were printed, whatever their states; 1 no answer from the
admin API, or an error; 2 wrong usage.`,
		Example: "  isthmus sources\n  isthmus sources legacy\n  isthmus sources --state held --watch\n  isthmus sources -o json --admin 127.0.0.1:8080\n  isthmus sources release legacy\n  isthmus sources hold legacy --for 30m",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return flags.run(c, func() error { return showSources(c, &flags, args, state.value) })
		},
	}
	flags.Add(c)
	flags.watchFlag(c)
	state.addTo(c, "state", "only sources in this state",
		string(source.StateListing), string(source.StateLive), string(source.StateStale), string(source.StateHeld))
	c.ValidArgsFunction = flags.completed(flags.sourceNames)
	c.AddCommand(newRelease(), newHold())
	return c
}

// showSources prints all sources, or the one of a name, in a state if one is given.
func showSources(c *cobra.Command, flags *Flags, args []string, state string) error {
	var sources []admin.Source
	if err := flags.Get(c.Context(), "/api/v1/sources", &sources); err != nil {
		return err
	}
	if len(args) == 1 {
		var err error
		if sources, err = sourceOf(sources, args[0]); err != nil {
			return err
		}
	}
	all := len(sources)
	sources = slices.DeleteFunc(sources, func(s admin.Source) bool { return state != "" && s.State != state })
	noMatch(c, all, len(sources), "source")
	return term.Print(c, flags.Format, sources, func() error { return printSources(c, sources, len(args) == 1) })
}

func newRelease() *cobra.Command {
	var flags Flags
	c := &cobra.Command{
		Use:   "release NAME",
		Short: "Delete now what a source holds back because too much disappeared at once",
		Long: `Release tells Isthmus that a suspicious drop is real. What the source holds back is
deleted at once, and clients get the removals. Look at 'isthmus sources' first: it says
what is held. A source that holds nothing is left as it is.

It prints how many records were released.

Exit status: 0 they were released, or there were none; 1 there is no such source, or the
admin API did not do it; 2 wrong usage.`,
		Example: "  isthmus sources release legacy",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var release admin.Release
			if err := flags.post(c.Context(), "/api/v1/sources/"+url.PathEscape(args[0])+"/release", &release); err != nil {
				return err
			}
			return term.Print(c, flags.Format, release, func() error {
				term.Say(c.OutOrStdout(), "%s\n", confirmation(args[0], release.Released))
				return nil
			})
		},
	}
	flags.Add(c)
	c.ValidArgsFunction = flags.completed(flags.sourceNames)
	return c
}

func confirmation(source string, released int) string {
	switch released {
	case 0:
		return source + ": nothing was held"
	case 1:
		return source + ": 1 record that was held is deleted"
	default:
		return fmt.Sprintf("%s: %d records that were held are deleted", source, released)
	}
}

// sourceOf returns the source of a name from a list.
func sourceOf(sources []admin.Source, name string) ([]admin.Source, error) {
	var names []string
	for _, s := range sources {
		if s.Name == name {
			return []admin.Source{s}, nil
		}
		names = append(names, s.Name)
	}
	return nil, term.Wrong(fmt.Errorf("no source %q; there are: %s", name, strings.Join(names, ", ")))
}

// printSources prints sources, and with detail also the exchanges with registries that push.
func printSources(c *cobra.Command, sources []admin.Source, detail bool) error {
	var rows [][]string
	for _, s := range sources {
		ignored := 0
		for _, n := range s.Ignored {
			ignored += n
		}
		rows = append(rows, []string{
			s.Name, s.Kind, s.State, s.Age, strconv.Itoa(s.Services), strconv.Itoa(s.Endpoints),
			strconv.Itoa(s.Held), strconv.Itoa(len(s.Rejected)), strconv.Itoa(ignored), term.OrDash(s.Reason),
		})
	}
	heading := []string{"name", "kind", "state", "for", "services", "endpoints", "held", "rejected", "ignored", "reason"}
	if err := term.Table(c, heading, rows); err != nil {
		return err
	}
	for _, s := range sources {
		term.ByKind(c.OutOrStdout(), s.Name+": carried for control planes: ", s.Carried)
		term.ByKind(c.OutOrStdout(), s.Name+": without effect here: ", s.Ignored)
	}
	for _, s := range sources {
		printRejected(c, s)
		printNotices(c, s)
		if detail {
			printExchanges(c, s)
		}
	}
	return nil
}

// shownRejections bounds the rejections, and the notices, of a source in the table. An
// operator with more fixes some and looks again.
const shownRejections = 20

func printRejected(c *cobra.Command, s admin.Source) {
	for _, r := range s.Rejected[:min(shownRejections, len(s.Rejected))] {
		term.Say(c.OutOrStdout(), "\n%s rejected %s\n  at %s\n  %s\n", s.Name, term.OrDash(r.Object), term.OrDash(r.Where), r.Complaint())
	}
	if more := len(s.Rejected) - shownRejections; more > 0 {
		term.Say(c.OutOrStdout(), "\n%s rejected %d more: -o json shows all of them\n", s.Name, more)
	}
}

func printNotices(c *cobra.Command, s admin.Source) {
	for _, n := range s.Notices[:min(shownRejections, len(s.Notices))] {
		term.Say(c.OutOrStdout(), "\n%s: notice of %s\n  at %s\n  %s\n", s.Name, term.OrDash(n.Object), term.OrDash(n.Where), n.Text)
	}
	if more := len(s.Notices) - shownRejections; more > 0 {
		term.Say(c.OutOrStdout(), "\n%s: %d notices more: -o json shows all of them\n", s.Name, more)
	}
}

// printExchanges shows the exchanges between a source and a registry that pushes.
func printExchanges(c *cobra.Command, s admin.Source) {
	for _, e := range s.Exchanges {
		term.Say(c.OutOrStdout(), "\n%s: %s: %d resources; %d answers, of which %d were ACKed and %d NACKed, the last %s ago\n",
			s.Name, e.Type, e.Resources, e.Received, e.ACKed, e.NACKed, term.OrDash(e.Age))
		if e.Echoed > 0 {
			term.Say(c.OutOrStdout(), "  %d of the resources came in whole or in part through this Isthmus, and that is left out\n", e.Echoed)
		}
		if e.Reason != "" {
			term.Say(c.OutOrStdout(), "  NACKed last: %s\n", e.Reason)
		}
	}
}
