package hostile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/leak"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

var (
	full = flag.Bool("full", false, "attack at full size, one at a time but for those that mostly wait, and print the figures")
	seed = flag.Uint64("seed", 1, "what random attacks begin with")
)

// workDir is where the program is built to; it is removed at the end.
var workDir string

func TestMain(m *testing.M) {
	if os.Getenv(glutton) != "" {
		os.Exit(swallow())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce()); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

// atOnce is how many attacks are made at a time, of those that may be made beside others:
// fewer where the figures are printed. They wait more than they work.
func atOnce() string {
	if *full {
		return "4"
	}
	return "8"
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "isthmus-hostile-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	workDir = dir
	code := m.Run()
	if err := leak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// program builds the program once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(workDir, "isthmus")
	return path, product.Build(filepath.Join("..", ".."), path)
})

func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, what, check)
}
