package kubernetes_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/leak"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// programs are built before the first test.
var programs *cluster.Programs

// shared is the cluster of all tests that do not break theirs.
var shared *cluster.Cluster

// starts bounds the start of a cluster with everything in it: several outcomes, one after the
// other.
const starts = 5 * until.Patience

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := run(m)
	if err == nil && status == 0 {
		err = leak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// run runs the tests on a cluster, and keeps what its processes said if one failed.
func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-kubernetes-")
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
	if err := enterNamespace(); err != nil {
		return 1, err
	}
	if programs, err = cluster.Build(context.Background(), os.Stderr); err != nil {
		return 1, err
	}
	if err := buildIsthmus(dir); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), starts)
	defer cancel()
	if shared, err = cluster.Start(ctx, programs, dir); err != nil {
		return 1, err
	}
	defer shared.Stop()
	return m.Run(), nil
}
