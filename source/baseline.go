package source

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Baseline is what somebody else than the store has of a source: a system that
// is written to. A process that restored nothing has nothing else to compare the
// first listing with.
type Baseline struct {
	// Name is of who has it, and of its process: what an earlier one was told
	// counts for nothing.
	Name   string
	Source string
	// With are other sources, all listed by now. The objects are of none but
	// these, the source, and those that earlier baselines of this name were with.
	With    []string
	Where   string // for people: "that are written here"
	Objects []BaselineObject
}

// BaselineObject is a service or a scope that somebody has.
type BaselineObject struct {
	Kind            model.Kind
	Namespace, Name string   // of a service, its host
	Object          string   // for people: "ServiceEntry default/reviews"
	Endpoints       []uint64 // as of [Socket]
}

// Judge takes what others have of the sources. What is decided comes with the
// marks of the sources: see [model.Judgement].
type Judge interface {
	// Offer takes a baseline, at any time. It fails only if ctx ends.
	Offer(ctx context.Context, b Baseline) error
}

// Socket stands for where an endpoint is served. Two that differ have the same
// once in a great many systems.
func Socket(address, network string, port uint32) uint64 {
	if strings.HasPrefix(address, "unix://") {
		port = 0
	}
	h := fnv.New64a()
	h.Write([]byte(address + "|" + network + "|" + strconv.FormatUint(uint64(port), 10)))
	return h.Sum64()
}

// subject is an object of a baseline, whoever speaks of it.
func (o BaselineObject) subject(source string) model.Ref {
	return model.Ref{Kind: o.Kind, Key: model.Key{Source: source, Namespace: o.Namespace, Name: o.Name}}
}

// said is what all sources say of the objects of baselines.
type said map[model.Ref]map[uint64][]string // by subject, without source: socket → sources

// has reports whether anybody speaks of an object.
func (s said) has(object model.Ref) bool {
	object.Source = ""
	return s[object] != nil
}

// by returns who says that an object has such an endpoint.
func (s said) by(object model.Ref, socket uint64) []string {
	object.Source = ""
	return s[object][socket]
}

// saidOf reads from the store what is said of objects.
func saidOf(store Store, objects map[model.Ref]bool) said {
	s := said{}
	subjects := map[model.Ref][]model.Ref{} // of the services that are concerned
	services := map[model.Ref]model.Record{}
	note := func(rec model.Record, kind model.Kind, name string) {
		subject := model.Ref{Kind: kind, Key: model.Key{Namespace: rec.Namespace, Name: name}}
		if !objects[subject] {
			return
		}
		if s[subject] == nil {
			s[subject] = map[uint64][]string{}
		}
		subjects[rec.Ref] = append(subjects[rec.Ref], subject)
		services[rec.Ref] = rec
	}
	for rec := range store.List(model.Filter{Kind: model.KindScope}) {
		note(rec, model.KindScope, rec.Name)
	}
	for rec := range store.List(model.Filter{Kind: model.KindService}) {
		spec, _ := rec.Spec.(model.Service)
		for host := range spec.Hosts.All() {
			note(rec, model.KindService, host)
		}
	}
	serve := func(service model.Record, e model.Endpoint) {
		spec, _ := service.Spec.(model.Service)
		for socket := range socketsOf(spec, e) {
			for _, subject := range subjects[service.Ref] {
				if by := s[subject][socket]; !slices.Contains(by, service.Source) {
					s[subject][socket] = append(by, service.Source)
				}
			}
		}
	}
	for rec := range store.List(model.Filter{Kind: model.KindEndpoint}) {
		if service, ok := services[rec.Owner]; ok {
			spec, _ := rec.Spec.(model.Endpoint)
			serve(service, spec)
		}
	}
	s.workloads(store, services, serve)
	return s
}

// workloads has those counted that services of their own source select.
func (s said) workloads(store Store, services map[model.Ref]model.Record, serve func(model.Record, model.Endpoint)) {
	found := map[string]labelled{} // by source
	for _, service := range services {
		if spec, ok := service.Spec.(model.Service); !ok || spec.WorkloadSelector.Len() == 0 {
			continue
		}
		if found[service.Source] == nil {
			found[service.Source] = byLabel(store.List(model.Filter{Kind: model.KindWorkload, Source: service.Source}))
		}
		for _, rec := range found[service.Source].recordsOf(service) {
			spec, _ := rec.Spec.(model.Workload)
			serve(service, spec.Endpoint)
		}
	}
}

// socketsOf are where an endpoint serves the ports of a service.
func socketsOf(service model.Service, e model.Endpoint) map[uint64]bool {
	sockets := map[uint64]bool{}
	if service.Ports.Len() == 0 {
		sockets[Socket(e.Address, e.Network, 0)] = true
	}
	for port := range service.Ports.All() {
		at, ok := e.Ports.Get(port.Name)
		switch {
		case ok:
		case e.Exact:
			continue // it does not serve this one
		case port.TargetPort != 0:
			at = port.TargetPort
		default:
			at = port.Number
		}
		sockets[Socket(e.Address, e.Network, at)] = true
	}
	return sockets
}
