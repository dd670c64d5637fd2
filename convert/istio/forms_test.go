package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// fieldsOf are the fields of all problems.
func fieldsOf(r istio.Reading) (fields []string) {
	for _, p := range r.Problems {
		fields = append(fields, p.Field)
	}
	return fields
}

// An MCP source hands over services that its server has made, with the instances
// in them.
func TestServiceOfAPeerIsReadWithItsEndpoints(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	r := istio.FromMessage(istio.Object{
		Namespace: "shop", Name: "orders",
		Meta: model.Meta{Labels: model.MapOf(map[string]string{"registry": "nacos"}), Created: created},
		Spec: &networking.ServiceEntry{
			Hosts: []string{"orders.shop.svc.cluster.local"}, Location: networking.ServiceEntry_MESH_INTERNAL,
			Resolution: networking.ServiceEntry_STATIC,
			Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "http"}},
			Endpoints: []*networking.WorkloadEntry{
				{Address: "10.0.0.1", Ports: map[string]uint32{"http": 8080}, Weight: 3},
				{Address: "10.0.0.2", Locality: "eu/eu-1"},
			},
		},
	})
	if !r.Valid() || r.String() != "ServiceEntry shop/orders" {
		t.Fatalf("%s is invalid: %v", r.String(), r.Problems)
	}
	service, _ := r.Spec.(model.Service)
	if !service.Created.Equal(created) || service.Ports.At(0).Protocol != "HTTP" || service.Labels.Len() != 1 {
		t.Errorf("the service says %+v", service)
	}
	object := r.Listed("shop/orders")
	if len(object.Owned) != 2 || object.Owned[0].Owner != object.Record.Ref || object.Record.Place != "shop/orders" {
		t.Fatalf("it is listed as %+v", object)
	}
	second, _ := object.Owned[1].Spec.(model.Endpoint)
	if object.Owned[1].Name != "orders/10.0.0.2" || second.Locality.Zone != "eu-1" {
		t.Errorf("the second endpoint is %s: %+v", object.Owned[1].Name, second)
	}
}

// Everything that is wrong with a message is found at once, and nothing of it
// needs a text.
func TestAllProblemsOfAMessageAreFound(t *testing.T) {
	t.Parallel()
	r := istio.FromMessage(istio.Object{
		Namespace: "Shop", Name: "a_b",
		Spec: &networking.ServiceEntry{
			Hosts: []string{"*", "bad\xff"}, Ports: []*networking.ServicePort{nil, {Number: 70000, Name: "http", Protocol: "WAT"}},
			Resolution: 77, Endpoints: []*networking.WorkloadEntry{{}},
		},
	})
	want := []string{
		"metadata.name", "metadata.namespace", "spec.hosts[1]", "spec.ports[0]", "spec.ports[1].number", "spec.resolution",
	}
	if got := fieldsOf(r); !slices.Equal(got, want) || r.Valid() || r.Ref != (model.Ref{}) {
		t.Errorf("problems at %q, want %q", got, want)
	}
	rejection := r.Rejection("mcp", "shop/a_b")
	if strings.Contains(rejection.Reason, "line ") || !strings.Contains(rejection.Reason, "; also spec.ports[0]: must be a map") {
		t.Errorf("the reason is %s", rejection.Reason)
	}
}

func TestDurationsOfMessagesAreJudged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of   *durationpb.Duration
		want string // the field that is invalid
	}{
		{&durationpb.Duration{Seconds: 90, Nanos: 5e6}, ""},
		{&durationpb.Duration{Nanos: 5e5}, "spec.inboundConnectionPool.tcp.connectTimeout"},
		{&durationpb.Duration{Seconds: -1, Nanos: -5e8}, "spec.inboundConnectionPool.tcp.connectTimeout"},
		{&durationpb.Duration{Seconds: 1, Nanos: -1}, "spec.inboundConnectionPool.tcp.connectTimeout"},
		{&durationpb.Duration{Seconds: 1 << 60}, "spec.inboundConnectionPool.tcp.connectTimeout"},
	} {
		r := istio.FromMessage(istio.Object{Namespace: "shop", Name: "x", Spec: &networking.Sidecar{
			InboundConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{ConnectTimeout: test.of},
			},
		}})
		if got := strings.Join(fieldsOf(r), ","); got != test.want {
			t.Errorf("%v: invalid is %q, want %q", test.of, got, test.want)
		}
	}
}

// An API server says of an object which version it is, and in its status how the
// workload is. An istiod says when the workload connected.
// A machine with a clock that is far ahead would be the newest registration for ever.
func TestConnectionInTheFutureIsNone(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]bool{time.Minute: true, time.Hour: false} {
		at := time.Now().Add(ahead)
		r := istio.FromJSON(fmt.Appendf(nil, `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry",
"metadata":{"name":"vm-1","namespace":"shop","annotations":{"istio.io/connectedAt":%q}},"spec":{"address":"10.0.0.1"}}`, at.Format(time.RFC3339Nano)), istio.DefaultDomain)
		workload, _ := r.Spec.(model.Workload)
		if counts := workload.Endpoint.Registered == at.UnixMilli(); counts != want || !counts && workload.Endpoint.Registered != 0 {
			t.Errorf("%s ahead it registered at %d", ahead, workload.Endpoint.Registered)
		}
	}
}

func TestObjectOfAnAPIServer(t *testing.T) {
	t.Parallel()
	r := istio.FromJSON([]byte(`{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry",
"metadata":{"name":"vm-1","namespace":"shop","resourceVersion":"4711","uid":"u","generation":2,"annotations":{"istio.io/connectedAt":"2026-01-02T03:04:05.678901Z"},"managedFields":[{"manager":"x"}]},
"spec":{"address":"10.0.0.1"},"status":{"conditions":[{"type":"Healthy","status":"False"}]}}`), istio.DefaultDomain)
	workload, _ := r.Spec.(model.Workload)
	if !r.Valid() || r.ResourceVersion != "4711" || workload.Endpoint.Health != model.Unhealthy ||
		workload.Endpoint.Registered != time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC).UnixMilli() || r.Ref.Kind != model.KindWorkload {
		t.Errorf("read as %+v", r)
	}
}

func TestWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		read istio.Reading
		line int
		want string
	}{
		"half":         {istio.FromJSON([]byte("{\n\"kind\":\n"), istio.DefaultDomain), 2, "not JSON"},
		"YAML":         {istio.FromJSON([]byte("kind: ServiceEntry"), istio.DefaultDomain), 1, "not JSON"},
		"two":          {istio.FromJSON([]byte("{}\n{}"), istio.DefaultDomain), 2, "not JSON"},
		"no text":      {istio.FromJSON([]byte("{\"a\":\n\"\xff\"}"), istio.DefaultDomain), 2, "UTF-8"},
		"deep":         {istio.FromJSON([]byte(strings.Repeat("[", 200)+strings.Repeat("]", 200)), istio.DefaultDomain), 1, "flatten"},
		"a list":       {istio.FromJSON([]byte("[]"), istio.DefaultDomain), 1, "must be a map"},
		"nothing":      {istio.FromMessage(istio.Object{Namespace: "a", Name: "b"}), 0, "not an object that is read"},
		"another kind": {istio.FromMessage(istio.Object{Namespace: "a", Name: "b", Spec: &networking.Gateway{}}), 0, "not an object that is read"},
		"a nil one":    {istio.FromMessage(istio.Object{Namespace: "a", Name: "b", Spec: (*networking.Sidecar)(nil)}), 0, "missing"},
	} {
		if len(test.read.Problems) != 1 || test.read.Problems[0].Line != test.line || !strings.Contains(test.read.Problems[0].Reason, test.want) {
			t.Errorf("%s: %+v, want %q on line %d", name, test.read.Problems, test.want, test.line)
		}
	}
	list := istio.FromJSON([]byte(`{"apiVersion":"v1","kind":"List","items":[]}`), istio.DefaultDomain)
	if !list.Ignored || list.Kind != "List" {
		t.Errorf("a list is %+v", list)
	}
}

// What an Isthmus wrote is not read, in whatever form it comes back.
func TestOwnObjectsAreIgnored(t *testing.T) {
	t.Parallel()
	own := model.Meta{Labels: model.MapOf(map[string]string{istio.LabelManagedBy: istio.ManagedBy})}
	object := istio.Object{Namespace: "shop", Name: "x", Meta: own, Spec: &networking.ServiceEntry{Hosts: []string{"a.example"}}}
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if r := istio.FromMessage(object); !r.Ignored {
		t.Errorf("as a message: %+v", r)
	}
	if r := istio.FromJSON(text, istio.DefaultDomain); !r.Ignored {
		t.Errorf("as JSON: %+v", r)
	}
}
