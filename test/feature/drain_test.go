package feature_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// inTime is how long an Isthmus may take to end: it ends its streams over most of the
// drain, and a busy machine takes longer.
const inTime = output.Drain + 10*time.Second

func TestStoppingSendsClientsElsewhere(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	isthmus := start(t, files)
	client, envoy := dial(t, isthmus, reviews+":80", "shop"), openStream(t, isthmus, "envoy")
	envoy.AwaitHeld(xdsclient.CDS, cluster(reviews))
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	began := time.Now()
	isthmus.Stop()
	if took := time.Since(began); took > inTime {
		t.Errorf("the application took %s to end", took)
	}
	if err := envoy.AwaitEnd(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("the stream ended with %v, want Unavailable and that it is stopping", err)
	}
	client.AwaitAnswers("one")
	calls.MustNotHaveFailed()
}

// TestStoppingDoesNotWaitForWhatNeverComes stops an Isthmus that has nothing to
// serve yet, while clients wait for it.
func TestStoppingDoesNotWaitForWhatNeverComes(t *testing.T) {
	t.Parallel()
	missing := newRegistry(t, "missing")
	missing.Remove("")
	isthmus := start(t, missing)
	isthmus.AwaitSource("missing", "listing", "no such file or directory")
	envoy := openStream(t, isthmus, "envoy")
	began := time.Now()
	isthmus.Stop()
	if took := time.Since(began); took > inTime {
		t.Errorf("the application took %s to end", took)
	}
	if err := envoy.AwaitEnd(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want Unavailable", err)
	}
}

// TestStoppingGivesUpOnClientsThatAreStuck has a peer that opened a stream and
// says nothing.
func TestStoppingGivesUpOnClientsThatAreStuck(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	isthmus := start(t, files)
	isthmus.AwaitSource("files", "live", "")
	stuck := xdsclient.NewSotW(t, channel(t, isthmus), xdsclient.Config{Node: xdsclient.Node("stuck", "", "envoy"), Deadline: patience})
	began := time.Now()
	isthmus.Stop()
	if took := time.Since(began); took > inTime {
		t.Errorf("the application took %s to end", took)
	}
	if err := stuck.AwaitEnd(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want Unavailable", err)
	}
}

// TestProcessEndsInTimeWhenTerminated runs the program itself.
func TestProcessEndsInTimeWhenTerminated(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	program := build(t)
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := startProcess(t, program, configFor(loopback, []*registry{files}))
		client := dial(t, p.isthmus, reviews+":80", "shop")
		client.AwaitAnswers("one")
		began := time.Now()
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("the process ended with %v after %v, want 0", err, signal)
		}
		if took := time.Since(began); took > inTime {
			t.Errorf("the process took %s to end", took)
		}
		client.AwaitAnswers("one")
		if err := client.Conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
