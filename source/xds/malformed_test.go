package xds_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/source"
)

func sidecar(name string) *anypb.Any {
	return wrap(name, &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*"}}}})
}

// entry is a ServiceEntry of a host and a port.
func entry(name, host string, port uint32) *anypb.Any {
	return wrap(name, &networking.ServiceEntry{
		Hosts: []string{host}, Resolution: networking.ServiceEntry_STATIC,
		Ports:     []*networking.ServicePort{{Number: port, Name: "http", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{{Address: "10.0.9.1"}},
	})
}

// A message of very many fields, which are small on the wire and large in memory, is
// not decoded.
func TestMessageOfTooManyFieldsIsNotDecoded(t *testing.T) {
	variants(t, func(r *rig) {
		r.memory = budget.New(1 << 19)
		for i := range 5_300 {
			r.put("ServiceEntry", strconv.FormatInt(int64(i), 36), &anypb.Any{})
		}
		r.mirror()
		r.pass(time.Second)
		r.is(source.StateListing, "a message of more than 5242 fields")
		r.wants()
	})
}

// Peers send such things. Each is rejected by itself, with its reason; the rest is
// used, and the answer is ACKed.
func TestBadResourceIsRejectedByItself(t *testing.T) {
	variants(t, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1")
		r.serve("shop/stays", "10.0.0.1")
		r.put("ServiceEntry", "shop/nodot", entry("shop/nodot", "nodot", 80))
		r.put("ServiceEntry", "shop/zero", entry("shop/zero", "zero.example", 0))
		r.put("ServiceEntry", "public/a/b", entry("public/a/b", "three.example", 80))
		r.put("ServiceEntry", "shop/other", sidecar("shop/other"))
		r.put("ServiceEntry", "shop/bytes", encode(&mcpapi.Resource{
			Metadata: &mcpapi.Metadata{Name: "shop/bytes"},
			Body:     &anypb.Any{TypeUrl: "type.googleapis.com/istio.networking.v1alpha3.ServiceEntry", Value: []byte{0xff}},
		}))
		r.mirror()
		r.is(source.StateLive, "")
		r.wants("shop/cart 10.0.0.1", "shop/stays 10.0.0.1", "shop/nodot 10.0.9.1")
		r.rejects(
			"ServiceEntry shop/zero … "+newer+" shop/zero … spec.ports[0].number",
			"ServiceEntry public/a/b … names no object",
			"ServiceEntry shop/other … is not the type of ServiceEntry",
			"ServiceEntry shop/bytes … cannot be decoded",
		)
		if n := r.nacks(); len(n) > 0 {
			r.Errorf("NACKed: %q", n)
		}
		// Its last good version stays while it is bad.
		r.put("ServiceEntry", "shop/stays", entry("shop/stays", "stays.example", 0))
		r.serve("shop/cart", "10.0.0.2")
		r.remove("ServiceEntry", "public/a/b")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.2", "shop/stays 10.0.0.1 (stale)", "shop/nodot 10.0.9.1")
		r.put("ServiceEntry", "shop/zero", entry("shop/zero", "zero.example", 80))
		r.serve("shop/stays", "10.0.0.3")
		r.remove("ServiceEntry", "shop/other")
		r.remove("ServiceEntry", "shop/bytes")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.2", "shop/stays 10.0.0.3", "shop/nodot 10.0.9.1", "shop/zero 10.0.9.1")
		r.rejects()
	})
}

// A bad endpoint keeps no other of its service where it was.
func TestBadEndpointIsRejectedByItself(t *testing.T) {
	variants(t, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1", "10.0.0.2")
		r.serve("shop/other", "10.0.1.1")
		r.mirror()
		r.serve("shop/cart", "10.0.0.2", "no address", "10.0.0.3")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.2 10.0.0.3", "shop/other 10.0.1.1")
		r.rejects("ServiceEntry shop/cart … " + newer + " shop/cart … spec.endpoints[1].address … the rest of the object is applied")
		r.is(source.StateLive, "")
		r.serve("shop/cart", "10.0.0.3")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.3", "shop/other 10.0.1.1")
		r.rejects()
	})
}

// An answer whose names are not valid UTF-8 is NACKed in words that a message can carry, and the
// stream goes on.
func TestNamesThatAreNotUTF8AreNACKed(t *testing.T) {
	variants(t, func(r *rig) {
		r.many(3)
		r.mirror()
		before := r.stored()
		broken := &anypb.Any{TypeUrl: resourceURL, Value: []byte("\x0a\x08\x0a\x06shop/\xff")}
		r.change(func() {
			r.resources["ServiceEntry"] = map[string]*anypb.Any{"shop/s00": broken, "shop/s01": broken, "shop/s02": broken}
		})
		r.pass(time.Second)
		if n := r.nacks(); len(n) != 1 || !strings.Contains(n[0], "UTF-8") {
			r.Errorf("NACKs: %q", n)
		}
		if r.stored() != before {
			r.Errorf("stored:\n%s", r.stored())
		}
		r.many(3)
		r.serve("shop/s03", "10.0.0.1")
		r.pass(time.Second)
		r.is(source.StateLive, "")
	})
}

const resourceURL = "type.googleapis.com/istio.mcp.v1alpha1.Resource"

// An answer of which nothing can be decoded is NACKed, and changes nothing.
func TestAnswerOfWhichNothingCanBeDecodedIsNACKed(t *testing.T) {
	variants(t, func(r *rig) {
		r.many(3)
		r.mirror()
		before := r.stored()
		r.change(func() {
			r.resources["ServiceEntry"] = map[string]*anypb.Any{}
			for _, name := range []string{"shop/s00", "shop/s01", "shop/s02"} {
				r.set("ServiceEntry", name, encode(&networking.ServiceEntry{Hosts: []string{"bare.example"}}))
			}
		})
		r.pass(time.Second)
		if n := r.nacks(); len(n) != 1 {
			r.Errorf("NACKs: %q", n)
		}
		e := r.entries()
		if e.NACKed != 1 || e.NACK == "" || e.Received != e.ACKed+1 || time.Since(e.Last) > time.Second {
			r.Errorf("what has passed: %+v", e)
		}
		if r.stored() != before {
			r.Errorf("stored:\n%s", r.stored())
		}
		r.rejects(newer + " … NACKed … istio.networking.v1alpha3.ServiceEntry")
		r.many(3)
		r.serve("shop/s03", "10.0.0.1")
		r.pass(time.Second)
		r.rejects()
		r.is(source.StateLive, "")
		if e := r.entries(); e.Resources != 4 || e.NACKed != 1 || e.NACK != "" {
			r.Errorf("what has passed then: %+v", e)
		}
	})
}

// entries is what has passed of ServiceEntries.
func (r *rig) entries() source.Exchange {
	for _, e := range r.Exchanges() {
		if e.Type == newer {
			return e
		}
	}
	r.Fatalf("nothing has passed of %s", newer)
	return source.Exchange{}
}

// A first answer of that kind is no empty registry.
func TestFirstAnswerOfWhichNothingCanBeDecodedIsAnError(t *testing.T) {
	variants(t, func(r *rig) {
		all := r.many(3)
		r.mirror()
		r.stop()
		r.change(func() {
			for name := range r.resources["ServiceEntry"] {
				r.set("ServiceEntry", name, encode(&networking.ServiceEntry{}))
			}
		})
		r.mirror()
		r.pass(20 * time.Second)
		r.is(source.StateStale, "no resource of "+newer+" from the server is valid")
		r.wants(all...)
	})
}

// A resource without a name that can be read may be any of those that are not there.
func TestNamelessResourceMayBeAnyThatIsMissing(t *testing.T) {
	bubble(t, manner{noDelta: true}, func(r *rig) {
		all := r.many(3)
		r.mirror()
		r.put("ServiceEntry", "shop/s01", &anypb.Any{TypeUrl: resourceURL, Value: []byte{0xff}})
		r.pass(time.Second)
		r.wants(all...)
		r.rejects(newer + " … cannot be decoded")
		r.stop()
		r.mirror() // another process holds nothing but records
		r.is(source.StateLive, "")
		r.wants(all[0], all[1]+" (stale)", all[2])
		r.remove("ServiceEntry", "shop/s01")
		r.pass(time.Second)
		r.rejects()
	})
}

// The version and the name that a delta answer gives are checked against the resource.
func TestResourceUnderAnotherNameIsRejected(t *testing.T) {
	bubble(t, manner{}, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1")
		r.put("ServiceEntry", "shop/pay", service("shop/other", "10.0.0.1"))
		r.mirror()
		r.wants("shop/cart 10.0.0.1")
		r.rejects("ServiceEntry shop/pay … is not the name that the resource is sent under")
	})
}

func TestResourceTwiceInOneAnswerCountsOnce(t *testing.T) {
	bubble(t, manner{noDelta: true}, func(r *rig) {
		r.put("ServiceEntry", "shop/cart", service("shop/cart", "10.0.0.1"))
		r.put("ServiceEntry", "shop/cart again", service("shop/cart", "10.0.0.2"))
		r.mirror()
		r.wants("shop/cart 10.0.0.1")
		r.rejects("shop/cart is there twice")
	})
}
