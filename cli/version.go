package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/term"
)

// programVersion is the description of the program itself.
type programVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionOf(version string) programVersion {
	return programVersion{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (v programVersion) text() string {
	return fmt.Sprintf("isthmus %s (%s, %s)\n", v.Version, v.Go, v.Platform)
}

func newVersion(version string) *cobra.Command {
	var f term.Format
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the version of this program, of the Go it was built with, and the
platform it is for. It asks no running Isthmus.

Exit status: 0 it was printed, 2 wrong usage.`,
		Example: "  isthmus version -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versionOf(version)
			return term.Print(c, f, v, func() error {
				_, err := io.WriteString(c.OutOrStdout(), v.text())
				return err
			})
		},
	}
	term.FormatFlag(c, &f)
	return c
}
