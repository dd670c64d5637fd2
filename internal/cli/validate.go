package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/config"
)

func newValidate() *cobra.Command {
	var path string
	var connect bool
	var f format
	var limit time.Duration
	c := &cobra.Command{
		Use:   "validate --config FILE",
		Short: "Check a configuration without acting on it",
		Long: `Validate reads a configuration and prints everything that is wrong with it: file,
line, field, reason and remedy. What is valid but unsafe it prints as a warning. It
has no side effects and uses no network.

With --connect it also reads the sources and the API server of the output istio, and
prints what would be written there and why. It still changes nothing. With -o json
or -o yaml it prints that alone and for a program, with every line of every difference.`,
		Example: "  isthmus validate --config isthmus.yaml\n  isthmus validate --config isthmus.yaml --connect\n" +
			"  isthmus validate --config isthmus.yaml --connect -o json",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := rehearsing(c, "connect", connect); err != nil {
				return err
			}
			loaded, err := config.Check(path)
			if err != nil {
				return wrong{err}
			}
			for _, warning := range loaded.Warnings() {
				fmt.Fprintf(c.ErrOrStderr(), "%s: warning: %s\n", path, warning)
			}
			if f == asTable {
				say(c.OutOrStdout(), "%s is valid: %s\n", path, summary(loaded))
			}
			if connect {
				log, _ := newLog(loaded.Log, c.ErrOrStderr())
				return rehearse(c, loaded, log, f, limit)
			}
			return nil
		},
	}
	configFlag(c, &path)
	c.Flags().BoolVar(&connect, "connect", false, "read the sources and the API server as well")
	formatFlag(c, &f)
	timeoutFlag(c, &limit)
	return c
}

func summary(c *config.Config) string {
	sources := make([]string, len(c.Sources))
	for i, source := range c.Sources {
		sources[i] = fmt.Sprintf("%s (%s)", source.Name, source.Kind)
	}
	text := fmt.Sprintf("instance %s, sources %s", c.Instance, strings.Join(sources, ", "))
	for _, o := range c.Outputs {
		text += ", " + o.Kind + " " + o.Settings.String()
	}
	return text
}
