package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"

	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/demo"
)

func newDemo(version string) *cobra.Command {
	var once bool
	registry := kind(demo.Registries()[0])
	c := &cobra.Command{
		Use:   "demo [--registry KIND] [--once]",
		Short: "See it at work: everything on loopback, in one process",
		Long: `Demo makes a registry folder in a temporary place, starts six small gRPC backends
of three services, the control plane, and a gRPC client that finds the backends
over xDS and keeps calling them. It shows who answers, adds an instance, kills
one, breaks a file and fixes it, and how long each took from the file to the
client. A second registry, a stand-in for ServiceComb Service Center, then shares
one service with the folder, fails for a while, and loses half of its endpoints,
which are held and released. If there is an envoy on the PATH, it gets the same
endpoints. Then it is yours: edit the folder and watch. Ctrl-C ends it, as closing
the terminal does; nothing is left behind. The second registry needs the addresses
127.0.0.1 to 127.0.0.5, which Linux has.

With --registry servicecenter the only registry is the stand-in for Service Center,
with its delays; what is broken and fixed then is a
registration. It needs the addresses 127.0.0.1 to 127.0.0.3.

Exit status: 0 it was ended with Ctrl-C, or with --once the client observed every step;
1 it could not start, or the client missed a step; 2 wrong usage. Next, write a
configuration of your own and check it with 'isthmus validate FILE'.`,
		Example: `  isthmus demo
  isthmus demo --once    the tour only: exit status 0 if the client observed every step
  isthmus demo --registry servicecenter`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			quietGRPC()
			ctx, stop := whileSeen(c)
			defer stop()
			show := demo.Config{Version: version, Out: c.OutOrStdout(), Once: once, Registry: string(registry)}
			if screen, ok := term.Terminal(show.Out); ok {
				show.Terminal, show.Rows = true, func() int { return term.Rows(screen) }
			}
			if err := demo.Run(ctx, show); err != nil {
				return term.Wrong(err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&once, "once", false, "make the tour without pauses and end, with status 0 only if the client observed every step")
	c.Flags().Var(&registry, "registry", "where the backends are announced: "+strings.Join(demo.Registries(), " or "))
	c.AddCommand(newDemoBackend())
	return c
}

// whileSeen returns a context that ends when the terminal is closed, or the reader of the
// output leaves. The process lives on, to clean up.
func whileSeen(c *cobra.Command) (context.Context, func()) {
	hangup := []os.Signal{syscall.SIGHUP}
	if signal.Ignored(syscall.SIGHUP) { // set by nohup
		hangup = nil
	}
	ctx, stop := until(c.Context(), hangup...)
	if out, ok := c.OutOrStdout().(*outlet); ok {
		signal.Ignore(syscall.SIGPIPE) // otherwise a write ends the process
		out.failed = stop
	}
	return ctx, stop
}

// kind is the value of --registry.
type kind string

// String implements the flag's value, as Set and Type do.
func (k *kind) String() string { return string(*k) }

// Type is the value's type in the help text.
func (k *kind) Type() string { return "KIND" }

// Set takes the kind from the command line.
func (k *kind) Set(s string) error {
	if !slices.Contains(demo.Registries(), s) {
		return fmt.Errorf("use %s", strings.Join(demo.Registries(), " or "))
	}
	*k = kind(s)
	return nil
}

// quietGRPC suppresses gRPC's log, unless the environment enables it. The logger is one for
// the process: it is set before anything uses gRPC.
func quietGRPC() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	}
}
