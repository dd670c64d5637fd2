package xds

import (
	"hash/maphash"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/push"
)

// types are like the real ones in what matters to the protocol.
var fuzzedTypes = []push.TypeSpec{{Name: "whole", Whole: true}, {Name: "parts"}}

func fuzzedStream() *stream {
	engine := push.New(push.Config{})
	engine.Produce(fuzzedTypes)
	return &stream{server: &Server{engine: engine}, types: map[push.Type]*asked{}, serials: map[push.Type]uint64{}}
}

// Whatever a client sends becomes a request that asks for no more than the
// message did.
func FuzzSotwRequest(f *testing.F) {
	seed, err := proto.Marshal(&discoveryv3.DiscoveryRequest{VersionInfo: "0123456789abcdef0123456789abcdef01", ResourceNames: []string{"*", "a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, latest uint64) {
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
		for typ := range fuzzedTypes {
			s := fuzzedStream()
			s.serials[push.Type(typ)] = latest
			r := s.sotwRequest(push.Type(typ), &sotwMessage{DiscoveryRequest: &m})
			if len(r.Names) > len(m.GetResourceNames()) {
				t.Errorf("%d names became %d", len(m.GetResourceNames()), len(r.Names))
			}
			if r.Wildcard == push.WildcardOn && len(m.GetResourceNames()) == 0 && !fuzzedTypes[typ].Whole {
				t.Error("no names became all names")
			}
		}
	})
}

// The same for the incremental variant.
func FuzzDeltaRequest(f *testing.F) {
	seed, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{
		ResourceNamesSubscribe: []string{"*", "a"}, ResourceNamesUnsubscribe: []string{"*"},
		InitialResourceVersions: map[string]string{"a": "0123456789abcdef0123456789abcdef0123", "b": "x"},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, latest uint64) {
		var m discoveryv3.DeltaDiscoveryRequest
		if proto.Unmarshal(text, &m) != nil {
			return
		}
		for typ := range fuzzedTypes {
			s := fuzzedStream()
			s.serials[push.Type(typ)] = latest
			r := s.deltaRequest(push.Type(typ), &m)
			if len(r.Subscribe) > len(m.GetResourceNamesSubscribe()) || len(r.Held) != len(m.GetInitialResourceVersions()) {
				t.Errorf("%v became %v", &m, r)
			}
			if again := s.deltaRequest(push.Type(typ), &m); len(again.Held) > 0 {
				t.Error("a later request says again what the client held at first")
			}
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
	limits := Limits{Names: 2, NamesBytes: 8, FieldBytes: 64}.withDefaults()
	f.Fuzz(func(t *testing.T, text []byte) {
		var sotw discoveryv3.DiscoveryRequest
		if limits.measure(text, push.WholeState) == nil && proto.Unmarshal(text, &sotw) == nil && len(sotw.GetResourceNames()) > limits.Names {
			t.Errorf("%d names", len(sotw.GetResourceNames()))
		}
		var delta discoveryv3.DeltaDiscoveryRequest
		if limits.measure(text, push.Delta) == nil && proto.Unmarshal(text, &delta) == nil &&
			max(len(delta.GetResourceNamesSubscribe()), len(delta.GetResourceNamesUnsubscribe()), len(delta.GetInitialResourceVersions())) > limits.Names {
			t.Errorf("%v", &delta)
		}
	})
}
