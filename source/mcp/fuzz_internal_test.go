package mcp

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

// Whatever two answers are, one after the other: nothing panics; what is held is
// counted, and within bounds; a NACK changes nothing; and what is passed on of the
// second one leads to what a listing of everything has.
func FuzzAnswers(f *testing.F) {
	for _, a := range seeds() {
		text, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, text[:len(text)-1])
		f.Add(text[:len(text)/2], text)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		h := newHolding([]string{seedCollection, mcp.Synthetic}, bounds{bytes: 1 << 20, fields: 1 << 10}, "")
		stored := map[model.Ref]bool{}
		for _, text := range [][]byte{first, second} {
			a := &answer{}
			if err := (codec{most: 1000}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, a); err != nil {
				t.Fatal(err)
			}
			c := h.collections.find(a.collection)
			if c == nil {
				continue
			}
			before, size := c.held.Len(), h.size
			d, err := h.compare(c, a)
			if c.held.Len() != before || h.size != size {
				t.Fatal("a comparison changes what is held")
			}
			if err != nil {
				continue
			}
			h.apply(d)
			h.follow(stored, d)
		}
		h.check(t, stored)
	})
}

// A listing of everything leaves nothing to be passed on again, and counts resources of
// which no record is made.
func TestListingLeavesNothingToPassOn(t *testing.T) {
	t.Parallel()
	h := newHolding([]string{seedCollection, mcp.Synthetic}, bounds{bytes: 1 << 20, fields: 1 << 10}, "self")
	for i, c := range h.collections {
		r := c.held.Read()
		r.Put("shop/a", &held{size: 1})
		r.Put("shop/b", &held{size: 1, echoes: i == 0})
		r.Apply()
	}
	if l := h.everything(); l.Ignored["ServiceEntry"] != 1 {
		t.Errorf("ignored are %v", l.Ignored)
	}
	for _, c := range h.collections {
		if l := c.listing(); len(l.Places) > 0 {
			t.Errorf("%v is passed on again", l.Places)
		}
	}
	h.collections[0].held.Put("shop/a", &held{size: 1})
	if l := h.collections[0].listing(); len(l.Places) != 2 {
		t.Errorf("the places are %v, not one of each collection", l.Places)
	}
	h.drop(h.collections[1])
	h.collections[0].held.Put("shop/a", &held{size: 1})
	if l := h.collections[0].listing(); len(l.Places) != 1 {
		t.Errorf("the places are %v, also one of a dropped collection", l.Places)
	}
}

const seedCollection = "istio/networking/v1alpha3/serviceentries"

func seeds() (list []*mcp.Resources) {
	body, _ := anypb.New(&networking.ServiceEntry{
		Hosts: []string{"a.example"}, Resolution: networking.ServiceEntry_STATIC, Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{{Address: "10.0.0.1", Labels: map[string]string{"a": "b"}}},
	})
	a := &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/a", Version: "1", Annotations: map[string]string{mcp.NotReadyEndpoints: "10.0.0.2:80,x"}}, Body: body}
	b := &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/b"}, Body: body}
	for _, collection := range []string{seedCollection, mcp.Synthetic, mcp.TriggerCollection} {
		list = append(list,
			&mcp.Resources{Collection: collection, Nonce: "1", Resources: []*mcpapi.Resource{a, b}, SystemVersionInfo: "v"},
			&mcp.Resources{Collection: collection, Nonce: "2", Resources: []*mcpapi.Resource{b, {}, b}, RemovedResources: []string{"shop/a", "", "x"}, Incremental: true})
	}
	return list
}

// follow does with what is stored what a supervisor does, but for holding anything.
func (h *holding) follow(stored map[model.Ref]bool, d *difference) {
	own := func(ref model.Ref) model.Ref { ref.Source = ""; return ref }
	if d.whole {
		l := d.collection.listing()
		for _, place := range l.Places {
			for ref := range stored {
				if placeOf(d.collection.name, ref.Namespace+"/"+ref.Name) == place {
					delete(stored, ref)
				}
			}
		}
		for _, o := range l.Objects {
			stored[own(o.Record.Ref)] = true
		}
		return
	}
	c := d.collection.change()
	for _, ref := range c.Deletes {
		delete(stored, own(ref))
	}
	for _, o := range c.Upserts {
		stored[own(o.Record.Ref)] = true
	}
}

func (h *holding) check(t *testing.T, stored map[model.Ref]bool) {
	t.Helper()
	size := 0
	for _, c := range h.collections {
		for _, r := range c.held.All() {
			size += r.size
		}
	}
	if size != h.size || size > h.bounds.bytes {
		t.Fatalf("%d bytes are held, of at most %d, and %d counted", size, h.bounds.bytes, h.size)
	}
	for _, o := range h.everything().Objects {
		if !stored[o.Record.Ref] {
			t.Fatalf("%s was not passed on", o.Record.Ref)
		}
	}
}
