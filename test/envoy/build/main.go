// Command build fetches the Envoy that the tests run, if it is not there yet, so
// that the time this takes is not the tests'. It installs the programs that the tests
// set up networks with, where they are missing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	_, err := proxy.Fetch(ctx, os.Stderr)
	if err := errors.Join(err, install(ctx, os.Stderr)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
