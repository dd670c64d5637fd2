package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"istio.io/istio/pkg/log"

	programs "github.com/isthmus-mesh/isthmus/test/rig/program"
)

// patience is how long a test waits for what must come about. It takes a small part
// of a second, but the machine may be busy with other things.
const patience = 3 * time.Minute

// program is isthmus.
var program string

// draws are rapid's settings: the same draws each time, unless flags say otherwise.
var draws = map[string]string{"rapid.checks": "40", "rapid.seed": "15", "rapid.nofailfile": "true"}

func TestMain(m *testing.M) {
	for name, value := range draws {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	for _, scope := range log.Scopes() { // Istio tells all that it starts and stops
		scope.SetOutputLevel(log.NoneLevel)
	}
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-simulation-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "isthmus")
	if err := programs.Build(filepath.Join("..", ".."), programs.Isthmus, program); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
