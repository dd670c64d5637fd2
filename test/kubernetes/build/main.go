// Command build builds the servers that the tests run, as far as they are not
// there yet, so that the time this takes is not the tests'.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := cluster.Build(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
