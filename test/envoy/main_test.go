package envoy_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/leak"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// notice is how long a backend goes on after its endpoint has left the Envoys, whose workers
// learn of it later than their admin port: by milliseconds, where the machine is not busy.
const notice = 5 * time.Second

// atOnce is how many tests run at a time. They wait far more than they work.
const atOnce = "16"

var seed = flag.Uint64("seed", 0, "of all random draws; 0 draws one")

// programs are there before the first test.
var programs struct{ envoy, isthmus string }

// logs is the folder of everything that processes write.
var logs string

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	fmt.Printf("random draws: -seed %d\n", *seed)
	status, err := run(m)
	if err == nil && status == 0 {
		err = leak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	figures.print()
	os.Exit(status)
}

// run runs the tests, and keeps what processes logged if one of them failed.
func run(m *testing.M) (status int, err error) {
	if logs, err = os.MkdirTemp("", "isthmus-envoy-"); err != nil {
		return 1, err
	}
	if err := os.Chmod(logs, 0o711); err != nil { // Envoys of other users have files there
		return 1, err
	}
	defer func() {
		if status == 0 && err == nil {
			err = os.RemoveAll(logs)
		} else {
			fmt.Fprintln(os.Stderr, "the logs of the processes are in", logs)
		}
	}()
	if programs.envoy, err = proxy.Fetch(context.Background(), os.Stderr); err != nil {
		return 1, err
	}
	repository, err := proxy.Repository(context.Background())
	if err != nil {
		return 1, err
	}
	programs.isthmus = filepath.Join(logs, "isthmus")
	if err := product.Build(repository, programs.isthmus); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// await asks again and again until there is no error.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 20*time.Millisecond, what, check)
}

// modes are the two ways in which Envoy takes resources, and whether it is delta.
var modes = map[string]bool{"delta": true, "sotw": false}

// inEachMode runs a test for an Envoy of each mode, with an Isthmus of its own.
func inEachMode(t *testing.T, test func(t *testing.T, delta bool)) {
	t.Parallel()
	for name, delta := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, delta)
		})
	}
}
