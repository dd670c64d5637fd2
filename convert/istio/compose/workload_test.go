package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// workloadsOf are the WorkloadEntries that a service is made into, by name.
func workloadsOf(events []model.Event) map[string]*networking.WorkloadEntry {
	found := map[string]*networking.WorkloadEntry{}
	for _, part := range FromService(servicesOf(events)[0], Layout{ShardSize: 5, Workloads: ownLabels()}).Parts {
		if entry, ok := part.Spec.(*networking.WorkloadEntry); ok {
			found[part.Name] = entry
		}
	}
	return found
}

// The object of an endpoint keeps its name, and what it says, whatever others come,
// go or change, and whatever is said of the service.
func TestWorkloadStaysWhatItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fleet := func(label string) []model.Event {
			ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: "a", Namespace: "shop", Name: "x"}}
			events := []model.Event{model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
				Hosts: model.ListOf("x.example.com"), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
				Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: rapid.SampledFrom([]uint32{0, 8080}).Draw(t, label+" target")}),
			}}}}
			for _, n := range append(rapid.SliceOfDistinct(rapid.IntRange(2, 40), rapid.ID).Draw(t, label), 1) {
				owned := ref
				owned.Kind, owned.Name = model.KindEndpoint, fmt.Sprintf("x/%d", n)
				events = append(events, model.Upsert{Record: model.Record{Ref: owned, Owner: ref, Spec: model.Endpoint{
					Address: fmt.Sprintf("10.0.0.%d", n), Ports: model.MapOf(map[string]uint32{"http": 9000}), Weight: uint32(n),
				}}})
			}
			return events
		}
		before, after := workloadsOf(fleet("before")), workloadsOf(fleet("after"))
		same := 0
		for name, entry := range before {
			if now, ok := after[name]; ok {
				same++
				if !proto.Equal(entry, now) {
					t.Fatalf("%s was %v and is %v", name, entry, now)
				}
			} else if entry.GetWeight() == 1 {
				t.Fatalf("%s is not among %v", name, slices.Collect(maps.Keys(after)))
			}
		}
		if same == 0 {
			t.Fatal("there is nothing to compare")
		}
	})
}

// Kubernetes takes the label of every host, and no two hosts share one.
func TestServiceLabelsAreLabelsAndOwn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9*._-]{1,70}`), 1, 8, rapid.ID).Draw(t, "hosts")
		hosts = append(hosts, strings.Repeat("a.", 120)+"b", "*.a", "a", "A", "reviews.default.svc.cluster.local")
		labels := map[string]string{}
		for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
			label := ServiceLabel(host)
			if !names.IsLabelValue(label) || label == "" {
				t.Fatalf("%q is labelled %q", host, label)
			}
			if other, taken := labels[label]; taken {
				t.Fatalf("%q and %q are both labelled %q", other, host, label)
			}
			labels[label] = host
		}
	})
}

// An endpoint that serves some ports only is where the selector does not reach it.
func TestEndpointOfSomePortsIsNotSelected(t *testing.T) {
	t.Parallel()
	made := FromService(servicesOf(partlyServed())[0], Layout{ShardSize: 5, Workloads: ownLabels()})
	var got []string
	for _, part := range made.Parts {
		switch spec := part.Spec.(type) {
		case *networking.WorkloadEntry:
			got = append(got, fmt.Sprintf("WorkloadEntry %s %v", spec.GetAddress(), spec.GetPorts()))
		case *networking.ServiceEntry:
			got = append(got, fmt.Sprintf("ServiceEntry with %d ports and %d endpoints, which selects %v",
				len(spec.GetPorts()), len(spec.GetEndpoints()), spec.GetWorkloadSelector().GetLabels()))
		}
	}
	want := []string{
		"WorkloadEntry 10.0.0.1 map[grpc:90 http:80]",
		"ServiceEntry with 2 ports and 0 endpoints, which selects map[isthmus.io/instance:test isthmus.io/service:x.example.com]",
		"ServiceEntry with 2 ports and 0 endpoints, which selects map[]",
		"ServiceEntry with 1 ports and 1 endpoints, which selects map[]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it is written as %q", got)
	}
}

func partlyServed() []model.Event {
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: "a", Namespace: "shop", Name: "x"}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
		Hosts: model.ListOf("x.example.com"), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 90, Name: "grpc", Protocol: "GRPC"}),
	}}}}
	for address, ports := range map[string]map[string]uint32{"10.0.0.1": {"http": 80, "grpc": 90}, "10.0.0.2": {"http": 80}} {
		owned := ref
		owned.Kind, owned.Name = model.KindEndpoint, "x/"+address
		events = append(events, model.Upsert{Record: model.Record{Ref: owned, Owner: ref, Spec: model.Endpoint{
			Address: address, Exact: true, Ports: model.MapOf(ports),
		}}})
	}
	return events
}
