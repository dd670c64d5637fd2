package cli

import (
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/demo"
)

func newDemoBackend() *cobra.Command {
	return &cobra.Command{
		Use:   "backend HOST:PORT",
		Short: "Run a backend to call: it answers HTTP and gRPC on one port",
		Long: `Backend listens at an address and answers whoever calls: HTTP/1.1 and HTTP/2, both
without TLS, with its address, and the Check method of gRPC's health service with
SERVING. Each answer has the address in the header answered-by. It is for trying a
client out, when there is no service yet to call.

Exit status: 0 it was ended with Ctrl-C, 1 it could not listen there, 2 wrong usage.`,
		Example: "  isthmus demo backend 127.0.0.1:9001",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if _, _, err := net.SplitHostPort(args[0]); err != nil {
				return fmt.Errorf("%q is not a host and port, such as 127.0.0.1:9001", args[0])
			}
			quietGRPC()
			ctx, stop := whileSeen(c)
			defer stop()
			if err := demo.Answer(ctx, args[0], c.OutOrStdout()); err != nil {
				return term.Wrong(err)
			}
			return nil
		},
	}
}
