package source

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// presence maps the objects of baselines, named without a source, to the data of all
// sources about them.
type presence map[model.Ref]*present

// present is the data of all sources about an object: the sockets, each with its
// sources, and the number of endpoints of each source.
type present struct {
	sockets   map[uint64][]string
	endpoints map[string]int
}

// has reports whether any source has the object.
func (s presence) has(object model.Ref) bool {
	object.Source = ""
	return s[object] != nil
}

// by returns the sources in which an object has such an endpoint.
func (s presence) by(object model.Ref, socket uint64) []string {
	object.Source = ""
	if is := s[object]; is != nil {
		return is.sockets[socket]
	}
	return nil
}

// endpoints counts the endpoints of an object in its own source.
func (s presence) endpoints(object model.Ref) int {
	source := object.Source
	object.Source = ""
	if is := s[object]; is != nil {
		return is.endpoints[source]
	}
	return 0
}

// presenceOf reads from records the presence of the objects of baselines, over all
// sources.
func presenceOf(stored Lister, objects map[model.Ref]bool) presence {
	s := presence{}
	subjects := map[model.Ref][]model.Ref{} // of the services that are concerned
	services := map[model.Ref]model.Record{}
	note := func(rec model.Record, kind model.Kind, name string) {
		subject := model.Ref{Kind: kind, Key: model.Key{Namespace: rec.Namespace, Name: name}}
		if !objects[subject] {
			return
		}
		if s[subject] == nil {
			s[subject] = &present{map[uint64][]string{}, map[string]int{}}
		}
		subjects[rec.Ref] = append(subjects[rec.Ref], subject)
		services[rec.Ref] = rec
	}
	for rec := range stored.List(model.Filter{Kind: model.KindScope}) {
		note(rec, model.KindScope, rec.Name)
	}
	for rec := range stored.List(model.Filter{Kind: model.KindService}) {
		spec, _ := rec.Spec.(model.Service)
		for host := range spec.Hosts.All() {
			note(rec, model.KindService, host)
		}
	}
	serve := func(service model.Record, e model.Endpoint) {
		spec, _ := service.Spec.(model.Service)
		sockets := socketsOf(spec, e)
		for _, subject := range subjects[service.Ref] {
			is := s[subject]
			is.endpoints[service.Source]++
			for socket := range sockets {
				if by := is.sockets[socket]; !slices.Contains(by, service.Source) {
					is.sockets[socket] = append(by, service.Source)
				}
			}
		}
	}
	for rec := range stored.List(model.Filter{Kind: model.KindEndpoint}) {
		if service, ok := services[rec.Owner]; ok {
			spec, _ := rec.Spec.(model.Endpoint)
			serve(service, spec)
		}
	}
	s.workloads(stored, services, serve)
	return s
}

// workloads counts the workloads that services of their own source select.
func (s presence) workloads(stored Lister, services map[model.Ref]model.Record, serve func(model.Record, model.Endpoint)) {
	found := map[string]labelled{} // by source
	for _, service := range services {
		if spec, ok := service.Spec.(model.Service); !ok || spec.WorkloadSelector.Len() == 0 {
			continue
		}
		if found[service.Source] == nil {
			found[service.Source] = byLabel(stored.List(model.Filter{Kind: model.KindWorkload, Source: service.Source}))
		}
		for _, rec := range found[service.Source].recordsOf(service) {
			spec, _ := rec.Spec.(model.Workload)
			serve(service, spec.Endpoint)
		}
	}
}

// socketsOf returns the sockets at which an endpoint serves the ports of a service.
func socketsOf(service model.Service, e model.Endpoint) map[uint64]bool {
	sockets := map[uint64]bool{}
	if service.Ports.Len() == 0 {
		sockets[Socket(e.Address, e.Network, 0)] = true
	}
	for port := range service.Ports.All() {
		at, ok := e.Ports.Get(port.Name)
		if !ok && port.TargetName != "" {
			at, ok = e.Ports.Get(port.TargetName)
		}
		switch {
		case ok:
		case e.Exact, port.TargetName != "":
			continue // the endpoint does not serve this port
		case port.TargetPort != 0:
			at = port.TargetPort
		default:
			at = port.Number
		}
		sockets[Socket(e.Address, e.Network, at)] = true
	}
	return sockets
}

// overlay returns records as they are after some writes, in no order.
func overlay(stored Lister, writes []model.Write) Lister {
	o := overlaid{stored, writes, make(map[model.Ref]bool, len(writes))}
	for _, w := range writes {
		o.written[w.Record.Ref] = true
	}
	return o
}

type overlaid struct {
	Lister
	writes  []model.Write
	written map[model.Ref]bool
}

func (o overlaid) List(f model.Filter) iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		for rec := range o.Lister.List(f) {
			if !o.written[rec.Ref] && !yield(rec) {
				return
			}
		}
		for _, w := range o.writes {
			if !w.Delete && f.Matches(w.Record.Ref) && !yield(w.Record) {
				return
			}
		}
	}
}
