package scale_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/output/istio"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

var (
	services  = flag.Int("services", 10_000, "services of the registry")
	instances = flag.Int("instances", 100_000, "instances of all services")
	consumers = flag.Int("consumers", 1000, "services that use five others each")
	scopes    = flag.String("scopes", "unscoped,sidecars,exportTo", "what an Envoy is kept from seeing, each in turn")
	changes   = flag.Int("changes", 200, "changes to take the median of")
	pace      = flag.Duration("pace", 250*time.Millisecond, "time from one change to the next")
	idle      = flag.Duration("idle", time.Minute, "how long to look at an idle program")
	qps       = flag.Int("qps", 50, "writes per second that are allowed")
	endpoints = flag.String("endpoints", "200,2000,10000", "sizes of the service to write in two forms")
	shardSize = flag.Int("shardSize", istio.DefaultConfig().ShardSize, "endpoints of an object, at most")
	rounds    = flag.Int("rounds", 3, "times that each size and form is measured, and each scope")
	envoys    = flag.Int("envoys", 30, "Envoys that follow changes of endpoints")
	binary    = flag.String("program", "", "measure this program instead of building it")
)

// patience is how long anything may take before a benchmark gives up.
const patience = 10 * until.Patience

// programs are built before the first benchmark; program is isthmus.
var (
	programs *cluster.Programs
	program  string
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Each benchmark repeats by itself what it takes the median of.
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		panic(err) // the testing package has that flag
	}
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// run runs the benchmarks that were asked for, and the tests.
func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-scale-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if programs, err = cluster.Build(context.Background(), os.Stderr); err != nil {
		return 1, err
	}
	if program = *binary; program == "" {
		program = filepath.Join(dir, "isthmus")
		if err := product.Build(programs.Repository, program); err != nil {
			return 1, err
		}
	}
	programs.Isthmus = program
	return m.Run(), nil
}

// startCluster starts an API server without an istiod, which takes part in what
// is measured: the benchmark that is about it starts one.
func startCluster(b testing.TB) *cluster.Cluster {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	c, err := cluster.Start(ctx, programs, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Stop)
	client, err := c.API.Client()
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	if err := client.Namespace(ctx, namespace); err != nil {
		b.Fatal(err)
	}
	return c
}

// namespace is where everything is written.
const namespace = "mirror"
