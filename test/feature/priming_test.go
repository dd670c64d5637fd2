package feature_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestNothingIsServedBeforeARequiredSourceIsListed(t *testing.T) {
	t.Parallel()
	there, missing := newRegistry(t, "there"), newRegistry(t, "missing")
	b := startBackends(t, "one", "two")
	there.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	missing.Remove("")
	isthmus := start(t, there, missing)

	await(t, "readiness to name what is missing", func() error {
		code, body, err := isthmus.get("/readyz?verbose")
		if err != nil || code != 503 || !strings.Contains(body, "missing: source missing: ") || !strings.Contains(body, "no such file or directory") {
			return fmt.Errorf("%d %s %w", code, body, err)
		}
		return nil
	})
	if code, _, err := isthmus.get("/livez"); code != 200 || err != nil {
		t.Errorf("an Isthmus that waits is not alive: %d %v", code, err)
	}
	err := openStream(t, isthmus, "envoy").AwaitEnd()
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "not primed yet") {
		t.Errorf("a stream before that ends with %v, want Unavailable and why", err)
	}
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitFailure("not primed yet")

	missing.Make()
	missing.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("one", "two")
	if code, body, err := isthmus.get("/readyz"); code != 200 || err != nil {
		t.Errorf("readiness is %d %s %v", code, body, err)
	}
}

func TestEmptyRegistryIsServedAsSuch(t *testing.T) {
	t.Parallel()
	files, one := newRegistry(t, "files"), startBackend(t, "one")
	isthmus := start(t, files)
	isthmus.AwaitSource("files", "live", "")
	envoy := openStream(t, isthmus, "envoy")
	envoy.Await("an answer", func(s *xdsclient.State) bool { return s.Responses(xdsclient.CDS) == 1 })
	envoy.AwaitHeld(xdsclient.CDS)
	client := dial(t, isthmus, reviews+":80", "shop")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	client.AwaitAnswers("one")
}

// TestOptionalSourceIsNotWaitedForLong takes the 10 s that such a source is given.
func TestOptionalSourceIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	there, missing := newRegistry(t, "there"), newRegistry(t, "missing")
	b := startBackends(t, "one", "two")
	there.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	missing.optional = true
	missing.Remove("")
	isthmus := start(t, there, missing)
	await(t, "readiness to name what is missing", func() error {
		code, body, err := isthmus.get("/readyz")
		if err != nil || code != 503 || !strings.Contains(body, "missing: source missing: ") {
			return fmt.Errorf("%d %s %w", code, body, err)
		}
		return nil
	})
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	if code, body, err := isthmus.get("/readyz"); code != 200 || err != nil {
		t.Errorf("readiness is %d %s %v", code, body, err)
	}
	calls := client.KeepCalling()

	missing.Make()
	missing.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("one", "two")
	isthmus.AwaitSource("missing", "live", "")
	calls.MustNotHaveFailed()
}

func TestRegistryMayBeOneFile(t *testing.T) {
	t.Parallel()
	folder, b := newRegistry(t, "folder"), startBackends(t, "one", "two")
	folder.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	isthmus := start(t, &registry{t: t, name: "file", path: folder.At("shop.yaml")})
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()
	folder.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	folder.Remove("shop.yaml")
	isthmus.AwaitSource("file", "stale", "no such file or directory")
	client.AwaitAnswers("two")
	calls.MustNotHaveFailed()
}
