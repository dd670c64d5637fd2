package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/app"
	"github.com/isthmus-mesh/isthmus/output/istio"
)

// mostLines is how many lines of an object's difference are printed.
const mostLines = 20

// rehearse prints what would be written.
func rehearse(c *cobra.Command, loaded *config.Config, log *slog.Logger) error {
	plan, err := app.Rehearse(c.Context(), loaded, log)
	if err != nil {
		return wrong{err}
	}
	out := c.OutOrStdout()
	for _, s := range plan.Sources {
		fmt.Fprintf(out, "source %s: %s, %d services, %d endpoints, %d refused\n", s.Name, s.State, s.Services, s.Endpoints, len(s.Refused))
	}
	count := map[istio.Verb]int{}
	for _, a := range plan.Actions {
		count[a.Verb]++
		printAction(c, a)
	}
	for _, o := range plan.LeftOut {
		if o.Refused != "" {
			fmt.Fprintf(out, "left out %s: %s\n", o.Key, o.Refused)
		}
		for _, left := range o.LeftOut {
			fmt.Fprintf(out, "left out of %s: %s\n", o.Key, left)
		}
	}
	if loaded.Outputs.Istio == nil {
		fmt.Fprintln(out, "no output writes anywhere")
		return nil
	}
	fmt.Fprintf(out, "would create %d, update %d, delete %d and leave %d objects; nothing was written\n",
		count[istio.Create], count[istio.Update], count[istio.Delete], count[istio.Leave])
	return nil
}

func printAction(c *cobra.Command, a istio.Action) {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "%s %s: %s\n", a.Verb, a.Ref, a.Reason)
	for i, line := range a.Diff {
		if i == mostLines {
			fmt.Fprintf(out, "    and %d lines more\n", len(a.Diff)-i)
			return
		}
		fmt.Fprintf(out, "    %s\n", line)
	}
}
