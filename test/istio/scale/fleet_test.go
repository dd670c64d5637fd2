package scale_test

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio"
	desired "github.com/isthmus-mesh/isthmus/output/istio/object"
)

// object is one that output/istio writes, or another made of it.
type object struct {
	desired.Ref
	labels, annotations map[string]string
	spec                map[string]any
}

func objectsOf(written []desired.Object) (objects []object) {
	for _, o := range written {
		spec, _ := o.Manifest()["spec"].(map[string]any)
		objects = append(objects, object{o.Ref(), o.Labels, o.Annotations, spec})
	}
	return objects
}

// form makes other objects of those that output/istio writes.
type form func([]object) []object

var forms = []struct {
	name string
	form
}{
	{"inline", func(parts []object) []object { return parts }},
	{"workloads", asWorkloads},
}

const workloadEntry desired.Kind = "WorkloadEntry"

// asWorkloads takes the endpoints out of the parts of a service: each becomes an
// object, found by a label, with all that the parts say to be distinguished from the
// objects of others.
func asWorkloads(parts []object) []object {
	service := parts[0]
	service.spec = maps.Clone(service.spec)
	delete(service.spec, "endpoints")
	selector := map[string]any{"service": service.Name}
	service.spec["workloadSelector"] = map[string]any{"labels": selector}
	objects := []object{service}
	for _, part := range parts {
		endpoints, _ := part.spec["endpoints"].([]any)
		for _, endpoint := range endpoints {
			workload := part
			workload.Kind = workloadEntry
			workload.spec = maps.Clone(endpoint.(map[string]any))
			labels := maps.Clone(workload.spec["labels"].(map[string]any))
			maps.Copy(labels, selector)
			workload.spec["labels"] = labels
			workload.Name = fmt.Sprintf("%s-%s", service.Name, strings.ReplaceAll(workload.spec["address"].(string), ".", "-"))
			objects = append(objects, workload)
		}
	}
	return objects
}

// fleet is a service whose endpoints come and go, and what it is written as.
type fleet struct {
	form     form
	size     int // endpoints at first
	builder  *catalog.Builder
	revision uint64
	objects  map[desired.Ref]string // that were to be written so far
}

func newFleet(f form, size int) *fleet {
	fleet := &fleet{form: f, size: size, builder: catalog.NewBuilder(nil), objects: map[desired.Ref]string{}}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: fleetRef(model.KindService, host(0)), Spec: model.Service{
		Hosts: model.ListOf(host(0)), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
		Ports: model.ListOf(model.Port{Number: port, Name: "http", Protocol: "HTTP"}),
	}}}}
	for n := range size {
		events = append(events, model.Upsert{Record: member(n, usual)})
	}
	fleet.say(events...)
	return fleet
}

// port is that of the service, and usual the weight of its endpoints.
const (
	port  = 8080
	usual = 10
)

func fleetRef(kind model.Kind, name string) model.Ref {
	return model.Ref{Kind: kind, Key: model.Key{Source: "legacy", Namespace: namespace, Name: name}}
}

// member is the record of an endpoint.
func member(n int, weight uint32) model.Record {
	return model.Record{
		Ref: fleetRef(model.KindEndpoint, host(0)+"/"+address(n)), Owner: fleetRef(model.KindService, host(0)),
		Spec: model.Endpoint{
			Address: address(n), Weight: weight,
			Labels:   model.MapOf(map[string]string{"app": name(0), "version": "1.0.0"}),
			Locality: model.Locality{Region: "eu", Zone: "eu-1"},
		},
	}
}

func address(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255) }

func (f *fleet) say(events ...model.Event) {
	f.revision++
	f.builder.Apply(f.revision, events)
}

// step makes the nth change, and returns of which endpoint, and its weight
// afterwards; zero if it is gone. One after the other goes, comes back and gets
// another weight, so that there are never more than at first: one more than what
// an object is to hold would have the endpoints spread anew.
func (f *fleet) step(n int) (at string, weight uint32) {
	of := n / kinds
	switch n % kinds {
	case 0:
		f.say(model.Delete{Record: member(of, usual)})
		return address(of), 0
	case 1:
		weight = usual
	default:
		weight = 2 * usual
	}
	f.say(model.Upsert{Record: member(of, weight)})
	return address(of), weight
}

// kinds is how many changes an endpoint takes part in.
const kinds = 3

// unwritten returns the objects that are not as they were the last time that it
// was asked, and those that are no longer there.
func (f *fleet) unwritten() (changed []*unstructured.Unstructured, gone []desired.Ref) {
	service, _ := f.builder.Snapshot().Service(catalog.ServiceKey{Namespace: namespace, Host: host(0)})
	config := istio.DefaultConfig()
	config.ShardSize = *shardSize
	parts := config.Translate("scale", service, func(name string) bool {
		_, there := f.objects[desired.Ref{Kind: desired.ServiceEntry, Namespace: namespace, Name: name}]
		return there
	})
	left := maps.Clone(f.objects)
	for _, o := range f.form(objectsOf(parts.Objects)) {
		object := manifest(o)
		delete(left, o.Ref)
		if says := textOf(object.Object); f.objects[o.Ref] != says {
			f.objects[o.Ref] = says
			changed = append(changed, object)
		}
	}
	for ref := range left {
		delete(f.objects, ref)
		gone = append(gone, ref)
	}
	return changed, gone
}

func manifest(o object) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": string(o.Kind), "spec": o.spec,
	}}
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	object.SetLabels(o.labels)
	object.SetAnnotations(o.annotations)
	return object
}
