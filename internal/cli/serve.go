package cli

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/app"
)

func newServe(version string) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Mirror the registries and serve the mesh",
		Long: `Serve mirrors every source of the configuration and delivers the catalog to the
outputs, until SIGTERM or SIGINT. Nothing is served before every required source
has been listed once; GET /readyz?verbose on the admin address says what is missing.`,
		Example: "  isthmus serve --config isthmus.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := config.Load(path)
			if err != nil {
				return wrong{err}
			}
			a, err := app.New(c.Context(), loaded, version, newLog(loaded.Log, c.ErrOrStderr()))
			if err != nil {
				return wrong{err}
			}
			if err := a.Run(c.Context()); err != nil {
				return wrong{err}
			}
			return nil
		},
	}
	configFlag(c, &path)
	return c
}

func configFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "", "the configuration file")
	if err := c.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag is defined one line above
	}
}

func newLog(c config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // validation has refused other names
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
