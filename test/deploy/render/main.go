// Command render prints what the chart of Isthmus renders with the values that
// it reads. Tests of other modules use it, which then need not build Helm in.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/isthmus-mesh/isthmus/test/deploy/chart"
)

func main() {
	folder := flag.String("chart", "../../deploy/helm/isthmus", "folder of the chart")
	release := flag.String("release", "isthmus", "name of the release")
	namespace := flag.String("namespace", "isthmus", "namespace of the release")
	flag.Parse()
	if err := render(*folder, *release, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder, release, namespace string) error {
	values, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	documents, err := chart.Render(folder, release, namespace, string(values))
	for _, d := range documents {
		fmt.Printf("---\n# %s\n%s\n", d.File, d.Text)
	}
	return err
}
