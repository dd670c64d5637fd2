package baseline

import (
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
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
func presenceOf(list func(model.Filter) iter.Seq[model.Record], objects map[model.Ref]bool) presence {
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
	for rec := range list(model.Filter{Kind: model.KindScope}) {
		note(rec, model.KindScope, rec.Name)
	}
	for rec := range list(model.Filter{Kind: model.KindService}) {
		spec, _ := rec.Spec.(model.Service)
		for host := range spec.Hosts.All() {
			note(rec, model.KindService, model.Name(host))
		}
	}
	serve := func(service model.Record, e model.Endpoint) {
		spec, _ := service.Spec.(model.Service)
		sockets := index.SocketsOf(spec, e)
		e.Network = "" // an object may have been written when its network was not known
		maps.Copy(sockets, index.SocketsOf(spec, e))
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
	for rec := range list(model.Filter{Kind: model.KindEndpoint}) {
		if service, ok := services[rec.Owner]; ok {
			spec, _ := rec.Spec.(model.Endpoint)
			serve(service, spec)
		}
	}
	s.workloads(list, services, serve)
	return s
}

// workloads counts the workloads that services of their own source select.
func (s presence) workloads(list func(model.Filter) iter.Seq[model.Record], services map[model.Ref]model.Record, serve func(model.Record, model.Endpoint)) {
	found := map[string]index.Labelled{} // by source
	for _, service := range services {
		if spec, ok := service.Spec.(model.Service); !ok || spec.WorkloadSelector.Len() == 0 {
			continue
		}
		if found[service.Source] == nil {
			found[service.Source] = index.ByLabel(list(model.Filter{Kind: model.KindWorkload, Source: service.Source}))
		}
		for _, rec := range found[service.Source].RecordsOf(service) {
			spec, _ := rec.Spec.(model.Workload)
			serve(service, spec.Endpoint)
		}
	}
}
