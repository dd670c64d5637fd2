package inspect

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

// showHolders prints the clients that hold resources of a host.
func showHolders(c *cobra.Command, flags *Flags, host string) error {
	var holders []admin.ServiceClient
	if err := flags.Get(c.Context(), "/api/v1/services/"+url.PathEscape(host)+"/clients", &holders); err != nil {
		return err
	}
	return term.Print(c, flags.Format, holders, func() error {
		var rows [][]string
		for _, h := range holders {
			for _, r := range h.Resources {
				rows = append(rows, []string{
					h.ID, h.Kind, term.OrDash(h.Namespace), shortType(r.Type), r.Name, term.OrDash(r.Held), stateOf(r), term.OrDash(r.Age), term.OrDash(r.Reason),
				})
			}
		}
		return term.Table(c, []string{"client", "kind", "namespace", "type", "name", "version", "state", "for", "reason"}, rows)
	})
}
