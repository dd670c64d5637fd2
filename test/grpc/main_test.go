package grpc_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
	"github.com/isthmus-mesh/isthmus/test/testkit/leak"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// atOnce is how many tests run at a time. They wait far more than they work, but
// for the start of their clients.
const atOnce = "6"

// implementations are those of gRPC that every test is run with.
var implementations []clients.Implementation

// program is isthmus.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
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

func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-grpc-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if implementations, err = clients.Setup(context.Background(), os.Stderr); err != nil {
		return 1, err
	}
	program = filepath.Join(dir, "isthmus")
	if err := product.Build(filepath.Join("..", ".."), program); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// each runs a test with every implementation, all at the same time.
func each(t *testing.T, test func(t *testing.T, i clients.Implementation)) {
	t.Helper()
	t.Parallel()
	for _, i := range implementations {
		t.Run(i.Name, func(t *testing.T) {
			t.Parallel()
			test(t, i)
		})
	}
}

// await asks again and again until there is no error.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 20*time.Millisecond, what, check)
}
