package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/config"
)

func newValidate() *cobra.Command {
	var file configFile
	var connect bool
	var f format
	var limit timeout
	c := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a configuration without acting on it",
		Long: `Validate reads a configuration and prints everything that is wrong with it: file,
line, field, reason and remedy. What is valid but unsafe it prints as a warning. It
has no side effects and uses no network. It also looks whether the files and folders
are there that sources read, for which a running Isthmus waits.

With --connect it also reads the sources and the API server of the output istio, and
prints what would be rejected of the sources, and what would be written and why. It
still changes nothing. With -o json or -o yaml it prints that alone and for a program,
with every line of every difference.

Exit status: 0 the configuration is valid, warnings included, and with --connect nothing
would be rejected, and no right is missing; 1 something is wrong, and is printed; 2 wrong usage. Next, start it
with 'isthmus serve FILE'; one that runs applies a changed file by itself.`,
		Example: "  isthmus validate isthmus.yaml\n  isthmus validate --config isthmus.yaml --connect\n" +
			"  isthmus validate --config isthmus.yaml --connect -o json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := rehearsing(c, "connect", connect); err != nil {
				return err
			}
			path, err := file.path(c, args)
			if err != nil {
				return err
			}
			loaded, err := config.Check(path)
			if err != nil {
				return wrong{err}
			}
			for _, warning := range loaded.Warnings() {
				say(c.ErrOrStderr(), "%s: warning: %s\n", path, warning)
			}
			if f == asTable {
				say(c.OutOrStdout(), "%s is valid: %s\n", path, summary(loaded))
			}
			if connect {
				return connected(c, loaded, f, limit)
			}
			return nil
		},
	}
	file.add(c)
	c.Flags().BoolVar(&connect, "connect", false, "read the sources and the API server as well")
	rehearsalFlags(c, &f, &limit)
	return c
}

// connected reads the sources once and checks their current content.
func connected(c *cobra.Command, loaded *config.Config, f format, limit timeout) error {
	log, _ := newLog(loaded.Log, c.ErrOrStderr())
	r, err := rehearse(c, loaded, log, f, limit)
	if err != nil {
		if f == asTable {
			printSourcesOf(c, r)
		}
		return err
	}
	if err := r.complaints(); err != nil {
		return wrong{err}
	}
	return nil
}

func summary(c *config.Config) string {
	sources := make([]string, len(c.Sources))
	for i, source := range c.Sources {
		sources[i] = fmt.Sprintf("%s (%s)", source.Name, source.Kind)
	}
	parts := []string{fmt.Sprintf("instance %s, sources %s", c.Instance, strings.Join(sources, ", "))}
	for _, o := range c.Outputs {
		parts = append(parts, o.Kind+" "+o.Settings.String())
	}
	return strings.Join(parts, ", ")
}
