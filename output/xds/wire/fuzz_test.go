package wire

import (
	"hash/maphash"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// A request without its names loses nothing else, and its type is found.
func FuzzDigest(f *testing.F) {
	seed, err := proto.Marshal(&discoveryv3.DiscoveryRequest{VersionInfo: "0123456789abcdef0123456789abcdef01", ResourceNames: []string{"*", "a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, text []byte) {
		var m discoveryv3.DiscoveryRequest
		if proto.Unmarshal(text, &m) != nil {
			return
		}
		var rest discoveryv3.DiscoveryRequest
		_, typeURL, other := digest(maphash.MakeSeed(), text, nil)
		if string(typeURL) != m.GetTypeUrl() {
			t.Errorf("it is about %q, and not %q", m.GetTypeUrl(), typeURL)
		}
		if err := proto.Unmarshal(other, &rest); err != nil || len(rest.GetResourceNames()) > 0 {
			t.Errorf("without its names it is %v, %v", &rest, err)
		}
		rest.ResourceNames = m.GetResourceNames()
		if !proto.Equal(&rest, &m) {
			t.Errorf("%v lost more than its names: %v", &m, &rest)
		}
	})
}

// What is let through to be decoded has no more names than it may.
func FuzzMeasure(f *testing.F) {
	seed, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{
		ResourceNamesSubscribe: []string{"a", "b", "c"}, InitialResourceVersions: map[string]string{"a": "1"},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	limits := Limits{Names: 2, NamesBytes: 8, FieldBytes: 64}
	f.Fuzz(func(t *testing.T, text []byte) {
		var sotw discoveryv3.DiscoveryRequest
		if limits.measure(text, world.WholeState) == nil && proto.Unmarshal(text, &sotw) == nil && len(sotw.GetResourceNames()) > limits.Names {
			t.Errorf("%d names", len(sotw.GetResourceNames()))
		}
		var delta discoveryv3.DeltaDiscoveryRequest
		if limits.measure(text, world.Delta) == nil && proto.Unmarshal(text, &delta) == nil &&
			max(len(delta.GetResourceNamesSubscribe()), len(delta.GetResourceNamesUnsubscribe()), len(delta.GetInitialResourceVersions())) > limits.Names {
			t.Errorf("%v", &delta)
		}
	})
}
