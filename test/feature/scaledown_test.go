package feature_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestScalingDownFileByFileIsApplied removes workloads of a service, one after the
// other. Fewer than ten in an hour are no suspicious drop.
func TestScalingDownFileByFileIsApplied(t *testing.T) {
	t.Parallel()
	const many = 15
	files, b := newRegistry(t, "files"), startBackends(t, "stays", "goes")
	files.Write("shop.yaml", service{Host: reviews, Selector: "{app: reviews}"})
	put := func(i int, b *backend) {
		files.Write(fmt.Sprintf("w%d.yaml", i), workload{Name: fmt.Sprintf("w%d", i), Spec: b.Endpoint("labels: {app: reviews}")})
	}
	put(0, b[0])
	put(1, b[1])
	for i := 2; i < many; i++ { // nobody listens there, and nobody need
		files.Write(fmt.Sprintf("w%d.yaml", i), workload{
			Name: fmt.Sprintf("w%d", i), Spec: fmt.Sprintf("{address: 127.0.2.%d, labels: {app: reviews}}", i),
		})
	}
	isthmus := startWith(t, holding("1h", files), files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("stays", "goes")
	for i := 1; i < 10; i++ {
		files.Remove(fmt.Sprintf("w%d.yaml", i))
		await(t, "the workload to be gone", func() error {
			if s := isthmus.Source("files"); s.State != "live" || s.Endpoints != many-i {
				return fmt.Errorf("%s, with %d endpoints", s.State, s.Endpoints)
			}
			return nil
		})
	}
	client.AwaitAnswers("stays")
}

// TestScalingDownAtOnceIsAppliedOnceConfirmed has one file lose nearly all
// endpoints. They are served until the registry has said so often enough; what
// is added meanwhile is served at once.
func TestScalingDownAtOnceIsAppliedOnceConfirmed(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "stays", "goes", "comes")
	all := endpoints(b[0], b[1])
	for i := range 20 {
		all = append(all, fmt.Sprintf("{address: 127.0.2.%d}", i+1))
	}
	files.Write("shop.yaml", service{Host: reviews, Endpoints: all})
	isthmus := startWith(t, holding("2s", files), files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("stays", "goes")
	calls := client.KeepCalling()

	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0], b[2])})
	isthmus.AwaitSource("files", "held", "21 of 22 endpoints disappeared within ")
	client.AwaitAnswers("stays", "goes", "comes")
	isthmus.AwaitSource("files", "live", "")
	client.AwaitAnswers("stays", "comes")
	if s := isthmus.Source("files"); s.Endpoints != 2 || s.Held != 0 {
		t.Errorf("%d endpoints are left, %d held", s.Endpoints, s.Held)
	}
	calls.MustNotHaveFailed()
}

// holding is a configuration that holds suspicious drops for a time.
func holding(long string, registries ...*registry) string {
	return strings.ReplaceAll(configFor(loopback, registries), "  file:", "  hold: {for: "+long+"}\n  file:")
}
