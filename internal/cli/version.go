package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(version string) *cobra.Command {
	var f format
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  isthmus version -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return printAs(c, f, v, func() error {
				_, err := fmt.Fprintf(c.OutOrStdout(), "isthmus %s (%s, %s)\n", v.Version, v.Go, v.Platform)
				return err
			})
		},
	}
	formatFlag(c, &f)
	return c
}
