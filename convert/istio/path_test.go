package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

// passedOn is a ServiceEntry of two ports, three endpoints and one that is not ready, with a path.
func passedOn(t *testing.T, resolution networking.ServiceEntry_Resolution, path string) istio.Reading {
	t.Helper()
	entry := &networking.ServiceEntry{
		Hosts: []string{"cart.example"}, Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: resolution,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 90, Name: "grpc", Protocol: "GRPC"}},
	}
	for i := range 3 {
		entry.Endpoints = append(entry.Endpoints, &networking.WorkloadEntry{Address: fmt.Sprintf("10.0.0.%d", i+1)})
	}
	body, err := anypb.New(entry)
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{"team": "a", mcp.NotReadyEndpoints: "10.0.0.9:80"}
	if path != "" {
		annotations[istio.AnnotationPath] = path
	}
	return istio.FromResource(entries(), &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/cart", Annotations: annotations}, Body: body})
}

// shown is an object with its paths, such as "east: 80, 90 by west; 10.0.0.1 by west".
func shown(r istio.Reading) string {
	if r.Echoed {
		return "echoed"
	}
	object := r.Listed("")
	by := func(item string, path model.Path) string {
		if path == object.Record.Path {
			return item
		}
		return item + " by " + string(path)
	}
	var items []string
	spec := object.Record.Spec.(model.Service)
	for port := range spec.Ports.All() {
		path := port.Path
		if path == "" {
			path = object.Record.Path
		}
		items = append(items, by(fmt.Sprint(port.Number), path))
	}
	for _, o := range object.Owned {
		items = append(items, by(o.Spec.(model.Endpoint).Address, o.Path))
	}
	return string(object.Record.Path) + ": " + strings.Join(items, ", ")
}

func TestEachItemHasItsPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":                                 ": 80, 90, 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.9",
		"east":                             "east: 80, 90, 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.9",
		"east,north":                       "east,north: 80, 90, 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.9",
		"east;west,east/0x3,1,0x2,1":       "east: 80, 90, 10.0.0.1 by west,east, 10.0.0.2, 10.0.0.3, 10.0.0.9 by west,east",
		"west,east;east;north/0,1x2,2x3,1": "west,east: 80 by east, 90 by east, 10.0.0.1 by north, 10.0.0.2 by north, 10.0.0.3 by north, 10.0.0.9 by east",
	} {
		r := passedOn(t, networking.ServiceEntry_STATIC, path)
		if n := r.WithoutEchoes("here"); n != 0 {
			t.Errorf("%q: %d items are left out", path, n)
		}
		if got := shown(r); got != want {
			t.Errorf("%q is read as\n%s, want\n%s", path, got, want)
		}
		if annotations := r.Spec.(model.Service).Annotations; annotations.Len() != 1 {
			t.Errorf("%q: the service has annotations %v", path, annotations.Map())
		}
	}
}

// What is left of an entry of which something is bad keeps its own paths.
func TestBesideABadPieceEachItemKeepsItsPath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*networking.ServiceEntry)
		want   string
	}{
		"nothing": {nil, "a: 80 by b, 10.0.0.1 by c, 10.0.0.2 by d, 10.0.0.3 by e, 10.0.0.9 by f"},
		"the first endpoint": {
			func(e *networking.ServiceEntry) { e.Endpoints[0].Address = "" },
			"a: 80 by b, 10.0.0.2 by d, 10.0.0.3 by e, 10.0.0.9 by f",
		},
		"the one in the middle": {
			func(e *networking.ServiceEntry) { e.Endpoints[1].Address = "db.example.com" },
			"a: 80 by b, 10.0.0.1 by c, 10.0.0.3 by e, 10.0.0.9 by f",
		},
		"the one in the middle, and the last says the same as the first": {
			func(e *networking.ServiceEntry) {
				e.Endpoints[1].Ports["http"] = 0
				e.Endpoints[2] = &networking.WorkloadEntry{Address: "10.0.0.1", Ports: map[string]uint32{"http": 8081}}
			},
			"a: 80 by b, 10.0.0.1 by c, 10.0.0.1 by e, 10.0.0.9 by f",
		},
		"a port": {
			func(e *networking.ServiceEntry) { e.Ports[0].Number = 0 },
			"a: 8080 by b, 10.0.0.1 by c, 10.0.0.2 by d, 10.0.0.3 by e, 10.0.0.9 by f",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := anypb.New(registered(c.change))
			if err != nil {
				t.Fatal(err)
			}
			r := istio.FromResource(entries(), &mcpapi.Resource{Body: body, Metadata: &mcpapi.Metadata{
				Name: "shop/orders", Annotations: map[string]string{istio.AnnotationPath: "a;b;c;d;e;f/0,1,2,3,4,5", mcp.NotReadyEndpoints: "10.0.0.9:80"},
			}})
			if !r.Valid() {
				t.Fatalf("it is rejected: %s", written(r.Problems))
			}
			if n := r.WithoutEchoes("here"); n != 0 {
				t.Errorf("%d items are left out", n)
			}
			if got := shown(r); got != c.want {
				t.Errorf("it is read as\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestMalformedPathsAreRejected(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		",", "east,", "east;", "a b", "east/", "east/0", "east/0x6", "east/0x8", "east/1x7", "east/0x7,0", "east/-1x7", "east/0x99999999999", "east;west/0x3,1x5", "east/0x0",
		strings.Repeat("a,", model.MostPath) + "b", strings.Repeat("a", 64),
	} {
		r := passedOn(t, networking.ServiceEntry_STATIC, path)
		if r.Valid() || len(r.Problems) != 1 || r.Problems[0].Field != "metadata.annotations[isthmus.io/path]" || r.Ref.Name != "cart" {
			t.Errorf("%.40q is read as %v, with %v", path, r.Spec, r.Problems)
		}
	}
}

func TestWhatIsLeftWithoutEchoesIsTaken(t *testing.T) {
	t.Parallel()
	static, dns := networking.ServiceEntry_STATIC, networking.ServiceEntry_DNS
	for _, test := range []struct {
		name, path string
		resolution networking.ServiceEntry_Resolution
		want       string
		leftOut    int
	}{
		{"all of it came from here", "here,east", static, "echoed", 7},
		{"all but an endpoint", "here,east;west,east/0x4,1,0x2", static, "west,east: 80, 90, 10.0.0.2", 4},
		{"an endpoint alone", "west,east;here,east/0x4,1,0x2", static, "west,east: 80, 90, 10.0.0.1, 10.0.0.3, 10.0.0.9", 1},
		{"all endpoints and a port", "west,east;here,east/0x2,1x5", static, "west,east: 80", 5},
		{"the object and its endpoints", "here,east;west,east/0,1,0x5", static, "west,east: 80", 6},
		{
			"a port that an endpoint has by a longer way", "east;here,east;north,west,east/0x2,1,2,1x3", static,
			"east: 80, 90 by north,west,east, 10.0.0.1 by north,west,east", 3,
		},
		{"all but an endpoint that is not ready", "here,east;west,east/0x6,1", static, "west,east: 80, 10.0.0.9", 5},
		{"all names to look up", "west,east;here,east/0x3,1x3,0", dns, "echoed", 3},
	} {
		r := passedOn(t, test.resolution, test.path)
		got := r.WithoutEchoes("here")
		if shown(r) != test.want || got != test.leftOut {
			t.Errorf("%s: %d items are left out of\n%s, want %d of\n%s", test.name, got, shown(r), test.leftOut, test.want)
		}
	}
}

// Whatever the paths are, their text says them.
func TestPathsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	paths := istio.Paths{
		Object: "", Ports: []model.Path{"west", "west"}, Endpoints: []model.Path{"", "west", "north,west"}, NotReady: []model.Path{""},
	}
	text := paths.Text("here")
	if want := "here;west,here;north,west,here/0,1x2,0,1,2,0"; text != want {
		t.Errorf("the text is %q, want %q", text, want)
	}
	r := passedOn(t, networking.ServiceEntry_STATIC, text)
	if got, want := shown(r), "here: 80, 90, 10.0.0.1, 10.0.0.2 by west,here, 10.0.0.3 by north,west,here, 10.0.0.9"; got != want {
		t.Errorf("read as %s, want %s", got, want)
	}
	if !slices.Equal([]string{istio.Paths{}.Text("here"), istio.Paths{Object: "a"}.Text("b"), istio.Paths{}.Text("")}, []string{"here", "a,b", ""}) {
		t.Error("a single path is written otherwise")
	}
}
