package kubernetes

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// A rejected record is shown at the object that it was made of. An object that the
// configuration excludes is valid.
func TestRejectionsAreOfObjects(t *testing.T) {
	t.Parallel()
	web := convert.Name{Namespace: "shop", Name: "web"}.Ref()
	below := web
	below.Name += ":web-0"
	service := kubeevents.Object{Resource: "services", Kind: "Service", Namespace: "shop", Name: "web"}
	entry := model.Ref{Kind: model.KindWorkload, Key: model.Key{Namespace: "shop", Name: "vm"}}
	for _, test := range []struct {
		f    model.Rejection
		want kubeevents.Object
		is   bool
	}{
		{model.Rejection{Ref: web, Place: services}, service, true},
		{model.Rejection{Ref: below, Place: services}, service, true},
		{
			model.Rejection{Ref: entry, Place: "workloadentries"},
			kubeevents.Object{Group: "networking.istio.io", Resource: "workloadentries", Kind: "WorkloadEntry", Namespace: "shop", Name: "vm"},
			true,
		},
		{model.Rejection{Ref: web, Place: services, Outside: true}, kubeevents.Object{}, false},
		{model.Rejection{Place: "workloadentries", Object: "workloadentries"}, kubeevents.Object{}, false},
		{model.Rejection{Ref: model.Ref{Kind: model.KindEndpoint, Key: model.Key{Name: "web/1"}}}, kubeevents.Object{}, false},
	} {
		got, is := rejectedObject(test.f)
		if is != test.is || is && got != test.want {
			t.Errorf("%+v is of %+v (%t), want %+v", test.f, got, is, test.want)
		}
		if ref := refOf(test.want); is && test.f.Ref != below && ref != test.f.Ref {
			t.Errorf("the record of %+v is %v", test.want, ref)
		}
	}
}

// An object of a kind that cannot be read any more is still rejected, though its rejection
// is not reported then. One that is deleted is forgotten.
func TestUnreadObjectIsNotAccepted(t *testing.T) {
	t.Parallel()
	s := New(Config{}, source.Env{Name: "east"})
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: "bad"}}
	bad := model.Rejection{Ref: ref, Place: "serviceentries", Reason: "no ports"}
	unread := model.Rejection{Place: "serviceentries", Object: "serviceentries", Reason: "cannot be read"}
	for _, step := range []struct {
		present []model.Rejection
		stored  bool
		want    int
	}{
		{[]model.Rejection{bad}, true, 1},
		{[]model.Rejection{unread}, true, 1},
		{[]model.Rejection{bad}, true, 1},
		{nil, true, 0},
		{[]model.Rejection{bad}, true, 1},
		{nil, false, 0},
	} {
		s.ReportRejections(step.present, step.present, func(r model.Ref) bool { return step.stored && r == ref })
		if got := s.events.Warned(); len(got) != step.want {
			t.Errorf("after %v: %v are known as rejected", fmt.Sprint(step.present), got)
		}
	}
}

// A cluster that a kubeconfig names is only read, unless the configuration asks for Events.
func TestClusterOfAKubeconfigStaysUntouched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		c    Config
		want bool
	}{
		{Config{}, true},
		{Config{Kubeconfig: "east.yaml"}, false},
		{Config{Context: "east"}, false},
		{Config{Kubeconfig: "east.yaml", Events: new(true)}, true},
		{Config{Events: new(false)}, false},
	} {
		if got := New(test.c, source.Env{}).events != nil; got != test.want {
			t.Errorf("%+v writes Events: %t", test.c, got)
		}
	}
}

// An API server vouches for the creation of a WorkloadEntry: of two at one address the newer one runs
// there. The time of the connection, which istiod writes, is more exact.
func TestWorkloadsAreRegisteredWhenTheyAreCreated(t *testing.T) {
	t.Parallel()
	for connected, want := range map[string]int64{"": 1_700_000_000_000, "2023-11-14T22:13:25Z": 1_700_000_005_000} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry",
			"metadata": map[string]any{
				"name": "vm", "namespace": "shop", "creationTimestamp": "2023-11-14T22:13:20Z",
				"annotations": map[string]any{"istio.io/connectedAt": connected},
			},
			"spec": map[string]any{"address": "10.0.0.1"},
		}}
		read, _ := readObject(u, "cluster.local").(istio.Reading)
		spec, _ := read.Spec.(model.Workload)
		if spec.Endpoint.Registered != want {
			t.Errorf("connected at %q it is registered at %d: %+v", connected, spec.Endpoint.Registered, read)
		}
	}
}
