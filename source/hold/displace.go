package hold

import (
	"fmt"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// Objects are the objects of some sources, each without its source, with the places
// of its endpoints. Services are objects by host, as the catalog merges them. A
// workload that no service of its source selects is an object of its own.
type Objects map[model.Ref]map[place]struct{}

// place is the address of an endpoint with its network and ports.
type place struct{ address, network, ports string }

// ObjectsOf reads the objects of some sources from the store. Endpoints of several
// sources in the same place count once.
func ObjectsOf(list func(model.Filter) iter.Seq[model.Record], sources ...string) Objects {
	objects := Objects{}
	for _, name := range sources {
		objects.take(list, name)
	}
	return objects
}

func (v Objects) take(list func(model.Filter) iter.Seq[model.Record], source string) {
	services := map[model.Ref]model.Record{}
	var endpoints, alone []model.Record
	for rec := range list(model.Filter{Source: source}) {
		switch {
		case rec.Kind.Reserved():
		case rec.Kind == model.KindService:
			services[rec.Ref] = rec
			v.serve(rec, nil)
		case rec.Kind == model.KindEndpoint:
			endpoints = append(endpoints, rec)
		case rec.Kind == model.KindWorkload:
			alone = append(alone, rec)
		default:
			v.add(rec.Ref, nil)
		}
	}
	for _, rec := range endpoints {
		spec, _ := rec.Spec.(model.Endpoint)
		v.serve(services[rec.Owner], &spec)
	}
	v.join(services, alone)
}

// join counts workloads for the services that select them.
func (v Objects) join(services map[model.Ref]model.Record, workloads []model.Record) {
	if len(workloads) == 0 {
		return
	}
	found, selected := index.ByLabel(slices.Values(workloads)), map[model.Ref]bool{}
	for _, service := range services {
		for _, rec := range found.RecordsOf(service) {
			spec, _ := rec.Spec.(model.Workload)
			v.serve(service, &spec.Endpoint)
			selected[rec.Ref] = true
		}
	}
	for _, rec := range workloads {
		if spec, _ := rec.Spec.(model.Workload); !selected[rec.Ref] {
			v.add(rec.Ref, &spec.Endpoint)
		}
	}
}

// serve adds an endpoint of a service, if any, to each of its hosts.
func (v Objects) serve(service model.Record, e *model.Endpoint) {
	spec, _ := service.Spec.(model.Service)
	for host := range spec.Hosts.All() {
		v.add(model.Ref{Kind: model.KindService, Key: model.Key{Namespace: service.Namespace, Name: model.Name(host)}}, e)
	}
}

func (v Objects) add(object model.Ref, e *model.Endpoint) {
	object.Source = ""
	if v[object] == nil {
		v[object] = map[place]struct{}{}
	}
	if e == nil {
		return
	}
	at := place{address: e.Address, network: e.Network}
	for name, number := range e.Ports.All() {
		at.ports += fmt.Sprintf("%s=%d,", name, number)
	}
	v[object][at] = struct{}{}
}

// Drop is the loss when sources replace another one.
type Drop struct {
	Lost, Of   int    // how many of how many
	What       string // "endpoints"; "services" of one that has no endpoints, "objects" of one without either
	Suspicious bool
}

// Displace compares the objects of a source that leaves the configuration with the objects of
// its successors. The comparison is by object, so that a gain of one makes up for no loss of
// another. A loss is suspicious by the same rules as a drop within a source.
func (c Config) Displace(leaving, came Objects) Drop {
	endpoints, alone := Drop{What: "endpoints"}, false
	services, objects := Drop{What: "services"}, Drop{What: "objects"}
	for object, places := range leaving {
		have, there := came[object]
		lost := max(len(places)-len(have), 0)
		endpoints.Lost, endpoints.Of = endpoints.Lost+lost, endpoints.Of+len(places)
		alone = alone || len(have) == 0 && c.SuspiciousAlone(lost)
		one := &objects
		if object.Kind == model.KindService {
			one = &services
		}
		if one.Of++; !there {
			one.Lost++
		}
	}
	s := objects
	switch {
	case endpoints.Of > 0:
		s = endpoints
	case services.Of > 0:
		s = services
	}
	everything := s.Of > 0 && s.Lost == s.Of && c.judgesAll()
	s.Suspicious = everything || alone || c.Suspicious(endpoints.Lost, endpoints.Of)
	return s
}
