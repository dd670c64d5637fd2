// Command istiod is Istio's control plane itself, built from its module.
package main

import (
	"fmt"
	"os"

	"istio.io/istio/pilot/cmd/pilot-discovery/app"
)

func main() {
	if err := app.NewRootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
