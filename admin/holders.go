package admin

import (
	"iter"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
)

// holders lists the clients that have resources of a host's services, or ask for them.
func (h holdings) holders(w http.ResponseWriter, r *http.Request) {
	services := named(h.parts.Snapshot(), r.PathValue("host"))
	if len(services) == 0 {
		unknownService(w, r.PathValue("host"))
		return
	}
	now := time.Now()
	replyList(w, h.parts.Log, func(yield func(ServiceClient) bool) {
		for _, o := range h.parts.served() {
			for shape := range o.holders(services, now) {
				if r.Context().Err() != nil || !yield(shape) {
					return
				}
			}
		}
	})
}

// holders yields the clients of an output that have resources of some services, or ask for
// them. A client with several streams comes several times.
func (o served) holders(services []*catalog.Service, now time.Time) iter.Seq[ServiceClient] {
	return func(yield func(ServiceClient) bool) {
		if o.Named == nil {
			return
		}
		named := namesByKind(o, services)
		for subscriber := range o.Engine.All() {
			client := subscriber.Client()
			shape := ServiceClient{Output: o.name, ID: subscriber.Info.ID, Kind: client.Kind, Namespace: client.Namespace}
			for _, name := range named[client.Kind] {
				if status, ok := subscriber.Resource(name.Type, name.Name); ok {
					shape.Resources = append(shape.Resources, heldShape(name, status, now))
				}
			}
			if len(shape.Resources) > 0 && !yield(shape) {
				return
			}
		}
	}
}

// namesByKind returns the resources of some services, by the kind of clients. Services of one
// host in several namespaces have the same names.
func namesByKind(o served, services []*catalog.Service) map[string][]output.ResourceName {
	all, seen := map[string][]output.ResourceName{}, map[string]map[output.ResourceName]bool{}
	for _, kind := range o.Kinds {
		seen[kind] = map[output.ResourceName]bool{}
		for _, s := range services {
			for _, name := range o.Named(s, kind) {
				if !seen[kind][name] {
					seen[kind][name], all[kind] = true, append(all[kind], name)
				}
			}
		}
	}
	return all
}

func heldShape(name output.ResourceName, status push.ResourceStatus, now time.Time) ExplainedResource {
	return ExplainedResource{
		Type: name.Type, Name: name.Name, Version: name.Version, Held: status.Version, State: string(status.State), Reason: status.Reason,
		Age: age(now, status.Since), Pending: status.Pending,
	}
}
