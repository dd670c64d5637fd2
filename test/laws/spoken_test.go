package laws_test

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// sockets are where an endpoint serves the ports of a service.
func sockets(s model.Service, e model.Endpoint) (list []uint64) {
	for port := range s.Ports.All() {
		at := port.TargetPort
		if at == 0 {
			at = port.Number
		}
		list = append(list, source.Socket(e.Address, "", at))
	}
	return list
}

// spoken is what all sources say of what others may have: by object, socket and source.
type spoken map[string]map[uint64]map[string]bool

func subject(kind model.Kind, namespace, name string) string {
	return fmt.Sprint(kind, " ", namespace, "/", name)
}

func (t telling) records() iter.Seq[model.Record] {
	return func(yield func(model.Record) bool) {
		for _, event := range t.events {
			if upsert, ok := event.(model.Upsert); ok && !yield(upsert.Record) {
				return
			}
		}
	}
}

func (t telling) spoken() spoken {
	all, services := spoken{}, map[model.Ref]model.Record{}
	of := func(key string) map[uint64]map[string]bool {
		if all[key] == nil {
			all[key] = map[uint64]map[string]bool{}
		}
		return all[key]
	}
	serve := func(service model.Record, e model.Endpoint) {
		spec, _ := service.Spec.(model.Service)
		for host := range spec.Hosts.All() {
			by := of(subject(model.KindService, service.Namespace, nameOf(host)))
			for _, socket := range sockets(spec, e) {
				if by[socket] == nil {
					by[socket] = map[string]bool{}
				}
				by[socket][service.Source] = true
			}
		}
	}
	for r := range t.records() {
		switch spec := r.Spec.(type) {
		case model.Scope:
			of(subject(r.Kind, r.Namespace, r.Name))
		case model.Service:
			services[r.Ref] = r
			for host := range spec.Hosts.All() {
				of(subject(r.Kind, r.Namespace, nameOf(host)))
			}
		}
	}
	for r := range t.records() {
		switch spec := r.Spec.(type) {
		case model.Endpoint:
			if service, ok := services[r.Owner]; ok {
				serve(service, spec)
			}
		case model.Workload:
			for _, service := range services {
				selector := service.Spec.(model.Service).WorkloadSelector
				if service.Source == r.Source && service.Namespace == r.Namespace && selector.Len() > 0 && spec.Endpoint.Labels.Includes(selector) {
					serve(service, spec.Endpoint)
				}
			}
		}
	}
	return all
}
