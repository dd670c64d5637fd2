package feature_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestStoppingSendsClientsElsewhere(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	isthmus := start(t, files)
	client, envoy := dial(t, isthmus, reviews+":80", "shop"), openStream(t, isthmus, "envoy")
	envoy.AwaitHeld(xdsclient.CDS, cluster(reviews))
	client.AwaitAnswers("one")
	calls := client.KeepCalling()

	isthmus.Stop()
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
	isthmus.Stop()
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
	stuck := xdsclient.NewSotW(t, channel(t, isthmus), xdsclient.Config{Node: xdsclient.Node("stuck", "", "envoy")})
	isthmus.Stop()
	if err := stuck.AwaitEnd(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want Unavailable", err)
	}
}

// TestProcessEndsWhenTerminated runs the program itself.
func TestProcessEndsWhenTerminated(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	program := build(t)
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := startProcess(t, program, configFor(loopback, []*registry{files}))
		client := dial(t, p.isthmus, reviews+":80", "shop")
		client.AwaitAnswers("one")
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("the process ended with %v after %v, want 0", err, signal)
		}
		client.AwaitAnswers("one")
		if err := client.Conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
