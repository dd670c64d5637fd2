package nacos_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/nacos/server"
	"github.com/isthmus-mesh/isthmus/test/rig/program"
	"github.com/isthmus-mesh/isthmus/test/testkit/leak"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// atOnce is how many tests run at a time. They wait far more than they work.
const atOnce = "16"

// The environment of the tests in the namespace has these.
const (
	variableFolder = "ISTHMUS_NACOS_FOLDER" // where the programs are, and the logs
	variableServer = "ISTHMUS_NACOS_SERVER" // where the server was set up
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	run := outside
	if os.Getenv(variableFolder) != "" {
		run = func() (int, error) { return inside(m) }
	}
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// outside has everything built, and the tests run in a namespace. It keeps what
// processes logged if one of them failed.
func outside() (status int, err error) {
	folder, err := os.MkdirTemp("", "isthmus-nacos-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if status == 0 && err == nil {
			err = os.RemoveAll(folder)
		} else {
			fmt.Fprintln(os.Stderr, "the logs of the processes are in", folder)
		}
	}()
	repository, err := proxy.Repository(context.Background())
	if err != nil {
		return 1, err
	}
	setup, err := server.Setup(context.Background(), repository, os.Stderr)
	if err != nil {
		return 1, err
	}
	if err := errors.Join(product.Build(repository, isthmusIn(folder)), program.Build(".", "./workload", workloadIn(folder))); err != nil {
		return 1, err
	}
	return netns.Run(os.Args[1:], variableFolder+"="+folder, variableServer+"="+setup)
}

// inside runs the tests.
func inside(m *testing.M) (status int, err error) {
	if err := netns.RaiseLoopback(); err != nil {
		return 1, err
	}
	status = m.Run()
	stopShared()
	closeIdle()
	if status == 0 {
		err = leak.Find()
	}
	return status, err
}

func isthmusIn(folder string) string { return filepath.Join(folder, "isthmus") }

func workloadIn(folder string) string { return filepath.Join(folder, "workload") }

// folder makes a folder for what a process writes.
func folder(name string) (string, error) {
	return os.MkdirTemp(os.Getenv(variableFolder), name+"-")
}

// await asks again and again until there is no error.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 50*time.Millisecond, what, check)
}
