package cli_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/cli"
)

// TestMain makes the test binary the program itself when a script runs it.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"isthmus": isthmus})
}

// isthmus does what cmd/isthmus does.
func isthmus() {
	ctx, stop := cli.Signals(context.Background())
	status := cli.Main(ctx, "1.2.3-test", os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// leakless is tests after which no goroutine may be left.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	status := l.M.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
