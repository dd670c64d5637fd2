package catalog_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// state is what a store holds.
type state map[model.Ref]model.Record

// refs returns the references in order.
func (s state) refs() []model.Ref { return slices.SortedFunc(maps.Keys(s), model.Ref.Compare) }

// events says the whole state, in order.
func (s state) events() []model.Event {
	var events []model.Event
	for _, ref := range s.refs() {
		events = append(events, model.Upsert{Record: s[ref]})
	}
	return events
}

// take makes the state what it is after the events.
func (s state) take(events []model.Event) {
	for _, event := range events {
		switch e := event.(type) {
		case model.Upsert:
			s[e.Record.Ref] = e.Record
		case model.Delete:
			delete(s, e.Record.Ref)
		}
	}
}

// build returns the snapshot of a state, built at once.
func build(order []string, s state) *catalog.Snapshot {
	b := catalog.NewBuilder(order)
	b.Apply(1, s.events())
	return b.Snapshot()
}

// shop is the service most tests speak of.
var shop = catalog.ServiceKey{Namespace: "ns", Host: "shop"}

func ref(kind model.Kind, source, name string) model.Ref {
	return model.Ref{Kind: kind, Key: model.Key{Source: source, Namespace: "ns", Name: name}}
}

// service returns a record of a static service with one port, 80.
func service(source, name string, hosts ...string) model.Record {
	return model.Record{Ref: ref(model.KindService, source, name), Revision: 1, Spec: model.Service{
		Hosts:    model.ListOf(hosts...),
		Ports:    model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		Location: model.MeshInternal, Resolution: model.ResolutionStatic,
	}}
}

func endpoint(source, name, address string, weight uint32) model.Record {
	return owned(model.Record{Ref: ref(model.KindEndpoint, source, name), Revision: 1, Spec: model.Endpoint{Address: address, Weight: weight}})
}

// owned returns an endpoint as one of the service that tests name before it.
func owned(r model.Record) model.Record {
	if r.Kind == model.KindEndpoint {
		service, _, _ := strings.Cut(r.Name, "/")
		r.Owner = model.Ref{Kind: model.KindService, Key: model.Key{Source: r.Source, Namespace: r.Namespace, Name: service}}
	}
	return r
}

func mark(source string) model.Record {
	r := model.Record{Ref: ref(model.KindSource, source, source), Revision: 1, Spec: model.SourceMark{}}
	r.Namespace = ""
	return r
}

func upserts(records ...model.Record) []model.Event {
	var events []model.Event
	for _, r := range records {
		events = append(events, model.Upsert{Record: r})
	}
	return events
}

func deletes(records ...model.Record) []model.Event {
	var events []model.Event
	for _, r := range records {
		events = append(events, model.Delete{Record: r})
	}
	return events
}

// names lists the services and endpoints that a change names, in order.
func names(c catalog.Change) []string {
	list := []string{}
	for key, s := range c.Services {
		list = append(list, key.String())
		for id := range s.Endpoints {
			list = append(list, key.String()+" "+idText(id))
		}
	}
	for key := range c.Opaques {
		list = append(list, key.String())
	}
	slices.Sort(list)
	return list
}

func idText(id catalog.EndpointID) string {
	if strings.HasPrefix(id.Address, "unix://") {
		return fmt.Sprintf("%d %s", id.ServicePort, id.Address)
	}
	return fmt.Sprintf("%d %s:%d", id.ServicePort, id.Address, id.Port)
}
