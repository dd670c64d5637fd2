package xds

import (
	"hash/maphash"
	"math"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// fuzzedTypes are like the real ones in what matters to the protocol.
var fuzzedTypes = []target{{Type: 0, url: "whole", whole: true}, {Type: 1, url: "parts"}}

// decoded decodes a message with any number of names and with fields of any size.
func decoded(mode world.Mode, text []byte) (*wire.Request, error) {
	d := wire.Decoder{Mode: mode, Limits: wire.Limits{Names: math.MaxInt, NamesBytes: math.MaxInt, FieldBytes: math.MaxInt}, Seed: maphash.MakeSeed()}
	return d.Decode(text, nil)
}

// A request of the state of the world asks the engine for no more than the message did.
func FuzzSotwRequest(f *testing.F) {
	seed, err := proto.Marshal(&discoveryv3.DiscoveryRequest{VersionInfo: "0123456789abcdef0123456789abcdef01", ResourceNames: []string{"*", "a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, latest uint64) {
		m, err := decoded(world.WholeState, text)
		if err != nil {
			return
		}
		for _, to := range fuzzedTypes {
			to.latest = latest
			r := new(asked).wholeState(to, m)
			if len(r.Names) > len(m.Names) {
				t.Errorf("%d names became %d", len(m.Names), len(r.Names))
			}
			if r.Wildcard == session.WildcardOn && len(m.Names) == 0 && !to.whole {
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
		m, err := decoded(world.Delta, text)
		if err != nil {
			return
		}
		for _, to := range fuzzedTypes {
			to.latest = latest
			state := new(asked)
			r := state.delta(to, m, true)
			if len(r.Subscribe) > len(m.Subscribe) || len(r.Held) != len(m.Held) || !r.MarkFirst {
				t.Errorf("%v became %v", m, r)
			}
			if again := state.delta(to, m, true); len(again.Held) > 0 || again.MarkFirst {
				t.Error("a later request says again what the client held at first")
			}
		}
	})
}
