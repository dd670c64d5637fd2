package istio_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/leak"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// atOnce is how many tests run at a time. They wait far more than they work.
const atOnce = "6"

// checks is how often a property is checked, unless the command line says.
const checks = "25"

// inNamespace is set where a test runs by itself in a network namespace.
const inNamespace = "ISTHMUS_ISTIO_NAMESPACE"

// programs are built before the first test.
var programs *cluster.Programs

// program is isthmus.
var program string

// shared is the cluster of all tests that do not break theirs.
var shared *cluster.Cluster

// istiod reads it.
var istiod *cluster.Istiod

// starts bounds the start of a cluster with everything in it: several outcomes, one after the
// other.
const starts = 5 * until.Patience

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	if os.Getenv(inNamespace) != "" {
		if err := netns.RaiseLoopback(); err != nil {
			panic(err)
		}
	}
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	if status == 0 {
		if err := leak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// run runs the tests on a cluster, and keeps what its processes said if one of
// them failed.
func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-istio-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if status == 0 && err == nil {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "the logs of the servers are in", dir)
		}
	}()
	if programs, err = cluster.Build(context.Background(), os.Stderr); err != nil {
		return 1, err
	}
	program = filepath.Join(dir, "isthmus")
	if err := product.Build(programs.Repository, program); err != nil {
		return 1, err
	}
	programs.Isthmus = program
	ctx, cancel := context.WithTimeout(context.Background(), starts)
	defer cancel()
	if shared, err = cluster.Start(ctx, programs, dir); err != nil {
		return 1, err
	}
	defer shared.Stop()
	if err := grant(ctx, shared); err != nil {
		return 1, err
	}
	if istiod, err = shared.StartIstiod(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// startCluster starts a cluster of the test's own, without an istiod.
func startCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), starts)
	defer cancel()
	folder, err := os.MkdirTemp(filepath.Dir(program), strings.ReplaceAll(t.Name(), "/", "-")+"-") //nolint:usetesting // it is kept if the test fails
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(ctx, programs, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	if err := grant(ctx, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// await asks again and again until there is no error.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 20*time.Millisecond, what, check)
}
