package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// configFile is the configuration that a command acts on. It is named as the
// command's argument, by --config, or by a variable.
type configFile struct{ flag string }

func (f *configFile) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.flag, "config", "c", os.Getenv("ISTHMUS_CONFIG"), "the configuration file, instead of FILE [$ISTHMUS_CONFIG]")
}

// path returns the one file that is named.
func (f *configFile) path(c *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) == 0 && f.flag == "":
		return "", fmt.Errorf("no configuration file: use '%s FILE', or --config FILE", c.CommandPath())
	case len(args) == 0:
		return f.flag, nil
	case c.Flags().Changed("config"):
		return "", fmt.Errorf("%q and --config %q both name a configuration file: give only one of them", args[0], f.flag)
	case args[0] == "":
		return "", errors.New("the name of the configuration file is empty; check that the shell variable is set")
	default:
		return args[0], nil
	}
}
