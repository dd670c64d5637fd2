package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// registered is a ServiceEntry as registries make it.
func registered(change func(*networking.ServiceEntry)) *networking.ServiceEntry {
	entry := &networking.ServiceEntry{
		Hosts: []string{"orders.example"}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{
			{Address: "10.0.0.1", Ports: map[string]uint32{"http": 8080}, Labels: map[string]string{"zone": "a"}},
			{Address: "10.0.0.2", Ports: map[string]uint32{"http": 8080}},
			{Address: "10.0.0.3", Ports: map[string]uint32{"http": 8080}},
		},
	}
	if change != nil {
		change(entry)
	}
	return entry
}

func fromRegistry(entry *networking.ServiceEntry) istio.Reading {
	body, err := anypb.New(entry)
	if err != nil {
		panic(err)
	}
	return istio.FromResource(entries(), &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/orders"}, Body: body})
}

// summary is what a reading has: the ports of the service, and each endpoint.
func summary(r istio.Reading) string {
	if !r.Valid() {
		return "invalid"
	}
	var words []string
	for _, p := range r.Spec.(model.Service).Ports.Slice() {
		words = append(words, fmt.Sprintf("%s=%d", p.Name, p.Number))
	}
	for _, o := range r.Owned {
		e := o.Spec.(model.Endpoint)
		text := e.Address
		for key, value := range e.Labels.All() {
			text += " " + key + "=" + value
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

func written(problems []istio.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Field+": "+p.Reason)
	}
	return strings.Join(all, "\n")
}

// One bad instance of a registry is left out, and its service goes on.
func TestOfARegistrysServiceTheBadPiecesAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*networking.ServiceEntry)
		want   string
		says   []string
	}{
		"a port 0": {
			func(e *networking.ServiceEntry) { e.Endpoints[1].Ports["http"] = 0 },
			"http=80, 10.0.0.1 zone=a, 10.0.0.3",
			[]string{"spec.endpoints[1].ports.http: 0 is not a port"},
		},
		"a port that the service has not": {
			func(e *networking.ServiceEntry) { e.Endpoints[1].Ports = map[string]uint32{"grpc": 9090} },
			"http=80, 10.0.0.1 zone=a, 10.0.0.3",
			[]string{`spec.endpoints[1].ports.grpc: the service has no port named "grpc"`},
		},
		"no address": {
			func(e *networking.ServiceEntry) { e.Endpoints[0].Address = "" },
			"http=80, 10.0.0.2, 10.0.0.3",
			[]string{"spec.endpoints[0].address: missing"},
		},
		"an address that is a name": {
			func(e *networking.ServiceEntry) { e.Endpoints[2].Address = "db.example.com" },
			"http=80, 10.0.0.1 zone=a, 10.0.0.2",
			[]string{`spec.endpoints[2].address: "db.example.com" is not an IP address`},
		},
		"a label": {
			func(e *networking.ServiceEntry) {
				e.Endpoints[0].Labels["not a key"], e.Endpoints[0].Labels["note"] = "x", "two words"
			},
			"http=80, 10.0.0.1 zone=a, 10.0.0.2, 10.0.0.3",
			[]string{`spec.endpoints[0].labels.note: "two words" cannot be a label's value`, `spec.endpoints[0].labels["not a key"]: `},
		},
		"sockets beside two ports": {
			func(e *networking.ServiceEntry) {
				e.Ports = append(e.Ports, &networking.ServicePort{Number: 81, Name: "tcp", Protocol: "TCP"})
				e.Endpoints[0] = &networking.WorkloadEntry{Address: "unix:///a"}
				e.Endpoints[2] = &networking.WorkloadEntry{Address: "unix:///b"}
			},
			"http=80, tcp=81, 10.0.0.2",
			[]string{"spec.endpoints[0].address: a unix socket", "spec.endpoints[2].address: a unix socket"},
		},
		"all of them": {
			func(e *networking.ServiceEntry) {
				for _, endpoint := range e.Endpoints {
					endpoint.Ports["http"] = 0
				}
			},
			"http=80",
			[]string{"spec.endpoints[0].ports.http", "spec.endpoints[1].ports.http", "spec.endpoints[2].ports.http"},
		},
		"the only one, of which the service has its port": {
			func(e *networking.ServiceEntry) {
				e.Ports[0].Number, e.Endpoints = 0, e.Endpoints[:1]
				e.Endpoints[0].Ports["http"] = 0
			},
			"",
			[]string{"spec.endpoints[0].ports.http: 0 is not a port", "spec.ports[0].number: missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := fromRegistry(registered(c.change))
			if got := summary(r); got != c.want {
				t.Errorf("read is %q, want %q: %v", got, c.want, r.Problems)
			}
			if len(r.Rejected) != len(c.says) {
				t.Fatalf("rejected is\n%s", written(r.Rejected))
			}
			for i, says := range c.says {
				if got := r.Rejected[i].Field + ": " + r.Rejected[i].Reason; !strings.HasPrefix(got, says) {
					t.Errorf("rejected is %q, want %q", got, says)
				}
			}
			f := r.Rejection("place", "where")
			if f.Ref != r.Ref || f.Field != r.Rejected[0].Field || !strings.HasSuffix(f.Reason, "; the rest of the object is applied") {
				t.Errorf("the rejection is %+v", f)
			}
			// A person has to correct it.
			if r := istio.FromMessage(istio.Object{Namespace: "shop", Name: "orders", Spec: registered(c.change)}); r.Valid() {
				t.Error("it is valid in a file, too")
			}
		})
	}
}

// What is left must mean what it meant. Else nothing of it is taken.
func TestARegistrysServiceThatCannotBeRepairedIsInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*networking.ServiceEntry)
		says   []string
	}{
		"the host would be looked up": {
			func(e *networking.ServiceEntry) {
				e.Resolution = networking.ServiceEntry_DNS
				e.Endpoints = []*networking.WorkloadEntry{{Address: "no name"}}
			},
			[]string{"spec.endpoints[0].address"},
		},
		"the service itself is bad": {
			func(e *networking.ServiceEntry) { e.Hosts[0], e.Endpoints[0].Address = "under_score", "no name" },
			[]string{"spec.endpoints[0].address", "spec.hosts[0]"},
		},
		"endpoints serve a port of an unknown number": {
			func(e *networking.ServiceEntry) { e.Ports[0].Number, e.Endpoints[0].Ports["http"] = 0, 8081 },
			[]string{"spec.ports[0].number"},
		},
		"an endpoint serves it somewhere": {
			func(e *networking.ServiceEntry) { e.Ports[0].Number, e.Endpoints[0].Ports = 0, nil },
			[]string{"spec.ports[0].number"},
		},
		"a number beyond all": {
			func(e *networking.ServiceEntry) { e.Ports[0].Number = 70000 },
			[]string{"spec.ports[0].number"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := fromRegistry(registered(c.change))
			fields := make([]string, len(r.Problems))
			for i, p := range r.Problems {
				fields[i] = p.Field
			}
			if r.Valid() || len(r.Owned) > 0 || !slices.Equal(fields, c.says) {
				t.Errorf("read is %q with %s", summary(r), written(r.Problems))
			}
		})
	}
}

// Nacos 3 says the number of a port nowhere but at the instances.
func TestAPortWithoutANumberHasThatOfItsEndpoints(t *testing.T) {
	r := fromRegistry(registered(func(e *networking.ServiceEntry) { e.Ports[0].Number = 0 }))
	if got := summary(r); got != "http=8080, 10.0.0.1 zone=a, 10.0.0.2, 10.0.0.3" || len(r.Rejected) > 0 {
		t.Errorf("read is %q: %s %v", got, written(r.Problems), r.Rejected)
	}
	// An endpoint that is left out has no say.
	r = fromRegistry(registered(func(e *networking.ServiceEntry) { e.Ports[0].Number, e.Endpoints[1].Ports["http"] = 0, 0 }))
	if got := summary(r); got != "http=8080, 10.0.0.1 zone=a, 10.0.0.3" || len(r.Rejected) != 1 {
		t.Errorf("read is %q: %s %v", got, written(r.Problems), r.Rejected)
	}
}

// However many are bad, and however often they are read: the good ones are there, and
// what is said is bounded and always the same.
func TestManyBadEndpointsAreLeftOut(t *testing.T) {
	entry := registered(func(e *networking.ServiceEntry) {
		for i := range 6000 {
			e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{
				Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Ports: map[string]uint32{"http": 0, "grpc": 1, "tcp": 2},
			})
		}
		e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: "10.2.0.1"})
	})
	var before istio.Reading
	for i := range 5 {
		r := fromRegistry(proto.Clone(entry).(*networking.ServiceEntry))
		if got := summary(r); got != "http=80, 10.0.0.1 zone=a, 10.0.0.2, 10.0.0.3, 10.2.0.1" {
			t.Fatalf("read is %.200q", got)
		}
		if len(r.Rejected) > 1000 || len(r.Rejection("", "").Reason) > 2000 {
			t.Errorf("%d problems are written in %d bytes", len(r.Rejected), len(r.Rejection("", "").Reason))
		}
		if i > 0 && !slices.Equal(r.Rejected, before.Rejected) {
			t.Error("each time something else is said")
		}
		before = r
	}
}

// entries is the row of ServiceEntry in the table.
func entries() istio.Definition {
	row, _ := istio.ByName("ServiceEntry")
	return row
}
