package resource_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/model"
)

// instance is an endpoint as Kubernetes has hundreds of thousands.
var instance = model.Record{
	Ref:      model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "kubernetes", Namespace: "shop", Name: "checkout/10.20.30.40"}},
	UID:      model.UID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	Revision: 123456, Generation: 3,
	Owner: model.Ref{Kind: model.KindService, Key: model.Key{Source: "kubernetes", Namespace: "shop", Name: "checkout"}},
	Spec: model.Endpoint{
		Address: "10.20.30.40", Ports: model.MapOf(map[string]uint32{"http": 8080}),
		Labels:  model.MapOf(map[string]string{"app": "checkout", "version": "v7", "pod-template-hash": "6d5f8c9b7"}),
		Network: "main", Locality: model.Locality{Region: "eu-1", Zone: "eu-1a"}, Node: "node-17", ServiceAccount: "spiffe://cluster.local/ns/shop/sa/checkout",
	},
}

// BenchmarkMessage is the cost of one endpoint: of its message, and with its encoding.
func BenchmarkMessage(b *testing.B) {
	b.Run("message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resource.Message(&instance)
		}
	})
	b.Run("encoded", func(b *testing.B) {
		b.ReportAllocs()
		var buffer []byte
		for b.Loop() {
			var err error
			if buffer, err = (proto.MarshalOptions{}).MarshalAppend(buffer[:0], resource.Message(&instance)); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(len(buffer)))
	})
}

// BenchmarkAppend is the cost of one encoded endpoint without a message.
func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	var buffer []byte
	for b.Loop() {
		var err error
		if buffer, err = resource.Append(buffer[:0], &instance); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buffer)))
}

// BenchmarkRecord is the cost of reading one endpoint.
func BenchmarkRecord(b *testing.B) {
	m := resource.Message(&instance)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := resource.Record(m); err != nil {
			b.Fatal(err)
		}
	}
}

// Pages of endpoints are made of messages, so none may take many allocations.
func TestAnEndpointTakesFewAllocations(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { resource.Message(&instance) }); got > 6 {
		t.Errorf("a message takes %v allocations", got)
	}
}
