package xds_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// Clients that never read neither hold up those that do, nor make the server
// remember more than the newest of everything.
func TestPoint67_ClientsThatNeverRead(t *testing.T) {
	const (
		host      = "big.example"
		endpoints = 300 // of 400 bytes each: more than the transport takes off our hands
		changes   = 100
		stuck     = 3
	)
	r := newRig(t, setup{engine: push.Config{Patience: time.Millisecond, Workers: 1}})
	r.put(service("shop", probe))
	r.put(bigService(host, endpoints)...)
	for i := range stuck {
		stick(t, r, fmt.Sprint("stuck", i), host)
	}
	reader := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("reader", "shop", "envoy"), Overlap: true})
	reader.Subscribe(eds, clusterOf(host))
	change := func(i int) {
		e := endpoint("shop", host, "0", "")
		e.Spec = model.Endpoint{Address: "10.1.0.0", Weight: uint32(i + 2)}
		r.put(e)
		reader.Await(fmt.Sprintf("change %d", i), func(s *xdsclient.State) bool { return weightOf(s, clusterOf(host)) == uint32(i+2) })
	}
	var before uint64
	for i := range changes {
		if i == changes/10 {
			before = heap()
		}
		change(i)
	}
	// What was sent and not read would be 36 MB; pools and the race detector's
	// own come and go by some megabytes.
	if after := heap(); after > before+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes in %d changes", before, after, changes)
	}
	r.await("status that shows them as waiting", func() bool {
		waiting := 0
		for _, client := range r.engine.Clients() {
			if client.ID != "reader" && len(client.Types) > 0 && client.Types[0].State == session.Waiting {
				waiting++
			}
		}
		return waiting == stuck
	})
}

// bigService has so many endpoints that the transport does not take its
// assignment off our hands: 400 bytes each.
func bigService(host string, endpoints int) []model.Record {
	records := []model.Record{service("shop", host)}
	for i := range endpoints {
		e := endpoint("shop", host, fmt.Sprint(i), "")
		e.Spec = model.Endpoint{
			Address:  fmt.Sprintf("10.1.%d.%d", i/250, i%250),
			Locality: model.Locality{Region: "far away", Zone: fmt.Sprintf("%0370d", i)},
		}
		records = append(records, e)
	}
	return records
}

// stick connects a client that subscribes and then never reads.
func stick(t *testing.T, r *rig, name, host string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(r.dial()).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, typeURL := range []string{eds, cds} {
		err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{
			Node: xdsclient.Node(name, "shop", "envoy"), TypeUrl: typeURL, ResourceNamesSubscribe: clustersOf(host),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// heap is what is in use. What other tests left in pools or to finalizers goes only with
// a later collection.
func heap() uint64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
