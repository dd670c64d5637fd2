// Package feature_test shows what Isthmus does for those who use it: a test
// per feature, each through the whole path, and with real parts only. Registry
// files in a folder are read by the application as a configuration file sets it
// up, and gRPC's own xDS client takes what is served and calls gRPC servers,
// which say who they are.
//
// The harness is four things, each in a file of its own: a [registry] to write
// to, [backend]s to be called, an [isthmus] between them, and clients, which
// [dial] makes. A test never sleeps: it waits for what must come about. What
// must not is watched for by traffic, which calls all the time, and by
// [isthmus.Settle], which knows when everything written has come through.
package feature_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// atOnce is how many tests run at a time. They wait far more than they work.
const atOnce = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// await asks again and again until there is no error.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, what, check)
}
