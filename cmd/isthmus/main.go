// Command isthmus copies services from several registries into one catalog and serves
// it to Envoy, gRPC clients and Istio.
package main

import (
	"context"
	"os"

	"github.com/isthmus-mesh/isthmus/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := cli.Signals(context.Background())
	status := cli.Main(ctx, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
