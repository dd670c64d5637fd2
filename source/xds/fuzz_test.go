package xds

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// FuzzAnswers gives whatever a server may send, twice in a row: nothing panics, what
// is held is what was said, and saying it again changes nothing.
func FuzzAnswers(f *testing.F) {
	pack := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			f.Fatal(err)
		}
		return a
	}
	entry := pack(&mcpapi.Resource{
		Metadata: &mcpapi.Metadata{Name: "shop/a", Labels: map[string]string{"a": "b"}},
		Body:     pack(&networking.ServiceEntry{Hosts: []string{"a.example"}, Ports: []*networking.ServicePort{{Number: 80, Name: "http"}}}),
	})
	for _, m := range []proto.Message{
		&discoveryv3.DiscoveryResponse{Nonce: "1", TypeUrl: "networking.istio.io/v1/ServiceEntry", Resources: []*anypb.Any{entry, {}, pack(&mcpapi.Resource{})}},
		&discoveryv3.DeltaDiscoveryResponse{
			Nonce: "1", TypeUrl: "networking.istio.io/v1/ServiceEntry", RemovedResources: []string{"shop/b", "", "shop/a"},
			Resources: []*discoveryv3.Resource{{Name: "shop/a", Version: "1", Resource: entry}, {Name: "shop/c"}, {Name: "shop/a"}, {Resource: entry}},
		},
	} {
		wire, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(false, wire, wire[:len(wire)-3])
		f.Add(true, wire, []byte{})
	}
	f.Fuzz(func(t *testing.T, delta bool, first, second []byte) {
		s := &stream{delta: delta}
		for _, kind := range []string{"ServiceEntry", "Sidecar", "DestinationRule"} {
			k, _ := istio.ByName(kind)
			h := newHeld().of(k.URL(), k)
			for _, data := range [][]byte{first, second} {
				if a, err := s.decode(received{data: data}); err == nil {
					checkAnswer(t, h, a)
				}
			}
		}
	})
}

func checkAnswer(t *testing.T, h *holding, a answer) {
	t.Helper()
	d := h.compare(a)
	if h.undecodable(d) != "" {
		return
	}
	h.apply(d)
	size := int64(0)
	for name, r := range h.resources.All() {
		size += r.size()
		reading := r.read(h.kind)
		states := 0
		for _, holds := range []bool{reading.Valid(), reading.Ignored, len(reading.Problems) > 0} {
			if holds {
				states++
			}
		}
		if name == "" || states != 1 {
			t.Errorf("%q is read as %+v", name, reading)
		}
		if a.full && !d.nameless && !d.Has(name) {
			t.Errorf("%q is held, and the answer lacks it", name)
		}
	}
	if size != h.size {
		t.Errorf("%d bytes are held, and %d counted", size, h.size)
	}
	again := h.compare(a)
	for name := range again.Changed() {
		t.Errorf("%q is different when it is said again", name)
	}
	for name := range again.Gone() {
		if _, known := h.resources.Get(name); known {
			t.Errorf("%q goes when it is said again", name)
		}
	}
}
