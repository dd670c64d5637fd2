package inspect

import (
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

func newHold() *cobra.Command {
	var flags Flags
	var d time.Duration
	c := &cobra.Command{
		Use:   "hold NAME",
		Short: "Remove nothing that a source's listings lack, for a time",
		Long: `Hold is for a registry under maintenance. For the given time, nothing is removed that the
source's listings lack. Records that are added or changed are served as ever, and so are
deletions that the registry reports one by one. 'isthmus sources' shows the source as held.

The hold ends by itself, or with 'isthmus sources release NAME'. The next listing is then
judged as any other. The hold survives a restart of Isthmus if store.dataDir is set. A
second hold replaces the first.

It prints when the hold ends.

Exit status: 0 the source is held; 1 there is no such source, or the admin API did not do
it; 2 wrong usage.`,
		Example: "  isthmus sources hold legacy --for 30m",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var hold admin.OperatorHold
			query := url.Values{"for": {d.String()}}
			if err := flags.post(c.Context(), "/api/v1/sources/"+url.PathEscape(args[0])+"/hold?"+query.Encode(), &hold); err != nil {
				return err
			}
			return term.Print(c, flags.Format, hold, func() error {
				term.Say(c.OutOrStdout(), "%s: held until %s; to end it earlier: isthmus sources release %s\n", args[0], hold.Until.Format(time.RFC3339), args[0])
				return nil
			})
		},
	}
	flags.Add(c)
	c.Flags().DurationVar(&d, "for", 0, "how long, from 1m to 24h, such as 30m")
	_ = c.MarkFlagRequired("for")
	return c
}
