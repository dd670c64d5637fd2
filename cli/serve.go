package cli

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/memory"
)

func newServe(version string) *cobra.Command {
	var file configFile
	var dry bool
	var f term.Format
	var limit term.Timeout
	c := &cobra.Command{
		Use:   "serve FILE",
		Short: "Mirror the registries and serve the mesh",
		Long: `Serve mirrors every source of the configuration and delivers the catalog to the
outputs, until SIGTERM or SIGINT; then it ends within five seconds. Nothing is served
before every required source has been listed once; 'isthmus status' names the missing
ones.

The file is reloaded when it changes and on SIGHUP, all of it or, if it is not
valid, nothing. Clients stay connected.

With --dry-run nothing is served or written: it lists the sources and the API server
of the output istio, prints what it rejects of the sources and what it would write
there and why, names the rights that it lacks there, and ends. Objects of the earlier
bridge are shown with what handing them over would change. With -o json or -o yaml it
prints that for a program, with every line of every difference.

It logs to standard error; the line 'serving' has the addresses. Next, look with
'isthmus sources' and 'isthmus clients'.

Exit status: 0 it was asked to stop, or the dry run is complete; 1 the configuration is
not valid, an address or the data folder is in use, or the dry run could not read a
required source or the API server in time; 2 wrong usage.`,
		Example: "  isthmus serve isthmus.yaml\n  isthmus serve --config isthmus.yaml --dry-run\n" +
			"  isthmus serve --config isthmus.yaml --dry-run -o json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := rehearsing(c, dry); err != nil {
				return err
			}
			path, err := file.path(c, args)
			if err != nil {
				return err
			}
			// From here on a hangup does not end the process, but requests a reload.
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			loaded, err := config.Load(path)
			if err != nil {
				return term.Wrong(err)
			}
			log, logging := newLog(loaded.Log, c.ErrOrStderr())
			if dry {
				r, err := rehearse(c, loaded, loaded.Outputs, log, limit)
				if err != nil {
					return err
				}
				r.Warnings = append(r.Warnings, r.unmet...)
				return term.Print(c, f, r, func() error { printRehearsal(c, r); return nil })
			}
			memory.Limit(log)
			err = stopWithin(c.Context(), log, func() error {
				a, err := app.New(c.Context(), loaded, version, log)
				if err != nil {
					return err
				}
				a.Reload(app.Reloading{File: path, Now: hangup, Log: logging.set})
				return a.Run(c.Context())
			})
			if err != nil {
				return term.Wrong(err)
			}
			return nil
		},
	}
	file.add(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be written and why, and write nothing")
	rehearsalFlags(c, &f, &limit)
	return c
}
