// Command build fetches the Nacos server, if it is not there yet, so that the time
// this takes is not the tests'.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/nacos/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	repository, err := proxy.Repository(ctx)
	if err == nil {
		_, err = server.Setup(ctx, repository, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
