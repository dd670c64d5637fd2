// Package shop makes events about services and endpoints of the namespace shop, for tests of
// packages that read the catalog. It keeps no state, and any goroutine may call it.
package shop

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// ServiceRef names a service of a source.
func ServiceRef(source, host string) model.Ref {
	return model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "shop", Name: host}}
}

// Service is a static service with ports http and grpc.
func Service(source, host string) model.Event {
	return model.Upsert{Record: model.Record{Ref: ServiceRef(source, host), Spec: model.Service{
		Hosts: model.ListOf(host), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
		Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 90, Name: "grpc", Protocol: "GRPC"}),
	}}}
}

// NoService deletes a service.
func NoService(source, host string) model.Event {
	return model.Delete{Record: model.Record{Ref: ServiceRef(source, host)}}
}

// Instance is an endpoint of a service at an address.
func Instance(source, host, address string) model.Event {
	return InstanceOf(source, host, model.Endpoint{Address: address})
}

// InstanceOf is an endpoint of a service.
func InstanceOf(source, host string, e model.Endpoint) model.Event {
	return model.Upsert{Record: instance(source, host, e)}
}

// NoInstance deletes an endpoint.
func NoInstance(source, host, address string) model.Event {
	return model.Delete{Record: instance(source, host, model.Endpoint{Address: address})}
}

func instance(source, host string, e model.Endpoint) model.Record {
	owner := ServiceRef(source, host)
	ref := owner
	ref.Kind, ref.Name = model.KindEndpoint, host+"/"+e.Address
	return model.Record{Ref: ref, Owner: owner, Spec: e}
}

// Labelled is an endpoint with labels.
func Labelled(address string, labels map[string]string) model.Endpoint {
	return model.Endpoint{Address: address, Labels: model.MapOf(labels)}
}

// Fleet returns the service a.example with so many instances.
func Fleet(instances int, labels map[string]string) *catalog.Service {
	b := catalog.NewBuilder(nil)
	events := []model.Event{Service("sc", "a.example")}
	for i := range instances {
		events = append(events, InstanceOf("sc", "a.example", Labelled(address(i), labels)))
	}
	b.Apply(1, events)
	s, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
	return s
}

func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

// Busy is an endpoint with the usual attributes.
func Busy(i int, version string) model.Endpoint {
	return model.Endpoint{
		Address: address(i), Locality: model.Locality{Region: "r", Zone: "z"}, Weight: 10,
		Labels: model.MapOf(map[string]string{"app": "a", "version": version, "instanceId": fmt.Sprintf("%032x", i)}),
	}
}

// DrawEvent draws a change of an endpoint of a.example, or of its definition.
func DrawEvent(t *rapid.T) model.Event {
	i := rapid.IntRange(0, 130).Draw(t, "endpoint")
	e := Busy(i, rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version"))
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		return NoInstance("sc", "a.example", e.Address)
	case 1:
		e.Health = model.Unhealthy
	case 2: // it serves one port only
		e.Ports, e.Exact = model.MapOf(map[string]uint32{"http": 8080}), true
	case 3:
		e.Ports = model.MapOf(map[string]uint32{"http": uint32(8000 + i)}) //nolint:gosec // small
	case 4:
		up, _ := Service("sc", "a.example").(model.Upsert)
		spec, _ := up.Record.Spec.(model.Service)
		spec.ExportTo = model.ListOf(rapid.SampledFrom([]string{".", "*"}).Draw(t, "exported to"))
		up.Record.Spec = spec
		return up
	}
	return InstanceOf("sc", "a.example", e)
}
