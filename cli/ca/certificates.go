package ca

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/inspect"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

func newCertificates() *cobra.Command {
	var flags inspect.Flags
	c := &cobra.Command{
		Use:   "certificates",
		Short: "List the valid certificates that were made for clients",
		Long: `Certificates asks a running Isthmus for the certificates that it has made for Envoys since its
start and that are valid, by account: since when the newest one is used, when it is renewed,
when the last one ends, how many streams may be sent the next one, and how long ago the last
stream began or ended.

An account without a stream gets no other certificate. Other workloads accept the one that it
has until its end, also if the account is revoked.

Exit status: 0 they were printed, or there are none; 1 no answer from the admin API; 2 wrong
usage.`,
		Example: "  isthmus ca certificates\n  isthmus ca certificates --admin 10.0.0.5:8080 -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list := []admin.Certificate{}
			if err := flags.Get(c.Context(), "/api/v1/certificates", &list); err != nil {
				return err
			}
			return term.Print(c, flags.Format, list, func() error { return printCertificates(c, list) })
		},
	}
	flags.Add(c)
	return c
}

func printCertificates(c *cobra.Command, list []admin.Certificate) error {
	var rows [][]string
	for _, one := range list {
		rows = append(rows, []string{
			one.Identity, one.From.UTC().Format(time.RFC3339), one.Renewed.UTC().Format(time.RFC3339), one.Until.UTC().Format(time.RFC3339),
			strconv.Itoa(one.Streams), one.Age + " ago",
		})
	}
	return term.Table(c, []string{"identity", "from", "renewed", "until", "streams", "last stream"}, rows)
}
