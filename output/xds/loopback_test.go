package xds_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Services that share a port of loopback have conflicts while a sidecar is connected that
// listens there. With none the conflicts would mean nothing.
func TestConflictsOfLoopbackAreThereWithASidecarOfIt(t *testing.T) {
	s := openSite(t, false, nil)
	var events []model.Event
	for n, host := range []string{"first.example", "second.example"} {
		events = append(events, model.Upsert{Record: model.Record{
			Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "registry", Namespace: "shop", Name: host}},
			Spec: model.Service{
				Meta: model.Meta{Created: time.Unix(int64(1e9+n), 0)}, Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
				Addresses: model.ListOf([]string{"10.0.0.1", "10.0.0.2"}[n]), Ports: model.ListOf(model.Port{Number: 5432, Name: "db", Protocol: "TCP"}),
			},
		}})
	}
	s.put(events...)
	conflicts := func(host string) []catalog.Conflict {
		t.Helper()
		now := s.builder.Snapshot()
		service, ok := now.Resolve(catalog.Viewer{Namespace: "shop"}, host)
		if !ok {
			t.Fatalf("there is no service %s", host)
		}
		clients := s.out.Report().Clients
		list := clients.Conflicts(t.Context(), now)(service)
		if _, loses := maps.Collect(clients.Losers(t.Context(), now))[service.Key]; loses != (len(list) > 0) {
			t.Errorf("%s is among the losers: %t, and has the conflicts %v", host, loses, list)
		}
		return list
	}
	connect := func(mode string) raw {
		t.Helper()
		stream := s.connect(adsSotw)
		metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "INTERCEPTION_MODE": mode})
		if err != nil {
			t.Fatal(err)
		}
		stream.say(&discoveryv3.DiscoveryRequest{TypeUrl: cds, Node: &corev3.Node{Id: "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", Metadata: metadata}})
		stream.sotw()
		return stream
	}
	connect("REDIRECT")
	if list := conflicts("second.example"); len(list) > 0 {
		t.Errorf("without a sidecar on loopback it has the conflicts %v", list)
	}
	stream := connect("NONE")
	list := conflicts("second.example")
	if len(list) != 1 || list[0].Field != "ports[5432].addresses" || !strings.Contains(list[0].Reason, "connections to port 5432 of loopback with INTERCEPTION_MODE NONE go to first.example") {
		t.Errorf("it has the conflicts %v", list)
	}
	if list := conflicts("first.example"); len(list) > 0 {
		t.Errorf("the owner has the conflicts %v", list)
	}
	stream.stop()
	until.NoError(t, 10*time.Millisecond, "the end of the conflict when the sidecar has gone", func() error {
		if list := conflicts("second.example"); len(list) > 0 {
			return fmt.Errorf("there are %v", list)
		}
		return nil
	})
}
