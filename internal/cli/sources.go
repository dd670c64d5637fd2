package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
)

func newSources() *cobra.Command {
	var flags adminFlags
	c := &cobra.Command{
		Use:     "sources",
		Short:   "Show the registries: state, since when, and what they refused",
		Example: "  isthmus sources\n  isthmus sources -o json --admin http://127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var sources []admin.Source
			if err := flags.get(c.Context(), "/api/v1/sources", &sources); err != nil {
				return err
			}
			return printAs(c, flags.format, sources, func() error { return printSources(c, sources) })
		},
	}
	flags.add(c)
	return c
}

func printSources(c *cobra.Command, sources []admin.Source) error {
	var rows [][]string
	for _, s := range sources {
		ignored := 0
		for _, n := range s.Ignored {
			ignored += n
		}
		rows = append(rows, []string{
			s.Name, s.Kind, s.State, s.Age, strconv.Itoa(s.Services), strconv.Itoa(s.Endpoints),
			strconv.Itoa(s.Held), strconv.Itoa(len(s.Refused)), strconv.Itoa(ignored), orDash(s.Reason),
		})
	}
	heading := []string{"name", "kind", "state", "for", "services", "endpoints", "held", "refused", "ignored", "reason"}
	if err := table(c, heading, rows); err != nil {
		return err
	}
	for _, s := range sources {
		for _, r := range s.Refused {
			fmt.Fprintf(c.OutOrStdout(), "\n%s refused %s\n  at %s\n  %s\n", s.Name, orDash(r.Object), orDash(r.Where), complaint(r))
		}
	}
	return nil
}

func complaint(r admin.Refused) string {
	if r.Field == "" {
		return r.Reason
	}
	return r.Field + ": " + r.Reason
}
