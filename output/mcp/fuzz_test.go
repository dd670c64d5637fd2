package mcp

import (
	"testing"

	"google.golang.org/protobuf/proto"

	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Whatever a sink sends is rejected or becomes a request that asks for no more than
// the message did, and answers nothing but what waits for an answer.
func FuzzRequest(f *testing.F) {
	for _, m := range []*wire.RequestResources{
		{Collection: "whole", Incremental: true, InitialResourceVersions: map[string]string{"a/one": "0123456789abcdef0123456789abcdef"}},
		{Collection: "whole", ResponseNonce: "7"},
		{SinkNode: &wire.SinkNode{Id: "pilot", Annotations: map[string]string{"a": "b"}}, Collection: "whole"},
	} {
		text, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint64(7), true)
	}
	limits := Limits{Versions: 4, FieldBytes: 1 << 10}.withDefaults()
	f.Fuzz(func(t *testing.T, text []byte, open uint64, begun bool) {
		m, err := limits.decode(text)
		if err != nil {
			return
		}
		if len(m.GetInitialResourceVersions()) > limits.Versions {
			t.Fatalf("%d versions passed", len(m.GetInitialResourceVersions()))
		}
		st := &stream{begun: map[world.Type]bool{}, open: map[world.Type]uint64{0: open}}
		if begun {
			st.begun[0] = true
		}
		r, counts := st.requestOf(0, m)
		if len(r.Held) > len(m.GetInitialResourceVersions()) || len(r.Held) > 0 && (begun || !m.GetIncremental()) {
			t.Errorf("%d names are held of %v", len(r.Held), m)
		}
		if counts && m.GetResponseNonce() != "" && (r.Answer.Serial != open || open == 0) {
			t.Errorf("%q answers %d, and %d waits", m.GetResponseNonce(), r.Answer.Serial, open)
		}
		if !counts && st.open[0] != open {
			t.Error("what does not count has answered something")
		}
	})
}
