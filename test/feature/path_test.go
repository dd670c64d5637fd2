package feature_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// The first of three Isthmuses returns with the same services, which it reads of another now.
// The third reads them with the other path. An Envoy of the second is sent nothing: it sees no
// paths.
func TestAnotherPathIsSentToReadersAlone(t *testing.T) {
	t.Parallel()
	for name, connect := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := newRegistry(t, "files")
			files.Write("reviews.yaml", at(reviews, "192.0.2.1"))
			files.Write("ratings.yaml", at(ratings, "192.0.2.2"))
			named := func(name, text string) string { return "instance: " + name + "\n" + text }
			first := startWith(t, named("west", configFor(loopback, []*registry{files})), files)
			second := startWith(t, named("middle", reads(first)))
			third := startWith(t, reads(second))
			third.awaitPath("west", "middle")
			envoy := connect(t, channel(t, second), xdsclient.Config{
				Node: xdsclient.Node("envoy", "shop", "envoy"), Follow: xdsclient.FollowClusters,
			})
			envoy.Subscribe(xdsclient.CDS)
			envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))

			first.Stop()
			north := startWith(t, named("north", configFor(loopback, []*registry{files})), files)
			startWith(t, named("west", readsAt(north.XDS, first.XDS, "")))
			third.awaitPath("north", "west", "middle")
			files.Write("ratings.yaml", at(ratings, "192.0.2.3")) // whatever was to be sent before has been sent
			envoy.Await("the other endpoint", func(s *xdsclient.State) bool {
				resource, held := s.Get(xdsclient.EDS, cluster(ratings))
				return held && strings.Contains(resource.Content.(*endpointv3.ClusterLoadAssignment).String(), "192.0.2.3")
			})
			envoy.Read(func(s *xdsclient.State) {
				for _, of := range []struct {
					url, host string
					want      int
				}{{xdsclient.CDS, reviews, 1}, {xdsclient.CDS, ratings, 1}, {xdsclient.EDS, reviews, 1}, {xdsclient.EDS, ratings, 2}} {
					if got := s.Received(of.url, cluster(of.host)); got != of.want {
						t.Errorf("%s of %s was sent %d times, not %d", of.url, of.host, got, of.want)
					}
				}
			})
		})
	}
}

// awaitPath waits until both services, and their endpoints, came by some Isthmuses.
func (i *isthmus) awaitPath(path ...string) {
	i.t.Helper()
	for _, host := range []string{reviews, ratings} {
		i.AwaitService(host, func(s admin.Service) error {
			if len(s.Records) != 1 || len(s.Instances) != 1 || !slices.Equal(s.Records[0].Path, path) || !slices.Equal(s.Instances[0].Path, path) {
				return fmt.Errorf("it came as %+v, %+v", s.Records, s.Instances)
			}
			return nil
		})
	}
}
