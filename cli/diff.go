package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/inspect"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
)

func newDiff() *cobra.Command {
	var flags inspect.Flags
	c := &cobra.Command{
		Use:   "diff CONFIG",
		Short: "Show what a reload would remove, take or divide otherwise",
		Long: `Diff compares a configuration file with the one that a running Isthmus uses. It prints
the services that a reload would remove, and the hosts and addresses that would go to
another source: because a source leaves, or only, owns or the order of sources changes.
It also prints addresses to listen at that a restart would close, and the ports that would
no longer have connections to addresses of no service (unaddressed). It only reads: the
file stays on this machine. The running Isthmus is asked for its services, and for the
effects of the file's splits.

Of each split that would be added, changed or removed, it prints the shares in force and
the expected ones, with the endpoints of now. A backend that is left out has the reason.
It counts the endpoints that would get calls, get none, or get another weight, and the
connected clients that have resources of the host. Control planes are not counted.

It does not read registries. So it cannot know the services of sources that the file
adds, nor what a source would list with other settings. A source that leaves keeps its
records until the added sources are listed; these may list the same services.

Exit status: 0 nothing would be removed or taken, 1 something would, 2 the file is not
valid, no Isthmus answers, or wrong usage. Splits do not change the status. Next, put the
file in place: Isthmus reloads it.`,
		Example: "  isthmus diff new.yaml\n  isthmus diff new.yaml --admin http://127.0.0.1:8080 -o json\n  isthmus diff half.yaml -o json | jq '.splits[].expected'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := compared(c, &flags, args[0])
			if err != nil {
				if term.IsWrong(err) && c.Context().Err() == nil {
					return errors.New(err.Error()) // status 1 is for differences alone
				}
				return err
			}
			if err := term.Print(c, flags.Format, d, func() error { return printDiff(c, d) }); err != nil {
				return err
			}
			if n := len(d.Changes); n > 0 {
				return term.Wrong(fmt.Errorf("%d removed or taken; to keep it, change %s, or reload if that is intended", n, args[0]))
			}
			return nil
		},
	}
	flags.Add(c)
	return c
}

// compared compares a file with the configuration that a running Isthmus uses.
func compared(c *cobra.Command, flags *inspect.Flags, path string) (d difference, err error) {
	wanted, err := config.Load(path)
	if err != nil {
		return d, err
	}
	var now admin.Config
	if err := flags.Get(c.Context(), "/api/v1/config", &now); err != nil {
		return d, err
	}
	if len(now.Sources) == 0 {
		return d, fmt.Errorf("the Isthmus at %s does not return the sources of its configuration; compare 'isthmus version'", flags.URL)
	}
	var services []admin.Service
	if err := flags.Get(c.Context(), "/api/v1/services", &services); err != nil {
		return d, err
	}
	d = differenceOf(now, services, wanted)
	return d, foresee(c, flags, d.Splits, d.Added)
}

func printDiff(c *cobra.Command, d difference) error {
	for _, name := range d.Added {
		term.Say(c.OutOrStdout(), "source %s would be added: its services are not known yet\n", name)
	}
	printSplitChanges(c, d.Splits)
	if len(d.Changes) == 0 {
		term.Say(c.OutOrStdout(), "nothing would be removed or taken\n")
		return nil
	}
	var rows [][]string
	for _, one := range d.Changes {
		rows = append(rows, []string{one.Change, one.Kind, one.Name, term.OrDash(one.Namespace), one.From, term.OrDash(one.To), one.Reason})
	}
	return term.Table(c, []string{"change", "kind", "name", "namespace", "from", "to", "reason"}, rows)
}
