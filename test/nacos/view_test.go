package nacos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// view is what a client of an Isthmus sees: as Envoy does, it takes all clusters and
// their endpoints.
type view struct {
	*isthmus
	t      *testing.T
	client *xdsclient.Client
}

// look connects a client to each of some Isthmuses.
func look(t *testing.T, readers []*isthmus) (views []view) {
	t.Helper()
	for _, i := range readers {
		conn, err := grpc.NewClient(i.xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		client := xdsclient.NewDelta(t, conn, xdsclient.Config{
			Name: i.name, Node: xdsclient.Node("client", "shop", "envoy"), Follow: xdsclient.FollowClusters,
		})
		client.Subscribe(xdsclient.CDS)
		views = append(views, view{isthmus: i, t: t, client: client})
	}
	return views
}

// expect waits until a client of each has just these endpoints of a host: an address
// and a port each, and a weight if it is not 1. Without any the host itself is gone.
func expect(t *testing.T, views []view, host string, endpoints ...string) {
	t.Helper()
	slices.Sort(endpoints)
	for _, v := range views {
		v.client.AwaitNone(func(s *xdsclient.State) string {
			got, known := endpointsOf(s, host)
			if known == (len(endpoints) > 0) && slices.Equal(got, endpoints) {
				return ""
			}
			return fmt.Sprintf("%s at %q: it is at %q", host, endpoints, got)
		})
	}
}

// clusterOf is the name of the one cluster of a host; empty if there is none.
func clusterOf(s *xdsclient.State, host string) string {
	for _, name := range s.Names(xdsclient.CDS) {
		if strings.HasSuffix(name, "||"+strings.ToLower(host)) {
			return name
		}
	}
	return ""
}

func endpointsOf(s *xdsclient.State, host string) (list []string, known bool) {
	cluster := clusterOf(s, host)
	r, ok := s.Get(xdsclient.EDS, cluster)
	if !ok {
		return nil, cluster != ""
	}
	for _, locality := range r.Content.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			text := fmt.Sprintf("%s:%d", address.GetAddress(), address.GetPortValue())
			if w := e.GetLoadBalancingWeight().GetValue(); w > 1 {
				text += fmt.Sprintf(" weight %d", w)
			}
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return list, true
}

// undisturbed notes how often a host was sent, and returns what fails the test if it
// has been sent again or was gone since.
func undisturbed(t *testing.T, views []view, host string) (check func()) {
	t.Helper()
	count := func(v view) (n int) {
		v.client.Read(func(s *xdsclient.State) {
			cluster := clusterOf(s, host)
			n = s.Received(xdsclient.CDS, cluster) + s.Received(xdsclient.EDS, cluster) + 1000*s.Removals(xdsclient.CDS, cluster)
			if cluster == "" {
				t.Errorf("%s: there is no %s", v.name, host)
			}
		})
		return n
	}
	before := map[string]int{}
	for _, v := range views {
		before[v.name] = count(v)
	}
	return func() {
		t.Helper()
		for _, v := range views {
			if got := count(v); got != before[v.name] {
				t.Errorf("%s: %s was sent or removed meanwhile\n%s", v.name, host, v.client.Report())
			}
		}
	}
}
