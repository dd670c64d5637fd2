// Command build fetches the Envoy that the tests run, if it is not there yet, so
// that the time this takes is not the tests'.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := proxy.Fetch(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
