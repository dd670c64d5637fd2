// Command gauge prints the measures of the walls inside the product's packages, and
// the end of each: see "Walls" in CONTRIBUTING.md.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/isthmus-mesh/isthmus/test/gauge/measure"
)

const page = "CONTRIBUTING.md"

func main() {
	names := flag.Bool("names", false, "print the names of the things that are counted, too")
	lower := flag.Bool("lower", false, "lower the bounds in "+page+" to the values measured; raises none")
	flag.Parse()
	if err := run(*names, *lower); err != nil {
		fmt.Fprintln(os.Stderr, "gauge:", err)
		os.Exit(1)
	}
}

func run(names, lower bool) error {
	packages, err := measure.Load(".")
	if err != nil {
		return err
	}
	rows := measure.Of(packages)
	for _, row := range rows {
		fmt.Printf("| %s | %s | %s |\n", row.Name, measure.List(row.Above()), row.EndText())
		for _, name := range row.Names {
			if names {
				fmt.Println("  ", name)
			}
		}
	}
	if !lower {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(measure.Lower(rows, string(text))), 0o644)
}
