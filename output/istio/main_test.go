package istio

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// checks is how often a property is checked unless the command line says, as that of
// "make laws" does: these cost more than most, for each starts writers.
const checks = "40"

func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
