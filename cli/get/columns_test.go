package get

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
)

// The row of each kind has its headings, whatever the record contains.
func TestEachKindHasItsColumns(t *testing.T) {
	t.Parallel()
	at := timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	ref := &resourcev1alpha1.Ref{Kind: "K", Source: "files", Namespace: "shop", Name: "cart"}
	for kind, test := range map[string]struct {
		record   *resourcev1alpha1.Record
		headings string
		values   string
	}{
		"Endpoint": {
			&resourcev1alpha1.Record{Ref: ref, Content: &resourcev1alpha1.Record_Endpoint{Endpoint: &resourcev1alpha1.Endpoint{
				Address: "192.0.2.1", AdditionalAddresses: []string{"::1"}, Ports: map[string]uint32{"http": 8080, "grpc": 9090}, Health: "DRAINING",
			}}, Stale: "no port", StaleSince: at},
			"namespace|name|address|ports|health|source|stale", "shop|cart|192.0.2.1,::1|grpc:9090,http:8080|DRAINING|files|since 2026-01-02 03:04:05: no port",
		},
		"Workload": {
			&resourcev1alpha1.Record{Ref: ref, Content: &resourcev1alpha1.Record_Workload{Workload: &resourcev1alpha1.Workload{
				Endpoint: &resourcev1alpha1.Endpoint{Address: "192.0.2.1"},
			}}},
			"namespace|name|address|ports|health|source|stale", "shop|cart|192.0.2.1|-|HEALTHY|files|-",
		},
		"Scope": {
			&resourcev1alpha1.Record{Ref: ref, Content: &resourcev1alpha1.Record_Scope{Scope: &resourcev1alpha1.Scope{
				Hosts: []string{"./*", "shop/a"}, WorkloadSelector: map[string]string{"app": "web"},
			}}},
			"namespace|name|hosts|workloads|source|stale", "shop|cart|./*,shop/a|app=web|files|-",
		},
		"Consumption": {
			&resourcev1alpha1.Record{Ref: ref, Content: &resourcev1alpha1.Record_Consumption{Consumption: &resourcev1alpha1.Consumption{
				Consumer: &resourcev1alpha1.ServiceName{Namespace: "shop", Host: "web"}, Providers: []*resourcev1alpha1.ServiceName{{Namespace: "shop", Host: "cart"}},
			}}},
			"namespace|name|consumer|providers|source|stale", "shop|cart|web|shop/cart|files|-",
		},
		"Split": {
			&resourcev1alpha1.Record{Ref: ref, Content: &resourcev1alpha1.Record_Split{Split: &resourcev1alpha1.Split{
				Host: "cart", Backends: []*resourcev1alpha1.Backend{{Source: "new", Labels: map[string]string{"v": "2"}, Weight: 1}, {Weight: 9}}, NoEffect: "no weight",
			}}},
			"namespace|name|host|backends|no effect|source|stale", "shop|cart|cart|new v=2:1,all:9|no weight|files|-",
		},
		"Source": {
			&resourcev1alpha1.Record{Ref: ref, Revision: 7, Content: &resourcev1alpha1.Record_SourceMark{SourceMark: &resourcev1alpha1.SourceMark{HoldUntil: at}}},
			"namespace|name|held until|stale since|revision|source|stale", "shop|cart|2026-01-02 03:04:05|-|7|files|-",
		},
		"Hold": {
			&resourcev1alpha1.Record{Ref: ref, Content: &resourcev1alpha1.Record_Hold{Hold: &resourcev1alpha1.Hold{Lost: 12, Reason: "half is gone"}}},
			"namespace|name|lost|reason|revision|source|stale", "shop|cart|12|half is gone|0|files|-",
		},
		"MergedEndpoint": {
			&resourcev1alpha1.Record{Ref: ref, Owner: &resourcev1alpha1.Ref{Name: "cart.example"}, Content: &resourcev1alpha1.Record_MergedEndpoint{
				MergedEndpoint: &resourcev1alpha1.MergedEndpoint{ServicePort: 80, Source: "files", Endpoint: &resourcev1alpha1.Endpoint{Address: "unix:///a"}},
			}},
			"namespace|host|port|address|weight|health|source|stale", "shop|cart.example|80|unix:///a|1|HEALTHY|files|-",
		},
		"DestinationRule": {
			&resourcev1alpha1.Record{Ref: ref, Revision: 7, Place: "a.yaml", Content: &resourcev1alpha1.Record_Opaque{Opaque: &resourcev1alpha1.Opaque{Content: []byte("abc")}}},
			"namespace|name|bytes|place|revision|source|stale", "shop|cart|3|a.yaml|7|files|-",
		},
	} {
		if got := strings.Join(headings(kind), "|"); got != test.headings {
			t.Errorf("%s has the headings %s, want %s", kind, got, test.headings)
		}
		if got := strings.Join(values(kind, test.record), "|"); got != test.values {
			t.Errorf("%s has the values %s, want %s", kind, got, test.values)
		}
		if n := len(values(kind, &resourcev1alpha1.Record{})); n != len(headings(kind)) {
			t.Errorf("%s without content has %d values", kind, n)
		}
	}
}

// A kind is found by the words that users of kubectl try.
func TestKindsAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"service": "Service", "SERVICES": "Service", "svc": "Service", "endpoints": "Endpoint", "ep": "Endpoint", "wl": "Workload",
		"mergedservices": "MergedService", "MergedEndpoint": "MergedEndpoint", "holds": "Hold", "source": "Source", "scopes": "Scope",
		"destinationrules": "DestinationRule", "gateways": "Gateway", "authorizationpolicies": "AuthorizationPolicy",
		"sidecars": "Scope", "trafficsplits": "Split", "Novelty": "Novelty",
	} {
		got, known := kindOf(word)
		if got != want || known != (word != "Novelty") {
			t.Errorf("%s means %s (known: %t), want %s", word, got, known, want)
		}
	}
}
