package inspect

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/internal/events"
)

// followPause is the time between two requests with --follow.
const followPause = time.Second

func newEvents() *cobra.Command {
	var flags Flags
	var follow bool
	var source, host, client string
	var since time.Duration
	c := &cobra.Command{
		Use:   "events [--follow]",
		Short: "Show the newest changes: records, sources, holds, clients, the configuration",
		Long: `Events shows the changes that a running Isthmus kept, oldest first: records that came,
changed or went, with their numbers and the first names; sources that entered another
state; holds that an operator released, and from where; clients that connected, left or
NACKed; configuration files that were applied or rejected; changes of the replica that
writes to Kubernetes. The newest 4096 about records, 4096 about clients and 4096 others are
kept since the start. If more than 32 clients of an output do the same in a second, one
event counts the others.

With --follow it goes on until it is interrupted, and prints new ones within a second.
With -o json or yaml it prints them as data; --follow prints tables only.

Exit status: 0 they were printed; 1 no answer from the admin API; 2 wrong usage.`,
		Example: "  isthmus events --since 10m\n  isthmus events --source legacy --follow\n  isthmus events --client web-1\n  isthmus events --host reviews.example.com -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if follow && flags.Format != term.AsTable {
				return errors.New("--follow prints tables only; leave out -o, or ask again for data")
			}
			query := url.Values{}
			for name, value := range map[string]string{"source": source, "host": host, "client": client} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if since > 0 {
				query.Set("since", since.String())
			}
			return showEvents(c, &flags, query, follow)
		},
	}
	flags.Add(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	c.Flags().StringVar(&source, "source", "", "only events of this source")
	c.Flags().StringVar(&host, "host", "", "only events that name this host, among their first records")
	c.Flags().StringVar(&client, "client", "", "only events of the client with this ID; 'isthmus clients' lists them")
	completeFlag(c, "source", flags.completed(flags.sourceNames))
	completeFlag(c, "host", flags.completed(flags.hosts))
	completeFlag(c, "client", flags.completed(flags.clientIDs))
	c.Flags().DurationVar(&since, "since", 0, "only events of so long ago at most, such as 10m")
	return c
}

// showEvents prints the kept events, and with follow the later ones.
func showEvents(c *cobra.Command, flags *Flags, query url.Values, follow bool) error {
	for {
		var page admin.Events
		if err := flags.Get(c.Context(), "/api/v1/events?"+query.Encode(), &page); err != nil {
			return err
		}
		if len(page.Events) == 0 && !follow {
			fmt.Fprintln(c.ErrOrStderr(), "no events, or none that the filters select")
		}
		err := term.Print(c, flags.Format, page, func() error { printEvents(c, page); return nil })
		if err != nil || !follow {
			return err
		}
		query.Set("after", strconv.FormatUint(page.Last, 10))
		select {
		case <-time.After(followPause):
		case <-c.Context().Done():
			return term.Wrong(errors.New("interrupted"))
		}
	}
}

func printEvents(c *cobra.Command, page admin.Events) {
	out := c.OutOrStdout()
	if page.Lost > 0 {
		term.Say(out, "%s not kept any more\n", term.Count(int(page.Lost), "event")) //nolint:gosec // far fewer
	}
	for _, e := range page.Events {
		term.Say(out, "%s  %s  %s%s\n", e.Time.Local().Format("2006-01-02 15:04:05.000"), string(e.Kind), subjectOf(e), e.Text)
		if len(e.Names) > 0 {
			term.Say(out, "  %s\n", strings.Join(e.Names, ", "))
		}
	}
}

// subjectOf names the part that an event is about, if its kind does not.
func subjectOf(e events.Event) string {
	switch {
	case e.Source != "":
		return "source " + e.Source + ": "
	case e.Client != "":
		return "output " + e.Output + ", " + e.Client + ": "
	case e.Output != "":
		return "output " + e.Output + ": "
	}
	return ""
}
