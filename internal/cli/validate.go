package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/config"
)

func newValidate() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "validate --config FILE",
		Short: "Check a configuration without acting on it",
		Long: `Validate reads a configuration and prints everything that is wrong with it: file,
line, field, reason and remedy. It has no side effects and uses no network.`,
		Example: "  isthmus validate --config isthmus.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := config.Load(path)
			if err != nil {
				return wrong{err}
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is valid: %s\n", path, summary(loaded))
			return nil
		},
	}
	configFlag(c, &path)
	return c
}

func summary(c *config.Config) string {
	sources := make([]string, len(c.Sources))
	for i, source := range c.Sources {
		sources[i] = fmt.Sprintf("%s (%s)", source.Name, source.Kind())
	}
	text := fmt.Sprintf("instance %s, sources %s", c.Instance, strings.Join(sources, ", "))
	if c.Outputs.XDS != nil {
		text += ", xds on " + c.Outputs.XDS.Listen
	}
	if c.Outputs.Istio != nil {
		text += ", istio to the API server of " + cmp.Or(c.Outputs.Istio.Kubeconfig, "this cluster")
	}
	return text
}
